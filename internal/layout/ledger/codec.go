package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// maxTotal is above every total that can be configured. It bounds what a foreign
// value can make Decode allocate.
const maxTotal = 1 << 20

const (
	// maxValue is what fits every registry.
	maxValue = 256 << 10
	// MaxLast bounds what the last runs take of a value: they are written with each commit.
	MaxLast = 8 << 10
)

// document is the node's JSON, as Decode reads it.
type document struct {
	Epoch  int      `json:"epoch"`
	Total  *int     `json:"total"`
	Seq    int64    `json:"seq"`
	Held   bool     `json:"held"`
	Until  string   `json:"until"`
	Names  []string `json:"names"`
	Groups []group  `json:"groups"`
	Last   []last   `json:"last"`
}

// numbers are items: ranges such as 0-3,7 or, where one of them is shorter, a bit map or gaps.
type numbers struct {
	Items string `json:"items"`
	Bits  string `json:"bits"`
	Gaps  string `json:"gaps"`
}

// A group are the items with one record.
type group struct {
	numbers
	Through string `json:"through"`
	Run     string `json:"run"`
	Leaving bool   `json:"leaving"`
	Told    []Note `json:"told"`
	Redo    string `json:"redo"`
	Lost    string `json:"lost"`
	Tries   int    `json:"tries"`
	Request int64  `json:"request"`
	Asked   int64  `json:"asked"`
	Bound   int    `json:"bound"` // in the names, from 1; 0 is not lent
}

// A last are the items whose last runs began and ended at the same time.
type last struct {
	numbers
	Began  string `json:"began"`
	Ended  string `json:"ended"`
	Failed bool   `json:"failed"`
}

// Encode returns the node's value. Equal ledgers give equal bytes.
func (l *Ledger) Encode() []byte { return l.EncodeWithin(maxValue) }

// EncodeWithin is Encode for values of a size: the oldest of the last runs are left out
// where there is no room for them. What counts is written whatever it takes.
func (l *Ledger) EncodeWithin(size int) []byte {
	b := make([]byte, 0, 256)
	b = append(b, `{"epoch":`...)
	b = strconv.AppendInt(b, int64(l.Epoch), 10)
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, int64(l.Total), 10)
	if l.Seq != 0 {
		b = append(b, `,"seq":`...)
		b = strconv.AppendInt(b, l.Seq, 10)
	}
	b = appendTrue(b, "held", l.Held)
	b = appendInstant(b, "until", l.Until)
	names := l.names()
	if len(names) > 0 {
		b = appendJSON(append(b, `,"names":`...), names)
	}
	b = l.appendGroups(b, names)
	const closing = len(`]}`)
	b = l.appendLast(b, min(len(b)+MaxLast, size-closing))
	return append(b, '}')
}

