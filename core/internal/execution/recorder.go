package execution

import (
	"context"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/timer"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

const (
	// linger is how long a patient change waits for its neighbours while any item of
	// the ledger runs, so that they share a commit.
	linger = 10 * time.Millisecond
	// stillness is how long nothing is committed at least after the leader has asked for it, mostStillness at most. In
	// between it is commitsInStillness times as long as the last commit took: the leader reads and commits meanwhile.
	stillness, mostStillness = 250 * time.Millisecond, 5 * time.Second
	commitsInStillness       = 8
	// again is the pause before what was denied, or does not fit, is tried again.
	again = time.Second
	// fixedOps are the operations of every commit: the life and the ledger.
	fixedOps = 2
	// signalOps is what the end of an item that is leaving adds, or news of the rounds.
	signalOps = 1
)

// A Step is what a change means to the item's run.
type Step uint8

const (
	// Other: the item does not run, before and after.
	Other Step = iota
	// Begins: the record says afterwards that the item runs.
	Begins
	// BeginsAgain: so it does, and the fire has begun before, in a life that has ended.
	BeginsAgain
	// Ends: the record says no more that it runs.
	Ends
	// EndsFailed: nor does it, and the run has failed.
	EndsFailed
	// Undoes: nor does it, and there was no run.
	Undoes
)

// begins reports whether the item runs from now on.
func (s Step) begins() bool { return s == Begins || s == BeginsAgain }

// over reports whether the item runs no more.
func (s Step) over() bool { return s >= Ends }

// A Change is one step of one item's record. The recorder keeps it until the owner is
// told of it.
type Change interface {
	// Item is the sharding item.
	Item() int
	// Step is what it means to the item's run.
	Step() Step
	// Apply changes the record. It reports false when the record, in a ledger that
	// is held or not, refuses the change. It may be called again after a failure. With apart
	// nothing begins together with an end: what runs is shown before its function is called.
	Apply(rec *ledger.Item, in *ledger.Ledger, apart bool) bool
	// Patient reports whether it may wait a moment for its neighbours.
	Patient() bool
	// Follows reports, of an end and after Apply, whether the item's next fire is recorded as running.
	Follows() bool
	// Misses is when the next fire of an item comes due that begins; zero: it would not be owed.
	Misses() time.Time
	// Further is an operation that goes with its commit, nil for none.
	Further() Further
}

// A Further is an operation that the commit of some changes has besides the record: it
// demands something, or writes it. Changes of a commit that share it, by identity, share the
// operation. Its methods are called under the recorder's lock.
type Further interface {
	// Op is the operation for changes of one commit; it is asked for anew with each attempt.
	// None is one without a path.
	Op(changes []Change) registry.Op
	// Refused is told that the operation made the commit fail, or that the change does not
	// fit even alone. With true it is tried again, with what Op returns then; else the changes
	// are refused.
	Refused(err error) bool
}

// Refusal says why a change was not applied.
type Refusal uint8

const (
	// NotOwned: the ledger does not hold the item.
	NotOwned Refusal = iota + 1
	// ByRecord: Apply said so.
	ByRecord
	// Obstructed: somebody else's running node is in the way of a begin.
	Obstructed
	// Overruled: its further operation was refused.
	Overruled
)

// An Owner learns what became of its changes. Slices belong to it.
type Owner interface {
	// Applied: the changes are committed at a revision; 0 is an end of an item that the
	// ledger does not hold: nothing says that it has ended.
	Applied(changes []Change, rev registry.Revision)
	// Refused: the change was not and will not be applied to the record rec.
	Refused(c Change, why Refusal, rec ledger.Item, detail string)
	// Changed: somebody else changed the ledger. It must not be kept.
	Changed(l *ledger.Ledger)
	// Hindered: the registry has refused what is asked of it for about a second.
	Hindered(err error)
	// Unshown: the registry does not let what runs be shown, which is given up.
	Unshown(err error)
	// Gone: the life or its ledger has ended; nothing is committed until Resume.
	Gone(err error)
}

// Config is what a recorder works with.
type Config struct {
	// Session commits; Context ends with it.
	Session registry.Session
	Context context.Context
	// Pool runs the recorder's task.
	Pool *workqueue.Pool
	// Spare pokes the task for patient changes, once the clock has called all timers that are due; nil is at once.
	Spare func(timer.Poker)
	// Now is the wall clock.
	Now func() time.Time
	// Nodes are those of the job.
	Nodes Nodes
	// Locks reports whether a running node with a value is a lock: that of a member for
	// whom no ledger is.
	Locks func(value []byte) bool
}

// Nodes are the paths of what is shown.
type Nodes interface {
	// Rounds is that of the node by which a registration tells how far its items are.
	Rounds(id string) string
	// Running is the path of an item's running node.
	Running(item int) string
	// Failover is that of the node which says that it runs again.
	Failover(item int) string
	// Misfire is that of the one which says that a fire came due meanwhile.
	Misfire(item int) string
}

// A Place is where a registration stands in the registry: its id, which is the value of
// running nodes, and the paths of the nodes that its commits name.
type Place struct{ ID, Life, Ledger string }

// A Recorder keeps one ledger.
type Recorder struct {
	cfg   Config
	owner Owner
	task  *workqueue.Task
	busy  sync.Mutex // held while the task works

	mu      sync.Mutex
	between bool               // registrations: one is suspended, and the next has not come
	cancel  context.CancelFunc // of what the task does now; nil while it rests
	place   Place
	led     *ledger.Ledger
	version registry.Version
	created registry.Revision
	stale   bool    // somebody else has written the ledger, or may have
	written Written // what that was, as far as it was told
	refused bool    // a commit was refused since somebody has
	still   time.Time
	took    time.Duration // how long the registry took to answer the last commit
	queue   []*entry
	atMost  int  // changes in a commit, after one that was too large; 0 is any
	alone   int  // changes in a row that are too large even alone
	overdue bool // patient changes have waited long enough
	timer   *time.Timer
	lingers bool // timer is the end of a linger
	gone    error
	show    pictures
	rounds  bool           // the node that tells of ends stands, as far as is known
	told    *ledger.Rounds // how far the items are, as was told last; nil while nobody listens to rounds
}

// An entry is a change that is not applied yet.
type entry struct {
	Change
	shows   bool      // its commit makes the running node
	plain   bool      // something is in the way of that: it is not shown at once
	before  time.Time // of a begin: when the run before it began
	due     time.Time // of what runs afterwards
	large   bool      // it was too large even alone: others go first
	unknown int64     // Seq of a commit with it whose outcome was unknown when the registration ended
}

// NewRecorder returns a recorder of a ledger that was read, with its node; it keeps a copy.
func NewRecorder(c Config, o Owner, p Place, node registry.Node, led *ledger.Ledger) *Recorder {
	r := &Recorder{cfg: c, owner: o, show: pictures{after: never}}
	r.task = c.Pool.Task(r.work)
	r.begin(p, node, led.Clone())
	return r
}

func (r *Recorder) begin(p Place, node registry.Node, led *ledger.Ledger) {
	r.place, r.led, r.version, r.created = p, led, node.Version, node.Created
	r.between = false
	if r.rounds = false; r.told != nil {
		r.told = &ledger.Rounds{}
	}
	r.written = Written{}
	r.gone, r.still = nil, time.Time{} // stale stays: somebody may have seen a write to the new ledger already
}

// Ledger returns a copy of the ledger as it is known now.
func (r *Recorder) Ledger() *ledger.Ledger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.led.Clone()
}

