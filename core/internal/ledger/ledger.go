package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Item is the record of one sharding item.
type Item struct {
	// Through: every fire due at or before it ran, runs, or was skipped with a
	// reason. Zero means that nobody has owned the item yet.
	Through time.Time
	// Run is the due time of the fire that runs now; zero when none does.
	Run time.Time
	// Leaving is set by the leader: the owner begins no more fires of the item.
	Leaving bool
}

// Running reports whether a fire has begun and not ended.
func (i Item) Running() bool { return !i.Run.IsZero() }

// Ledger is what one instance owns.
type Ledger struct {
	// Total is the sharding total count that the items belong to.
	Total int
	// Items by number.
	Items map[int]Item
}

// New returns an empty ledger for a total.
func New(total int) *Ledger { return &Ledger{Total: total, Items: map[int]Item{}} }

// Clone returns a copy that shares nothing.
func (l *Ledger) Clone() *Ledger { return &Ledger{Total: l.Total, Items: maps.Clone(l.Items)} }

// Numbers returns the items in ascending order.
func (l *Ledger) Numbers() []int { return slices.Sorted(maps.Keys(l.Items)) }

// document is the node's JSON. Items with one record share a group, so that the
// node stays small: in the steady state it has one.
type document struct {
	Total  int     `json:"total"`
	Groups []group `json:"groups,omitempty"`
}

type group struct {
	Items   string     `json:"items"`
	Through *time.Time `json:"through,omitempty"`
	Run     *time.Time `json:"run,omitempty"`
	Leaving bool       `json:"leaving,omitempty"`
}

// Encode returns the node's value. Equal ledgers give equal bytes.
func (l *Ledger) Encode() []byte {
	type key struct {
		through, run int64
		leaving      bool
	}
	order := []key{}
	members := map[key][]int{}
	for _, n := range l.Numbers() {
		it := l.Items[n]
		k := key{nanos(it.Through), nanos(it.Run), it.Leaving}
		if members[k] == nil {
			order = append(order, k)
		}
		members[k] = append(members[k], n)
	}
	doc := document{Total: l.Total}
	for _, k := range order {
		it := l.Items[members[k][0]]
		doc.Groups = append(doc.Groups, group{
			Items: FormatRange(members[k]), Through: stamp(it.Through), Run: stamp(it.Run), Leaving: it.Leaving,
		})
	}
	value, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("ledger: a time outside the years 0 to 9999: %v", err)) // fires are within Quartz's years
	}
	return value
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// Decode reads a node's value.
func Decode(value []byte) (*Ledger, error) {
	var doc document
	if err := json.Unmarshal(value, &doc); err != nil {
		return nil, fmt.Errorf("ledger: not one of ours: %w", err)
	}
	if doc.Total < 0 {
		return nil, fmt.Errorf("ledger: total: %d is negative", doc.Total)
	}
	l := New(doc.Total)
	for _, g := range doc.Groups {
		numbers, err := ParseRange(g.Items, doc.Total)
		if err != nil {
			return nil, fmt.Errorf("ledger: items: %w", err)
		}
		it := Item{Leaving: g.Leaving}
		if g.Through != nil {
			it.Through = *g.Through
		}
		if g.Run != nil {
			it.Run = *g.Run
		}
		for _, n := range numbers {
			if _, twice := l.Items[n]; twice {
				return nil, fmt.Errorf("ledger: items: %d occurs twice", n)
			}
			l.Items[n] = it
		}
	}
	return l, nil
}
