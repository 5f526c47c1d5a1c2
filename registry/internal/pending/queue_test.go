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
	return &Queue{}, &Target{Key: Key{Path: "/d", Scope: registry.Children}}
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
	require.Len(t, d.nodes, 1)
	q.Put(d, gone("/d/known"))
	require.Empty(t, cmp.Diff([]registry.Event{{Path: "/d", Scope: registry.Children, Node: gone("/d/known")}}, q.Take(10)))
	require.Empty(t, d.nodes)
}

func TestQueueTellsAbsenceOfASelf(t *testing.T) {
	q, _ := newQueue()
	d := &Target{Key: Key{Path: "/d", Scope: registry.Self}}
	q.Put(d, gone("/d"))
	require.Len(t, q.Take(10), 1)
	q.Put(d, at("/d", 1))
	q.Put(d, gone("/d"))
	require.Empty(t, q.Take(10), "no state is told twice (R57)")
}

func TestQueueDropsATarget(t *testing.T) {
	q, d := newQueue()
	other := &Target{Key: Key{Path: "/o", Scope: registry.Children}}
	q.Put(d, at("/d/a", 1))
	q.Put(other, at("/o/a", 1))
	q.Synced(d)
	q.Drop(d)
	require.Len(t, q.Take(10), 1)
	require.Zero(t, q.Len())
}

func TestTargetKnowsItsLastStates(t *testing.T) {
	q, d := newQueue()
	_, known := d.Last("/d/a")
	require.False(t, known)
	value := at("/d/a", 1)
	value.Value = []byte("x")
	q.Put(d, value)
	last, known := d.Last("/d/a")
	require.True(t, known)
	require.Equal(t, value, last)
	q.Take(1)
	last, _ = d.Last("/d/a")
	require.Equal(t, at("/d/a", 1), last, "a value that was taken is kept no longer")
	q.Put(d, gone("/d/a"))
	last, known = d.Last("/d/a")
	require.True(t, known, "the consumer does not know yet")
	require.False(t, last.Exists())
	q.Take(1)
	_, known = d.Last("/d/a")
	require.False(t, known)

	for i := range 5 {
		q.Put(d, at(fmt.Sprint("/d/", i), 7))
	}
	all := 0
	for n := range d.All() {
		q.Put(d, gone(n.Path)) // what a state that replaces all does
		all++
	}
	require.Equal(t, 5, all)
	require.Zero(t, q.Len())
	for range d.All() {
		t.Fatal("nothing is left")
	}
}

func TestClearedQueueIsEmpty(t *testing.T) {
	q, d := newQueue()
	q.Put(d, at("/d/a", 1))
	q.Synced(d)
	q.Clear()
	require.Empty(t, q.Take(10))
}

// Absence that is known is not told again, whatever came and went meanwhile.
func TestAbsenceIsToldOnce(t *testing.T) {
	var q Queue
	target := &Target{Key: Key{Path: "/a", Scope: registry.Self}}
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
