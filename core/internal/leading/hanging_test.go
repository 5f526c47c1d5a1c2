package leading

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// protects has the registry refuse members what deletes a node, or one below it, as it does where somebody has taken
// the right away.
func (b *bed) protects(paths ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = func(_ string, ops []registry.Op) error {
		for i, op := range ops {
			for _, p := range paths {
				if op.Kind == registry.OpDelete && (op.Path == p || strings.HasPrefix(op.Path, p+"/")) {
					return &registry.CommitError{Index: i, Op: op, Err: registry.ErrDenied}
				}
			}
		}
		return nil
	}
}

// tree makes a node, and those above it that are missing.
func (b *bed) tree(path string) {
	b.Helper()
	require.NoError(b, registry.EnsurePath(b.Context(), b.stranger, path))
}

// Whatever somebody has made below the ledger of an instance that is gone, its items have an owner at once, the ledger
// goes, and the leader stays. Where it cannot be deleted it is left, which one Warning says, and everything goes on.
func TestNodesBelowTheLedgerOfTheDead(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprint(7 + i)
	}
	for name, below := range map[string][]string{
		"one that is no page":               {"notes"},
		"a tree":                            {"notes/of/mine", "notes/of/yours", "notes/x"},
		"a page that no ledger lists":       {"3"},
		"such a page with nodes of its own": {"3/x/y", "03"},
		"many pages":                        many,
	} {
		for _, left := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, protected: %v", name, left), func(t *testing.T) {
				inBubble(t, func(b *bed) {
					m, other := b.pair()
					third := b.join("c", at(0))
					b.until("all have items", func() bool { return b.spread(6, "a", "b", "c") && b.ledger("c").Len() == 2 })
					dead := b.job.Ledger("b")
					for _, name := range below {
						b.tree(dead + "/" + name)
					}
					if left {
						b.protects(dead + "/" + strings.Split(below[0], "/")[0])
					}
					other.end()
					took := b.until("its items have an owner", func() bool { return b.spread(6, "a", "c") })
					require.Less(t, took, time.Second)
					if !left {
						took = b.until("the ledger is gone", func() bool { return !b.get(dead).Exists() })
						require.Less(t, took, 20*time.Second)
					}
					<-time.After(10 * time.Second)
					b.change(func(f *Facts) { f.Total = 7 }, m)
					took = b.until("the total changes", func() bool {
						return b.finish(m, third) && b.spread(7, "a", "c") && b.epoch().Assigned
					})
					require.Less(t, took, time.Second)
					<-time.After(20 * time.Second)
					require.True(t, b.led(m), "it has handed over")
					require.Empty(t, b.flags())
					warned := of[event.Warning](m, third)
					if !left {
						require.Empty(t, warned)
						return
					}
					require.True(t, b.get(dead).Exists())
					require.Zero(t, b.ledger("b").Len())
					require.Len(t, warned, 1)
					require.Contains(t, warned[0].Problem, dead)
					require.ErrorIs(t, warned[0].Err, registry.ErrDenied)
					m.Reconcile()
					<-time.After(10 * time.Second)
					require.Len(t, of[event.Warning](m, third), 1, "it is said once")
					b.mended()
					m.Reconcile()
					b.until("it is allowed, and goes", func() bool { return !b.get(dead).Exists() })
				})
			})
		}
	}
}

// flags are the nodes that say to members of ElasticJob's that items are being assigned.
func (b *bed) flags() []string {
	names, err := b.stranger.Children(b.Context(), b.job.ShardingState())
	require.NoError(b, err)
	return names
}

