package leading

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// calm is after the last of those who look later.
const calm = 3*unhurried + time.Second

// crowd joins instances, and returns the leader and the others once all items have owners.
func (b *bed) crowd(size int) (leader *member, others []*member) {
	b.Helper()
	var all []*member
	for i := range size {
		all = append(all, b.join(fmt.Sprint("m", i), at(time.Millisecond)))
	}
	b.until("the items are spread", func() bool {
		idle := 0
		for _, m := range all {
			if b.ledger(m.id).Len() == 0 {
				idle++
			}
		}
		return b.led(all...) && b.spread(6, ids(all...)...) && idle == max(0, size-6)
	})
	<-time.After(calm) // nobody looks any more
	for _, m := range all {
		if m.id == string(b.get(b.job.Leader()).Value) {
			leader = m
		} else {
			others = append(others, m)
		}
	}
	return leader, others
}

// had is how often members have read a path since it was asked for last.
func (b *bed) had(path string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer delete(b.reads, path)
	return b.reads[path]
}

// What the watches show is not read again, until a commit says that it is so no more.
func TestALeaderReadsWhatNoWatchShows(t *testing.T) {
	inBubble(t, func(b *bed) {
		leader, others := b.crowd(3)
		kept, gone := others[0], others[1]
		b.mu.Lock()
		clear(b.reads)
		b.mu.Unlock()
		leader.Look()
		<-time.After(time.Second)
		for _, m := range append(others, leader) {
			require.Equal(b, 1, b.had(b.job.Ledger(m.id)))
			require.Zero(b, b.had(b.job.Life(m.id))+b.had(b.job.Notice(m.id))+b.had(b.job.Instance(m.id)))
		}
		b.commit(registry.Delete(b.job.Notice(kept.id), registry.AnyVersion))
		gone.end()
		b.until("one of two has all that they may have", func() bool { return b.ledger(leader.id).Len() == 4 })
		require.NotZero(b, b.had(b.job.Notice(kept.id)))
		require.Equal(b, 2, b.ledger(kept.id).Len(), "it is given nothing until it has registered anew")
	})
}

// Jobs whose items wait for an owner go before those in which an instance that is gone had none; and what a view has
// shown is looked at once.
func TestWhoHadNothingIsBuriedLater(t *testing.T) {
	inBubble(t, func(b *bed) {
		leader, others := b.crowd(9) // of six items
		owner := others[slices.IndexFunc(others, func(m *member) bool { return b.ledger(m.id).Len() > 0 })]
		b.mu.Lock()
		clear(b.reads)
		b.mu.Unlock()
		owner.end()
		took := b.until("its items have an owner", func() bool { return !b.get(b.job.Ledger(owner.id)).Exists() })
		require.Less(b, took, 100*time.Millisecond)
		<-time.After(calm)
		require.LessOrEqual(b, b.had(b.job.Base()), 2)
		leader.Gone(owner.id) // as its instance's node
		<-time.After(calm)
		require.Zero(b, b.had(b.job.Base()))

		idle := others[slices.IndexFunc(others, func(m *member) bool { return m != owner && b.ledger(m.id).Len() == 0 })]
		idle.end()
		<-time.After(unhurried - 100*time.Millisecond)
		require.Zero(b, b.had(b.job.Base()))
		b.until("its ledger is gone", func() bool { return !b.get(b.job.Ledger(idle.id)).Exists() })
	})
}

// viewed has f called once, when somebody begins to read what a view takes, and clears what was counted.
func (b *bed) viewed(f func()) {
	once := sync.OnceFunc(f)
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.reads)
	b.gets = 0
	b.asks = func(paths []string) {
		if slices.Contains(paths, b.job.Base()) {
			once()
		}
	}
}

// Whoever is elected since the leader has died looks at once whether items wait for an owner. What nobody waits for it
// does later: the ledger that holds nothing, and what is to be tidied.
func TestWhatALeaderLeavesBehindIsTidiedLater(t *testing.T) {
	inBubble(t, func(b *bed) {
		leader, others := b.crowd(9) // of six items
		for range 3 {
			if b.ledger(leader.id).Len() == 0 {
				break
			}
			b.viewed(func() {})
			leader.end()
			took := b.until("its items have an owner", func() bool { return !b.get(b.job.Ledger(leader.id)).Exists() })
			require.Less(b, took, 200*time.Millisecond)
			require.Zero(b, b.had(below(b.job.Sharding())))
			<-time.After(calm)
			require.Equal(b, 1, b.had(below(b.job.Sharding())))
			at := slices.IndexFunc(others, func(m *member) bool { return m.id == string(b.get(b.job.Leader()).Value) })
			leader, others = others[at], slices.Delete(slices.Clone(others), at, at+1)
		}
		require.Zero(b, b.ledger(leader.id).Len(), "the test wants a leader that has none")
		b.viewed(func() {})
		leader.end()
		b.until("another one leads", func() bool { return b.led(others...) })
		<-time.After(unhurried - 200*time.Millisecond)
		require.NotZero(b, b.had(b.job.Base()))
		require.Zero(b, b.had(below(b.job.Sharding())))
		require.True(b, b.get(b.job.Ledger(leader.id)).Exists())
		<-time.After(calm)
		require.Equal(b, 1, b.had(below(b.job.Sharding())))
		require.False(b, b.get(b.job.Ledger(leader.id)).Exists())
	})
}

