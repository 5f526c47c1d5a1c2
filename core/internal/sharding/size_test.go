package sharding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/strategy"
)

// portable is the room of a leader on a registry with the limits that all have.
func portable() Room {
	limits, path := registry.PortableLimits(), 400
	return Room{
		Ops: limits.MaxOps - 5, Bytes: limits.MaxBytes - 8*path, MaxValue: limits.MaxValue,
		LedgerOps: 2, LedgerBytes: 2 * path, MoveBytes: 2 * path, MoveOps: func(int) int { return 2 },
	}
}

// A cluster is what a plan writes to, when nobody else does.
type cluster struct {
	*testing.T
	view View
	cut  map[Cut]bool
	// nodes are the ledgers that were written, with their pages, by path.
	nodes   map[string]registry.Node
	written map[string]bool // since the last plan
	longest int             // value
}

// plant plants the ledgers that members have.
func plant(t *testing.T, v View) *cluster {
	c := &cluster{T: t, cut: map[Cut]bool{}, view: v, nodes: map[string]registry.Node{}, written: map[string]bool{}}
	for i, m := range v.Members {
		l := m.Ledger
		x := l.Write(0, ledger.Room{Value: portable().MaxValue, Ops: 1 << 20, Bytes: 1 << 40})
		c.nodes["/"+m.ID] = registry.Node{Path: "/" + m.ID, Value: x.Root, Created: 1, Version: m.Version}
		for _, p := range x.Pages {
			c.nodes[p.Node("/"+m.ID)] = registry.Node{Value: p.Value, Created: 1}
		}
		c.written[m.ID] = true
		c.view.Members[i].Ledger = nil
	}
	return c
}

// Get reads as a registry does.
func (c *cluster) get(_ context.Context, paths ...string) ([]registry.Node, error) {
	nodes := make([]registry.Node, len(paths))
	for i, p := range paths {
		nodes[i] = c.nodes[p]
		nodes[i].Path = p
	}
	return nodes, nil
}

// do applies an operation as strictly as a registry does, and returns what it takes.
func (c *cluster) do(op registry.Op) int {
	c.Helper()
	n, stands := c.nodes[op.Path]
	require.Equal(c, op.Kind == registry.OpCreate, !stands, op.Path)
	require.True(c, !stands || op.Version == registry.AnyVersion || op.Version == n.Version, op.Path)
	c.longest = max(c.longest, len(op.Value))
	if op.Kind == registry.OpDelete {
		for path := range c.nodes {
			require.False(c, strings.HasPrefix(path, op.Path+"/"), "%s is deleted, and %s stands", op.Path, path)
		}
		delete(c.nodes, op.Path)
		return len(op.Path)
	}
	n.Value, n.Created = op.Value, 1
	if stands {
		n.Version++
	}
	c.nodes[op.Path] = n
	return len(op.Path) + len(op.Value)
}

// settle plans and commits until nothing is left to do, and checks the size of all.
func (c *cluster) settle(r Room) (steps int) {
	c.Helper()
	for range 20 {
		c.read()
		p := Derive(c.view)
		for _, note := range p.Tell {
			require.False(c, c.cut[note], note)
			c.cut[note] = true
		}
		before := steps
		for s := range p.Steps(r) {
			c.commit(r, s)
			steps++
		}
		if steps == before {
			return steps
		}
	}
	c.Fatal("does not settle")
	return 0
}

func (c *cluster) read() {
	for i, m := range c.view.Members {
		if c.written[m.ID] {
			root := c.nodes["/"+m.ID]
			root.Path = "/" + m.ID
			found, err := pages.Read(c.Context(), c.get, map[string]*ledger.Ledger{root.Path: m.Ledger}, root)
			require.NoError(c, err)
			require.NoError(c, found[0].Err)
			c.view.Members[i].Ledger = found[0].Ledger
		}
	}
	clear(c.written)
}

func (c *cluster) commit(r Room, s Step) {
	ops, bytes := 0, 0
	for _, x := range s.Ledgers {
		at := "/" + x.ID
		require.LessOrEqual(c, len(x.Value), r.MaxValue, x.ID)
		ops += r.LedgerOps + len(x.Pages)
		bytes += r.LedgerBytes + c.do(registry.Set(at, x.Value, x.Version))
		for _, p := range x.Pages {
			require.LessOrEqual(c, len(p.Value), r.MaxValue, p.Node(at))
			bytes += c.do(pages.Op(at, p))
		}
		for _, note := range x.Cut {
			require.False(c, c.cut[note], note)
			c.cut[note] = true
		}
	}
	for _, x := range s.Drop {
		at := "/" + x.ID
		ops += 1 + len(x.Pages)
		for _, p := range x.Pages {
			require.Nil(c, p.Value)
			bytes += c.do(pages.Op(at, p))
		}
		bytes += c.do(registry.Delete(at, x.Version))
	}
	for _, mv := range s.Moves {
		ops += r.MoveOps(mv.Item)
		bytes += r.MoveBytes
	}
	if s.Base != nil {
		c.view.Base = s.Base
		ops++
	}
	require.LessOrEqual(c, ops, r.Ops)
	require.LessOrEqual(c, bytes, r.Bytes)
	var members []Member
	for _, m := range c.view.Members {
		for _, x := range s.Ledgers {
			if x.ID == m.ID {
				require.Equal(c, m.Version, x.Version)
				m.Version++
				c.written[m.ID] = true
			}
		}
		for _, x := range s.Drop {
			if x.ID == m.ID {
				require.Equal(c, m.Version, x.Version)
				m.ID = ""
			}
		}
		if m.ID != "" {
			members = append(members, m)
		}
	}
	c.view.Members = members
}

