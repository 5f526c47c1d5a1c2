package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// Finding 8: one target that may not be watched ended all watching of the process.
func TestFinding8ADeniedWatchStopsNoOtherAndHeals(t *testing.T) {
	for name, c := range map[string]struct {
		below string
		early bool // denied before anything is watched
	}{
		"an item, from the start": {"sharding/0/disabled", true},
		"an item, later":          {"sharding/0/disabled", false},
		"the configuration":       {"config", false},
		"the leader":              {"leader/election/instance", false},
		"instances":               {"instances", false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				a := b.prepare("a", w, everySecond)
				denied := b.path(a, c.below)
				if c.early {
					a.gate.denyWatch(denied, true)
				}
				require.NoError(b, a.Start(b.Context()))
				if c.early {
					b.until("the others fire", func() bool { return w.count() >= 6 })
					require.Empty(b, w.times(func(s core.Shard) bool { return s.Item == 0 }), "whether it is disabled is not known")
				} else {
					b.until("all fire", func() bool { return allOwned(4, a) && w.count() >= 8 })
				}
				var goes *instance
				if c.below == "instances" {
					goes = b.start("e", w, everySecond)
					b.until("both share", func() bool { return len(a.job().Instances) == 2 && allOwned(4, a, goes) })
				}
				if !c.early {
					a.gate.denyWatch(denied, true)
				}
				b.until("it is told", func() bool {
					return slices.ContainsFunc(of[event.Warning](a), func(e event.Warning) bool { return errors.Is(e.Err, registry.ErrDenied) })
				})
				session := a.State().Session
				pause(3 * time.Second)
				// Another target goes on: it sees that an item is disabled.
				b.set(a, b.path(a, "sharding/3/disabled"), "")
				b.until("item 3 is disabled", func() bool { return len(a.job().DisabledItems) == 1 })
				// And what is not seen now is, once it may be.
				var d *instance
				switch c.below {
				case "config":
					b.setConfig(a, "jobParameter: ''", "jobParameter: after")
				case "instances":
					goes.stop(b)
					d = b.start("d", w, everySecond)
				case "sharding/0/disabled":
					b.set(a, denied, "")
				}
				a.gate.denyWatch(denied, false)
				switch c.below {
				case "config":
					b.until("the change is in force", func() bool { return len(of[event.ConfigChanged](a)) == 1 })
				case "instances":
					b.until("both share", func() bool { return len(a.job().Instances) == 2 && allOwned(4, a, d) && len(a.job().Items) == 2 })
				case "sharding/0/disabled":
					b.until("it is seen", func() bool { return len(a.job().DisabledItems) == 2 })
					b.remove(a, denied)
				default:
					pause(2 * time.Second)
					b.remove(a, denied)
					b.until("it leads anew", func() bool {
						led := of[event.LeaderChanged](a)
						return len(led) >= 3 && led[len(led)-1].Self
					})
				}
				b.remove(a, b.path(a, "sharding/3/disabled"))
				ran := w.count()
				b.until("all fire", func() bool {
					return w.count() >= ran+12 && len(w.times(func(s core.Shard) bool { return s.Item == 0 })) > 0
				})
				require.Equal(b, session, a.State().Session)
				require.Empty(b, w.doubled())
			})
		})
	}
}

// nodesOf are the nodes by which an instance takes part.
func (b *bed) nodesOf(in *instance, leads bool) map[string]string {
	id := in.job().Instance
	nodes := map[string]string{
		"notice": b.own(in, "notices/"+id), "life": b.own(in, "lives/"+id), "ledger": b.own(in, "ledgers/"+id),
		"instance": b.path(in, "instances/"+id),
	}
	if leads {
		nodes["term"], nodes["leader"] = b.own(in, "term"), b.path(in, "leader/election/instance")
	}
	return nodes
}

// Finding 9: a node of the leader's registration, deleted from outside, left the job without
// a leader in the whole cluster.
func TestFinding9NodesDeletedFromOutsideAreMended(t *testing.T) {
	all := []string{"notice", "life", "ledger", "instance", "term", "leader"}
	for _, leads := range []bool{true, false} {
		names := all
		if !leads {
			names = all[:4]
		}
		for i, one := range names {
			for _, other := range names[i:] {
				name := one + " and " + other
				if one == other {
					name = one
				}
				who := map[bool]string{true: "leader", false: "follower"}[leads]
				t.Run(who+" "+name, func(t *testing.T) {
					inBubble(t, func(b *bed) { deleteNodes(b, leads, []string{one, other}) })
				})
			}
		}
	}
}

