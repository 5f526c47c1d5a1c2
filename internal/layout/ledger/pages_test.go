package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A tree is a ledger's node in a registry, with the pages below it.
type tree struct {
	t       require.TestingT
	root    []byte
	pages   map[int][]byte
	version int64
}

// plant makes the nodes of a ledger that stands nowhere yet.
func plant(t require.TestingT, l *Ledger, r Room) *tree {
	x := &tree{t: t, pages: map[int][]byte{}, version: -1}
	x.apply(l, l.Write(0, r))
	return x
}

// apply commits a write, as strictly as a registry does.
func (x *tree) apply(l *Ledger, w *Write) {
	x.version++
	x.root = w.Root
	for _, p := range w.Pages {
		_, stands := x.pages[p.Number]
		require.Equal(x.t, p.New, !stands, "page %d", p.Number)
		if p.Value == nil {
			require.False(x.t, p.New)
			delete(x.pages, p.Number)
		} else {
			x.pages[p.Number] = p.Value
		}
	}
	l.Written()
	require.Equal(x.t, slices.Sorted(maps.Keys(x.pages)), slices.Sorted(maps.Keys(l.stands)))
}

// read reads all of it, but for what was read before.
func (x *tree) read(before *Ledger) (*Ledger, int, error) {
	r, err := Open(x.root)
	if err != nil {
		return nil, 0, err
	}
	r.Reuse(before)
	wants := r.Wants()
	for _, p := range wants {
		if err := r.Page(p, x.pages[p]); err != nil {
			return nil, 0, err
		}
	}
	l, err := r.Ledger()
	return l, len(wants), err
}

// requireHolds requires that what stands is the ledger, last runs aside where pages keep fewer.
func (x *tree) requireHolds(l *Ledger) {
	got, _, err := x.read(nil)
	require.NoError(x.t, err)
	require.True(x.t, l.Equal(got), "%s\n%s", l.Encode(), got.Encode())
	require.Equal(x.t, l.Seq, got.Seq)
	require.Equal(x.t, l.stands, got.stands)
	require.Equal(x.t, l.listed(), got.listed())
	require.Equal(x.t, l.Running(), got.Running())
	require.Empty(x.t, got.dirty)
}

const worstName = "10.123.124.125@-@a-web-server-with-a-rather-long-name-of-a-statefulset-12@-@lg3hz0kqz5"

// worst are records of which no two are equal, to the nanosecond.
func worst(n int) Item {
	at := due.Add(time.Duration(n)*time.Millisecond + 123_456_789)
	it := Item{Through: at, Run: at.Add(5 * time.Second), Request: int64(n + 1), Asked: int64(n + 2)}
	it.Told = it.Told.With(Note{Due: at, Instance: worstName, Reason: "tries"})
	it.Last = Last{Began: at, Ended: at.Add(time.Second)}
	if n%3 == 0 {
		it.Run, it.Redo = time.Time{}, Redo{Due: at, Lost: worstName, Tries: 2}
	}
	it.Leaving = n%2 == 0
	return it
}

// Whatever is changed, written, refused or read again in whatever order: what stands is what the
// ledger holds, only pages that changed are written, and a ledger of a few records has none.
func TestPagesHoldWhatTheLedgerHolds(t *testing.T) {
	const value = 2 << 10
	paged, back, refused := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := New(1, rapid.IntRange(1, 60).Draw(t, "total"))
		room := func() Room {
			return Room{Value: value, Ops: rapid.IntRange(0, 9).Draw(t, "ops"), Bytes: 64 << 10}
		}
		x := plant(t, l, room())
		before := l.Clone()
		change := func(end bool) {
			from, to, kind := 0, l.Total-1, "delete" // all goes at the end: pages become one value in each trial
			if !end {
				from = rapid.IntRange(0, l.Total-1).Draw(t, "from")
				to = rapid.IntRange(from, l.Total-1).Draw(t, "to")
				kind = rapid.SampledFrom([]string{"same", "same", "own", "worst", "delete"}).Draw(t, "kind")
			}
			for n := from; n <= to; n++ {
				switch kind {
				case "same":
					l.Set(n, Item{Through: due, Last: Last{Began: due}})
				case "own":
					l.Set(n, Item{Through: due.Add(time.Duration(n)), Run: due, Last: Last{Began: due.Add(time.Duration(n))}})
				case "worst":
					l.Set(n, worst(n))
				case "delete":
					l.Delete(n)
				}
			}
			l.Seq++
		}
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		for step := range steps + 1 {
			was := maps.Collect(l.All())
			seq, stood := l.Seq, maps.Clone(l.stands)
			change(step == steps)
			dirty := maps.Clone(l.dirty)
			w := l.Write(x.version+1, room())
			require.LessOrEqual(t, len(w.Root), value+len(l.Encode()), "whatever it takes")
			if step < steps && rapid.IntRange(0, 3).Draw(t, "fate") == 0 {
				refused++
				for n := range l.Total { // as a writer does whose commit was refused
					if it, held := was[n]; held {
						l.Set(n, it)
					} else {
						l.Delete(n)
					}
				}
				l.Seq = seq
				l.Reverted()
				require.Equal(t, stood, l.stands)
				require.Equal(t, string(x.root[:len(`{"epoch":1`)]), string(l.Standing(value)[:len(`{"epoch":1`)]))
				x.requireHolds(l)
				continue
			}
			for _, p := range w.Pages {
				_, stood := stood[p.Number]
				require.True(t, dirty[p.Number] || !stood, "page %d was written, and has not changed", p.Number)
			}
			x.apply(l, w)
			x.requireHolds(l)
			paged += len(l.pages)
			if len(stood) > 0 && len(l.pages) == 0 {
				back++
			}
			again, read, err := x.read(before)
			require.NoError(t, err)
			require.True(t, again.Equal(l))
			require.LessOrEqual(t, read, len(x.pages))
			if before = l.Clone(); rapid.Bool().Draw(t, "read") {
				l, read, err = x.read(l)
				require.NoError(t, err)
				require.Zero(t, read, "nothing has changed")
			}
		}
		if whole, _ := l.EncodeWithin(value), 0; len(l.Pages()) == 0 {
			require.Equal(t, string(whole), string(x.root), "a ledger without pages is one value")
		}
	})
	require.Positive(t, paged)
	require.Positive(t, back)
	require.Positive(t, refused)
}

