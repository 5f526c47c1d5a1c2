package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/membership"
	"github.com/elasticron/elasticron/core/internal/session"
	"github.com/elasticron/elasticron/core/internal/timer"
	"github.com/elasticron/elasticron/registry"
)

// startWait bounds Start when its context has no deadline.
const startWait = 30 * time.Second

// A Scheduler is this process's part in any number of jobs: one instance of
// each, on one registry session at a time. All methods are safe for concurrent
// use. Several schedulers may live in one process.
type Scheduler struct {
	reg     registry.Registry
	opts    options
	events  *dispatch.Dispatcher
	clock   *timer.Clock
	process *membership.Process // what the members of all jobs share
	halt    context.Context
	cancel  context.CancelFunc
	left    atomic.Bool   // the registry, and nothing runs; events may still be told
	done    chan struct{} // closed when everything is joined

	mu       sync.Mutex
	jobs     []*job
	names    map[string]bool // of jobs
	started  bool
	stopping bool
	hurry    bool // items shall be cancelled now
	session  *session.Session
	openErr  error

	state broadcast
}

// A broadcast tells those who wait that the state has changed. Its lock is a leaf.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed at the next change.
func (g *broadcast) next() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

func (g *broadcast) fire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch != nil {
		close(g.ch)
		g.ch = nil
	}
}

// New returns a scheduler on a registry, which the caller closes after Stop.
// It does nothing before Start. It panics without a registry, as one that an error was returned for.
func New(reg registry.Registry, opts ...Option) *Scheduler {
	if reg == nil {
		panic("core: New without a registry; look at the error of opening it")
	}
	s := &Scheduler{reg: reg, done: make(chan struct{}), names: map[string]bool{}}
	s.opts.now = time.Now
	for _, o := range opts {
		o(&s.opts)
	}
	if s.opts.ip == "" {
		s.opts.ip = hostAddress()
	}
	s.opts.host = hostName()
	if s.opts.name == "" {
		s.opts.name = s.opts.host
	}
	s.halt, s.cancel = context.WithCancel(context.Background())
	return s
}

// Add adds a job. Its configuration is checked here: the error joins a *ConfigError for
// everything that is wrong, and the scheduler is as it was before. A job that is added
// after Start joins at once.
func (s *Scheduler) Add(work Job, cfg JobConfig) error {
	j, err := s.newJob(work, cfg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[cfg.Name] {
		return &ConfigError{Job: cfg.Name, Field: "Name", Problem: "a job of this name was added already; give each its own"}
	}
	if s.stopping {
		return fmt.Errorf("core: job %q: %w", cfg.Name, ErrStopped)
	}
	s.jobs, s.names[cfg.Name] = append(s.jobs, j), true
	if s.session != nil {
		j.join(s.session)
	}
	return nil
}

// Start opens a session and registers the jobs. It returns when each of them
// fires or has failed; ctx bounds that wait (30 s when it has no deadline) and
// nothing else: the scheduler runs until Stop. When the registry cannot be had, or ctx
// ends first, Start says why and the scheduler is stopped; what runs already has 10 s to end by
// itself then (WithRunPatience). When only some jobs cannot run the error is a *StartError,
// and the others run on.
func (s *Scheduler) Start(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.start(ctx)
}

// start waits until the jobs have started, or stops.
func (s *Scheduler) start(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startWait)
		defer cancel()
	}
	var first *job // that was still starting
	for {
		changed := s.state.next()
		ready, failed, refused := s.progress(&first)
		switch {
		case refused != nil: // it will not get better by itself
			return errors.Join(refused, s.stopPatiently(ctx))
		case ready && len(failed) > 0:
			return &StartError{Jobs: failed}
		case ready:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err := s.startError(ctx)
			return errors.Join(err, s.stopPatiently(ctx))
		}
	}
}

func (s *Scheduler) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return fmt.Errorf("core: start: %w", ErrStopped)
	case s.started:
		return errors.New("core: start: the scheduler was started already")
	}
	s.started = true
	s.events = s.opts.dispatcher()
	s.clock = timer.New(s.opts.now, s.clockSet)
	s.process = &membership.Process{
		Clock: s.clock, Now: s.opts.now, Events: s.events, Strategies: s.opts.strategies,
		IP: s.opts.ip, Name: s.opts.name, Named: s.opts.named, HostName: s.opts.host,
	}
	for _, name := range s.opts.listened() {
		if !slices.ContainsFunc(s.jobs, func(j *job) bool { return j.name() == name }) {
			s.emit(event.Warning{Job: name, Problem: "there are listeners for this job, and it has not been added so far; is its name right?"})
		}
	}
	go s.run()
	return nil
}

// progress reports whether every job has left PhaseStarting, and which have failed, or why none ever will. It notes one
// that has not, to ask that first the next time: there may be ten thousand, and each of them wakes Start.
func (s *Scheduler) progress(first **job) (ready bool, failed map[string]error, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.openErr; e != nil && (errors.Is(e, registry.ErrDenied) || errors.Is(e, registry.ErrClosed) || errors.Is(e, registry.ErrInvalid)) {
		return false, nil, fmt.Errorf("core: start: %w", e)
	}
	if j := *first; j != nil && j.starts() {
		return false, nil, nil
	}
	for _, j := range s.jobs {
		if j.starts() {
			*first = j
			return false, nil, nil
		}
	}
	failed = map[string]error{}
	for _, j := range s.jobs {
		if _, err := j.at(); err != nil {
			failed[j.name()] = err
		}
	}
	return s.session != nil, failed, nil
}

func (s *Scheduler) startError(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return fmt.Errorf("core: start: no session with the registry: %w", errors.Join(ctx.Err(), s.openErr))
	}
	var late []string
	for _, j := range s.jobs {
		if phase, _ := j.at(); phase == PhaseStarting {
			late = append(late, j.name())
		}
	}
	return fmt.Errorf("core: start: %d of %d jobs not registered in time: %s: %w", len(late), len(s.jobs), few(late), ctx.Err())
}

// few lists names, of many only the first.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// bump tells those who wait that the state has changed.
func (s *Scheduler) bump() { s.state.fire() }

// emit tells an event. What is told of each run goes to dispatch.Emit itself, which makes none that nobody wants.
func (s *Scheduler) emit(e event.Event) { dispatch.Emit(s.events, e) }

func (s *Scheduler) all() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*job(nil), s.jobs...)
}

// clockSet tells every job that the wall clock was set.
func (s *Scheduler) clockSet(by time.Duration) {
	s.emit(event.Warning{Problem: fmt.Sprintf("the clock was set by %v", by.Round(time.Millisecond))})
	for _, j := range s.all() {
		if m := j.current(); m != nil {
			m.ClockSet()
		}
	}
}
