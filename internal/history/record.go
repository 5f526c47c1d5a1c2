package history

import "time"

// A Kind says what happened.
type Kind string

// What a scheduler's process tells of its functions.
const (
	// Entered: the function of an item was called. Job, Epoch, Total, Item, Due, Fence,
	// Instance, Session, and Deadline: the session's as it was known at that instant.
	Entered Kind = "entered"
	// Returned: it returned; Err is what it returned. The same key as Entered.
	Returned Kind = "returned"
	// Cancelled: its context ended while it ran; Err is the cause.
	Cancelled Kind = "cancelled"
)

// What a scheduler tells as events.
const (
	// Ended is event.ItemEnded: Job, Epoch, Total, Item, Due, Err, Refused.
	Ended Kind = "ended"
	// Cut is event.ItemCut: Job, Epoch, Item, Due, Of, Reason.
	Cut Kind = "cut"
	// Skipped is event.ItemsSkipped: Job, Epoch, Items, First (zero: not known), Due,
	// Count, Reason.
	Skipped Kind = "skipped"
	// Folded is event.ItemsFolded: Job, Epoch, Items, First, Due (the last), Count, Into.
	Folded Kind = "folded"
	// Called: a listener to rounds was called. Job, Due, Reason (the phase), Count: the attempt,
	// Instance, Session.
	Called Kind = "called"
	// Answered: that listener has returned; Err is what it returned. The same fields as Called, and
	// Slow: its context had ended.
	Answered Kind = "answered"
	// LateRound is event.RoundLate: Job, Due, Items.
	LateRound Kind = "late round"
	// Owns is event.ItemsChanged: Job, Items (all of them), Total, Instance.
	Owns Kind = "owns"
	// Started is event.Started: Job, Instance.
	Started Kind = "started"
	// Stopped is event.Stopped: Job, Instance, Reason, Err.
	Stopped Kind = "stopped"
	// Led is event.LeaderChanged: Job, Of (the leader, "" is nobody), Self.
	Led Kind = "led"
	// Resharded is event.Resharded: Job, Epoch, Total, Count (moves).
	Resharded Kind = "resharded"
	// Waits is event.Waiting: Job, Reason.
	Waits Kind = "waits"
	// Warned is event.Warning: Job, Reason, Err.
	Warned Kind = "warned"
)

// What a scheduler's process knows of its registry sessions.
const (
	// Opened: a session was opened. Session, Deadline.
	Opened Kind = "opened"
	// Alive tells now and then how far the session's Deadline has moved. Session, Deadline.
	Alive Kind = "alive"
	// Registered: a life was put under a session. Job, Instance, Session.
	Registered Kind = "registered"
	// Leaving: the process is about to take a life back by a commit. Job, Instance.
	Leaving Kind = "leaving"
	// Lost: the session ended without being closed. Session, Deadline, Err.
	Lost Kind = "lost"
	// Regained is event.SessionRegained.
	Regained Kind = "regained"
	// Closing: the process began to end the session at the service. Session.
	Closing Kind = "closing"
	// Stopping: Scheduler.Stop was called.
	Stopping Kind = "stopping"
)

// LostWrites: the servers lost Count writes that they had acknowledged: Reason. Nothing that
// follows says anything about their clients.
const LostWrites Kind = "lost writes"

// What the driver of the run did.
const (
	// Configured: Config is what the job's configuration says from now on.
	Configured Kind = "configured"
	// FaultBegun: Fault, Of (the target), Disturbs.
	FaultBegun Kind = "fault begun"
	// FaultEnded: as FaultBegun, and Count: how often it has hit something.
	FaultEnded Kind = "fault ended"
	// Crashed: process Of was killed and is dead: it did nothing from now on.
	Crashed Kind = "crashed"
	// Paused: process Of stands still (SIGSTOP).
	Paused Kind = "paused"
	// Resumed: process Of is about to go on.
	Resumed Kind = "resumed"
	// Requested: the run Of was asked for. Job.
	Requested Kind = "requested"
	// ClockSet: the wall clock of process Of was set, to run Took ahead of the true one.
	ClockSet Kind = "clock set"
	// ClockOff: Who has found its clock further off the leader's than Job allows; ClockAgrees: it
	// is no more.
	ClockOff    Kind = "clock off"
	ClockAgrees Kind = "clock agrees"
)