// The same of a page that the ledger of the dead lists.
func TestNodesBelowAPageOfTheDead(t *testing.T) {
	for _, left := range []bool{false, true} {
		t.Run(fmt.Sprint("protected: ", left), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				m, other := b.pair()
				dead := b.job.Ledger("b")
				node, led := b.get(dead), b.ledger("b")
				for n, rec := range led.Clone().All() {
					rec.Through = time.Now().Add(time.Duration(n) * time.Millisecond).UTC()
					led.Set(n, rec)
				}
				w := led.Write(int64(node.Version)+1, ledger.Room{Value: 300, Ops: 9, Bytes: 9_000})
				require.NotEmpty(t, w.Pages)
				ops := []registry.Op{registry.Set(dead, w.Root, node.Version)}
				for _, p := range w.Pages {
					ops = append(ops, registry.Create(p.Node(dead), p.Value))
				}
				b.commit(ops...)
				b.tree(w.Pages[0].Node(dead) + "/notes/x")
				if left {
					b.protects(w.Pages[0].Node(dead) + "/notes")
				}
				other.end()
				took := b.until("its items have an owner", func() bool { return b.spread(6, "a") })
				require.Less(t, took, time.Second)
				<-time.After(30 * time.Second)
				require.True(t, b.led(m))
				require.Equal(t, left, b.get(dead).Exists())
				require.LessOrEqual(t, len(of[event.Warning](m)), 2)
				if !left {
					require.Empty(t, of[event.Warning](m))
				}
			})
		})
	}
}

// What is answered, and what is removed afterwards, likewise: nodes below it are in nobody's way.
func TestNodesBelowWhatIsAnswered(t *testing.T) {
	for _, left := range []bool{false, true} {
		t.Run(fmt.Sprint("protected: ", left), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.change(func(f *Facts) { f.Asked = true })
				m, other := b.pair()
				ask := func(id string) {
					b.commit(registry.Create(b.job.Request(id), layout.MarshalRequest(layout.Request{Items: "0"})))
				}
				all := []string{
					b.job.Request("hung"), b.job.Kill("hung"), b.job.Run(5), b.job.RunResult(5, "x"), b.job.Trigger() + "/a", b.job.Necessary(),
				}
				if left {
					var notes []string
					for _, of := range all {
						notes = append(notes, of+"/notes")
					}
					b.protects(notes...)
				}
				<-time.After(20 * time.Second)
				over := layout.Run{Number: 5, Request: "over", At: time.Now(), Items: "0", Total: 6, Closed: time.Now()}
				hung := []registry.Op{
					registry.Create(all[0], layout.MarshalRequest(layout.Request{Items: "0"})),
					registry.Create(all[1], layout.MarshalKill(layout.Kill{Item: 1, Due: time.Now()})),
					registry.Create(all[2], layout.MarshalRun(over)),
					registry.Create(b.job.Runs(), []byte("5")), registry.Create(b.job.RunResults(5), nil), registry.Create(all[3], nil),
					registry.Create(all[4], nil), registry.Create(all[5], nil),
				}
				for _, of := range all {
					hung = append(hung, registry.Create(of+"/notes", nil), registry.Create(of+"/notes/x", nil))
				}
				b.commit(hung...)
				m.Answer()
				<-time.After(5 * time.Second)
				ask("free")
				m.Answer()
				took := b.until("a request is answered", func() bool { return b.runOf("free") != nil })
				require.Less(t, took, time.Second)
				other.end()
				took = b.until("the dead has none", func() bool { return b.spread(6, "a") })
				require.Less(t, took, time.Second)
				<-time.After(12 * time.Minute)
				m.Reconcile()
				<-time.After(time.Minute)
				require.True(t, b.led(m))
				names, err := b.stranger.Children(t.Context(), b.job.InForce())
				require.NoError(t, err)
				if !left {
					require.Empty(t, of[event.Warning](m, other))
					require.NotContains(t, names, "kill@hung")
					require.NotContains(t, names, "request@hung")
					require.NotContains(t, names, "run@5")
					require.NotNil(t, b.runOf("hung"), "it was accepted")
					require.False(t, b.get(b.job.RunResults(5)).Exists())
					require.False(t, b.get(b.job.Trigger()+"/a").Exists())
					require.Empty(t, b.flags())
					return
				}
				require.Contains(t, names, "request@hung")
				require.Nil(t, b.runOf("hung"), "what stands would be accepted again and again")
				warned := of[event.Warning](m)
				require.Len(t, warned, len(all), "%v", warned)
			})
		})
	}
}