// When an owner dies the leader reads once before it commits. That its instance's node goes too, while the leader
// reads, is no reason to do so again.
func TestAnOwnersDeathIsOneLook(t *testing.T) {
	inBubble(t, func(b *bed) {
		leader, others := b.crowd(3)
		owner := others[0]
		b.viewed(func() { leader.Gone(owner.id) })
		owner.end()
		took := b.until("its items have an owner", func() bool { return !b.get(b.job.Ledger(owner.id)).Exists() })
		require.Less(b, took, 100*time.Millisecond)
		<-time.After(calm)
		require.Equal(b, 1, b.had(b.job.Base()))
		require.Equal(b, 1, b.had(b.job.Processing()))
		require.Equal(b, 1, b.had(b.job.ItemInstance(0)))
		require.Equal(b, 1, b.gets)
	})
}

// An owner that dies while the leader looks, and still shows it to stand, is looked at again at once.
func TestAnOwnerThatDiesDuringALook(t *testing.T) {
	inBubble(t, func(b *bed) {
		leader, others := b.crowd(3)
		owner := others[0]
		b.viewed(func() {
			_ = owner.ses.Close(context.Background()) // its nodes go; the view takes it as it was shown
		})
		leader.Look()
		took := b.until("its items have an owner", func() bool { return !b.get(b.job.Ledger(owner.id)).Exists() })
		require.Less(b, took, 100*time.Millisecond)
		// A look that still shows it, one that does not, and one for the flags that it has raised for several commits.
		require.LessOrEqual(b, b.had(b.job.Base()), 3)
	})
}

// The nodes of many items are read once it is known which of them move.
func TestManyItemsAreReadWhenTheyMove(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.mu.Lock()
		b.facts.Total = fewItems + 1
		b.mu.Unlock()
		leader, owner := b.join("m0", at(time.Millisecond)), b.join("m1", at(time.Millisecond))
		b.until("the items are spread", func() bool { return b.led(leader, owner) && b.spread(fewItems+1, "m0", "m1") })
		<-time.After(calm)
		if string(b.get(b.job.Leader()).Value) == owner.id {
			leader, owner = owner, leader
		}
		moves := b.ledger(owner.id).Len()
		b.viewed(func() {})
		owner.end()
		b.until("its items have an owner", func() bool { return b.ledger(leader.id).Len() == fewItems+1 })
		read := 0
		for n := range fewItems + 1 {
			read += b.had(b.job.ItemInstance(n))
		}
		require.Equal(b, moves, read)
	})
}

// One instance of many asks to be elected, and the next one where that does not succeed.
func TestFewAskToBeElected(t *testing.T) {
	inBubble(t, func(b *bed) {
		leader, others := b.crowd(8)
		var asked []string
		fails := func(id string) bool { return false }
		b.mu.Lock()
		b.refuses = func(id string, ops []registry.Op) error {
			if !slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Path == b.job.Leader() && op.Kind == registry.OpCreateEphemeral }) {
				return nil
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			asked = append(asked, id)
			if fails(id) {
				return registry.ErrUnavailable
			}
			return nil
		}
		b.mu.Unlock()
		leader.end()
		b.until("another one leads", func() bool { return b.led(others...) })
		<-time.After(2 * time.Second)
		b.mu.Lock()
		require.Len(b, asked, 1)
		first := asked[0]
		asked = nil
		b.mu.Unlock()
		second := others[slices.IndexFunc(others, func(m *member) bool { return m.id == first })]
		others = slices.DeleteFunc(others, func(m *member) bool { return m == second })
		b.mu.Lock()
		fails = func(id string) bool { return id == asked[0] }
		b.mu.Unlock()
		second.end()
		took := b.until("another one leads", func() bool { return b.led(others...) })
		require.Less(b, took, turn+50*time.Millisecond)
		b.mu.Lock()
		defer b.mu.Unlock()
		others = slices.DeleteFunc(others, func(m *member) bool { return m.id == asked[0] })
		require.Len(b, others, 5)
		require.Contains(b, ids(others...), asked[len(asked)-1])
	})
}