// At the documented maxima, with the portable limits of a value: each record of its own.
func TestThePagesOfTheWorstRecordsFit(t *testing.T) {
	total := 100_000
	if testing.Short() {
		total /= 10
	}
	for _, one := range []int{1, 2} {
		l := New(1, total)
		for n := 0; n < l.Total; n += one {
			l.Set(n, worst(n))
		}
		begun := time.Now()
		x := plant(t, l, Room{Value: maxValue, Ops: 1000, Bytes: 1 << 30})
		took := time.Since(begun)
		require.LessOrEqual(t, len(x.root), maxValue)
		longest, all := 0, 0
		for _, value := range x.pages {
			longest, all = max(longest, len(value)), all+len(value)
		}
		t.Logf("%d items: a root of %d bytes, %d pages of at most %d, %d in all, in %v", l.Len(), len(x.root), len(x.pages), longest, all, took)
		require.LessOrEqual(t, longest, maxValue)
		x.requireHolds(l)
		l.Set(total/20*one, Item{Through: due})
		w := l.Write(x.version+1, Room{Value: maxValue, Ops: 30, Bytes: 1 << 20})
		require.Len(t, w.Pages, 1, "only what has changed")
		require.Less(t, len(w.Root), maxValue/2)
	}
}

// A ledger in which all records are equal again has one value again, page by page as they are written.
func TestPagesGoBackIntoTheRoot(t *testing.T) {
	l := New(1, 20_000)
	for n := range l.Total {
		l.Set(n, worst(n))
	}
	room := Room{Value: maxValue, Ops: 37, Bytes: 512 << 10}
	x := plant(t, l, Room{Value: maxValue, Ops: 1000, Bytes: 1 << 30})
	require.Greater(t, len(l.Pages()), 20)
	for n := range l.Total {
		l.Set(n, Item{Through: due})
		if n%5_000 == 4_999 {
			w := l.Write(x.version+1, room)
			x.apply(l, w)
			x.requireHolds(l)
		}
	}
	require.Empty(t, l.Pages())
	require.Equal(t, string(l.Encode()), string(x.root))
}

// What of a page is not of the root's write is told; what is no page at all is an error too.
func TestATornLedgerIsNotRead(t *testing.T) {
	l := New(1, 40)
	for n := range l.Total {
		l.Set(n, worst(n))
	}
	room := Room{Value: 2 << 10, Ops: 30, Bytes: 1 << 20}
	x := plant(t, l, room)
	require.NotEmpty(t, l.Pages())
	old, stood := x.root, maps.Clone(x.pages)
	p := l.Pages()[0]
	l.Set(l.Of(p)[0], Item{Through: due.Add(7)})
	x.apply(l, l.Write(x.version+1, room))
	x.requireHolds(l)

	torn := &tree{t: t, root: old, pages: x.pages}
	_, _, err := torn.read(nil)
	require.ErrorIs(t, err, ErrTorn)
	torn = &tree{t: t, root: x.root, pages: stood}
	_, _, err = torn.read(nil)
	require.ErrorIs(t, err, ErrTorn)
	_, err = Decode(x.root)
	require.ErrorIs(t, err, ErrPaged)

	for _, garbage := range []string{"", "{", "null", "[]", `{"mark":"x"}`, `{"mark":1,"groups":[{"items":"39"}]}`, `{"mark":1,"groups":[{"items":"0"},{"items":"0"}]}`} {
		r, err := Open(fmt.Appendf(nil, `{"epoch":1,"total":40,"per":4,"pages":{"0":1}}`))
		require.NoError(t, err)
		err = r.Page(0, []byte(garbage))
		require.Error(t, err, garbage)
		requireShort(t, err)
		require.Equal(t, []int{0}, r.Wants())
		require.Zero(t, r.Part().Len())
	}
}

