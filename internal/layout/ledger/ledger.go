package ledger

import (
	"cmp"
	"iter"
	"maps"
	"time"
)

// Believable is how far ahead of a clock a record may be. One that is further was made by
// a clock that was wrong: to wait for it would excuse the fires of years.
const Believable = 24 * time.Hour

// mostAhead is how far ahead of the clock a begin may be recorded, the difference of clocks included.
const mostAhead = 2 * time.Second

// Soon reports whether a fire is still to come, and no later than one whose begin may be recorded
// already. What is further ahead was recorded by a clock that was wrong: nobody waits for it.
func Soon(due, now time.Time) bool { return due.After(now) && due.Sub(now) <= mostAhead }

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
	// Redo is the fire that runs again because the life of the owner that had begun it has
	// ended; zero when there is none, and once it has begun again.
	Redo Redo
	// Request is the number of the run that somebody asked for of which Run, or Redo, is;
	// 0 when it is a fire of the schedule.
	Request int64
	// Asked: every run up to this number that asked for the item has begun, or never will.
	// It is dropped to 0 once those are closed.
	Asked int64
	// Bound is the stable name of the instance that the item belongs to, where static sharding
	// has lent it to this one: for what runs again, and for nothing else. "" is not lent.
	Bound string
	// Last is the item's latest run, for those who look: it decides nothing, and is left out
	// of a value that has no room for it.
	Last Last
}

// Redo is a fire that was begun by owners whose lives have ended. It is comparable.
type Redo struct {
	// Due is the fire while it is owed; zero while it runs, or when there is none.
	Due time.Time
	// Lost is the id of the instance whose life ended last while it ran.
	Lost string
	// Tries is how many lives have ended while it ran. It is counted until the fire has
	// its outcome.
	Tries int
}

// Owed reports whether the fire is to begin again.
func (r Redo) Owed() bool { return !r.Due.IsZero() }

// Last says when an item's latest run began, and when the latest that was recorded ended,
// and how. Ended before Began: it runs, or was cut. It is comparable.
type Last struct {
	Began, Ended time.Time
	Failed       bool
}

// Same reports whether two records say the same, last runs aside.
func (i Item) Same(o Item) bool { return i.record() == o.record() }

// record is what counts: items that share it are a group, whatever their last runs.
func (i Item) record() Item {
	i.Last = Last{}
	return i
}

// Lent reports whether the item belongs to another instance, which is away.
func (i Item) Lent() bool { return i.Bound != "" }

// Ahead reports whether the fire that has begun is not due yet. A run that somebody asked for always is.
func (i Item) Ahead(now time.Time) bool { return i.Request == 0 && Soon(i.Run, now) }

// Running reports whether a fire has begun and not ended.
func (i Item) Running() bool { return !i.Run.IsZero() }

// Norm returns the record in the form in which equal records are equal values.
func (i Item) Norm() Item {
	i.Through, i.Run, i.Redo.Due = instant(i.Through), instant(i.Run), instant(i.Redo.Due)
	i.Last.Began, i.Last.Ended = instant(i.Last.Began), instant(i.Last.Ended)
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

	items map[int]Item
	owned set
	runs  int

	// Most ledgers have no pages: the maps of them are nil until there is something to put into them.
	root   part
	pages  map[int]*part // what does not stand in the root, by page
	per    int           // how many numbers a page has; it stays while there are pages
	stands map[int]page  // the pages that the registry has
	dirty  map[int]bool  // pages that differ from what the registry has
	wrote  *Write        // the last one, until it is known what became of it
	bare   int           // the length of the root then, last runs aside
}

// A part is what stands in one value: the root, or a page.
type part struct {
	groups map[Item]*set // by record
	lasts  map[Last]*set // all but the zero one
	size   int           // of items
}

// New returns an empty ledger of an epoch.
func New(epoch, total int) *Ledger {
	return &Ledger{Epoch: epoch, Total: total, items: map[int]Item{}}
}

// Clone returns a copy that shares nothing.
func (l *Ledger) Clone() *Ledger {
	c := *l
	c.items, c.owned, c.root = maps.Clone(l.items), *l.owned.clone(), *l.root.clone()
	c.pages, c.stands, c.dirty = maps.Clone(l.pages), maps.Clone(l.stands), maps.Clone(l.dirty)
	for p, x := range l.pages {
		c.pages[p] = x.clone()
	}
	return &c
}

func (x *part) clone() *part {
	return &part{groups: clones(x.groups), lasts: clones(x.lasts), size: x.size}
}

func clones[K comparable](groups map[K]*set) map[K]*set {
	c := maps.Clone(groups)
	for k, s := range groups {
		c[k] = s.clone()
	}
	return c
}

// put puts a value into a map that is made with the first one.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// all yields the parts, the root first.
func (l *Ledger) parts(yield func(*part) bool) {
	if !yield(&l.root) {
		return
	}
	for _, x := range l.pages {
		if !yield(x) {
			return
		}
	}
}

