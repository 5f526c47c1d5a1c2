package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
)

var (
	// ErrPaged: the value is a root that lists pages, which have to be read too.
	ErrPaged = errors.New("ledger: it has pages that were not read")
	// ErrTorn: a page is not the one that the root lists: one of the two has changed since.
	ErrTorn = errors.New("ledger: the root and a page are of two writes")
)

// Path is the path of a page of the ledger that stands at a path.
func Path(root string, page int) string { return root + "/" + strconv.Itoa(page) }

// ParsePath returns of which ledger a path is a page, and of which number, if it is one.
func ParsePath(at string) (root string, page int, is bool) {
	page, err := strconv.Atoi(path.Base(at))
	return path.Dir(at), page, err == nil && page >= 0 && strconv.Itoa(page) == path.Base(at)
}

// A page is one that the registry has.
type page struct {
	mark  int64
	size  int    // the length of its value
	fault defect // what somebody did to it
}

// A defect is what is wrong with a page in the registry.
type defect uint8

const (
	sound  defect = iota
	spoilt        // it was overwritten
	absent        // it was deleted
	stray         // it stands, and the root does not list it
)

// A Room is what a commit has left for a ledger.
type Room struct {
	// Value is what one value takes, in bytes.
	Value int
	// Ops are operations on pages, Bytes what all values may take.
	Ops, Bytes int
}

// A Write is what a commit sets so that the registry holds a ledger.
type Write struct {
	Root  []byte
	Pages []Page // ascending

	stands map[int]page // then
	bare   int
}

// A Page is a node below the ledger's.
type Page struct {
	Number int
	// Value is its new value; nil where it is deleted.
	Value []byte
	// New: it does not stand yet.
	New bool
}

// Node is the path of the page of a ledger that stands at a path.
func (p Page) Node(root string) string { return Path(root, p.Number) }

// Bytes is the length of all values.
func (w *Write) Bytes() int {
	bytes := len(w.Root)
	for _, p := range w.Pages {
		bytes += len(p.Value)
	}
	return bytes
}

// Longest is the length of the longest value.
func (w *Write) Longest() int {
	longest := len(w.Root)
	for _, p := range w.Pages {
		longest = max(longest, len(p.Value))
	}
	return longest
}

const (
	// perPage is what a record may take, by which pages have their size: longer ones are rare.
	perPage = 512
	// pageLast is what the last runs of a page take.
	pageLast = 1 << 10
	// newPage is what a page may take beside what the root takes less.
	newPage = 512
	// light is how many items of a page there are for each group of one that goes back into the root.
	light = 128
)

// Write returns what is to be set. The mark is a number that no other commit which sets the ledger's
// node has: its version afterwards. Nothing is taken as written before Written; until then it may be
// asked for again.
//
// A root that takes more than half of a value is made shorter: the items that take most of it go
// into pages, as many as there is room for. A page that would take little in the root goes back there,
// as long as that takes no more than a quarter of a value.
func (l *Ledger) Write(mark int64, r Room) *Write {
	l.fold(r.Value)
	if len(l.pages) == 0 && len(l.stands) == l.Strays() {
		l.per = max(1, r.Value/perPage)
	}
	w := &Write{}
	marks := map[int]int64{}
	for _, p := range slices.Sorted(maps.Keys(l.stands)) {
		switch is := l.stands[p]; {
		case l.pages[p] != nil || is.fault == absent:
		case is.fault == stray && len(w.Pages)+len(l.dirty) >= r.Ops: // another commit will delete it
			put(&w.stands, p, is)
		default:
			w.Pages = append(w.Pages, Page{Number: p})
		}
	}
	mends := r.Ops - len(w.Pages) - len(l.dirty)
	for _, p := range l.listed() {
		if is := l.stands[p]; is.fault != sound && !l.dirty[p] {
			if mends--; mends < 0 { // another commit will
				put(&w.stands, p, is)
				marks[p] = is.mark
				continue
			}
		}
		w.keep(l, p, mark, marks, r.Value)
	}
	if w.Root, w.bare = l.encode(marks, r.Value); w.bare > r.Value/2 {
		most := min(r.Ops-len(w.Pages), (r.Bytes-w.Bytes())/newPage)
		for _, p := range l.heaviest(w.bare-r.Value/4, max(0, most)) {
			l.splitOff(p)
			w.forget(p)
			w.keep(l, p, mark, marks, r.Value)
		}
		w.Root, w.bare = l.encode(marks, r.Value)
	}
	slices.SortFunc(w.Pages, func(a, b Page) int { return cmp.Compare(a.Number, b.Number) })
	l.wrote = w
	return w
}

