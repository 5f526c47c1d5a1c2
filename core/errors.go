package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

var (
	// ErrStopped is the cause of a run's context that Stop cancelled, and the
	// error of calls on a scheduler that was stopped.
	ErrStopped = errors.New("scheduler stopped")
	// ErrSessionLost is the cause of a run's context whose session was lost.
	ErrSessionLost = registry.ErrSessionLost
	// ErrConfig is matched by every *ConfigError.
	ErrConfig = field.ErrWrong
	// ErrShutDown is returned by Run when somebody deleted the instance's node in the
	// registry.
	ErrShutDown = errors.New("the instance was shut down from outside")
	// ErrGoexit is the error of an item whose Run called runtime.Goexit.
	ErrGoexit = places.ErrGoexit
	// ErrHeldUp is the error of an item that was not called: RoundListeners.BeforeAll refused its
	// round, or was too late where RoundListeners.FailLate says that this is a failure.
	ErrHeldUp = firing.ErrHeldUp
)

// A ConfigError is one field that is wrong. Its text is one line that names the job,
// or the file and line, the field and the fix; it never repeats a value that may be a
// secret. Field is that of JobConfig, or the path of the key when a file holds it.
// It is ErrConfig, and unwraps to its cause.
//
//	Job, File    string // where, as far as it is known
//	Line, Column int    // of File, from 1; 0 is unknown
//	Field        string // the field's name
//	Problem      string // what is wrong and what to do
//	Err          error  // the cause, or nil
type ConfigError = field.Error

// A PanicError is the error of an item whose Run panicked: the value that was given to
// panic, and the stack as runtime/debug.Stack writes it.
//
//	Value any
//	Stack []byte
type PanicError = places.PanicError

// A StartError is returned by Start when some jobs cannot run. The scheduler is not stopped: the other jobs
// run on, and one of these does too once somebody mends what is wrong with its configuration in the registry, or
// readmits the job.
type StartError struct {
	// Jobs are the reasons, by the names of the jobs. There is at least one.
	Jobs map[string]error
}

func (e *StartError) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap returns the reasons, in the order of the jobs' names.
func (e *StartError) Unwrap() []error {
	all := make([]error, 0, len(e.Jobs))
	for _, name := range slices.Sorted(maps.Keys(e.Jobs)) {
		all = append(all, e.Jobs[name])
	}
	return all
}

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
	return fmt.Sprintf("core: stop: %d items still run (%s): %v", len(e.Items), few(e.Items), e.Err)
}

// Unwrap returns why waiting ended.
func (e *RunningError) Unwrap() error { return e.Err }