// What somebody does to pages is mended with the next write, however little room that has.
func TestDamagedPagesAreMended(t *testing.T) {
	l := New(1, 60)
	for n := range l.Total {
		l.Set(n, worst(n))
	}
	x := plant(t, l, Room{Value: 2 << 10, Ops: 50, Bytes: 1 << 20})
	pages := l.Pages()
	require.Greater(t, len(pages), 6)
	for _, p := range pages[:3] {
		delete(x.pages, p)
		l.Lacks(p, false)
	}
	x.pages[pages[3]] = []byte("garbage")
	l.Lacks(pages[3], true)
	x.pages[1000] = []byte("a stranger's")
	l.Lacks(1000, true)
	l.Lacks(1001, false)
	for commits := 0; l.Mends(); commits++ {
		require.Less(t, commits, 5)
		l.Seq++
		w := l.Write(x.version+1, Room{Value: 2 << 10, Ops: 2, Bytes: 1 << 20})
		require.LessOrEqual(t, len(w.Pages), 2)
		x.version++
		x.root = w.Root
		for _, p := range w.Pages {
			if x.pages[p.Number] = p.Value; p.Value == nil {
				delete(x.pages, p.Number)
			}
		}
		l.Written()
	}
	x.requireHolds(l)
}

// Finding 24 holds with pages: a change costs what its page takes, not the ledger.
func TestAPageCostsWhatItHolds(t *testing.T) {
	cost := func(total int) float64 {
		l := New(1, total)
		for n := range total {
			l.Set(n, worst(n))
		}
		room := Room{Value: 64 << 10, Ops: 10_000, Bytes: 1 << 30}
		plant(t, l, room)
		k := 0
		return testing.AllocsPerRun(20, func() {
			k++
			l.Set(7, Item{Through: due.Add(time.Duration(k))})
			l.Write(int64(k), room)
			l.Written()
		})
	}
	small, large := cost(2_000), cost(20_000)
	require.Less(t, large, small+300, "the root lists ten times as many pages")
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"total":8,"per":4,"pages":{"0":3}}`), []byte(`{"mark":3,"groups":[{"items":"0-3","through":"2026-11-21T05:00:00Z"}]}`))
	f.Add([]byte(`{"total":8,"per":4,"pages":{"1":3},"groups":[{"items":"0-3"}]}`), []byte(`{"mark":3,"groups":[{"items":"4"}]}`))
	f.Add([]byte(`{"total":8,"per":0,"pages":{"-1":3}}`), []byte(`{}`))
	f.Add([]byte(`{"total":8,"per":4,"pages":{"1":3}}`), []byte(`{"mark":3,"groups":[{"bits":"9223372036854775800:AAI"}]}`))
	f.Add([]byte(`{"total":8,"per":4,"pages":{"9223372036854775807":3}}`), []byte(`{"mark":3}`))
	f.Add([]byte(`{"total":8,"per":9223372036854775807,"pages":{"0":3}}`), []byte(`{"mark":3,"last":[{"bits":"9223372036854775800:AAI"}]}`))
	f.Fuzz(func(t *testing.T, root, leaf []byte) {
		r, err := Open(root)
		if err != nil {
			requireShort(t, err)
			return
		}
		for _, p := range r.Wants() {
			if err := r.Page(p, leaf); err != nil {
				requireShort(t, err)
				return
			}
		}
		l, err := r.Ledger()
		require.NoError(t, err)
		again, err := Decode(l.Encode())
		require.NoError(t, err)
		require.True(t, l.Equal(again))
		again.Anew()
		requireUsable(t, again)
	})
}

// What stands in a registry.
func TestALedgerWithPagesLooksLikeThis(t *testing.T) {
	l := New(3, 12)
	l.Seq = 4
	for n := range l.Total {
		l.Set(n, Item{Through: due})
	}
	for n := range 4 {
		l.Set(4+n, Item{Through: due.Add(time.Duration(n)), Run: due, Bound: "web"})
	}
	x := plant(t, l, Room{Value: perPage, Ops: 1, Bytes: 1 << 20})
	//nolint:testifylint // byte for byte
	require.Equal(t, `{"epoch":3,"total":12,"seq":4,"per":1,"pages":{"5":0},"names":["web"],"groups":[`+
		`{"items":"0-3,8-11","through":"2026-11-21T05:00:00Z"},`+
		`{"items":"4","through":"2026-11-21T05:00:00Z","run":"2026-11-21T05:00:00Z","bound":1},`+
		`{"items":"6","through":"2026-11-21T05:00:00.000000002Z","run":"2026-11-21T05:00:00Z","bound":1},`+
		`{"items":"7","through":"2026-11-21T05:00:00.000000003Z","run":"2026-11-21T05:00:00Z","bound":1}]}`, string(x.root))
	require.Equal(t, map[int][]byte{5: []byte(
		`{"mark":0,"names":["web"],"groups":[{"items":"5","through":"2026-11-21T05:00:00.000000001Z","run":"2026-11-21T05:00:00Z","bound":1}]}`)}, x.pages)
}
