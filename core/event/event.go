package event

import "time"

// An Event is one of the types of this package. The set is closed.
type Event interface{ event() }

// Started: the job is registered and fires from now on.
type Started struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of this instance, new with every registration.
	Instance string
}

// Stopped: the job has left the registry here.
type Stopped struct {
	// Job is the name of the job.
	Job string
	// Instance is the id under which it was registered last, "" if it never was.
	Instance string
	// Reason says who or what ended it.
	Reason StopReason
	// Err is set with StopFailed.
	Err error
}

// StopReason says why a job has left.
type StopReason string

const (
	// StopCalled: Scheduler.Stop was called.
	StopCalled StopReason = "the scheduler was stopped"
	// StopShutDown: somebody deleted the instance's node in the registry.
	StopShutDown StopReason = "the instance was shut down from outside"
	// StopFailed: the job cannot run; Err says why.
	StopFailed StopReason = "the job cannot run"
)

// LeaderChanged: another instance leads the job.
type LeaderChanged struct {
	// Job is the name of the job.
	Job string
	// Leader is the id of the leading instance; "" means that nobody leads.
	Leader string
	// Self is set when this instance leads.
	Self bool
}

// Resharded is told by the leader after each change of the assignment.
type Resharded struct {
	// Job is the name of the job.
	Job string
	// Epoch counts the changes of the sharding total count.
	Epoch int
	// Total is the sharding total count.
	Total int
	// Moves are the items whose owner changed, by item.
	Moves []Move
	// Commits is the number of commits it took.
	Commits int
	// Took is the time from the look at what is to the last commit.
	Took time.Duration
}

// A Move is one item's change of owner.
type Move struct {
	// Item is the sharding item.
	Item int
	// From and To are instance ids; "" is nobody.
	From, To string
}

// ItemsChanged: this instance owns other items than before.
type ItemsChanged struct {
	// Job is the name of the job.
	Job string
	// Items are all that it owns now, ascending; those that are lent to it among them.
	Items []int
	// Total is the sharding total count that they belong to.
	Total int
}

// FireBegun: items of one fire have begun here.
type FireBegun struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of this instance.
	Instance string
	// Epoch and Total are those of the items.
	Epoch, Total int
	// Due is the instant at which the schedule wanted the fire.
	Due time.Time
	// Items are those that begin together; others of the same fire may follow.
	Items []int
	// Late is how much later than due they were handed to their functions.
	Late time.Duration
	// MadeUp is set when the fire was missed: the items were busy when it came due, a later
	// one is due already, or it is more than a second late.
	MadeUp bool
	// Redo is set when the fire runs again: the instance that had begun it died
	// (JobConfig.Failover).
	Redo bool
	// Request is the number of the run that somebody asked for; 0 is a fire of the schedule.
	Request int64
}

// A Run is one call of a job's function for one item.
type Run struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of the instance that runs it.
	Instance string
	// TaskID is core.Shard.TaskID: no two runs have the same.
	TaskID string
	// Epoch and Total are those of the item.
	Epoch, Total int
	// Item is the sharding item.
	Item int
	// Due is the fire that it runs.
	Due time.Time
	// Source says why: a core.Source.
	Source string
	// Attempt counts from 1; each instance that died while it ran this fire is one.
	Attempt int
	// Lost is the last of those instances, "" for none.
	Lost string
	// Missed is how many earlier fires it stands for.
	Missed int
	// Fence is the fencing token, 0 with core.MonitorOff.
	Fence int64
	// Began is when the function was called.
	Began time.Time
	// Ended is when it returned, zero while it runs.
	Ended time.Time
	// Err is what it returned, or a *core.PanicError; nil is success. It means nothing while the
	// function runs.
	Err error
}

// ItemCalled: the function of an item is called.
type ItemCalled struct{ Run }

// ItemReturned: the function of an item has returned. That the end is recorded is ItemEnded,
// which follows unless the life of the instance has ended.
type ItemReturned struct{ Run }

// ItemEnded: the run of an item has ended, and its end is recorded.
type ItemEnded struct {
	// Job is the name of the job.
	Job string
	// Epoch and Total are those of the item.
	Epoch, Total int
	// Item is the sharding item.
	Item int
	// Due is the fire that it ran.
	Due time.Time
	// Request is the number of the run that somebody asked for; 0 is a fire of the schedule.
	Request int64
	// Took is how long its function ran.
	Took time.Duration
	// Err is what the function returned, or a *core.PanicError; nil is success.
	Err error
}

// FireEnded: every item of a fire that had begun here has ended. When further items
// of the same fire begin afterwards it is told again, for those.
type FireEnded struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of this instance.
	Instance string
	// Epoch is that of the items.
	Epoch int
	// Due is the instant of the fire.
	Due time.Time
	// Items are those that ran here, ascending.
	Items []int
	// Failed is how many of them returned an error or panicked.
	Failed int
	// Errs are their errors, by item. It must not be changed.
	Errs map[int]error
	// Took is the time from the first begin to the last recorded end.
	Took time.Duration
}

