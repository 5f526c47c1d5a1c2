package execution

import (
	"path"
	"slices"
	"time"

	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A batch is one commit that is being made, with what undoes it in the ledger.
type batch struct {
	entries []*entry
	ops     []registry.Op
	owner   []int // of each operation, the index of its entry; -1 where it has none
	further []further
	signal  int // the index of the operation that tells of an end; 0 for none
	pages   int // the index of the first operation on a page of the ledger: all that follow are such
	write   *ledger.Write
	undo    []former
	seq     int64
	rounds  ledger.Rounds // how far the items are then
}

// A further is what some entries of a batch have besides the record.
type further struct {
	Further
	at      int // the index of its operation; 0 for none
	changes []Change
}

// wanted returns which further operation of the batch is at an index.
func (b *batch) wanted(index int) Further {
	for _, x := range b.further {
		if x.at > 0 && x.at == index {
			return x.Further
		}
	}
	return nil
}

// add notes what a change has besides the record.
func (b *batch) add(c Change) {
	f := c.Further()
	if f == nil {
		return
	}
	i := slices.IndexFunc(b.further, func(x further) bool { return x.Further == f })
	if i < 0 {
		i = len(b.further)
		b.further = append(b.further, further{Further: f})
	}
	b.further[i].changes = append(b.further[i].changes, c)
}

type former struct {
	item int
	rec  ledger.Item
}

// next takes the entries of the next commit out of the queue; none when nothing is
// ready. What is urgent goes first: it is due, and taken together a fire of S items
// needs no more than twice the commits that S fit.
func (r *Recorder) next() []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil
	}
	if wait := time.Until(r.still); wait > 0 {
		r.wake(wait, false)
		return nil
	}
	room := r.room()
	if r.waits() {
		return nil
	}
	var taken []*entry
	seen := map[int]bool{}
	further := map[Further]bool{}
	blind := r.show.strict && r.show.pending() // what runs is shown before anything begins
	for c := range classes {
		r.queue = slices.DeleteFunc(r.queue, func(e *entry) bool {
			if e.class() != c || seen[e.Item()] || (blind && e.Step().begins()) {
				seen[e.Item()] = true // those behind it wait too
				return false
			}
			seen[e.Item()] = true
			ops, more := len(r.show.nodes(e, r.cfg)), e.Further()
			if more != nil && !further[more] {
				ops++
			}
			if (r.atMost > 0 && len(taken) == r.atMost) || !room.take(e.Item(), ops, e.Step().begins()) {
				return false
			}
			if more != nil {
				further[more] = true
			}
			taken = append(taken, e)
			return true
		})
		seen = forgetWaiting(seen, taken)
	}
	if len(r.queue) == 0 {
		r.overdue = false
	}
	return taken
}

// Classes of entries: what is urgent goes before what is patient, and what does not fit
// goes last, so that ends can make room for it.
const classes = 3

func (e *entry) class() int {
	switch {
	case e.large:
		return 2
	case e.Patient():
		return 1
	}
	return 0
}

// forgetWaiting keeps the items that are in the batch.
func forgetWaiting(seen map[int]bool, taken []*entry) map[int]bool {
	clear(seen)
	for _, e := range taken {
		seen[e.Item()] = true
	}
	return seen
}

// waits reports whether what is queued shall wait for its neighbours: for a moment,
// while items run whose ends may come.
func (r *Recorder) waits() bool {
	if r.overdue || r.led.Running() <= len(r.queue) {
		return false
	}
	for _, e := range r.queue {
		if !e.Patient() {
			return false
		}
	}
	r.wake(linger, true)
	return true
}

