package core

import "time"

// State is what a Scheduler is doing now.
type State struct {
	// Session is the id of the registry session, "" while there is none.
	Session string
	// Deadline is the session's, as registry.Session.Deadline defines it.
	Deadline time.Time
	// Stopping is set from the first call of Stop.
	Stopping bool
	// Jobs are in the order in which they were added.
	Jobs []JobState
}

// JobState is what a job is doing in this process.
type JobState struct {
	// Name is the name of the job.
	Name string
	// Instance is this process's id in the job, "" while it is not registered.
	Instance string
	// Phase is where the job stands.
	Phase Phase
	// Leader is the id of the leading instance, "" when there is none.
	Leader string
	// Instances are the live instances.
	Instances []string
	// Total is the sharding total count in force.
	Total int
	// Items are owned by this instance. Lent are those of them that are bound to another one,
	// which is away: nothing begins here but what it ran (JobConfig.StaticSharding).
	Items, Lent []int
	// Running are the items whose function runs; Queued have begun and wait for a place
	// (JobConfig.Concurrency).
	Running, Queued []int
	// Disabled says why nothing begins here, "" when something may.
	Disabled string
	// DisabledItems are own items that an operator has disabled.
	DisabledItems []int
	// Next is the next fire of the schedule.
	Next time.Time
	// Never is set instead of Next when the schedule never fires again.
	Never bool
	// LastFire is the due time of the latest fire that began here, zero before the first.
	LastFire time.Time
	// LastErr is the last error of an item here, nil when none has failed.
	LastErr error
	// WaitingFor says in words what the job waits for, "" for nothing.
	WaitingFor string
	// Err is why the job is in PhaseFailed.
	Err error
}

// Phase is where a job stands in its life.
type Phase string

const (
	// PhaseStarting: not registered yet, or registering again after a lost session.
	PhaseStarting Phase = "starting"
	// PhaseRunning: registered; it fires.
	PhaseRunning Phase = "running"
	// PhaseStopped: left, by Stop or because its instance was removed from outside.
	PhaseStopped Phase = "stopped"
	// PhaseFailed: it cannot run; Err says why. Other jobs go on.
	PhaseFailed Phase = "failed"
)

// State says what the scheduler and its jobs are doing now. It costs no request.
func (s *Scheduler) State() State {
	s.mu.Lock()
	st := State{Stopping: s.stopping}
	if s.session != nil {
		st.Session, st.Deadline = s.session.ID(), s.session.Deadline()
	}
	s.mu.Unlock()
	jobs := s.all()
	st.Jobs = make([]JobState, len(jobs))
	for i, j := range jobs {
		st.Jobs[i] = j.state()
	}
	return st
}

func (j *job) state() JobState {
	j.mu.Lock()
	st := JobState{Name: j.name(), Phase: j.phase, Err: j.err, WaitingFor: j.wait}
	m := j.member
	j.mu.Unlock()
	st.Running, st.Queued = j.places.Running(), j.places.Queued()
	if m == nil {
		return st
	}
	is := m.State()
	st.Instance, st.Leader, st.Instances, st.Disabled = is.ID, is.Leader, is.Instances, is.Disabled
	st.Total, st.Items, st.Lent, st.DisabledItems = is.Total, is.Items, is.Lent, is.State.Disabled
	st.Next, st.Never, st.LastFire, st.LastErr = is.Next, is.Never, is.LastFire, is.LastErr
	return st
}