// records yields the records of all items, last runs aside; one for each group.
func (l *Ledger) records(yield func(Item) bool) {
	for x := range l.parts {
		for it := range x.groups {
			if !yield(it) {
				return
			}
		}
	}
}

// Get returns the record of an item, and whether the ledger holds it.
func (l *Ledger) Get(n int) (Item, bool) {
	it, held := l.items[n]
	return it, held
}

// Set makes it the record of item n, which is from 0 to Total-1. The oldest last runs are
// forgotten when there are too many.
func (l *Ledger) Set(n int, it Item) {
	it = it.Norm()
	was, held := l.items[n]
	if held && was == it {
		return
	}
	x := l.touch(n)
	l.items[n] = it
	if !held {
		l.owned.add(n)
		x.enter(n, it)
	} else if is := it.record(); was.record() != is {
		exit(x.groups, was.record(), n)
		enter(&x.groups, is, n)
	}
	if was.Running() {
		l.runs--
	}
	if it.Running() {
		l.runs++
	}
	if held && was.Last != it.Last {
		exit(x.lasts, was.Last, n)
		x.enterLast(n, it.Last)
	}
	l.forget(x)
}

// enter takes an item in.
func (x *part) enter(n int, it Item) {
	x.size++
	enter(&x.groups, it.record(), n)
	x.enterLast(n, it.Last)
}

func (x *part) enterLast(n int, last Last) {
	if last != (Last{}) {
		enter(&x.lasts, last, n)
	}
}

// exit takes an item out.
func (x *part) exit(n int, it Item) {
	x.size--
	exit(x.groups, it.record(), n)
	exit(x.lasts, it.Last, n)
}

const (
	// maxLasts bounds how many groups of last runs are kept: more would hardly fit a value.
	maxLasts = 64
	// pageLasts is the same in a page.
	pageLasts = 8
)

// forget drops the oldest last runs of a part that has too many.
func (l *Ledger) forget(x *part) {
	most := maxLasts
	if x != &l.root {
		most = pageLasts
	}
	for len(x.lasts) > most {
		var oldest Last
		for last := range x.lasts {
			if oldest == (Last{}) || last.before(oldest) { // the zero one is never among them
				oldest = last
			}
		}
		for n := range x.lasts[oldest].all() {
			it := l.items[n]
			it.Last = Last{}
			l.items[n] = it
		}
		delete(x.lasts, oldest)
	}
}

// before orders last runs by when they began, then by when they ended.
func (x Last) before(y Last) bool {
	if c := cmp.Or(x.Began.Compare(y.Began), x.Ended.Compare(y.Ended)); c != 0 {
		return c < 0
	}
	return x.Failed && !y.Failed
}

// enter takes an item into the group of k.
func enter[K comparable](groups *map[K]*set, k K, n int) {
	g := (*groups)[k]
	if g == nil {
		g = &set{}
		put(groups, k, g)
	}
	g.add(n)
}

// exit takes an item out of the group of k, if it is in one.
func exit[K comparable](groups map[K]*set, k K, n int) {
	if g := groups[k]; g != nil {
		if g.remove(n); g.size == 0 {
			delete(groups, k)
		}
	}
}

// Delete takes an item out.
func (l *Ledger) Delete(n int) {
	if was, held := l.items[n]; held {
		l.touch(n).exit(n, was)
		delete(l.items, n)
		l.owned.remove(n)
		if was.Running() {
			l.runs--
		}
	}
}

// Len is the number of items.
func (l *Ledger) Len() int { return len(l.items) }

// Sharing is how many items have a record, last runs aside, and stand where item n does, or would.
func (l *Ledger) Sharing(n int, it Item) int {
	if s := l.of(n).groups[it.record()]; s != nil {
		return s.size
	}
	return 0
}

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
	for it := range l.records {
		if it.Through.After(latest) {
			latest = it.Through
		}
		if it.Run.After(latest) {
			latest = it.Run
		}
	}
	return latest
}

// Asked returns the highest number of a run that any record names.
func (l *Ledger) Asked() int64 {
	var highest int64
	for it := range l.records {
		highest = max(highest, it.Asked, it.Request)
	}
	return highest
}

// Earliest returns the earliest through of all items, zero when there is none.
func (l *Ledger) Earliest() time.Time {
	var earliest time.Time
	for it := range l.records {
		if earliest.IsZero() || it.Through.Before(earliest) {
			earliest = it.Through
		}
	}
	return earliest
}

// Equal reports whether two ledgers say the same, Seq and last runs aside.
func (l *Ledger) Equal(o *Ledger) bool {
	return l.Epoch == o.Epoch && l.Total == o.Total && l.Held == o.Held && l.Until.Equal(o.Until) &&
		maps.EqualFunc(l.items, o.items, Item.Same)
}
