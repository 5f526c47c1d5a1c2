package leading

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// runs has the ledger of an instance say that it runs its items.
func (b *bed) runs(id string) []int {
	b.Helper()
	l := b.ledger(id)
	for _, n := range l.Numbers() {
		rec, _ := l.Get(n)
		rec.Run = rec.Through
		l.Set(n, rec)
	}
	b.commit(registry.Set(b.job.Ledger(id), l.Encode(), registry.AnyVersion))
	return l.Numbers()
}

// What an instance ran that is gone, and to which its items are bound, is cut, and told by the
// leader: once, whatever becomes of its commits. Nobody else is given the items, and their nodes
// say whose they are.
func TestWhatIsCutOfBoundItemsIsTold(t *testing.T) {
	for name, fate := range map[string]memory.Fate{
		"all goes well": memory.Deliver, "the answer is lost": memory.AnswerLost, "the request is lost": memory.RequestLost, "refused": memory.Refused,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				a := b.join("a", at(0))
				b.until("leads", func() bool { return b.led(a) })
				c := b.join("c", at(0))
				b.until("spread", func() bool { return b.spread(6, "a", "c") && b.ledger("c").Len() == 3 })
				b.change(func(f *Facts) { f.Static = true }, a)
				own := b.runs("c")
				var hit atomic.Int64
				b.srv.Intercept(func(_ string, ops []registry.Op) memory.Fate {
					if slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Path == b.job.Ledger("c") }) && hit.Add(1)%2 == 1 {
						return fate
					}
					return memory.Deliver
				})
				require.True(b, b.srv.Expire(c.ses.ID()))
				b.until("it is told", func() bool { return len(of[event.ItemCut](a)) >= 3 })
				<-time.After(10 * time.Second)
				var told []int
				for _, e := range of[event.ItemCut](a) {
					require.Equal(b, "c", e.Instance)
					require.Equal(b, event.CutPlain, e.Reason)
					told = append(told, e.Item)
				}
				slices.Sort(told)
				require.Equal(b, own, told)
				require.GreaterOrEqual(b, hit.Load(), int64(2), "recorded, then told and taken out")
				require.Equal(b, own, b.ledger("c").Numbers())
				for n, rec := range b.ledger("c").All() {
					require.Equal(b, ledger.Item{Through: rec.Through}, rec, n)
				}
				require.Equal(b, 3, b.ledger("a").Len())
				a.mu.Lock()
				require.True(b, slices.ContainsFunc(a.waits, func(w string) bool { return strings.Contains(w, "are bound (static sharding)") }))
				a.mu.Unlock()

				b.commit(registry.Set(b.job.ItemInstance(own[0]), []byte("x"), registry.AnyVersion))
				a.Tidy()
				a.Look()
				b.until("its node is mended", func() bool { return string(b.get(b.job.ItemInstance(own[0])).Value) == "c" })
			})
		})
	}
}

// The leader dies between the record and the telling: the next one tells.
func TestTheNextLeaderTellsWhatIsCutOfBoundItems(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.join("a", at(0))
		b.until("leads", func() bool { return b.led(a) })
		c, d := b.join("c", at(0)), b.join("d", at(0))
		b.until("spread", func() bool { return b.spread(6, "a", "c", "d") && b.ledger("c").Len() == 2 })
		b.change(func(f *Facts) { f.Static = true }, a)
		own := b.runs("c")
		b.srv.Intercept(func(_ string, ops []registry.Op) memory.Fate {
			noted := false
			for _, rec := range b.ledger("c").All() {
				noted = noted || rec.Told != ledger.Told{}
			}
			if noted && len(ops) > 1 && ops[0].Path == b.job.Life("a") {
				return memory.RequestLost
			}
			return memory.Deliver
		})
		require.True(b, b.srv.Expire(c.ses.ID()))
		b.until("it is recorded", func() bool {
			rec, _ := b.ledger("c").Get(own[0])
			return rec.Told != ledger.Told{}
		})
		require.True(b, b.srv.Expire(a.ses.ID()))
		b.until("the other has told", func() bool { return len(of[event.ItemCut](d)) == 2 })
		<-time.After(5 * time.Second)
		require.Len(b, of[event.ItemCut](d), 2)
		require.Equal(b, own, b.ledger("c").Numbers())
	})
}
