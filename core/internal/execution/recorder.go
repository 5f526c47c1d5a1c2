package execution

import (
	"context"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/lane"
	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

const (
	// linger is how long the end of an item waits for the ends of its neighbours
	// while any of them runs, so that they share a commit.
	linger = 10 * time.Millisecond
	// patience bounds one attempt of a commit; past it the outcome is settled.
	patience = 3 * time.Second
	// retryFirst and retryLast bound the pause between attempts.
	retryFirst = 50 * time.Millisecond
	retryLast  = time.Second
	// fixedOps are the operations of every commit: the life and the ledger.
	fixedOps = 2
)

// Refusal says why an item did not begin.
type Refusal uint8

const (
	// NotOwned: the ledger does not hold the item any more, or lets it go.
	NotOwned Refusal = iota + 1
	// Behind: a fire at or after the due time is recorded.
	Behind
	// Elsewhere: somebody else's running node exists.
	Elsewhere
	// Lost: the life ended first.
	Lost
)

// An Owner learns what became of its requests. Slices belong to it.
type Owner interface {
	// Begun: the begin is committed at revision fence; the items may run.
	Begun(due time.Time, items []int, fence registry.Revision)
	// Refused: the items will not run for due.
	Refused(due time.Time, items []int, why Refusal, detail string)
	// Ended: the ends are committed.
	Ended(items []int)
	// Changed: somebody else changed the ledger.
	Changed(l *ledger.Ledger)
	// Hindered: what the registry is asked has failed with err for more than a second, and is tried again.
	Hindered(err error)
	// Gone: the life or its ledger has ended; no further call follows but Refused.
	Gone(err error)
}

// Config is what a recorder works with.
type Config struct {
	// Session commits; Context ends with it.
	Session registry.Session
	Context context.Context
	// Pool runs the recorder's lane.
	Pool *lane.Pool
	// Life and Ledger are paths; Running is the path of an item's running node.
	Life, Ledger string
	Running      func(item int) string
	// Instance is written into running nodes.
	Instance string
}

// A Recorder keeps one ledger.
type Recorder struct {
	Config
	owner Owner
	task  *lane.Task

	mu      sync.Mutex
	led     *ledger.Ledger
	version registry.Version
	created registry.Revision
	stale   bool // somebody else has written the ledger, or may have
	begins  []begin
	ends    []end
	overdue bool // ends have lingered long enough
	timer   *time.Timer
	gone    error
}

type begin struct {
	item int
	due  time.Time
}

type end struct {
	item    int
	due     time.Time // zero: nothing ran, only Through moves on
	through time.Time
	erased  bool // its running node is gone already
	unsaid  bool // the owner was told that it did not run
}

// NewRecorder returns a recorder of the ledger that node holds.
func NewRecorder(c Config, o Owner, node registry.Node) (*Recorder, error) {
	led, err := ledger.Decode(node.Value)
	if err != nil {
		return nil, err
	}
	r := &Recorder{Config: c, owner: o, led: led, version: node.Version, created: node.Created}
	r.task = c.Pool.Task(r.work)
	return r, nil
}

// Owned returns a copy of the ledger as it is known now.
func (r *Recorder) Owned() *ledger.Ledger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.led.Clone()
}

// Begin asks for items to begin the fire due.
func (r *Recorder) Begin(due time.Time, items []int) {
	r.mu.Lock()
	for _, n := range items {
		r.begins = append(r.begins, begin{n, due})
	}
	r.mu.Unlock()
	r.task.Poke()
}

// End records that the item's run of the fire due is over and that every fire
// through the given instant is accounted for. After the life it frees the item for
// its next owner, if the session stands.
func (r *Recorder) End(item int, due, through time.Time) {
	r.mu.Lock()
	r.ends = append(r.ends, end{item: item, due: due, through: through})
	r.mu.Unlock()
	r.task.Poke()
}

// Account records that every fire of the items through the given instant was
// skipped with a reason. The items do not run. Nobody is told of the commit.
func (r *Recorder) Account(items []int, through time.Time) {
	r.mu.Lock()
	for _, n := range items {
		r.ends = append(r.ends, end{item: n, through: through})
	}
	r.overdue = true
	r.mu.Unlock()
	r.task.Poke()
}

// Refresh has the ledger read: somebody else has written it, or may have.
func (r *Recorder) Refresh() {
	r.mu.Lock()
	r.stale = true
	r.mu.Unlock()
	r.task.Poke()
}

// Drop refuses what has not begun, because the life has ended. What is in flight
// may begin yet.
func (r *Recorder) Drop(err error) {
	r.mu.Lock()
	if r.gone == nil {
		r.gone = err
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.task.Poke()
}

func (r *Recorder) work() {
	for {
		r.adopt()
		b := r.next()
		if b == nil {
			return
		}
		r.settle(b)
	}
}

// adopt takes over a ledger that somebody else wrote.
func (r *Recorder) adopt() {
	r.mu.Lock()
	stale := r.stale && r.gone == nil
	r.stale = false
	r.mu.Unlock()
	if !stale {
		return
	}
	nodes, err := r.get(r.Ledger)
	if err != nil {
		return // the life has ended
	}
	r.mu.Lock()
	known := nodes[0].Created == r.created && nodes[0].Version <= r.version
	r.mu.Unlock()
	if !known {
		r.replace(nodes[0])
	}
}

// replace makes node the known state and tells the owner, or ends the life when it
// is not this life's ledger.
func (r *Recorder) replace(node registry.Node) {
	led, err := r.read(node)
	r.mu.Lock()
	if err != nil {
		first := r.gone == nil
		if first {
			r.gone = err
		}
		r.mu.Unlock()
		if first {
			r.owner.Gone(err)
		}
		return
	}
	r.led, r.version = led, node.Version
	r.mu.Unlock()
	r.owner.Changed(led.Clone())
}
