package core

import (
	"errors"
	"fmt"
	"sync"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/membership"
	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/core/internal/session"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/layout"
)

// A job is what Add was given, over all sessions. It implements membership.Host.
type job struct {
	scheduler *Scheduler
	work      Job
	stored    layout.Config
	class     string
	overwrite bool
	path      layout.Job
	places    *places.Places
	host      host // what its runs can say to it
	runs      *runs
	calls     calls
	memory    membership.Memory

	mu     sync.Mutex
	member *membership.Member // of the current session
	phase  Phase
	err    error
	wait   string
	id     string // of the last registration
	why    event.StopReason
}

func (s *Scheduler) newJob(work Job, cfg JobConfig) (*job, error) {
	wrong := cfg.validate(s.opts)
	if work == nil {
		wrong = errors.Join(&ConfigError{Job: cfg.Name, Field: "Job", Problem: "is nil; give the function that does the work"}, wrong)
	}
	if wrong != nil {
		return nil, wrong
	}
	path, err := layout.New(s.reg.Namespace(), cfg.Name)
	if err != nil {
		return nil, settings.Named(cfg.Name, err)
	}
	stored, err := cfg.stored()
	if err != nil {
		return nil, err
	}
	j := &job{scheduler: s, work: work, stored: stored, class: cfg.Class, overwrite: cfg.Overwrite, path: path, phase: PhaseStarting, runs: newRuns(s.opts.kept)}
	j.places = places.New(limitOf(cfg), j.returned)
	j.host.job = j
	j.calls.changed = s.bump
	return j, nil
}

// join makes the job a member in a session, unless it has ended for good.
func (j *job) join(ses *session.Session) {
	s := j.scheduler
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended() {
		return
	}
	j.memory.Anew()
	j.member = membership.New(membership.Config{
		Process: s.process, Host: j, Session: ses.Part(), Job: j.path,
		Local: &j.stored, Overwrite: j.overwrite && j.id == "", Class: j.class, Beside: s.opts.beside || j.id != "", Places: j.places, Memory: &j.memory,
		Listens: s.opts.rounds[j.name()].listens(),
	})
	j.member.Join()
}

func (j *job) name() string { return j.path.Name() }

// ended reports whether the job never comes back. One that failed may: when somebody
// mends its configuration. The caller holds mu.
func (j *job) ended() bool { return j.phase == PhaseStopped }

// returned is called when a function has returned, of whatever session.
func (j *job) returned(item int) {
	if m := j.current(); m != nil {
		m.Unblock(item)
	}
	j.scheduler.bump()
}

func (j *job) current() *membership.Member {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.member
}

func (j *job) at() (Phase, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.phase, j.err
}

// starts reports whether nothing has become of the job yet.
func (j *job) starts() bool {
	phase, _ := j.at()
	return phase == PhaseStarting
}

// pause begins nothing more, and cancels what runs with hurry. It reports whether
// nothing is in hand.
func (j *job) pause(hurry bool) bool {
	m := j.current()
	if m == nil {
		return j.places.Idle()
	}
	m.Pause()
	if hurry {
		m.CancelRuns(ErrStopped)
	}
	return m.Quiet() && j.places.Idle()
}

// withdraw has others take over what does not run here.
func (j *job) withdraw() {
	if m := j.current(); m != nil {
		m.Withdraw()
	}
}

// leave ends the job's part in a session; it starts again in the next.
func (j *job) leave(cause error) {
	if m := j.current(); m != nil {
		m.Close(cause)
	}
	if phase, _ := j.at(); phase != PhaseFailed { // it is tried again, and still says why until then
		j.enter(PhaseStarting, nil)
	}
}

// finish tells of the end of the job.
func (j *job) finish() {
	j.mu.Lock()
	tell := j.member != nil && !j.ended() && j.phase != PhaseFailed
	id := j.id
	j.mu.Unlock()
	if tell {
		j.enter(PhaseStopped, nil)
		j.scheduler.emit(event.Stopped{Job: j.name(), Instance: id, Reason: event.StopCalled})
	}
}

func (j *job) stillRunning() []string {
	var names []string
	for _, n := range j.places.Running() {
		names = append(names, fmt.Sprintf("%s/%d", j.name(), n))
	}
	return append(names, j.calls.names(j.name())...)
}

// enter changes the phase, unless the job has ended. err is kept for PhaseFailed.
func (j *job) enter(p Phase, err error) {
	j.mu.Lock()
	changed := j.phase != p && !j.ended()
	if changed {
		j.phase, j.err = p, err
	}
	j.mu.Unlock()
	if changed {
		j.scheduler.bump()
	}
}

// Running implements membership.Host.
func (j *job) Running(id string) {
	j.mu.Lock()
	j.id = id
	j.mu.Unlock()
	j.enter(PhaseRunning, nil)
	j.scheduler.emit(event.Started{Job: j.name(), Instance: id})
}

// Again implements membership.Host.
func (j *job) Again() { j.enter(PhaseStarting, nil) }

// Failed implements membership.Host.
func (j *job) Failed(err error) {
	j.mu.Lock()
	id := j.id
	told := j.phase == PhaseFailed && j.err.Error() == err.Error()
	j.mu.Unlock()
	if told { // it was tried again
		return
	}
	j.enter(PhaseFailed, err)
	j.scheduler.emit(event.Stopped{Job: j.name(), Instance: id, Reason: event.StopFailed, Err: err})
}

// ShutDown implements membership.Host.
func (j *job) ShutDown(id string) { j.left(id, event.StopShutDown) }

// Withdrawn implements membership.Host.
func (j *job) Withdrawn(id string) { j.left(id, event.StopCalled) }

// left is told that the job has left for good, and why.
func (j *job) left(id string, reason event.StopReason) {
	j.mu.Lock()
	j.why = reason
	j.mu.Unlock()
	j.enter(PhaseStopped, nil)
	j.scheduler.emit(event.Stopped{Job: j.name(), Instance: id, Reason: reason})
}

// Waits implements membership.Host.
func (j *job) Waits(what string) {
	j.mu.Lock()
	changed := j.wait != what
	j.wait = what
	j.mu.Unlock()
	if changed {
		j.scheduler.emit(event.Waiting{Job: j.name(), For: what})
		j.scheduler.bump()
	}
}

// Changed implements membership.Host.
func (j *job) Changed() { j.scheduler.bump() }
