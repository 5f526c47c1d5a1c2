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
	// Items are owned by this instance; Running are those that run now.
	Items, Running []int
	// Next is the next fire of the schedule. Never is set instead when the
	// schedule never fires again.
	Next  time.Time
	Never bool
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
