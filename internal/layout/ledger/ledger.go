package ledger

import (
	"iter"
	"maps"
	"time"
)

// Believable is how far ahead of a clock a record may be. One that is further was made by
// a clock that was wrong: to wait for it would excuse the fires of years.
const Believable = 24 * time.Hour

// Item is the record of one sharding item. It is comparable.
type Item struct {
	// Through: every fire due at or before it has an outcome or runs. Zero means that
	// nobody has owned the item yet.
	Through time.Time
	// Run is the due time of the fire that runs now; zero when none does.
	Run time.Time
	// Leaving is set by the leader: the owner begins no more fires of the item.
	Leaving bool
	// Told is what the leader decided against fires. The owner tells it and clears it.
	Told Told
}

// Running reports whether a fire has begun and not ended.
func (i Item) Running() bool { return !i.Run.IsZero() }

// Norm returns the record in the form in which equal records are equal values.
func (i Item) Norm() Item {
	i.Through, i.Run = instant(i.Through), instant(i.Run)
	return i
}

func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}

// Ledger is what one instance owns.
type Ledger struct {
	// Epoch counts the changes of the sharding total count; 0 is before the first.
	Epoch int
	// Total is the sharding total count of that epoch.
	Total int
	// Seq counts the commits of its owner: which of them were applied shows in it.
	Seq int64
	// Held: the owner begins nothing while the total changes, until Until says up to where.
	Held bool
	// Until, while Held: the owner accounts for every fire due at or before it.
	Until time.Time

	items  map[int]Item
	groups map[Item]*set
	owned  set
	runs   int
}

// New returns an empty ledger of an epoch.
func New(epoch, total int) *Ledger {
	return &Ledger{Epoch: epoch, Total: total, items: map[int]Item{}, groups: map[Item]*set{}}
}

// Clone returns a copy that shares nothing.
func (l *Ledger) Clone() *Ledger {
	c := *l
	c.items = maps.Clone(l.items)
	c.groups = make(map[Item]*set, len(l.groups))
	for k, s := range l.groups {
		c.groups[k] = s.clone()
	}
	c.owned = *l.owned.clone()
	return &c
}

// Get returns the record of an item, and whether the ledger holds it.
func (l *Ledger) Get(n int) (Item, bool) {
	it, held := l.items[n]
	return it, held
}

// Set makes it the record of item n, which is from 0 to Total-1.
func (l *Ledger) Set(n int, it Item) {
	it = it.Norm()
	was, held := l.items[n]
	if held && was == it {
		return
	}
	if held {
		l.leave(n, was)
	}
	l.items[n] = it
	l.owned.add(n)
	g := l.groups[it]
	if g == nil {
		g = &set{}
		l.groups[it] = g
	}
	g.add(n)
	if it.Running() {
		l.runs++
	}
}

// Delete takes an item out.
func (l *Ledger) Delete(n int) {
	if was, held := l.items[n]; held {
		l.leave(n, was)
		delete(l.items, n)
		l.owned.remove(n)
	}
}

func (l *Ledger) leave(n int, it Item) {
	g := l.groups[it]
	if g.remove(n); g.size == 0 {
		delete(l.groups, it)
	}
	if it.Running() {
		l.runs--
	}
}

// Len is the number of items.
func (l *Ledger) Len() int { return len(l.items) }

// Running is the number of items that run.
func (l *Ledger) Running() int { return l.runs }

// All yields the items in ascending order. The ledger must not change meanwhile.
func (l *Ledger) All() iter.Seq2[int, Item] {
	return func(yield func(int, Item) bool) {
		for n := range l.owned.all() {
			if !yield(n, l.items[n]) {
				return
			}
		}
	}
}

// Numbers returns the items in ascending order.
func (l *Ledger) Numbers() []int {
	numbers := make([]int, 0, len(l.items))
	for n := range l.owned.all() {
		numbers = append(numbers, n)
	}
	return numbers
}

// Latest returns the latest instant that any record has: through or run.
func (l *Ledger) Latest() time.Time {
	var latest time.Time
	for it := range l.groups {
		if it.Through.After(latest) {
			latest = it.Through
		}
		if it.Run.After(latest) {
			latest = it.Run
		}
	}
	return latest
}

// Equal reports whether two ledgers say the same, Seq aside.
func (l *Ledger) Equal(o *Ledger) bool {
	return l.Epoch == o.Epoch && l.Total == o.Total && l.Held == o.Held && l.Until.Equal(o.Until) && maps.Equal(l.items, o.items)
}