// ItemsSkipped: items did not run at Due, and never will for it.
type ItemsSkipped struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of this instance.
	Instance string
	// Epoch is that of the items.
	Epoch int
	// Items are those that were skipped, ascending.
	Items []int
	// First and Due are the first and the last of the fires it stands for.
	First, Due time.Time
	// Count is how many fires it stands for, for each of the items.
	Count int
	// Reason says why.
	Reason SkipReason
	// Detail may say more, for people.
	Detail string
}

// ItemsFolded: items missed fires, and one run stands for all of them: core.MisfireOnce.
// The record of its begin says so, and precedes the event. None of the fires runs for
// itself.
type ItemsFolded struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of this instance.
	Instance string
	// Epoch is that of the items.
	Epoch int
	// Items are those that missed the fires, ascending.
	Items []int
	// First and Last are the first and the last of the fires.
	First, Last time.Time
	// Count is how many fires they are, for each of the items.
	Count int
	// Into is the fire that runs for them, the next one of the schedule after Last.
	Into time.Time
}

// SkipReason says why an item did not run.
type SkipReason string

const (
	// SkipRunning: the item's run before was still going on, and core.MisfireSkip makes up
	// none.
	SkipRunning SkipReason = "the item still ran"
	// SkipRunningElsewhere: an instance of ElasticJob ran the item.
	SkipRunningElsewhere SkipReason = "the item ran elsewhere"
	// SkipElasticJob: an instance of ElasticJob led the job, and nothing of ours runs beside
	// it. What ElasticJob ran of it is not known.
	SkipElasticJob SkipReason = "an instance of ElasticJob led the job"
	// SkipDisabled: the item, its server or the job was disabled, or the instance paused.
	SkipDisabled SkipReason = "disabled"
	// SkipDown: no instance was registered.
	SkipDown SkipReason = "no instance was registered"
	// SkipMissed: the fire was missed, and core.MisfireSkip makes up none.
	SkipMissed SkipReason = "missed"
	// SkipBeyond: more fires were missed than are made up (JobConfig.MisfireCap); the
	// latest ones run.
	SkipBeyond SkipReason = "too many missed fires"
	// SkipLate: it is too late to make it up (JobConfig.MisfireWindow).
	SkipLate SkipReason = "too late to be made up"
	// SkipSchedule: the schedule changed while the item was busy under the one before.
	SkipSchedule SkipReason = "the schedule changed meanwhile"
)

// ItemCut: a fire began, and its instance's life ended before its end was recorded.
// Its function may have finished, and does not run again. It is told by the item's next owner, or by the leader
// where the owner's record has no room for it.
type ItemCut struct {
	// Job is the name of the job.
	Job string
	// Epoch is that of the item.
	Epoch int
	// Item is the sharding item.
	Item int
	// Due is the fire that was cut.
	Due time.Time
	// Instance is the id of the instance that died.
	Instance string
	// Reason says why it is not run again where JobConfig.Failover is on.
	Reason CutReason
}

// CutReason says why a fire that was cut is not run again.
type CutReason string

const (
	// CutPlain: without failover nothing is.
	CutPlain CutReason = ""
	// CutTries: three instances died while it ran.
	CutTries CutReason = "three instances died while it ran"
	// CutLate: no instance was up for so long that it is too late (JobConfig.MisfireWindow).
	CutLate CutReason = "too late to run again"
	// CutDisabled: the item, its server or its job is disabled.
	CutDisabled CutReason = "disabled"
	// CutOff: failover was switched off before it ran again.
	CutOff CutReason = "failover was switched off"
	// CutElasticJob: an instance of ElasticJob led the job since. What it ran is not known.
	CutElasticJob CutReason = "an instance of ElasticJob led the job"
	// CutElsewhere: an instance of ElasticJob runs the item.
	CutElsewhere CutReason = "running elsewhere"
	// CutClosed: the run that somebody asked for is closed.
	CutClosed CutReason = "the run that was asked for is closed"
	// CutRoom: the record of the item's next owner has no room for it.
	CutRoom CutReason = "the next owner's record has no room for it"
)

// ItemStuck: a run has not returned although its timeout is over and its context is
// cancelled. It goes on: the item runs nowhere else, and fires that come due are overruns.
type ItemStuck struct {
	// Job is the name of the job.
	Job string
	// Epoch is that of the item.
	Epoch int
	// Item is the sharding item.
	Item int
	// Due is the fire that runs.
	Due time.Time
	// Running is how long its function has run.
	Running time.Duration
	// Stack is the stack of its goroutine, "" unless it was asked for.
	Stack string
}

