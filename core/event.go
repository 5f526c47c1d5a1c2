package core

import "time"

// An Event is something that happened to a job or to the scheduler. The set of
// types is closed: it grows only with this package.
type Event interface{ event() }

// A Listener receives events, one at a time and in the order in which they
// happened, on a goroutine of the scheduler. A slow listener delays only later
// events. It must not call Stop.
type Listener func(Event)

type (
	// Started: the job is registered as Instance and fires from now on.
	Started struct{ Job, Instance string }
	// Stopped: the job has left the registry, or failed for good with Err.
	Stopped struct {
		Job, Instance string
		Err           error
	}
	// LeaderChanged: Leader leads the job now; "" means nobody does.
	LeaderChanged struct {
		Job, Leader string
		// Self is set when this instance leads.
		Self bool
	}
	// Resharded is told by the leader after each change of the assignment.
	Resharded struct {
		Job   string
		Total int
		// Moves are the items whose owner changed.
		Moves []Move
		// Commits is the number of commits it took.
		Commits int
		Took    time.Duration
	}
	// ItemsChanged: this instance owns Items now.
	ItemsChanged struct {
		Job   string
		Items []int
		Total int
	}
	// FireBegun: Items of the fire Due run here. Late is how much later than due
	// the first of them was handed to its function.
	FireBegun struct {
		Job   string
		Due   time.Time
		Items []int
		Late  time.Duration
		// MadeUp is set on a fire that came due before these items were ours.
		MadeUp bool
	}
	// FireEnded: the last item of the fire that ran here has ended.
	FireEnded struct {
		Job    string
		Due    time.Time
		Items  []int
		Failed int
		Took   time.Duration
	}
	// ItemFailed: Run returned an error or panicked (*PanicError).
	ItemFailed struct {
		Job  string
		Item int
		Due  time.Time
		Err  error
	}
	// ItemsSkipped: Items did not run at Due, and never will for it. Count is
	// how many fires it stands for, the last of them due at Due.
	ItemsSkipped struct {
		Job    string
		Items  []int
		Due    time.Time
		Count  int
		Reason SkipReason
		Detail string
	}
	// SessionLost: the registry session ended; running items are cancelled.
	SessionLost struct{ Err error }
	// SessionRegained: a new session is open; jobs register again.
	SessionRegained struct {
		Session string
		Outage  time.Duration
	}
	// Waiting: the job waits For something. An empty For ends the wait.
	Waiting struct{ Job, For string }
	// ConfigChanged: the configuration in the registry took effect here. Fields
	// names what changed or, at start, what differs from the one given to Add.
	ConfigChanged struct {
		Job    string
		Fields []string
		// Adopted is set at start, when the registry's won over the local one.
		Adopted bool
	}
	// Warning: something is wrong that stops nothing yet.
	Warning struct {
		Job, Problem string
		Err          error
	}
)

// A Move is one item's change of owner. "" is nobody.
type Move struct {
	Item     int
	From, To string
}

// SkipReason says why an item did not run.
type SkipReason string

const (
	// SkipRunning: the item's run before was still going on here.
	SkipRunning SkipReason = "the item still runs"
	// SkipRunningElsewhere: somebody else holds the item's running node.
	SkipRunningElsewhere SkipReason = "the item runs elsewhere"
	// SkipDisabled: the item or this server is disabled.
	SkipDisabled SkipReason = "disabled"
	// SkipClock: the fire is not later than one that was recorded before: a clock is behind.
	SkipClock SkipReason = "a fire at or after this one is recorded already"
	// SkipDown: nobody was there to run it.
	SkipDown SkipReason = "no instance was registered"
	// SkipMissed: too many fires were missed; the last ones run.
	SkipMissed SkipReason = "too many missed fires"
	// SkipCrashed: its instance died while it ran, and failover is not active.
	SkipCrashed SkipReason = "its instance died while it ran"
	// SkipLost: the session was lost before the item began.
	SkipLost SkipReason = "session lost before the item began"
	// SkipStopping: the scheduler was stopping before the item began.
	SkipStopping SkipReason = "stopping"
)

func (Started) event()         {}
func (Stopped) event()         {}
func (LeaderChanged) event()   {}
func (Resharded) event()       {}
func (ItemsChanged) event()    {}
func (FireBegun) event()       {}
func (FireEnded) event()       {}
func (ItemFailed) event()      {}
func (ItemsSkipped) event()    {}
func (SessionLost) event()     {}
func (SessionRegained) event() {}
func (Waiting) event()         {}
func (ConfigChanged) event()   {}
func (Warning) event()         {}
