package core

import (
	"errors"
	"fmt"
	"strings"

	"github.com/elasticron/elasticron/registry"
)

var (
	// ErrStopped is the cause of a run's context that Stop cancelled, and the
	// error of calls on a scheduler that was stopped.
	ErrStopped = errors.New("scheduler stopped")
	// ErrSessionLost is the cause of a run's context whose session was lost.
	ErrSessionLost = registry.ErrSessionLost
	// ErrConfig is wrapped by every *ConfigError.
	ErrConfig = errors.New("invalid job configuration")
)

// A ConfigError says which field of a job's configuration is wrong and what it
// may hold. It wraps ErrConfig.
type ConfigError struct {
	// Job is the name of the job.
	Job string
	// Field is the field of JobConfig, or a path in the registry.
	Field string
	// Problem says what is wrong and what to do.
	Problem string
	// Err is the cause, if there is one.
	Err error
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("core: job %q: %s: %s", e.Job, e.Field, e.Problem)
}

// Unwrap returns ErrConfig and the cause.
func (e *ConfigError) Unwrap() []error { return []error{ErrConfig, e.Err} }

// A PanicError is the error of an item whose Run panicked.
type PanicError struct {
	// Value is what was given to panic.
	Value any
	// Stack is the stack of the panic, as runtime/debug.Stack writes it.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// A RunningError is returned by Stop when its context ends before every item's
// function has returned. The items keep their locks in the registry until it
// has; nobody else runs them. Stop may be called again to go on waiting.
type RunningError struct {
	// Items are the items still running, as "job/item", sorted.
	Items []string
	// Err is why waiting ended.
	Err error
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("core: stop: %d items still run (%s): %v", len(e.Items), strings.Join(e.Items, ", "), e.Err)
}

// Unwrap returns why waiting ended.
func (e *RunningError) Unwrap() error { return e.Err }