// PauseServer is the fault of a server that stands still for a while.
const PauseServer = "pause server"

// SlowService is the fault of a service that takes long to answer, though nothing is done to it.
const SlowService = "slow service"

// SetClock begins the name of a fault of a wall clock that is set.
const SetClock = "clock set"

// What an observer of the registry saw.
const (
	// SawSchedule: Schedule is in force for Job.
	SawSchedule Kind = "saw schedule"
	// SawBase: Base is in force for Job.
	SawBase Kind = "saw base"
	// Come: the life of Instance, or the running node of Item (Node says which), is there.
	Come Kind = "come"
	// Gone: it is there no more.
	Gone Kind = "gone"
	// Quiet: nothing is under way any more; Snapshot is what stands.
	Quiet Kind = "quiet"
)

// Note is for people: Reason.
const Note Kind = "note"

// A Record is one thing that happened. Which fields a kind has stands at the kind.
type Record struct {
	Kind Kind `json:"kind"`
	// At is the time by the run's common clock. It is never zero.
	At time.Duration `json:"at"`
	// Wall is the time by the wall clock of who wrote it.
	Wall time.Time `json:"wall,omitzero"`
	// Who is the process or scheduler that wrote it.
	Who string `json:"who"`

	// Instance is the life that it is about, Session the session of that life.
	Instance string `json:"instance,omitempty"`
	Session  string `json:"session,omitempty"`
	// Deadline is the session's, by the common clock.
	Deadline time.Duration `json:"deadline,omitempty"`

	Job   string    `json:"job,omitempty"`
	Epoch int       `json:"epoch,omitempty"`
	Total int       `json:"total,omitempty"`
	Item  int       `json:"item,omitempty"`
	Items []int     `json:"items,omitempty"`
	First time.Time `json:"first,omitzero"`
	Due   time.Time `json:"due,omitzero"`
	Fence int64     `json:"fence,omitempty"`
	Count int       `json:"count,omitempty"`
	// Redo: the fire runs again, since the instance that had begun it died.
	Redo bool `json:"redo,omitempty"`
	// Request is the number of the run that was asked for: of Entered, Returned, Cancelled, Ended.
	Request int64 `json:"request,omitempty"`
	// Refused: of Ended: the function was not called, since a listener refused the round.
	Refused bool `json:"refused,omitempty"`
	Slow    bool `json:"slow,omitempty"`
	// Into is the fire that runs for those that are folded.
	Into time.Time `json:"into,omitzero"`

	Reason string `json:"reason,omitempty"`
	Err    string `json:"err,omitempty"`

	// Of is the other party: a leader, the life that died, the target of a fault.
	Of string `json:"of,omitempty"`
	// Self is set when Of is the writer itself.
	Self bool `json:"self,omitempty"`
	// Node is which node came or went.
	Node Node `json:"node,omitempty"`
	// Took is a length of time.
	Took time.Duration `json:"took,omitempty"`

	// Fault is the kind of a fault. Disturbs: while it lasts no bound of time is promised.
	Fault    string `json:"fault,omitempty"`
	Disturbs bool   `json:"disturbs,omitempty"`

	Config   *Config   `json:"config,omitempty"`
	Schedule *Schedule `json:"schedule,omitempty"`
	Base     *Base     `json:"base,omitempty"`
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// A Node is what an observer saw come or go.
type Node string

// The nodes.
const (
	Life    Node = "life"
	Running Node = "running"
	// InstanceNode stands for an instance, as in ElasticJob: who deletes it shuts the instance down.
	InstanceNode Node = "instance"
)

// A Config is what matters of a job's configuration.
type Config struct {
	Cron     string `json:"cron"`
	Zone     string `json:"zone,omitempty"`
	Total    int    `json:"total"`
	Disabled bool   `json:"disabled,omitempty"`
	// Misfire is the name of the policy for fires that are missed; "" is not judged.
	Misfire string `json:"misfire,omitempty"`
	// Unmonitored jobs keep no record: only what they told themselves can be judged.
	Unmonitored bool `json:"unmonitored,omitempty"`
	// Failover: what a dead instance had begun runs again.
	Failover bool `json:"failover,omitempty"`
	// Static: an item stays with the instances of one name.
	Static bool `json:"static,omitempty"`
	// Within is how far a clock may be off the leader's; 0 for any distance.
	Within time.Duration `json:"within,omitempty"`
}

// A Schedule is the node inforce/schedule: schedule N holds for fires due after Since,
// until the Since of the next one.
type Schedule struct {
	N       int    `json:"n"`
	Cron    string `json:"cron"`
	Zone    string `json:"zone,omitempty"`
	Gap     string `json:"gap,omitempty"`
	Overlap string `json:"overlap,omitempty"`
	// Since is zero for the first.
	Since time.Time `json:"since,omitzero"`
	// Before is the one before, as far as the node tells; N is 0 where it has no number.
	Before *Schedule `json:"before,omitempty"`
}

// A Base is the node inforce/base: epoch Epoch has To items, for fires due after Through.
type Base struct {
	Epoch    int       `json:"epoch"`
	From     int       `json:"from"`
	To       int       `json:"to"`
	Through  time.Time `json:"through,omitzero"`
	Assigned bool      `json:"assigned,omitempty"`
}

// A Snapshot is what stands in the registry for one job.
type Snapshot struct {
	// Instances and Lives are the ids that are registered.
	Instances []string `json:"instances,omitempty"`
	Lives     []string `json:"lives,omitempty"`
	// Leader is the id in the election node, Term the id in the term; "": no node.
	Leader string `json:"leader,omitempty"`
	Term   string `json:"term,omitempty"`
	// Flags are the paths of flags that stand: necessary, processing.
	Flags []string `json:"flags,omitempty"`
	// Running are the items with a running node, and whose it is.
	Running map[int]string `json:"running,omitempty"`
	Ledgers []Ledger       `json:"ledgers,omitempty"`
	Base    *Base          `json:"base,omitempty"`
	// Requests are the ids of those that nobody has answered; Asked are the runs, nil where
	// they were not looked at.
	Requests []string `json:"requests,omitempty"`
	Asked    []Asked  `json:"asked,omitempty"`
}

// An Asked is a run that was asked for.
type Asked struct {
	Number  int64     `json:"n"`
	Request string    `json:"request"`
	Epoch   int       `json:"epoch,omitempty"`
	At      time.Time `json:"at"`
	Items   []int     `json:"items,omitempty"`
	Open    bool      `json:"open,omitempty"`
	// Problem: nothing ran.
	Problem string `json:"problem,omitempty"`
	// Outcomes are what became of the items, in words, in any order.
	Outcomes []Outcomes `json:"outcomes,omitempty"`
}

// Outcomes are items of which the same became.
type Outcomes struct {
	Items   []int  `json:"items"`
	Outcome string `json:"outcome"`
}

// A Ledger is the record of one life's items.
type Ledger struct {
	Instance string    `json:"instance"`
	Epoch    int       `json:"epoch,omitempty"`
	Total    int       `json:"total"`
	Held     bool      `json:"held,omitempty"`
	Items    []Holding `json:"items,omitempty"`
}

// A Holding is one item in a ledger.
type Holding struct {
	Item    int       `json:"item"`
	Through time.Time `json:"through,omitzero"`
	Run     time.Time `json:"run,omitzero"`
	Redo    time.Time `json:"redo,omitzero"`
	Tries   int       `json:"tries,omitempty"` // of Redo: the instances that it has killed
	Leaving bool      `json:"leaving,omitempty"`
	// Bound is the name of the instance that it belongs to, "" where that is the ledger's.
	Bound string `json:"bound,omitempty"`
}