// FireHeard: a listener to a fire of this instance has returned (core.FireListeners).
type FireHeard struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of this instance.
	Instance string
	// Due is the instant of the fire.
	Due time.Time
	// Items are those that run, or ran, here.
	Items []int
	// Listener is "Before" or "After".
	Listener string
	// Took is how long the listener ran, or was waited for.
	Took time.Duration
	// Err is what the listener returned, or why it was not waited for any longer.
	Err error
}

// RoundPhase is the part of a round for which listeners are called.
type RoundPhase string

const (
	// RoundStarted: before all items of the round start.
	RoundStarted RoundPhase = "before all items start"
	// RoundCompleted: after all items of the round have ended.
	RoundCompleted RoundPhase = "after all items have ended"
)

// RoundHeard: this instance was called for a round (core.RoundListeners), and its listener has
// returned.
type RoundHeard struct {
	// Job is the name of the job.
	Job string
	// Phase is what it was called for.
	Phase RoundPhase
	// Due is the instant of the fire.
	Due time.Time
	// Merged is how many fires since the round before have no call of their own.
	Merged int
	// Attempt is 2 where the instance that was called first has died.
	Attempt int
	// Took is how long the listener ran, or was waited for.
	Took time.Duration
	// Err is what the listener returned, or why it was not waited for any longer.
	Err error
}

// RoundLost is told by the leader: an instance died after it was chosen to be called for a
// round, and before it said that its listener had returned.
type RoundLost struct {
	// Job is the name of the job.
	Job string
	// Phase is what it was to be called for.
	Phase RoundPhase
	// Due is the instant of the fire.
	Due time.Time
	// Instance is the id of the instance that died.
	Instance string
	// Attempt is 1, or 2 for the one that was called again.
	Attempt int
}

// RoundLate: items of this instance had begun, and waited in vain until the listener before
// their round had returned (core.RoundListeners.BeforeAll).
type RoundLate struct {
	// Job is the name of the job.
	Job string
	// Instance is the id of this instance.
	Instance string
	// Due is the instant of the fire.
	Due time.Time
	// Items are those that waited, ascending.
	Items []int
	// Waited is how long the longest of them did.
	Waited time.Duration
	// Missing are the ids of the instances that had not begun all their items of the round by
	// then, as far as that could be found out. It is empty where the listener was being called.
	Missing []string
	// Caller is the id of the instance whose listener was being called, "" for none.
	Caller string
	// Failed: the items fail this fire with core.ErrHeldUp; else they start all the same.
	Failed bool
}

// SessionLost: the registry session ended; running items are cancelled.
type SessionLost struct {
	// Err says why; it wraps registry.ErrSessionLost.
	Err error
}

// SessionRegained: a new session is open, and jobs register again.
type SessionRegained struct {
	// Session is the id of the new session.
	Session string
	// Outage is the time from the loss to now.
	Outage time.Duration
}

// Waiting: the job, or the scheduler, waits for something.
type Waiting struct {
	// Job is the name of the job; "" is the scheduler.
	Job string
	// For says in words what is waited for; "" ends the wait.
	For string
}

// ConfigChanged: a configuration took effect here.
type ConfigChanged struct {
	// Job is the name of the job.
	Job string
	// Changes are the fields that changed or, with Adopted, that differ from the
	// configuration given to Add.
	Changes []Change
	// Adopted is set at start, when the registry's configuration won over the local one.
	Adopted bool
	// Overwrote is set at start, when the local configuration has replaced the registry's
	// (JobConfig.Overwrite).
	Overwrote bool
}

// A Change is one field of a configuration. Values of Props are not shown.
type Change struct {
	// Field is the field of core.JobConfig.
	Field string
	// Old and New are its values, for people. With Adopted, Old is the local one.
	Old, New string
}

// Warning: something is wrong that stops nothing yet.
type Warning struct {
	// Job is the name of the job; "" is the scheduler.
	Job string
	// Problem says what is wrong and what to do.
	Problem string
	// Err is the cause, or nil.
	Err error
}

func (Started) event()         {}
func (Stopped) event()         {}
func (LeaderChanged) event()   {}
func (Resharded) event()       {}
func (ItemsChanged) event()    {}
func (FireBegun) event()       {}
func (ItemCalled) event()      {}
func (ItemReturned) event()    {}
func (ItemEnded) event()       {}
func (FireEnded) event()       {}
func (ItemsSkipped) event()    {}
func (ItemsFolded) event()     {}
func (ItemCut) event()         {}
func (ItemStuck) event()       {}
func (FireHeard) event()       {}
func (RoundHeard) event()      {}
func (RoundLost) event()       {}
func (RoundLate) event()       {}
func (SessionLost) event()     {}
func (SessionRegained) event() {}
func (Waiting) event()         {}
func (ConfigChanged) event()   {}
func (Warning) event()         {}
