package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxTotal is above every total that can be configured. It bounds what a foreign
// value can make Decode allocate.
const MaxTotal = 1 << 20

// MaxCount is above what anything comes to that is counted: epochs, commits, runs that were asked for. Who has read a
// count may add to it.
const MaxCount int64 = 1 << 53

const (
	// maxValue is what fits every registry.
	maxValue = 256 << 10
	// MaxLast bounds what the last runs take of a value: they are written with each commit.
	MaxLast = 8 << 10
)

// document is the node's JSON, as Open reads it.
type document struct {
	Epoch int           `json:"epoch"`
	Total *int          `json:"total"`
	Seq   int64         `json:"seq"`
	Held  bool          `json:"held"`
	Until string        `json:"until"`
	Per   int           `json:"per"`
	Pages map[int]int64 `json:"pages"`
	content
}

// A leaf is a page's JSON.
type leaf struct {
	Mark *int64 `json:"mark"`
	content
}

// content is what a root and a page have both.
type content struct {
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

// Encode returns the whole ledger in one value, that of the node of a ledger without pages. Equal
// ledgers give equal bytes.
func (l *Ledger) Encode() []byte { return l.EncodeWithin(maxValue) }

// EncodeWithin is Encode for values of a size: the oldest of the last runs are left out
// where there is no room for them. What counts is written whatever it takes.
func (l *Ledger) EncodeWithin(size int) []byte {
	if len(l.pages) > 0 {
		l = l.Clone()
		for _, p := range l.listed() {
			l.join(p)
		}
	}
	value, _ := l.encode(nil, size)
	return value
}

// encode returns the value of the root, which lists pages with these marks, and its length without
// last runs.
func (l *Ledger) encode(marks map[int]int64, size int) (value []byte, bare int) {
	b := make([]byte, 0, 256)
	b = append(b, `{"epoch":`...)
	b = strconv.AppendInt(b, int64(l.Epoch), 10)
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, int64(l.Total), 10)
	b = appendNumber(b, "seq", l.Seq)
	b = appendTrue(b, "held", l.Held)
	b = appendInstant(b, "until", l.Until)
	if len(l.pages) > 0 {
		b = appendNumber(b, "per", int64(l.per))
		b = append(b, `,"pages":{`...)
		for i, p := range l.listed() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strconv.AppendInt(append(b, '"'), int64(p), 10), `":`...)
			b = strconv.AppendInt(b, marks[p], 10)
		}
		b = append(b, '}')
	}
	return l.root.append(b, MaxLast, size)
}

// append appends what stands in a part to the opening of its value, and returns the length that it
// has without last runs too.
func (x *part) append(b []byte, lasts, size int) (value []byte, bare int) {
	names := x.names()
	if len(names) > 0 {
		b = appendJSON(append(b, `,"names":`...), names)
	}
	b = x.appendGroups(b, names)
	const closing = len(`]}`)
	bare = len(b) + 1
	b = x.appendLast(b, min(len(b)+lasts, size-closing))
	return append(b, '}'), bare
}

// names are those of the instances to which what is lent belongs, in order. They stand once in
// the value, since as many records as there are items may be lent.
func (x *part) names() []string {
	var names []string
	for it := range x.groups {
		if it.Lent() {
			names = append(names, it.Bound)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (x *part) appendGroups(b []byte, names []string) []byte {
	records := make([]Item, 0, len(x.groups))
	order := make([][2]int, 0, len(x.groups)) // the first item of each, and its place
	for it, s := range x.groups {
		order = append(order, [2]int{s.first(0), len(records)})
		records = append(records, it)
	}
	slices.SortFunc(order, func(a, b [2]int) int { return a[0] - b[0] })
	for i, at := range order {
		it := records[at[1]]
		b = append(b, opening("groups", i)...)
		b = x.groups[it].append(b)
		b = append(it.append(b, names), '}')
	}
	if len(records) > 0 {
		b = append(b, ']')
	}
	return b
}

// append appends a record.
func (i Item) append(b []byte, names []string) []byte {
	b = appendInstant(b, "through", i.Through)
	b = appendInstant(b, "run", i.Run)
	b = appendTrue(b, "leaving", i.Leaving)
	if i.Told.text != "" {
		b = append(append(b, `,"told":`...), i.Told.text...)
	}
	b = i.Redo.append(b)
	b = appendNumber(b, "request", i.Request)
	b = appendNumber(b, "asked", i.Asked)
	if i.Lent() {
		at, _ := slices.BinarySearch(names, i.Bound)
		b = appendNumber(b, "bound", int64(at)+1)
	}
	return b
}

// append appends what there is of a fire that runs again.
func (r Redo) append(b []byte) []byte {
	b = appendInstant(b, "redo", r.Due)
	if r.Lost != "" {
		b = appendText(append(b, `,"lost":`...), r.Lost)
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

// appendText appends a text as appendJSON does, but sooner where nothing in it needs an escape.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || strings.IndexByte(`"\\<>&`, c) >= 0 {
			return appendJSON(b, text)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// appendNumber appends a number; 0 is nothing.
func appendNumber(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(append(append(b, `,"`...), name...), `":`...), n, 10)
}

// appendLast appends the last runs, the latest first, as far as they fit.
func (x *part) appendLast(b []byte, size int) []byte {
	runs := slices.Collect(maps.Keys(x.lasts))
	slices.SortFunc(runs, func(a, b Last) int {
		if b.before(a) {
			return -1
		}
		return 1
	})
	for i, run := range runs {
		fits := len(b)
		b = append(b, opening("last", i)...)
		b = x.lasts[run].append(b)
		b = appendInstant(b, "began", run.Began)
		b = appendInstant(b, "ended", run.Ended)
		b = append(appendTrue(b, "failed", run.Failed), '}')
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
	if s.size == 1 {
		return append(strconv.AppendInt(append(b, `"items":"`...), int64(s.first(0)), 10), '"')
	}
	form, text := s.text()
	b = append(append(append(b, '"'), form...), `":"`...)
	return append(append(b, text...), '"')
}

// Decode reads the value of a ledger's node. It fails with ErrPaged where that is not all of it.
func Decode(value []byte) (*Ledger, error) {
	r, err := Open(value)
	if err != nil {
		return nil, err
	}
	return r.Ledger()
}

// add reads groups that stand together.
func (l *Ledger) add(c content) error {
	for _, g := range c.Groups {
		if err := l.addGroup(g, c.Names); err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
	}
	for _, x := range c.Last {
		if err := l.addLast(x); err != nil {
			return fmt.Errorf("ledger: last: %w", err)
		}
	}
	return nil
}

func unmarshal(value []byte, doc any) error {
	if err := json.Unmarshal(value, doc); err != nil {
		return fmt.Errorf("ledger: not one of ours: %w", err)
	}
	return nil
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
	if !counts(int64(g.Tries)) {
		return fmt.Errorf("tries: %d is no count", g.Tries)
	}
	it.Redo.Lost, it.Redo.Tries = g.Lost, g.Tries
	if !counts(g.Request, g.Asked) {
		return fmt.Errorf("request, asked: %d, %d: no counts", g.Request, g.Asked)
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

// counts reports whether numbers can be counts.
func counts(numbers ...int64) bool {
	return !slices.ContainsFunc(numbers, func(n int64) bool { return n < 0 || n > MaxCount })
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
	if err != nil || t.Year() < 1 || t.Year() > 9999 { // who computes with one may write the instant before it
		return time.Time{}, fmt.Errorf("%.40q is not a time such as 2006-01-02T15:04:05Z", s)
	}
	return t, nil
}