// compose applies entries to the ledger and makes their commit. What the record refuses
// is returned, and so are the entries of items that the ledger does not hold.
func (r *Recorder) compose(entries []*entry) (b *batch, refused []refusal, strays []*entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b = &batch{ops: make([]registry.Op, fixedOps, fixedOps+signalOps+len(entries)), owner: []int{-1, -1}}
	leaves := false
	var begun time.Time
	at := r.cfg.Now().Truncate(time.Millisecond) // the same for all, so that they share groups
	for _, e := range entries {
		rec, owned := r.led.Get(e.Item())
		if !owned {
			strays = append(strays, e)
			continue
		}
		after := rec
		if !e.Apply(&after, r.led, r.show.strict) {
			refused = append(refused, refusal{e.Change, ByRecord, rec, ""})
			continue
		}
		r.remember(e, rec, &after, at)
		b.undo = append(b.undo, former{e.Item(), rec})
		r.led.Set(e.Item(), after)
		leaves = leaves || (rec.Leaving && e.Step().over())
		starts := e.Step().begins() || (e.Follows() && !ledger.Soon(after.Run, at))
		if starts && after.Request == 0 && after.Run.After(begun) {
			begun = after.Run
		}
		for b.ops = r.show.add(b.ops, e, r.cfg, r.place.ID); len(b.owner) < len(b.ops); {
			b.owner = append(b.owner, len(b.entries))
		}
		b.entries = append(b.entries, e)
		b.add(e.Change)
	}
	if len(b.entries) == 0 && !r.led.Mends() {
		return b, refused, strays
	}
	r.led.Seq++
	b.seq = r.led.Seq
	b.ops[0] = registry.Check(r.place.Life, registry.AnyVersion)
	if failpoint.Mutant(failpoint.LifeUnchecked) {
		b.ops[0].Path = path.Dir(r.place.Ledger)
	}
	tell := ledger.Rounds{Seq: b.seq}
	if r.told != nil {
		tell = r.led.Rounds()
		tell.Begun = r.told.Begun
		wrong := tell.Begun.After(at) && !ledger.Soon(tell.Begun, at) // by a clock that was set back since
		if begun.After(tell.Begun) || (wrong && !begun.IsZero()) {    // a watch may leave out what stood in between
			tell.Begun = begun
		}
		b.rounds = tell
		leaves = leaves || !begun.IsZero() || !tell.Started.Equal(r.told.Started) || !tell.Completed.Equal(r.told.Completed)
	}
	if leaves {
		b.signal = len(b.ops)
		b.ops, b.owner = append(b.ops, r.tell(tell)), append(b.owner, -1)
	}
	for i, x := range b.further {
		if op := x.Op(x.changes); op.Path != "" {
			b.further[i].at = len(b.ops)
			b.ops, b.owner = append(b.ops, op), append(b.owner, -1)
		}
	}
	r.put(b)
	return b, refused, strays
}

// remember says of an item's last run what an entry makes of it. One that was recorded before it
// was due began when it was: its end says so.
func (r *Recorder) remember(e *entry, was ledger.Item, now *ledger.Item, at time.Time) {
	switch last := &now.Last; e.Step() {
	case Begins, BeginsAgain:
		if e.before = last.Began; !ledger.Soon(now.Run, at) {
			last.Began = at
		}
	case Ends, EndsFailed:
		if was.Run.After(last.Began) && !was.Run.After(at) {
			last.Began = was.Run
		}
		last.Ended, last.Failed = at, e.Step() == EndsFailed
		if e.before = last.Began; e.Follows() && !ledger.Soon(now.Run, at) {
			last.Began = at
		}
	case Undoes:
		if x, runs := r.show.runs[e.Item()]; runs {
			last.Began = x.before
		}
	case Other:
	}
	e.due = now.Run
}

// tell returns what tells the leader that an item it waits for has ended, or how far the items
// are: it does not watch the ledger. The caller holds mu.
func (r *Recorder) tell(is ledger.Rounds) registry.Op {
	path, value := r.cfg.Nodes.Rounds(r.place.ID), is.Encode()
	if r.rounds {
		return registry.Set(path, value, registry.AnyVersion)
	}
	return registry.CreateEphemeral(path, value)
}

// revert takes b out of the ledger again.
func (r *Recorder) revert(b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	revertIn(r.led, b)
}

func revertIn(l *ledger.Ledger, b *batch) {
	for _, f := range b.undo {
		l.Set(f.item, f.rec)
	}
	l.Seq = b.seq - 1
	l.Reverted()
}

// neutral returns operations that move the ledger's version on without b.
func (r *Recorder) neutral(b *batch) []registry.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.led.Clone()
	revertIn(l, b)
	l.Seq = b.seq + 1
	return []registry.Op{b.ops[0], registry.Set(r.place.Ledger, l.Standing(r.cfg.Session.Limits().MaxValue), r.version)}
}

// putBack returns entries to the front of the queue.
func (r *Recorder) putBack(entries []*entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(slices.Clone(entries), r.queue...)
	r.overdue = true
}
