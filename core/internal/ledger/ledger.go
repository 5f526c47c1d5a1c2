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

// maxTotal is above every total that can be configured. It bounds what a foreign
// value can make Decode allocate.
const maxTotal = 1 << 20

// document is the node's JSON. Items with one record share a group, so that the
// node stays small: in the steady state it has one.
type document struct {
	Total  *int    `json:"total"`
	Groups []group `json:"groups,omitempty"`
}

type group struct {
	Items   string `json:"items"`
	Through string `json:"through,omitempty"`
	Run     string `json:"run,omitempty"`
	Leaving bool   `json:"leaving,omitempty"`
}

// Encode returns the node's value. Equal ledgers give equal bytes.
func (l *Ledger) Encode() []byte {
	order := []Item{}
	members := map[Item][]int{}
	for _, n := range l.Numbers() {
		it := l.Items[n]
		// Instants that are equal become values that are.
		it.Through, it.Run = it.Through.UTC().Round(0), it.Run.UTC().Round(0)
		if members[it] == nil {
			order = append(order, it)
		}
		members[it] = append(members[it], n)
	}
	doc := document{Total: &l.Total}
	for _, it := range order {
		doc.Groups = append(doc.Groups, group{
			Items: FormatRange(members[it]), Through: stamp(it.Through), Run: stamp(it.Run), Leaving: it.Leaving,
		})
	}
	value, err := json.Marshal(doc)
	if err != nil {
		panic("ledger: " + err.Error()) // strings and numbers have JSON
	}
	return value
}

// stamp writes an instant; the zero one as nothing.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	text, err := t.UTC().MarshalText()
	if err != nil {
		panic("ledger: " + err.Error()) // fires are within Quartz's years, and Decode refuses others
	}
	return string(text)
}

// Decode reads a node's value.
func Decode(value []byte) (*Ledger, error) {
	var doc document
	if err := json.Unmarshal(value, &doc); err != nil {
		return nil, fmt.Errorf("ledger: not one of ours: %w", err)
	}
	if doc.Total == nil || *doc.Total < 0 || *doc.Total > maxTotal {
		return nil, fmt.Errorf("ledger: total: not a number from 0 to %d", maxTotal)
	}
	l := New(*doc.Total)
	for _, g := range doc.Groups {
		if err := l.add(g); err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
	}
	return l, nil
}

func (l *Ledger) add(g group) error {
	numbers, err := ParseRange(g.Items, l.Total)
	if err != nil {
		return fmt.Errorf("items: %w", err)
	}
	it := Item{Leaving: g.Leaving}
	if it.Through, err = instant(g.Through); err != nil {
		return fmt.Errorf("through: %w", err)
	}
	if it.Run, err = instant(g.Run); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for _, n := range numbers {
		if _, twice := l.Items[n]; twice {
			return fmt.Errorf("items: %d occurs twice", n)
		}
		l.Items[n] = it
	}
	return nil
}

// instant reads what stamp writes.
func instant(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	t = t.UTC()
	if err != nil || t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%.40q is not a time such as 2006-01-02T15:04:05Z", s)
	}
	return t, nil
}