// Submit has changes committed.
func (r *Recorder) Submit(changes ...Change) {
	if len(changes) == 0 {
		return
	}
	r.mu.Lock()
	patient := true
	for _, c := range changes {
		r.queue = append(r.queue, &entry{Change: c})
		patient = patient && c.Patient()
	}
	lingers := r.timer != nil && r.lingers && !r.overdue // the end of the linger comes
	idle := lingers && patient && len(r.queue) < r.led.Running()
	r.mu.Unlock()
	switch {
	case idle:
	case patient && r.cfg.Spare != nil:
		r.cfg.Spare(r.task)
	default:
		r.task.Poke()
	}
}

// Refresh has the ledger read: somebody else has written it, or may have. With still
// nothing is committed for a moment afterwards, or until the next Refresh.
func (r *Recorder) Refresh(still bool) { r.Take(still, Written{}) }

// Written is what somebody else has made of a ledger: the value of its node and its version. Without a value the
// ledger must be read.
type Written struct {
	Version registry.Version
	Value   []byte
}

// Take is Refresh for whoever was told what was written. The ledger is read only where that is no later than what is
// known, or is no whole ledger, or where it has to tell whether a commit was applied.
func (r *Recorder) Take(still bool, w Written) {
	r.mu.Lock()
	r.stale, r.written = true, w
	r.still = time.Time{}
	if still {
		r.still = time.Now().Add(min(max(stillness, commitsInStillness*r.took), mostStillness))
	}
	r.mu.Unlock()
	r.task.Poke()
}

