package leading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// lacking is a member's server that lacks a change of a node: what goes by it is refused.
func (b *bed) lacking(member, path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = func(id string, ops []registry.Op) error {
		for i, op := range ops {
			if id == member && op.Path == path && op.Kind == registry.OpSet {
				return &registry.CommitError{Index: i, Op: op, Err: registry.ErrVersion}
			}
		}
		return nil
	}
}

func (b *bed) mended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = nil
}

// A leader that goes on being refused lets another one lead, which may be connected elsewhere.
func TestALeaderThatIsRefusedHandsOver(t *testing.T) {
	inBubble(t, func(b *bed) {
		first, second := b.pair()
		b.lacking("a", b.job.Ledger("b"))
		b.change(func(f *Facts) { f.Total = 8 }, first, second)
		took := b.until("the other one leads", func() bool { return b.led(second) && b.spread(8, "a", "b") })
		require.Greater(t, took, 5*time.Second, "who is refused for a moment goes on")
		require.Less(t, took, 15*time.Second)
		require.NotEmpty(t, of[event.Warning](first))

		b.mended()
		b.change(func(f *Facts) { f.Total = 10 }, first, second)
		b.until("all goes on", func() bool { return b.led(second) && b.spread(10, "a", "b") })
		second.end()
		b.until("it may lead again", func() bool { return b.led(first) && b.spread(10, "a") })
	})
}

// Where all are refused each leads for a while, and the first that is not goes on.
func TestLeadersThatAreAllRefused(t *testing.T) {
	inBubble(t, func(b *bed) {
		first, second := b.join("a", at(0)), b.join("b", at(0))
		b.until("both have items", func() bool { return b.spread(6, "a", "b") })
		allow := b.srv.Deny(b.job.Ledger("a"))
		b.change(func(f *Facts) { f.Total = 8 }, first, second)
		led := map[bool]bool{}
		begun := time.Now()
		for time.Since(begun) < time.Minute {
			<-time.After(100 * time.Millisecond)
			if b.led(first, second) {
				led[b.led(first)] = true
			}
		}
		require.Len(t, led, 2)
		require.LessOrEqual(t, len(of[event.LeaderChanged](first)), 2*12, "each for some ten seconds")
		allow()
		b.until("all goes on", func() bool { return b.spread(8, "a", "b") })
	})
}

// Who is alone has nobody to hand over to.
func TestALeaderThatIsAloneGoesOn(t *testing.T) {
	inBubble(t, func(b *bed) {
		m := b.join("a", at(0))
		b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
		before := len(of[event.LeaderChanged](m))
		b.lacking("a", b.job.Ledger("a"))
		b.change(func(f *Facts) { f.Total = 8 }, m)
		<-time.After(time.Minute)
		require.Len(t, of[event.LeaderChanged](m), before)
		b.mended()
		b.until("the items are assigned anew", func() bool { return b.spread(8, "a") })
	})
}