func (c *cluster) owned(id string) *ledger.Ledger {
	for _, m := range c.view.Members {
		if m.ID == id {
			return m.Ledger
		}
	}
	return nil
}

// own gives every item to the owner at its number modulo their count.
func own(total int, rec func(n int) ledger.Item, ids ...string) []Member {
	var members []Member
	for k, id := range ids {
		l := ledger.New(1, total)
		for n := k; n < total; n += len(ids) {
			l.Set(n, rec(n))
		}
		members = append(members, on(id, l))
	}
	return members
}

const longName = "10.123.124.125@-@a-web-server-with-a-rather-long-name-of-a-statefulset-12@-@lg3hz0kqz5"

// delayed are records of a fixed delay: each item has its own, to the nanosecond.
func delayed(runs bool) func(n int) ledger.Item {
	return func(n int) ledger.Item {
		it := ledger.Item{Through: at(n % 60).Add(time.Duration(n)*time.Millisecond + 123_456_789)}
		it.Last = ledger.Last{Began: it.Through.Add(-time.Second), Ended: it.Through}
		if runs {
			it.Run = it.Through.Add(5 * time.Second)
			it.Through = it.Run
		}
		return it
	}
}

// Finding 20: whatever is written fits, at the documented maxima, in mixed states.
func TestWhatIsWrittenFits(t *testing.T) {
	last := func(n int) ledger.Last {
		began := at(n * 7901 % 5)
		return ledger.Last{Began: began, Ended: began.Add(time.Duration(n*7919%7) * time.Second), Failed: n%9 == 0}
	}
	mixed := func(n int) ledger.Item {
		it := ledger.Item{Through: at(n * 7919 % 5), Last: last(n)}
		switch n * 7907 % 3 {
		case 0:
			it.Run = it.Through
		case 1:
			it.Run, it.Leaving = it.Through, n%2 == 0
		}
		return it
	}
	ended := func(n int) ledger.Item {
		return ledger.Item{Through: at(n * 7919 % 5), Leaving: n*7907%3 == 1, Last: last(n)}
	}
	queued := func(n int) ledger.Item { return ledger.Item{Through: at(n * 7919 % 1500), Last: last(n)} }
	for name, c := range map[string]struct {
		total   int
		assign  assign
		delayed bool
		members []Member
		next    int // the total that is wanted
	}{
		"mixed, the total changes": {100_000, by(strategy.Sticky{}), false, own(100_000, mixed, "a", "b"), 99_999},
		"ended, the total changes": {100_000, by(strategy.Sticky{}), false, own(100_000, ended, "a", "b"), 99_999},
		"mixed, all are wanted elsewhere": {
			100_000, by(strategy.AvgAllocation{}), false, append(own(100_000, mixed, "a", "b"), on("c", ledger.New(0, 0))), 100_000,
		},
		"each waits for one of 1,500 fires, the total changes": {100_000, by(strategy.Sticky{}), false, own(100_000, queued, "a", "b"), 99_999},
		"each waits for one of 1,500 fires, a third instance comes": {
			12_000, by(strategy.Sticky{}), false, append(own(12_000, queued, "a", "b"), on("c", ledger.New(0, 0))), 12_000,
		},
		"2,000 run, and go elsewhere": {
			2_000, by(strategy.AvgAllocation{}), true, append(own(2_000, delayed(true), longName), on("b", ledger.New(0, 0))), 2_000,
		},
		"2,000 have ended, and go elsewhere": {2_000, scattered, true, append(own(2_000, delayed(false), longName), on("b", ledger.New(0, 0))), 2_000},
		"2,000 run, the total changes":       {2_000, by(strategy.Sticky{}), true, own(2_000, delayed(true), longName), 1_999},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.total > 2_000 {
				t.Skip("takes seconds")
			}
			cl := plant(t, View{
				Base: &layout.Base{Epoch: 1, To: c.total, Assigned: true, Through: at(0)}, Total: c.next, Monitor: true,
				Delayed: c.delayed, Now: at(100), Up: at(0), Members: c.members, Assign: c.assign,
			})
			r := portable()
			if c.total > 2_000 {
				r.MoveOps = func(int) int { return 1 }
			}
			cl.settle(r)
			require.Empty(t, cl.cut)
		})
	}
}