// Listen says whether somebody listens to rounds: then each commit that changes how far the
// items are says so.
func (r *Recorder) Listen(listen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !listen:
		r.told = nil
	case r.told == nil:
		r.told = &ledger.Rounds{}
	}
}

// Suspend ends the work on the present registration and waits for it: no request is
// under way when it returns. What is queued stays; Resume goes on with it.
func (r *Recorder) Suspend() {
	r.mu.Lock()
	r.between = true
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.busy.Lock()
	defer r.busy.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	r.show.disarm()
}

// Resume goes on with the ledger of another registration, which was made of this one's;
// it keeps a copy.
// A commit of unknown outcome was applied if the Seq that the new ledger started from is
// its own.
func (r *Recorder) Resume(p Place, node registry.Node, led *ledger.Ledger) {
	r.mu.Lock()
	applied := r.learn(led.Seq)
	r.begin(p, node, led.Clone())
	r.overdue = true
	r.mu.Unlock()
	if len(applied) > 0 {
		r.owner.Applied(applied, node.Modified)
	}
	r.task.Poke()
}

// learn takes out of the queue what a commit of unknown outcome has recorded: the one whose Seq the ledger shows. Other
// such commits were not applied, and cannot be any more: what was in them is tried again. The caller holds mu.
func (r *Recorder) learn(seq int64) (applied []Change) {
	waiting := r.queue[:0]
	for _, e := range r.queue {
		if e.unknown != 0 && e.unknown == seq {
			applied = append(applied, e.Change)
			r.note(e)
			continue
		}
		e.unknown = 0
		waiting = append(waiting, e)
	}
	r.queue = waiting
	return applied
}

func (r *Recorder) work() {
	r.busy.Lock()
	defer r.busy.Unlock()
	ctx := r.enter()
	defer r.rest()
	for {
		r.mu.Lock()
		over := r.between || r.gone != nil
		r.mu.Unlock()
		if over || ctx.Err() != nil || r.cfg.Session.Err() != nil {
			return // every call fails at once: Resume goes on, or nobody
		}
		if !r.adopt(ctx) || !r.sweep(ctx) {
			return
		}
		if r.strict() && r.showDue(ctx) {
			continue
		}
		batch := r.next()
		switch {
		case len(batch) > 0, r.mends():
			r.commit(ctx, batch)
		case !r.showDue(ctx):
			return
		}
	}
}

// enter returns a context that ends with the present registration. There is none while the task rests: with what
// requests leave behind in it, it takes more than most recorders do.
func (r *Recorder) enter() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithCancel(r.cfg.Context)
	r.cancel = cancel
	return ctx
}

func (r *Recorder) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
	r.cancel = nil
}

// wake pokes the task after a pause. The caller holds mu.
func (r *Recorder) wake(after time.Duration, overdue bool) {
	if r.timer != nil {
		if r.lingers || !overdue {
			return
		}
		r.timer.Stop() // of a stillness that was taken back
	}
	r.lingers = overdue
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		r.mu.Lock()
		if r.timer == timer {
			r.overdue = r.overdue || overdue
			r.timer = nil
		}
		r.mu.Unlock()
		r.task.Poke()
	})
	r.timer = timer
}

// end marks the registration as over.
func (r *Recorder) end(err error) {
	r.mu.Lock()
	first := r.gone == nil && !r.between && r.cfg.Context.Err() == nil
	if first {
		r.gone = err
	}
	r.mu.Unlock()
	if first {
		r.owner.Gone(err)
	}
}