// forget takes back that a page is deleted.
func (w *Write) forget(p int) {
	w.Pages = slices.DeleteFunc(w.Pages, func(x Page) bool { return x.Number == p })
}

// keep notes a page that there is then, and writes it where it differs.
func (w *Write) keep(l *Ledger, p int, mark int64, marks map[int]int64, size int) {
	is, stands := l.stands[p]
	if stands && is.fault == sound && !l.dirty[p] {
		put(&w.stands, p, is)
		marks[p] = is.mark
		return
	}
	b := strconv.AppendInt([]byte(`{"mark":`), mark, 10)
	value, _ := l.pages[p].append(b, pageLast, size)
	w.Pages = append(w.Pages, Page{Number: p, Value: value, New: !stands || is.fault == absent})
	put(&w.stands, p, page{mark: mark, size: len(value)})
	marks[p] = mark
}

// Written takes it that the registry has what Write returned last.
func (l *Ledger) Written() {
	l.stands, l.bare, l.wrote = l.wrote.stands, l.wrote.bare, nil
	clear(l.dirty)
	if len(l.pages) == 0 {
		l.per = 0
	}
}

// Reverted takes it that the registry has what it had before. The records must be what they were.
func (l *Ledger) Reverted() {
	for _, p := range l.listed() {
		if is, stands := l.stands[p]; !stands || is.fault == stray {
			l.join(p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(l.stands)) {
		if l.pages[p] == nil && l.stands[p].fault != stray {
			l.splitOff(p)
		}
	}
	clear(l.dirty)
}

// Standing returns the root again as the registry has it, but for what stands in the root alone.
// There must be nothing else that is not written.
func (l *Ledger) Standing(value int) []byte {
	root, _ := l.encode(l.marks(), value)
	return root
}

func (l *Ledger) marks() map[int]int64 {
	marks := map[int]int64{}
	for p, is := range l.stands {
		marks[p] = is.mark
	}
	return marks
}

// Anew takes it that none of it stands in the registry: it is to be written to another place.
func (l *Ledger) Anew() {
	clear(l.stands)
	for p := range l.pages {
		put(&l.dirty, p, true)
	}
}

// Follows has a ledger that stands nowhere yet replace another one in the registry.
func (l *Ledger) Follows(o *Ledger) {
	l.Seq, l.stands = o.Seq, maps.Clone(o.stands)
	if len(l.stands) > 0 {
		l.per = o.per
	}
}

// Lacks notes that somebody has deleted a page, or overwritten or made it where it stands: the next
// write mends it.
func (l *Ledger) Lacks(p int, stands bool) {
	is, known := l.stands[p]
	switch {
	case known && stands:
		is.fault = spoilt
	case known:
		is.fault = absent
	case stands:
		is.fault = stray
	default:
		return
	}
	put(&l.stands, p, is)
}

// Mends reports whether the next write mends what somebody did to pages.
func (l *Ledger) Mends() bool {
	for _, is := range l.stands {
		if is.fault != sound {
			return true
		}
	}
	return false
}

// Strays are how many pages stand that the next write deletes, if it has room for them.
func (l *Ledger) Strays() (n int) {
	for p, is := range l.stands {
		if is.fault == stray && l.pages[p] == nil {
			n++
		}
	}
	return n
}

// Pages returns the pages that stand in the registry.
func (l *Ledger) Pages() []int { return slices.Sorted(maps.Keys(l.stands)) }

// Page returns in which page an item stands, or would; false is the root.
func (l *Ledger) Page(n int) (p int, is bool) {
	if len(l.pages) == 0 {
		return 0, false
	}
	p = n / l.per
	return p, l.pages[p] != nil
}

// Size is the length of a page's value as it was written last, and how many different records it has
// now.
func (l *Ledger) Size(p int) (bytes, records int) {
	if x := l.pages[p]; x != nil {
		records = len(x.groups)
	}
	return l.stands[p].size, records
}

// RootSize is about the length of the root as it was written last, where there are pages.
func (l *Ledger) RootSize() int { return l.bare + MaxLast }

// Root is the page that is none, for Bare.
const Root = -1

// Bare is the length that a page, or the root, has now without last runs.
func (l *Ledger) Bare(p int) (bytes int) {
	if p == Root {
		_, bytes = l.encode(l.marks(), 0)
	} else if x := l.pages[p]; x != nil {
		_, bytes = x.append([]byte(`{"mark":1000000`), 0, 0)
	}
	return bytes
}

// Heavy reports whether the root takes more than half of a value.
func (l *Ledger) Heavy(value int) bool { return l.Bare(Root) > value/2 }

// InRoot is how many items stand in no page.
func (l *Ledger) InRoot() int { return l.root.size }

// Span is how many numbers a set of items may have that stand with item n.
func (l *Ledger) Span(n int) int {
	if _, is := l.Page(n); is {
		return l.per
	}
	return l.Total
}

// Of returns the items of a page, ascending.
func (l *Ledger) Of(p int) []int {
	x := l.pages[p]
	if x == nil {
		return nil
	}
	numbers := make([]int, 0, x.size)
	for n := l.owned.first(p * l.per); n >= 0 && n < (p+1)*l.per; n = l.owned.first(n + 1) {
		numbers = append(numbers, n)
	}
	return numbers
}

// listed are the pages that the next root lists, ascending.
func (l *Ledger) listed() []int { return slices.Sorted(maps.Keys(l.pages)) }

// of returns the part in which an item stands, or would.
func (l *Ledger) of(n int) *part {
	if len(l.pages) > 0 {
		if x := l.pages[n/l.per]; x != nil {
			return x
		}
	}
	return &l.root
}

// touch is of, where that is about to change.
func (l *Ledger) touch(n int) *part {
	x := l.of(n)
	if x != &l.root {
		put(&l.dirty, n/l.per, true)
	}
	return x
}

// fold drops the pages that are empty, and has those go back into the root that take little there.
// Only those that are written anyway are looked at.
func (l *Ledger) fold(value int) {
	for _, p := range slices.Sorted(maps.Keys(l.dirty)) {
		x := l.pages[p]
		switch {
		case x == nil:
		case x.size == 0:
			delete(l.pages, p)
			delete(l.dirty, p)
		case len(x.groups) <= max(1, l.per/light):
			b, bare := x.append(nil, 0, 0)
			if l.bare+len(b) <= value/4 {
				l.bare += bare
				l.join(p)
				delete(l.dirty, p)
			}
		}
	}
}

// join has what stands in a page stand in the root.
func (l *Ledger) join(p int) {
	x := l.pages[p]
	delete(l.pages, p)
	for it, s := range x.groups {
		for n := range s.all() {
			l.root.enter(n, l.items[n])
		}
		delete(x.groups, it)
	}
	l.forget(&l.root)
}

// splitOff has items stand in a page that stand in the root.
func (l *Ledger) splitOff(p int) {
	x := &part{}
	for n := l.owned.first(p * l.per); n >= 0 && n < (p+1)*l.per; n = l.owned.first(n + 1) {
		it := l.items[n]
		l.root.exit(n, it)
		x.enter(n, it)
	}
	put(&l.pages, p, x)
	l.forget(x)
}

// heaviest returns the pages without which the root would be about so much shorter, those that take
// most of it first. There are so many at most.
func (l *Ledger) heaviest(bytes, most int) []int {
	const fine = 64
	weight := map[int]int{}
	var scratch []byte
	for it, s := range l.root.groups {
		scratch = append(it.append(scratch[:0], nil), it.Bound...)
		each := (len(scratch)+len(`,{"items":""}`))*fine/s.size + 3*fine
		for n := range s.all() {
			weight[n/l.per] += each
		}
	}
	pages := slices.Collect(maps.Keys(weight))
	slices.SortFunc(pages, func(a, b int) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	for i, p := range pages {
		if i == most || bytes <= 0 {
			return pages[:i]
		}
		bytes -= weight[p] / fine
	}
	return pages
}

// A Reading is a ledger that is being read: its root, and the pages which that lists.
type Reading struct {
	led   *Ledger
	marks map[int]int64 // of pages that are still to be read
}

// Open reads the value of a ledger's node.
func Open(value []byte) (*Reading, error) {
	var doc document
	if err := unmarshal(value, &doc); err != nil {
		return nil, err
	}
	if doc.Total == nil || *doc.Total < 0 || *doc.Total > MaxTotal {
		return nil, fmt.Errorf("ledger: total: not a number from 0 to %d", MaxTotal)
	}
	if !counts(int64(doc.Epoch), doc.Seq) {
		return nil, fmt.Errorf("ledger: epoch, seq: %d, %d: no counts", doc.Epoch, doc.Seq)
	}
	l := New(doc.Epoch, *doc.Total)
	l.Seq, l.Held = doc.Seq, doc.Held
	var err error
	if l.Until, err = parseInstant(doc.Until); err != nil {
		return nil, fmt.Errorf("ledger: until: %w", err)
	}
	r := &Reading{led: l, marks: map[int]int64{}}
	for p, mark := range doc.Pages {
		if doc.Per < 1 || doc.Per > MaxTotal || p < 0 || p > MaxTotal || int64(p)*int64(doc.Per) >= int64(l.Total) {
			return nil, fmt.Errorf("ledger: pages: there is none %d, of %d items each", p, doc.Per)
		}
		l.per, r.marks[p] = doc.Per, mark
		put(&l.pages, p, &part{})
	}
	if err := l.add(doc.content); err != nil {
		return nil, err
	}
	for p := range doc.Pages {
		if l.pages[p].size > 0 {
			return nil, fmt.Errorf("ledger: items: some of page %d stand in the root", p)
		}
	}
	clear(l.dirty)
	if len(l.pages) > 0 {
		_, l.bare = l.encode(r.marks, 0)
	}
	return r, nil
}

// Epoch is the ledger's.
func (r *Reading) Epoch() int { return r.led.Epoch }

// Seq is the ledger's.
func (r *Reading) Seq() int64 { return r.led.Seq }

// Wants returns the pages that are still to be read, ascending.
func (r *Reading) Wants() []int { return slices.Sorted(maps.Keys(r.marks)) }

// WantsItem returns the page that is still to be read for an item.
func (r *Reading) WantsItem(n int) []int {
	if p, is := r.led.Page(n); is {
		if _, wanted := r.marks[p]; wanted {
			return []int{p}
		}
	}
	return nil
}

// Page takes the value of a page. It fails with ErrTorn where that is not the one which the root
// lists.
func (r *Reading) Page(p int, value []byte) error {
	mark, wanted := r.marks[p]
	if !wanted {
		return nil
	}
	var doc leaf
	if err := unmarshal(value, &doc); err != nil {
		return err
	}
	switch {
	case doc.Mark == nil:
		return errors.New("ledger: mark: a page has one")
	case *doc.Mark != mark:
		return ErrTorn
	}
	l := r.led
	one := New(l.Epoch, l.Total)
	if err := one.add(doc.content); err != nil {
		return err
	}
	if least, most := one.owned.first(0), one.owned.last(); least >= 0 && (least/l.per != p || most/l.per != p) {
		return fmt.Errorf("ledger: items: %d to %d are none of page %d", least, most, p)
	}
	for n, it := range one.All() {
		l.Set(n, it)
	}
	put(&l.stands, p, page{mark: mark, size: len(value)})
	delete(l.dirty, p)
	delete(r.marks, p)
	return nil
}

// Reuse takes pages from what was read of the same node before, where they are the same.
func (r *Reading) Reuse(before *Ledger) {
	if before == nil || before.per != r.led.per || before.Total != r.led.Total {
		return
	}
	for _, p := range r.Wants() {
		is, stands := before.stands[p]
		if !stands || is.fault == stray || is.mark != r.marks[p] || before.dirty[p] || before.pages[p] == nil {
			continue
		}
		for _, n := range before.Of(p) {
			it, _ := before.Get(n)
			r.led.Set(n, it)
		}
		put(&r.led.stands, p, is)
		delete(r.led.dirty, p)
		delete(r.marks, p)
	}
}

// Ledger returns what was read. It fails with ErrPaged where pages are missing.
func (r *Reading) Ledger() (*Ledger, error) {
	if len(r.marks) > 0 {
		return nil, ErrPaged
	}
	return r.led, nil
}

// Part returns what was read so far: without the items of the pages that were not.
func (r *Reading) Part() *Ledger { return r.led }
