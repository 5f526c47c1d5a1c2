package etcd

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

func newQueue() (*queue, *target) {
	q := &queue{}
	q.init()
	return q, &target{targetKey: targetKey{path: "/d", scope: registry.Children}}
}

func TestQueueKeepsTheLastState(t *testing.T) {
	q, d := newQueue()
	q.put(d, at("/d/a", 1))
	q.put(d, at("/d/b", 2))
	q.synced(d)
	q.put(d, at("/d/a", 3))
	q.put(d, at("/d/c", 4))
	want := []registry.Event{
		{Path: "/d", Scope: registry.Children, Node: at("/d/a", 3)},
		{Path: "/d", Scope: registry.Children, Node: at("/d/b", 2)},
		{Path: "/d", Scope: registry.Children, Synced: true},
		{Path: "/d", Scope: registry.Children, Node: at("/d/c", 4)},
	}
	require.Empty(t, cmp.Diff(want[:1], q.take(1)))
	require.Empty(t, cmp.Diff(want[1:], q.take(10)))
	require.Empty(t, q.take(10))
	q.put(d, gone("/d/a"))
	require.Empty(t, cmp.Diff([]registry.Event{{Path: "/d", Scope: registry.Children, Node: gone("/d/a")}}, q.take(10)))
}

// A consumer that is stuck while nodes come and go costs nothing for those that
// it has never heard of.
func TestQueueForgetsWhatCameAndWent(t *testing.T) {
	q, d := newQueue()
	q.put(d, at("/d/known", 1))
	q.take(10)
	for i := range 10000 {
		path := fmt.Sprint("/d/", i)
		q.put(d, at(path, registry.Revision(i)))
		q.put(d, at("/d/known", registry.Revision(i)))
		q.put(d, gone(path))
	}
	require.Equal(t, 1, q.items.Len())
	require.Len(t, d.nodes, 1)
	q.put(d, gone("/d/known"))
	require.Empty(t, cmp.Diff([]registry.Event{{Path: "/d", Scope: registry.Children, Node: gone("/d/known")}}, q.take(10)))
	require.Empty(t, d.nodes)
}

func TestQueueTellsAbsenceOfASelf(t *testing.T) {
	q, _ := newQueue()
	d := &target{targetKey: targetKey{path: "/d", scope: registry.Self}}
	q.put(d, gone("/d"))
	require.Len(t, q.take(10), 1)
	q.put(d, at("/d", 1))
	q.put(d, gone("/d"))
	require.Len(t, q.take(10), 1)
}

func TestQueueDropsATarget(t *testing.T) {
	q, d := newQueue()
	other := &target{targetKey: targetKey{path: "/o", scope: registry.Children}}
	q.put(d, at("/d/a", 1))
	q.put(other, at("/o/a", 1))
	q.synced(d)
	q.drop(d)
	require.Len(t, q.take(10), 1)
	require.Zero(t, q.items.Len())
}