// hugeName is one with which records are so long that not even a page of them fits a value.
var hugeName = strings.Repeat("x", 900)

// huge is the room for such names.
func huge() Room {
	r := portable()
	r.Bytes, r.LedgerBytes = r.Bytes-8*1_000, 2*1_000
	return r
}

// Finding 20: 2,000 items of a fixed delay that were all cut with their owner outgrow their pages
// with their notes. What does not fit is told by the leader; the items move all the same.
func TestNotesThatDoNotFitAreToldByTheLeader(t *testing.T) {
	for _, finish := range []bool{false, true} {
		t.Run(fmt.Sprint("the epoch ends: ", finish), func(t *testing.T) {
			members := append(own(2_000, delayed(true), hugeName), on("b", ledger.New(0, 0)))
			members[0].State, members[0].Eligible = Dead, false
			cl := plant(t, View{
				Base: &layout.Base{Epoch: 1, To: 2_000, Assigned: true, Through: at(0)}, Total: 2_000, Monitor: true,
				Delayed: true, Now: at(100), Up: at(0), Members: members, Assign: by(strategy.Sticky{}),
			})
			if finish {
				cl.view.Base, cl.view.Total = &layout.Base{Epoch: 2, From: 2_000, To: 3, Through: at(50)}, 3
			}
			cl.settle(huge())
			require.Nil(t, cl.owned(hugeName), "dropped")
			l := cl.owned("b")
			require.Equal(t, 2_000, l.Len())
			require.NotEmpty(t, cl.cut)
			for n, rec := range l.All() {
				note := ledger.Note{Due: delayed(true)(n).Run.UTC(), Instance: hugeName}
				told := cl.cut[Cut{Epoch: 1, Item: n, Note: note}]
				require.NotEqual(t, told, len(rec.Told.Notes()) == 1 && rec.Told.Notes()[0] == note, "item %d: told, or noted", n)
			}
		})
	}
}

// What is to run again and does not fit is cut, and told by the leader; the items move all the same.
func TestWhatIsToRunAgainAndDoesNotFitIsCut(t *testing.T) {
	members := append(own(2_000, delayed(true), hugeName), on("b", ledger.New(0, 0)))
	members[0].State, members[0].Eligible = Dead, false
	cl := plant(t, View{
		Base: &layout.Base{Epoch: 1, To: 2_000, Assigned: true, Through: at(0)}, Total: 2_000, Monitor: true, Failover: true,
		Delayed: true, Now: at(100), Up: at(0), Members: members, Assign: by(strategy.Sticky{}),
	})
	cl.settle(huge())
	require.Nil(t, cl.owned(hugeName), "dropped")
	l := cl.owned("b")
	require.Equal(t, 2_000, l.Len())
	require.NotEmpty(t, cl.cut)
	again := 0
	for n, rec := range l.All() {
		note := ledger.Note{Due: delayed(true)(n).Run.UTC(), Instance: hugeName, Reason: string(event.CutRoom)}
		told := cl.cut[Cut{Epoch: 1, Item: n, Note: note}]
		require.NotEqual(t, told, rec.Redo.Owed(), "item %d: told, or to run again", n)
		again += boolInt(rec.Redo.Owed())
	}
	t.Logf("%d of 2,000 run again", again)
}

// With static sharding, of 2,000 items that a dead owner ran: each is lent or cut, and told.
func TestWhatIsLentAndDoesNotFitIsCut(t *testing.T) {
	for _, failover := range []bool{true, false} {
		t.Run(fmt.Sprint("failover: ", failover), func(t *testing.T) {
			members := append(own(2_000, delayed(true), hugeName), on("b", ledger.New(0, 0)))
			members[0].State, members[0].Eligible = Dead, false
			cl := plant(t, View{
				Base: &layout.Base{Epoch: 1, To: 2_000, Assigned: true, Through: at(0)}, Total: 2_000, Monitor: true, Failover: failover, Static: true,
				Delayed: true, Now: at(100), Up: at(0), Members: members, Assign: by(strategy.Sticky{}),
			})
			cl.settle(huge())
			lent, reason := 0, string(event.CutRoom)
			if !failover {
				reason = ""
			}
			for n := range 2_000 {
				rec, is := cl.owned("b").Get(n)
				lent += boolInt(rec.Redo.Owed())
				told := cl.cut[Cut{Epoch: 1, Item: n, Note: ledger.Note{Due: delayed(true)(n).Run.UTC(), Instance: hugeName, Reason: reason}}]
				require.NotEqual(t, told, rec.Redo.Owed(), "item %d: told, or to run again", n)
				require.Equal(t, failover, is)
				require.Equal(t, failover, rec.Bound == hugeName)
			}
			require.Equal(t, failover, lent > 0)
			require.Len(t, cl.cut, 2_000-lent)
			if !failover {
				require.Equal(t, 2_000, cl.owned(hugeName).Len(), "they wait for it")
			}
		})
	}
}

