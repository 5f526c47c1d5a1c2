package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// maxTotal is above every total that can be configured. It bounds what a foreign
// value can make Decode allocate.
const maxTotal = 1 << 20

// document is the node's JSON.
type document struct {
	Epoch  int     `json:"epoch"`
	Total  *int    `json:"total"`
	Seq    int64   `json:"seq,omitempty"`
	Held   bool    `json:"held,omitempty"`
	Until  string  `json:"until,omitempty"`
	Groups []group `json:"groups,omitempty"`
}

// A group are the items with one record: ranges such as 0-3,7 or, where that is
// shorter, a bit map.
type group struct {
	Items   string `json:"items,omitempty"`
	Bits    string `json:"bits,omitempty"`
	Through string `json:"through,omitempty"`
	Run     string `json:"run,omitempty"`
	Leaving bool   `json:"leaving,omitempty"`
	Told    []Note `json:"told,omitempty"`
}

// Encode returns the node's value. Equal ledgers give equal bytes.
func (l *Ledger) Encode() []byte {
	records := slices.Collect(maps.Keys(l.groups))
	slices.SortFunc(records, func(a, b Item) int { return l.groups[a].first(0) - l.groups[b].first(0) })
	doc := document{Epoch: l.Epoch, Total: &l.Total, Seq: l.Seq, Held: l.Held, Until: stamp(l.Until)}
	for _, it := range records {
		g := group{Through: stamp(it.Through), Run: stamp(it.Run), Leaving: it.Leaving, Told: it.Told.Notes()}
		g.Items, g.Bits = l.groups[it].text()
		doc.Groups = append(doc.Groups, g)
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
	if doc.Epoch < 0 {
		return nil, fmt.Errorf("ledger: epoch: %d is negative", doc.Epoch)
	}
	l := New(doc.Epoch, *doc.Total)
	l.Seq, l.Held = doc.Seq, doc.Held
	var err error
	if l.Until, err = parseInstant(doc.Until); err != nil {
		return nil, fmt.Errorf("ledger: until: %w", err)
	}
	for _, g := range doc.Groups {
		if err := l.addGroup(g); err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
	}
	return l, nil
}

func (l *Ledger) addGroup(g group) error {
	numbers, err := g.numbers(l.Total)
	if err != nil {
		return err
	}
	it := Item{Leaving: g.Leaving}
	if it.Through, err = parseInstant(g.Through); err != nil {
		return fmt.Errorf("through: %w", err)
	}
	if it.Run, err = parseInstant(g.Run); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if it.Told, err = readTold(g.Told); err != nil {
		return err
	}
	for _, n := range numbers {
		if _, twice := l.items[n]; twice {
			return fmt.Errorf("items: %d occurs twice", n)
		}
		l.Set(n, it)
	}
	return nil
}

func (g group) numbers(total int) ([]int, error) {
	if g.Bits != "" {
		if g.Items != "" {
			return nil, fmt.Errorf("items and bits: a group has one of them")
		}
		numbers, err := parseBitmap(g.Bits, total)
		if err != nil {
			return nil, fmt.Errorf("bits: %w", err)
		}
		return numbers, nil
	}
	numbers, err := ParseRange(g.Items, total)
	if err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	return numbers, nil
}

// parseInstant reads what stamp writes.
func parseInstant(s string) (time.Time, error) {
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
