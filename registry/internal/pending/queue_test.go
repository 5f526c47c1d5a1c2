package pending

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

func at(path string, rev registry.Revision) registry.Node {
	return registry.Node{Path: path, Created: 1, Modified: rev}
}

func gone(path string) registry.Node { return registry.Node{Path: path} }

func newQueue() (*Queue, *Target) {
	return &Queue{}, &Target{Path: "/d", Scope: registry.Children}
}

func TestQueueKeepsTheLastState(t *testing.T) {
	q, d := newQueue()
	q.Put(d, at("/d/a", 1))
	q.Put(d, at("/d/b", 2))
	q.Synced(d)
	q.Put(d, at("/d/a", 3))
	q.Put(d, at("/d/c", 4))
	want := []registry.Event{
		{Path: "/d", Scope: registry.Children, Node: at("/d/a", 3)},
		{Path: "/d", Scope: registry.Children, Node: at("/d/b", 2)},
		{Path: "/d", Scope: registry.Children, Synced: true},
		{Path: "/d", Scope: registry.Children, Node: at("/d/c", 4)},
	}
	require.Empty(t, cmp.Diff(want[:1], q.Take(1)))
	require.Empty(t, cmp.Diff(want[1:], q.Take(10)))
	require.Empty(t, q.Take(10))
	q.Put(d, gone("/d/a"))
	require.Empty(t, cmp.Diff([]registry.Event{{Path: "/d", Scope: registry.Children, Node: gone("/d/a")}}, q.Take(10)))
}

// A consumer that is stuck while nodes come and go costs nothing for those that
// it has never heard of.
func TestQueueForgetsWhatCameAndWent(t *testing.T) {
	q, d := newQueue()
	q.Put(d, at("/d/known", 1))
	q.Take(10)
	for i := range 10000 {
		path := fmt.Sprint("/d/", i)
		q.Put(d, at(path, registry.Revision(i)))
		q.Put(d, at("/d/known", registry.Revision(i)))
		q.Put(d, gone(path))
	}
	require.Equal(t, 1, q.Len())
	require.Equal(t, 1, d.nodes.len())
	q.Put(d, gone("/d/known"))
	require.Empty(t, cmp.Diff([]registry.Event{{Path: "/d", Scope: registry.Children, Node: gone("/d/known")}}, q.Take(10)))
	require.Zero(t, d.nodes.len())
}

func TestQueueTellsAbsenceOfASelf(t *testing.T) {
	q, _ := newQueue()
	d := &Target{Path: "/d", Scope: registry.Self}
	q.Put(d, gone("/d"))
	require.Len(t, q.Take(10), 1)
	q.Put(d, at("/d", 1))
	q.Put(d, gone("/d"))
	require.Empty(t, q.Take(10), "no state is told twice (R57)")
}

func TestQueueDropsATarget(t *testing.T) {
	q, d := newQueue()
	other := &Target{Path: "/o", Scope: registry.Children}
	q.Put(d, at("/d/a", 1))
	q.Put(other, at("/o/a", 1))
	q.Synced(d)
	q.end(d)
	require.Len(t, q.Take(10), 1)
	require.Zero(t, q.Len())
}

func TestValuesAreKeptUntilTheyAreTaken(t *testing.T) {
	q, d := newQueue()
	value := at("/d/a", 1)
	value.Value = []byte("x")
	q.Put(d, value)
	require.Equal(t, value, d.nodes.get("/d/a").queued.Value.(item).node)
	require.Equal(t, value, q.Take(1)[0].Node)
	require.Equal(t, &entry{modified: value.Modified, exists: true, told: true, known: true}, d.nodes.get("/d/a"))
	q.Put(d, gone("/d/a"))
	require.NotNil(t, d.nodes.get("/d/a"), "the consumer does not know yet")
	require.False(t, q.Take(1)[0].Node.Exists())
	require.Zero(t, d.nodes.len())
}

func TestWhatIsNoNewsIsLeftOut(t *testing.T) {
	q, d := newQueue()
	q.Put(d, at("/d/a", 2))
	require.Len(t, q.Take(9), 1)
	q.Put(d, at("/d/a", 1))
	q.Put(d, at("/d/a", 2))
	q.Put(d, gone("/d/b"))
	require.Empty(t, q.Take(9))
	q.Put(d, gone("/d/a"))
	q.Put(d, at("/d/a", 3))
	require.Len(t, q.Take(9), 1)
}

func TestShowReplacesAll(t *testing.T) {
	q, d := newQueue()
	of := func(nodes ...registry.Node) (events []registry.Event) {
		for _, n := range nodes {
			events = append(events, registry.Event{Path: "/d", Scope: registry.Children, Node: n})
		}
		return events
	}
	q.Show(d, []registry.Node{at("/d/a", 1), at("/d/b", 2)})
	first := append(of(at("/d/a", 1), at("/d/b", 2)), registry.Event{Path: "/d", Scope: registry.Children, Synced: true})
	require.Empty(t, cmp.Diff(first, q.Take(9)))
	q.Show(d, []registry.Node{at("/d/b", 2), at("/d/c", 3)})
	require.Empty(t, cmp.Diff(of(at("/d/c", 3), gone("/d/a")), q.Take(9)), "and Synced once")
	q.Show(d, nil)
	require.Len(t, q.Take(9), 2)
	require.Zero(t, d.nodes.len())
	q.Show(d, nil)
	require.Empty(t, q.Take(9))

	self := &Target{Path: "/s"}
	q.Show(self, nil)
	events := q.Take(9)
	require.Len(t, events, 2)
	require.Equal(t, gone("/s"), events[0].Node)
	q.Show(self, nil)
	require.Empty(t, q.Take(9))
	q.Show(self, []registry.Node{at("/s", 1)})
	require.Len(t, q.Take(9), 1)
	q.Show(self, nil)
	require.Equal(t, gone("/s"), q.Take(9)[0].Node)
}

// Absence that is known is not told again, whatever came and went meanwhile.
func TestAbsenceIsToldOnce(t *testing.T) {
	var q Queue
	target := &Target{Path: "/a", Scope: registry.Self}
	gone, here := registry.Node{Path: "/a"}, registry.Node{Path: "/a", Created: 2, Modified: 2}
	q.Put(target, gone)
	require.Len(t, q.Take(9), 1)
	q.Put(target, gone)
	q.Put(target, here)
	q.Put(target, gone)
	require.Empty(t, q.Take(9))
	q.Put(target, here)
	require.Len(t, q.Take(9), 1)
	q.Put(target, gone)
	require.Len(t, q.Take(9), 1)
}