// every are records of which no two are equal, to the nanosecond, in all states that an item may be in.
func every(n int) ledger.Item {
	it := ledger.Item{Through: at(n % 60).Add(time.Duration(n)*time.Millisecond + 123_456_789)}
	it.Last = ledger.Last{Began: it.Through.Add(-time.Second), Ended: it.Through}
	switch n % 7 {
	case 1:
		it.Run = it.Through.Add(-time.Duration(n))
	case 2:
		it.Run, it.Leaving = it.Through, true
	case 3:
		it.Redo = ledger.Redo{Due: it.Through.Add(-1), Lost: longName, Tries: 2}
	case 4:
		it.Run, it.Redo = it.Through, ledger.Redo{Lost: longName, Tries: 1}
	case 5:
		it.Told = it.Told.With(ledger.Note{Due: it.Through, Count: n + 1, First: at(0), Reason: string(event.SkipRunning)})
	case 6:
		it.Request, it.Run, it.Asked = int64(n), it.Through.Add(1), int64(n)
	}
	return it
}

// The documented maxima in the worst states, with the limits that every registry has: 100,000 items on
// two instances, each with a record of its own, are moved, orphaned, and given another total. Nothing is
// told in place of being written, and a step writes the pages of the items that it moves.
func TestTheMaximaFitInEveryState(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const total = 100_000
	dead := func(members []Member) []Member {
		members[0].State, members[0].Eligible = Dead, false
		return members
	}
	for name, c := range map[string]struct {
		assign  assign
		delayed bool
		rec     func(n int) ledger.Item
		members func(m []Member) []Member
		next    int
		most    int // steps
	}{
		"one of them dies":                  {by(strategy.Sticky{}), false, every, dead, total, 2_200},
		"what one ran runs again elsewhere": {by(strategy.Sticky{}), true, delayed(true), dead, total, 2_200},
		"a third one comes": {
			by(strategy.AvgAllocation{}), false, every, func(m []Member) []Member { return append(m, on("c", ledger.New(0, 0))) }, total, 3_500,
		},
		"the total changes":                        {by(strategy.Sticky{}), true, delayed(false), slices.Clone[[]Member], total - 1, 3_500},
		"the total changes while items run":        {by(strategy.Sticky{}), false, every, slices.Clone[[]Member], total - 1, 100},
		"one of them dies while the total changes": {by(strategy.Sticky{}), true, delayed(false), dead, total - 1, 3_500},
	} {
		t.Run(name, func(t *testing.T) {
			cl := plant(t, View{
				Base: &layout.Base{Epoch: 1, To: total, Assigned: true, Through: at(0)}, Total: c.next, Monitor: true, Failover: true,
				Delayed: c.delayed, Now: at(200), Up: at(0), Members: c.members(own(total, c.rec, "a", "b")), Assign: c.assign,
			})
			r := portable()
			r.MoveOps = func(int) int { return 1 }
			begun := time.Now()
			steps := cl.settle(r)
			t.Logf("%d steps, the longest value has %d bytes, %v", steps, cl.longest, time.Since(begun).Round(time.Millisecond))
			require.Empty(t, cl.cut)
			require.LessOrEqual(t, steps, c.most)
			items := 0
			for _, m := range cl.view.Members {
				items += m.Ledger.Len()
			}
			if c.next == total || c.delayed { // else what runs is waited for
				require.Equal(t, c.next, items)
				require.Equal(t, c.next, cl.view.Base.To)
			}
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A ledger that two others would not fit a commit with loses its notes before its items.
func TestTwoLargeLedgersShareAStep(t *testing.T) {
	large := func(owner string) func(n int) ledger.Item {
		return func(n int) ledger.Item {
			it := delayed(false)(n)
			it.Told = ledger.Told{}.With(ledger.Note{Due: it.Through, Instance: owner})
			return it
		}
	}
	members := own(2_000, large("x"), "a", "b")
	r := portable()
	r.Bytes = 250_000
	cl := plant(t, View{
		Base: &layout.Base{Epoch: 1, To: 2_000, Assigned: true, Through: at(0)}, Total: 2_000, Monitor: true,
		Delayed: true, Now: at(100), Members: members, Assign: scattered,
	})
	cl.settle(r)
	require.Equal(t, 2_000, cl.owned("a").Len()+cl.owned("b").Len())
	require.NotEmpty(t, cl.cut)
}
