package session

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// parts gives each of n jobs a node, and a part that watches it.
func (b *bed) parts(n int) (all []*Part, seen []string) {
	all, seen = make([]*Part, n), make([]string, n)
	for i := range all {
		b.do(registry.Create(fmt.Sprint("/job", i), []byte("1")))
		all[i] = b.ses.Part()
		all[i].Follow(fmt.Sprint("/job", i), registry.Self, func(e registry.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if !e.Synced {
				seen[i] += string(e.Node.Value)
			}
		})
	}
	synctest.Wait()
	return all, seen
}

// A few jobs share one watcher. Many are spread, and whoever goes makes room.
func TestPartsAreSpread(t *testing.T) {
	onBed(t, func(b *bed) {
		all, seen := b.parts(2*partsAWatcher + 1)
		require.Len(t, b.reg.watchers, 3)
		for i := range all {
			b.do(registry.Set(fmt.Sprint("/job", i), []byte("2"), registry.AnyVersion))
		}
		synctest.Wait()
		for i, told := range seen {
			require.Equal(t, "12", told, i)
		}
		for i, p := range all[:10] {
			p.Unfollow(fmt.Sprint("/job", i), registry.Self)
		}
		require.Equal(t, partsAWatcher-10, b.ses.watchers[0].parts)
		again := b.ses.Part()
		again.Follow("/a", registry.Self, func(registry.Event) {})
		again.Follow("/b", registry.Self, func(registry.Event) {})
		again.Follow("/b", registry.Self, func(registry.Event) {})
		require.Same(t, b.ses.watchers[0], again.via)
		require.Equal(t, 2, again.targets)
		again.Unfollow("/a", registry.Self)
		again.Unfollow("/a", registry.Self)
		require.Same(t, b.ses.watchers[0], again.via)
		again.Unfollow("/b", registry.Self)
		require.Nil(t, again.via)
		require.Equal(t, partsAWatcher-10, b.ses.watchers[0].parts)
	})
}

// There are not more watchers than a session may have, and the jobs are as many in each.
func TestWatchersAreBounded(t *testing.T) {
	onBed(t, func(b *bed) {
		const jobs = mostWatchers*partsAWatcher + 3*mostWatchers
		for i := range jobs {
			b.ses.Part().Follow(fmt.Sprint("/none", i), registry.Self, func(registry.Event) {})
		}
		require.Len(t, b.ses.watchers, mostWatchers)
		for _, w := range b.ses.watchers {
			require.Equal(t, jobs/mostWatchers, w.parts)
		}
	})
}

// What cannot be watched by another watcher is watched by those there are.
func TestAWatcherThatCannotBeOpenedIsDoneWithout(t *testing.T) {
	onBed(t, func(b *bed) {
		b.reg.watchErr = errors.New("no more")
		all, seen := b.parts(partsAWatcher + 1)
		require.Len(t, b.ses.watchers, 1)
		require.Same(t, b.ses.watchers[0], all[partsAWatcher].via)
		require.Equal(t, "1", seen[partsAWatcher])
	})
}

// A target belongs to the part that followed it last: what is left of another's watcher reaches nobody.
func TestATargetIsOfOnePart(t *testing.T) {
	onBed(t, func(b *bed) {
		first, _ := b.parts(partsAWatcher)
		second := b.ses.Part()
		told := ""
		second.Follow("/job0", registry.Self, func(e registry.Event) {
			if !e.Synced {
				told += string(e.Node.Value)
			}
		})
		synctest.Wait()
		require.Nil(t, first[0].via, "it has nothing else")
		require.Same(t, b.ses.watchers[1], second.via)
		b.set("/job0", "2")
		require.Equal(t, "12", told)
		first[0].Unfollow("/job0", registry.Self)
		b.set("/job0", "3")
		require.Equal(t, "123", told)
	})
}

// Where a part takes over what another of the same watcher has, it is shown what stands.
func TestATargetThatIsTakenOverIsShownAnew(t *testing.T) {
	onBed(t, func(b *bed) {
		b.follow("/a")
		other, told := b.ses.Part(), ""
		other.Follow("/a", registry.Self, func(e registry.Event) {
			if !e.Synced {
				told += string(e.Node.Value)
			}
		})
		synctest.Wait()
		require.Same(t, b.ses.watchers[0], other.via)
		require.Equal(t, "a1", told)
		b.set("/a", "a2")
		require.Equal(t, "a1a2", told)
		require.Equal(t, []string{"a1"}, b.values("/a"))
	})
}

// What one watcher is denied is asked for again there, and deafens the others no more than itself.
func TestADeniedTargetOfAnotherWatcher(t *testing.T) {
	onBed(t, func(b *bed) {
		b.parts(partsAWatcher)
		b.reg.deny("/b")
		other, told := b.ses.Part(), map[string]string{}
		for _, path := range []string{"/a", "/b"} {
			other.Follow(path, registry.Self, func(e registry.Event) { told[path] += string(e.Node.Value) })
		}
		synctest.Wait()
		require.Same(t, b.ses.watchers[1], other.via)
		require.Equal(t, map[string]string{"/a": "a1"}, told)
		b.reg.deny()
		b.pass(deniedPause)
		b.set("/b", "b2")
		require.Equal(t, map[string]string{"/a": "a1", "/b": "b1b2"}, told)
		require.Len(t, b.warnings(), 1)
	})
}