// names are those of the instances to which what is lent belongs, in order. They stand once in
// the value, since as many records as there are items may be lent.
func (l *Ledger) names() []string {
	var names []string
	for it := range l.groups {
		if it.Lent() {
			names = append(names, it.Bound)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (l *Ledger) appendGroups(b []byte, names []string) []byte {
	records := slices.Collect(maps.Keys(l.groups))
	slices.SortFunc(records, func(a, b Item) int { return l.groups[a].first(0) - l.groups[b].first(0) })
	for i, it := range records {
		b = append(b, opening("groups", i)...)
		b = l.groups[it].append(b)
		b = appendInstant(b, "through", it.Through)
		b = appendInstant(b, "run", it.Run)
		b = appendTrue(b, "leaving", it.Leaving)
		if it.Told.text != "" {
			b = append(append(b, `,"told":`...), it.Told.text...)
		}
		b = it.Redo.append(b)
		b = appendNumber(b, "request", it.Request)
		b = appendNumber(b, "asked", it.Asked)
		if it.Lent() {
			at, _ := slices.BinarySearch(names, it.Bound)
			b = appendNumber(b, "bound", int64(at)+1)
		}
		b = append(b, '}')
	}
	if len(records) > 0 {
		b = append(b, ']')
	}
	return b
}

// append appends what there is of a fire that runs again.
func (r Redo) append(b []byte) []byte {
	b = appendInstant(b, "redo", r.Due)
	if r.Lost != "" {
		b = appendJSON(append(b, `,"lost":`...), r.Lost)
	}
	if r.Tries != 0 {
		b = strconv.AppendInt(append(b, `,"tries":`...), int64(r.Tries), 10)
	}
	return b
}

// appendJSON appends texts.
func appendJSON[T string | []string](b []byte, text T) []byte {
	value, err := json.Marshal(text)
	if err != nil {
		panic("ledger: " + err.Error()) // a string can be written
	}
	return append(b, value...)
}

// appendNumber appends a number; 0 is nothing.
func appendNumber(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(append(append(b, `,"`...), name...), `":`...), n, 10)
}

// appendLast appends the last runs, the latest first, as far as they fit.
func (l *Ledger) appendLast(b []byte, size int) []byte {
	runs := slices.Collect(maps.Keys(l.lasts))
	slices.SortFunc(runs, func(a, b Last) int {
		if b.before(a) {
			return -1
		}
		return 1
	})
	for i, x := range runs {
		fits := len(b)
		b = append(b, opening("last", i)...)
		b = l.lasts[x].append(b)
		b = appendInstant(b, "began", x.Began)
		b = appendInstant(b, "ended", x.Ended)
		b = append(appendTrue(b, "failed", x.Failed), '}')
		if len(b) > size {
			b = b[:fits]
			if i == 0 {
				return b
			}
			break
		}
	}
	if len(runs) > 0 {
		b = append(b, ']')
	}
	return b
}

// opening begins the i-th element of a list.
func opening(name string, i int) string {
	if i > 0 {
		return ",{"
	}
	return `,"` + name + `":[{`
}

func appendTrue(b []byte, name string, is bool) []byte {
	if is {
		b = append(append(append(b, `,"`...), name...), `":true`...)
	}
	return b
}

// appendInstant appends an instant; the zero one is nothing.
func appendInstant(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":"`...)
	b, err := t.UTC().AppendText(b)
	if err != nil {
		panic("ledger: " + err.Error()) // fires are within Quartz's years, and Decode refuses others
	}
	return append(b, '"')
}

// append appends the items, without a comma before them.
func (s *set) append(b []byte) []byte {
	form, text := s.text()
	b = append(append(append(b, '"'), form...), `":"`...)
	return append(append(b, text...), '"')
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
		if err := l.addGroup(g, doc.Names); err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
	}
	for _, x := range doc.Last {
		if err := l.addLast(x); err != nil {
			return nil, fmt.Errorf("ledger: last: %w", err)
		}
	}
	return l, nil
}

// addLast adds the last runs of items; those that the ledger does not hold have none.
func (l *Ledger) addLast(x last) error {
	numbers, err := x.read(l.Total)
	if err != nil {
		return err
	}
	run := Last{Failed: x.Failed}
	if run.Began, err = parseInstant(x.Began); err != nil {
		return fmt.Errorf("began: %w", err)
	}
	if run.Ended, err = parseInstant(x.Ended); err != nil {
		return fmt.Errorf("ended: %w", err)
	}
	for _, n := range numbers {
		if it, held := l.items[n]; held {
			it.Last = run
			l.Set(n, it)
		}
	}
	return nil
}

func (l *Ledger) addGroup(g group, names []string) error {
	numbers, err := g.read(l.Total)
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
	if it.Redo.Due, err = parseInstant(g.Redo); err != nil {
		return fmt.Errorf("redo: %w", err)
	}
	if g.Tries < 0 {
		return fmt.Errorf("tries: %d is negative", g.Tries)
	}
	it.Redo.Lost, it.Redo.Tries = g.Lost, g.Tries
	if g.Request < 0 || g.Asked < 0 {
		return fmt.Errorf("request, asked: %d, %d: negative", g.Request, g.Asked)
	}
	it.Request, it.Asked = g.Request, g.Asked
	switch {
	case g.Bound < 0 || g.Bound > len(names) || g.Bound > 0 && names[g.Bound-1] == "":
		return fmt.Errorf("bound: %d is none of the %d names", g.Bound, len(names))
	case g.Bound > 0:
		it.Bound = names[g.Bound-1]
	}
	for _, n := range numbers {
		if _, twice := l.items[n]; twice {
			return fmt.Errorf("items: %d occurs twice", n)
		}
		l.Set(n, it)
	}
	return nil
}

func (g numbers) read(total int) ([]int, error) {
	var form, text string
	parse := ParseRange
	switch {
	case g.Bits != "" && g.Gaps == "" && g.Items == "":
		form, text, parse = "bits", g.Bits, parseBitmap
	case g.Gaps != "" && g.Bits == "" && g.Items == "":
		form, text, parse = "gaps", g.Gaps, parseGaps
	case g.Bits != "" || g.Gaps != "":
		return nil, fmt.Errorf("items, bits and gaps: a group has one of them")
	default:
		form, text = "items", g.Items
	}
	numbers, err := parse(text, total)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", form, err)
	}
	return numbers, nil
}

// parseInstant reads what appendInstant writes.
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