// runOf is the run of a request, nil where there is none.
func (b *bed) runOf(request string) *layout.Run {
	names, err := b.stranger.Children(b.Context(), b.job.InForce())
	require.NoError(b, err)
	for _, name := range names {
		if n, is := layout.RunNumber(name); is {
			if r, err := layout.UnmarshalRun(b.get(b.job.Run(n)).Value); err == nil && r.Request == request {
				return &r
			}
		}
	}
	return nil
}

// What stands where the leader's node belongs is removed with all that is below it: else nobody would lead.
func TestNodesBelowTheLeadersNode(t *testing.T) {
	inBubble(t, func(b *bed) {
		m := b.join("a", at(time.Millisecond))
		b.until("it leads", func() bool { return b.led(m) })
		b.commit(registry.Delete(b.job.Leader(), registry.AnyVersion), registry.Delete(b.job.Term(), registry.AnyVersion))
		for _, p := range []string{b.job.Leader(), b.job.Term()} {
			b.commit(registry.Create(p, []byte("x")))
			for i := range 100 {
				b.commit(registry.Create(fmt.Sprint(p, "/", i), nil), registry.Create(fmt.Sprint(p, "/", i, "/notes"), nil))
			}
		}
		took := b.until("one leads again", func() bool { return b.led(m) && b.spread(6, "a") })
		require.Less(t, took, time.Second)

		b.protects(b.job.Leader() + "/notes")
		b.commit(registry.Delete(b.job.Leader(), registry.AnyVersion))
		b.commit(registry.Create(b.job.Leader(), []byte("x")), registry.Create(b.job.Leader()+"/notes", nil))
		<-time.After(time.Minute)
		warned := of[event.Warning](m)
		require.NotEmpty(t, warned)
		require.ErrorIs(t, warned[len(warned)-1].Err, registry.ErrDenied)
		require.Less(t, len(warned), 12)
		b.mended()
		took = b.until("one leads again", func() bool { return b.led(m) })
		require.Less(t, took, 3*time.Second)
	})
}

// Of the items above the total, and of what ElasticJob leaves, everything goes that can go.
func TestNodesBelowWhatIsTidied(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.change(func(f *Facts) { f.MakesUp, f.Asked = true, true })
		m := b.join("a", at(0))
		b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
		b.protects(b.job.Item(8)+"/notes", b.job.Misfire(3)+"/y")
		<-time.After(20 * time.Second)
		for n := 6; n < 60; n++ {
			b.tree(fmt.Sprint(b.job.Item(n), "/notes/x"))
		}
		for i := range 90 {
			b.tree(fmt.Sprint(b.job.Item(7), "/many/", i))
		}
		b.tree(b.job.FailoverItem(3) + "/x")
		b.tree(b.job.FailoverItem(4))
		b.tree(b.job.Misfire(1) + "/x")
		b.tree(b.job.Misfire(2))
		b.tree(b.job.Misfire(3) + "/y")
		m.FailoverOff()
		m.Reconcile()
		<-time.After(time.Minute)
		names, err := b.stranger.Children(t.Context(), b.job.Sharding())
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"0", "1", "2", "3", "4", "5", "8"}, names)
		require.False(t, b.get(b.job.Misfire(1)).Exists())
		require.False(t, b.get(b.job.Misfire(2)).Exists())
		require.True(t, b.get(b.job.Misfire(3)).Exists())
		require.False(t, b.get(b.job.FailoverItem(3)).Exists())
		require.False(t, b.get(b.job.FailoverItem(4)).Exists())
		warned := of[event.Warning](m)
		require.Len(t, warned, 2, "%v", warned)
		require.True(t, b.led(m))
	})
}
