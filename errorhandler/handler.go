package errorhandler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/job/link"
)

// A Handler decides what becomes of a failed run.
type Handler interface {
	// Handle is told of a run that has failed, and returns the error with which it ends; nil
	// is success. ctx may have ended.
	Handle(ctx context.Context, f Failure) error
}

// Func makes a Handler of a function.
type Func func(ctx context.Context, f Failure) error

// Handle calls f.
func (h Func) Handle(ctx context.Context, f Failure) error { return h(ctx, f) }

// A Failure is a run of an item that has failed.
type Failure struct {
	// Shard is the run.
	Shard core.Shard
	// Err is its error; a *core.PanicError where it panicked.
	Err error
	// At is when it failed.
	At time.Time
}

// maxText bounds an error in a message, in characters.
const maxText = 1500

// Text names the job, the item, the fire, the instance and the error, a line each.
func (f Failure) Text() string {
	problem := []rune(strings.TrimSpace(f.Err.Error()))
	if len(problem) > maxText {
		problem = append(problem[:maxText], '…')
	}
	s := f.Shard
	return fmt.Sprintf("job %s: item %d of %d failed\nfire: %s\ninstance: %s\nerror: %s",
		s.Job, s.Item, s.Total, s.Due.Format(time.RFC3339), s.Instance, string(problem))
}

// Link has a handler decide about the failures of a job. A run that the scheduler, the end of its
// session or a person has ended is none: its error stays what it is, and no handler is called.
func Link(h Handler) link.Link {
	return func(next core.Job) core.Job {
		return core.JobFunc(func(ctx context.Context, s core.Shard) error {
			err := link.Call(ctx, next, s)
			if err == nil || ended(ctx) {
				return err
			}
			return h.Handle(ctx, Failure{Shard: s, Err: err, At: time.Now()})
		})
	}
}

// ended reports whether the run was ended from outside, before the job has failed by itself.
func ended(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	why := context.Cause(ctx)
	var killed *request.KilledError
	return errors.Is(why, core.ErrStopped) || errors.Is(why, core.ErrSessionLost) || errors.As(why, &killed)
}

// A Maker makes a handler of settings.
type Maker func(s *Settings) Handler

var (
	mu     sync.Mutex
	makers = map[string]Maker{
		"LOG":    func(*Settings) Handler { return Func(pass) },
		"THROW":  func(*Settings) Handler { return Func(pass) },
		"IGNORE": func(*Settings) Handler { return Func(func(context.Context, Failure) error { return nil }) },
		"STOP":   func(*Settings) Handler { return Func(stop) },
		"WEBHOOK": func(s *Settings) Handler {
			return Notify("WEBHOOK", webhook(s), s.Limit())
		},
	}
)

// Register adds a handler under a name of upper case. It panics when the name is taken.
func Register(name string, m Maker) {
	mu.Lock()
	defer mu.Unlock()
	if makers[name] != nil {
		panic(fmt.Sprintf("errorhandler: %q is registered already", name))
	}
	makers[name] = m
}

// Open makes the handler of a name, in any case, from a job's props; "" is LOG. Its error joins
// a *core.ConfigError for everything that is wrong, and repeats no value.
func Open(name string, props map[string]string) (Handler, error) {
	mu.Lock()
	m := makers[strings.ToUpper(name)]
	if name == "" {
		m = makers["LOG"]
	}
	known := slices.Sorted(maps.Keys(makers))
	mu.Unlock()
	if m == nil {
		return nil, &core.ConfigError{Field: "jobErrorHandlerType", Problem: fmt.Sprintf(
			"%.40q is unknown (forgotten import?); there are: %s", name, strings.Join(known, ", "))}
	}
	s := &Settings{props: props}
	h := m(s)
	if err := s.Err(); err != nil {
		return nil, err
	}
	return h, nil
}

func pass(_ context.Context, f Failure) error { return f.Err }

// stopWait bounds how long a job is tried to be disabled.
const stopWait = 10 * time.Second

func stop(ctx context.Context, f Failure) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	why := fmt.Sprintf("item %d failed at the fire of %s on %s: %v", f.Shard.Item, f.Shard.Due.Format(time.RFC3339), f.Shard.Instance, f.Err)
	if err := f.Shard.DisableJob(ctx, why); err != nil {
		f.Shard.Warn("the job has failed, and could not be stopped: it goes on", err)
	}
	return f.Err
}