func deleteNodes(b *bed, leads bool, names []string) {
	cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 6, Concurrency: 6}
	w := newWitness()
	a := b.start("a", w, cfg)
	b.until("a leads", func() bool { return allOwned(6, a) && a.job().Leader == a.job().Instance })
	c := b.start("c", w, cfg)
	b.until("shared", func() bool { return allOwned(6, a, c) && len(c.job().Items) == 3 })
	pause(2500 * time.Millisecond)
	victim, other := a, c
	if !leads {
		victim, other = c, a
	}
	from, session := w.last(), victim.State().Session
	slow := victim.job().Items[2] // the newcomer need not wait for it
	w.holds(func(_ context.Context, s core.Shard) error {
		if s.Item == slow {
			pause(3300 * time.Millisecond)
		}
		return nil
	})
	b.until("an item runs", func() bool { return slices.Equal(victim.job().Running, []int{slow}) })
	w.holds(nil)
	pause(200 * time.Millisecond)
	nodes, ses := b.nodesOf(victim, leads), b.open(a)
	var ops []registry.Op
	for _, name := range slices.Compact(names) {
		ops = append(ops, registry.Delete(nodes[name], registry.AnyVersion))
	}
	_, err := ses.Commit(b.Context(), ops...)
	require.NoError(b, err)
	pause(50 * time.Millisecond)
	begun := time.Now()
	b.until("one leads, and all items are owned", func() bool {
		led := other.job().Leader
		return led != "" && (led == other.job().Instance || led == victim.job().Instance) && allOwned(6, a, c)
	})
	require.Less(b, time.Since(begun), 2*time.Second)
	d := b.start("d", w, cfg)
	begun = time.Now()
	b.until("a newcomer gets its share", func() bool { return len(d.job().Items) >= 2 && allOwned(6, a, c, d) })
	require.Less(b, time.Since(begun), 2*time.Second)
	pause(6500 * time.Millisecond)
	require.True(b, allOwned(6, a, c, d), "%+v %+v %+v", a.job(), c.job(), d.job())
	if shut := slices.Contains(names, "instance") && victim.job().Phase == core.PhaseStopped; !shut {
		require.Equal(b, core.PhaseRunning, victim.job().Phase)
		require.Len(b, victim.job().Items, 2)
	}
	require.Equal(b, session, victim.State().Session)
	end := w.last().Add(-2 * time.Second)
	for _, in := range []*instance{victim, other, d} {
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
		require.NoError(b, in.Stop(ctx))
		cancel()
	}
	h := b.history(w, a, c, d)
	require.Empty(b, w.doubled())
	require.Empty(b, h.cut)
	require.Empty(b, h.wrong())
	require.Empty(b, h.open(1, 6, from, end))
	require.NotContains(b, strings.Join(problems(a, c, d), "\n"), "records are lost")
}

func problems(ins ...*instance) []string {
	var lines []string
	for _, in := range ins {
		for _, e := range of[event.Warning](in) {
			lines = append(lines, e.Problem)
		}
	}
	return lines
}

// A directory that somebody has deleted, with all that is in it, is made again: by those that run the job, who go on
// soon, or by whoever comes, since of a job that is known not every node is looked at.
func TestADirectoryThatIsGoneIsMadeAgain(t *testing.T) {
	for _, below := range []string{
		"servers", "instances", "leader", "leader/election", "leader/sharding", "leader/failover", "sharding", "trigger",
		"own lives", "own ledgers", "own notices", "own inforce", "own rounds", "own ",
	} {
		for _, runs := range []bool{false, true} {
			if runs && below == "instances" {
				continue // which shuts all of them down
			}
			t.Run(fmt.Sprint(below, " while it runs: ", runs), func(t *testing.T) {
				inBubble(t, func(b *bed) {
					w := newWitness()
					calls := (&rounds{}).before(core.RoundListeners{})
					in := []*instance{b.start("seed", w, everySecond, calls)}
					b.until("it fires", func() bool { return w.count() >= 8 })
					if !runs {
						in[0].stop(b)
					} else {
						in = append(in, b.start("other", w, everySecond, calls))
						b.until("both have items", func() bool { return allOwned(4, in...) && len(in[1].job().Items) == 2 })
					}
					path := strings.TrimSuffix(b.path(in[0], below), "/")
					if name, own := strings.CutPrefix(below, "own "); own {
						path = strings.TrimSuffix(b.own(in[0], name), "/")
					}
					base := b.epochs(in[0])
					require.NoError(b, registry.DeleteTree(b.Context(), b.store(in[0]), path))
					before, begun := w.count(), time.Now()
					if !runs {
						in = []*instance{b.start("a", w, everySecond, calls)}
					}
					b.until("all fire", func() bool { return allOwned(4, in...) && w.count() >= before+12 })
					require.Less(b, time.Since(begun), 10*time.Second)
					require.Empty(b, w.doubled())
					require.NotContains(b, strings.Join(problems(in...), "\n"), "a request to the registry failed")
					if runs {
						require.Len(b, base(), 1, "the epoch goes on")
					}
				})
			})
		}
	}
}

// A watch that is slow shows that there was no configuration before the member wrote it. Only one that has stood can
// have been deleted.
func TestAConfigurationIsDeletedOnceItHasStood(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		in := b.prepare("a", w, everySecond)
		in.gate.lag(b.path(in, "config"))
		require.NoError(b, in.Start(b.Context()))
		b.until("it fires", func() bool { return w.count() >= 4 })
		in.gate.lag("")
		ses := b.open(in)
		_, err := ses.Commit(b.Context(), registry.Set(b.path(in, "servers/127.0.0.1"), nil, registry.AnyVersion))
		require.NoError(b, err)
		before := w.count()
		b.until("it fires again", func() bool { return w.count() > before })
		require.Empty(b, of[event.Warning](in))
		_, err = ses.Commit(b.Context(), registry.Delete(b.path(in, "config"), registry.AnyVersion))
		require.NoError(b, err)
		b.until("it is told", func() bool { return len(of[event.Warning](in)) > 0 })
		require.Contains(b, of[event.Warning](in)[0].Problem, "the configuration was deleted")
	})
}
