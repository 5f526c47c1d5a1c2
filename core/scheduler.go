package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/alarm"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

const (
	// startWait bounds Start when its context has no deadline.
	startWait = 30 * time.Second
	// openWait bounds one attempt to open a session.
	openWait = 10 * time.Second
	// stopGrace is how long Stop waits for cancelled items to return.
	stopGrace = time.Second
	// runPatience is how long Run lets items end by themselves, without WithRunPatience.
	runPatience = 10 * time.Second
)

// A Scheduler is this process's part in any number of jobs: one instance of
// each, on one registry session at a time. All methods are safe for concurrent
// use. Several schedulers may live in one process.
type Scheduler struct {
	reg    registry.Registry
	opts   options
	events *dispatch.Dispatcher
	clock  *alarm.Clock
	runs   sync.WaitGroup // functions of items
	halt   context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when everything is joined

	mu       sync.Mutex
	jobs     []*job
	started  bool
	stopping bool
	hurry    bool // items shall be cancelled now
	life     *life
	openErr  error

	state signal
}

// A signal tells those who wait that the state has changed. Its lock is a leaf.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed at the next change.
func (g *signal) next() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

func (g *signal) fire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch != nil {
		close(g.ch)
		g.ch = nil
	}
}

// New returns a scheduler on a registry, which the caller closes after Stop.
// It does nothing before Start.
func New(reg registry.Registry, opts ...Option) *Scheduler {
	s := &Scheduler{reg: reg, done: make(chan struct{})}
	s.opts.now = time.Now
	for _, o := range opts {
		o(&s.opts)
	}
	if s.opts.ip == "" {
		s.opts.ip = hostAddress()
	}
	if s.opts.name == "" {
		s.opts.name = hostName()
	}
	s.halt, s.cancel = context.WithCancel(context.Background())
	return s
}

// Add adds a job. Its configuration is checked here: the error holds a *ConfigError
// for each fault (JobConfig.Validate), and the scheduler is as it was before. A job that is added after Start joins
// at once.
func (s *Scheduler) Add(work Job, cfg JobConfig) error {
	if err := s.validate(work, cfg); err != nil {
		return err
	}
	j := &job{scheduler: s, work: work, local: cfg, limit: limitOf(cfg), running: map[int]int{}, phase: PhaseStarting}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.jobs {
		if other.local.Name == cfg.Name {
			return &ConfigError{Job: cfg.Name, Field: "Name", Problem: "a job of this name was added already; give each its own"}
		}
	}
	if s.stopping {
		return fmt.Errorf("core: job %q: %w", cfg.Name, ErrStopped)
	}
	s.jobs = append(s.jobs, j)
	if s.life != nil {
		s.life.join(j)
	}
	return nil
}

func (s *Scheduler) validate(work Job, cfg JobConfig) error {
	var errs []error
	if work == nil {
		errs = append(errs, &ConfigError{Job: cfg.Name, Field: "Job", Problem: "is nil; give the function that does the work"})
	}
	errs = append(errs, cfg.validate(s.opts))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := layout.New(s.reg.Namespace(), cfg.Name)
	return settings.Named(cfg.Name, err)
}

func (j *job) path() layout.Job {
	p, _ := layout.New(j.scheduler.reg.Namespace(), j.local.Name) // checked by Add
	return p
}

// Start opens a session and registers the jobs. It returns when each of them
// fires or has failed; ctx bounds that wait (30 s when it has no deadline) and
// nothing else: the scheduler runs until Stop. When the registry cannot be had in
// time the scheduler is stopped and Start says why. When only some jobs cannot
// run, Start returns their errors joined and the others run on.
func (s *Scheduler) Start(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startWait)
		defer cancel()
	}
	for {
		changed := s.state.next()
		ready, err := s.progress()
		if ready {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err := s.startError(ctx)
			return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
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
	s.clock = alarm.New(s.opts.now, s.clockSet)
	go s.run()
	return nil
}

// progress reports whether every job has left PhaseStarting.
func (s *Scheduler) progress() (ready bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.openErr; e != nil && (errors.Is(e, registry.ErrDenied) || errors.Is(e, registry.ErrClosed) || errors.Is(e, registry.ErrInvalid)) {
		return true, fmt.Errorf("core: start: %w", e)
	}
	var errs []error
	for _, j := range s.jobs {
		j.mu.Lock()
		phase, err := j.phase, j.err
		j.mu.Unlock()
		if phase == PhaseStarting {
			return false, nil
		}
		errs = append(errs, err)
	}
	return s.life != nil, errors.Join(errs...)
}

func (s *Scheduler) startError(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return fmt.Errorf("core: start: no session with the registry: %w", errors.Join(ctx.Err(), s.openErr))
	}
	var late []string
	for _, j := range s.jobs {
		j.mu.Lock()
		if j.phase == PhaseStarting {
			late = append(late, j.local.Name)
		}
		j.mu.Unlock()
	}
	return fmt.Errorf("core: start: jobs not registered in time: %s: %w", strings.Join(late, ", "), ctx.Err())
}

// bump tells those who wait that the state has changed.
func (s *Scheduler) bump() { s.state.fire() }

// clockSet re-arms every job when the wall clock was set.
func (s *Scheduler) clockSet(by time.Duration) {
	dispatch.Emit(s.events, event.Warning{Problem: fmt.Sprintf("the clock was set by %v", by.Round(time.Millisecond))})
	s.mu.Lock()
	l := s.life
	s.mu.Unlock()
	if l == nil || by > 0 {
		return // what is due now comes by itself
	}
	for _, m := range l.all() {
		m.mu.Lock()
		if m.firing {
			m.ticked = m.now()
			m.arm(m.ticked)
		}
		m.mu.Unlock()
	}
}

// Run runs one job until ctx ends, then stops: items have 10 s (WithRunPatience) to end by
// themselves, then their contexts are cancelled. It returns why the job could not
// run, or what Stop returns.
func Run(ctx context.Context, reg registry.Registry, work Job, cfg JobConfig, opts ...Option) error {
	s := New(reg, opts...)
	if err := s.Add(work, cfg); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	for ended := false; !ended; {
		changed := s.state.next()
		p := s.jobs[0].phaseNow()
		ended = p == PhaseStopped || p == PhaseFailed || ctx.Err() != nil
		if ended {
			break
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.opts.patience, runPatience))
	defer cancel()
	return errors.Join(s.jobError(), s.Stop(patience))
}
