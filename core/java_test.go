package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// java1 is an instance of ElasticJob itself.
const java1 = "127.0.0.9@-@4711"

// A java acts as an instance of ElasticJob does, with a session of its own.
type java struct {
	b   *bed
	of  *instance
	ses registry.Session
}

func (b *bed) java(of *instance) *java {
	b.Helper()
	return &java{b: b, of: of, ses: b.open(of)}
}

func (j *java) commit(ops ...registry.Op) {
	j.b.Helper()
	_, err := j.ses.Commit(j.b.Context(), ops...)
	require.NoError(j.b, err)
}

// joins registers it.
func (j *java) joins() *java {
	j.b.Helper()
	at := j.b.path(j.of, "instances/"+java1)
	require.NoError(j.b, registry.EnsurePath(j.b.Context(), j.ses, at[:strings.LastIndexByte(at, '/')]))
	j.commit(registry.CreateEphemeral(at, []byte("jobInstanceId: "+java1+"\nserverIp: 127.0.0.9\n")))
	return j
}

// leads takes the lead as ElasticJob does where it saw nobody lead: whoever has it loses its
// node, and others may be faster.
func (j *java) leads() *java {
	j.b.Helper()
	at := j.b.path(j.of, "leader/election/instance")
	require.NoError(j.b, registry.EnsurePath(j.b.Context(), j.ses, at[:strings.LastIndexByte(at, '/')]))
	j.b.until("it leads", func() bool {
		_, _ = j.ses.Commit(j.b.Context(), registry.Delete(at, registry.AnyVersion))
		_, err := j.ses.Commit(j.b.Context(), registry.CreateEphemeral(at, []byte(java1)))
		return err == nil
	})
	return j
}

// shards gives it every item.
func (j *java) shards(total int) {
	j.b.Helper()
	for n := range total {
		j.commit(registry.Set(j.owner(n), []byte(java1), registry.AnyVersion))
	}
}

func (j *java) owner(n int) string { return j.b.path(j.of, fmt.Sprintf("sharding/%d/instance", n)) }

// owners are the instances that the items' nodes name, "" for none.
func (j *java) owners(total int) (ids []string) {
	for n := range total {
		ids = append(ids, j.b.value(j.b.store(j.of), j.owner(n)))
	}
	return ids
}

// dies ends its session.
func (j *java) dies() {
	j.b.Helper()
	require.NoError(j.b, j.ses.Close(context.Background()))
}

// warned reports whether the instance told a Warning that holds all of these.
func warned(in *instance, words ...string) bool {
	return slices.ContainsFunc(of[event.Warning](in), func(e event.Warning) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Problem, w) })
	})
}

// Finding E 1: a job that ElasticJob runs is refused, and left as it is; what to do is said,
// and there is an option to join all the same.
func TestFindingE1AJobThatElasticJobRunsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		come func(*java)
		says string
	}{
		"an instance": {func(j *java) { j.joins() }, "/instances: ElasticJob's instance " + java1 + " is registered"},
		"a leader":    {func(j *java) { j.leads() }, "/leader/election/instance: ElasticJob's instance " + java1 + " leads this job"},
		"both":        {func(j *java) { j.joins().leads() }, java1},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bed) {
				seed := b.start("seed", newWitness(), everySecond)
				seed.stop(b)
				j := b.java(seed)
				c.come(j)
				cfg := everySecond
				cfg.Shards, cfg.Overwrite = 7, true
				w := newWitness()
				a := b.prepare("a", w, cfg)
				require.NoError(b, a.Add(core.JobFunc(func(context.Context, core.Shard) error { return nil }),
					core.JobConfig{Name: "other", Cron: "* * * * * ?", Shards: 1}))
				err := a.Start(b.Context())
				require.ErrorIs(b, err, core.ErrConfig)
				require.ErrorContains(b, err, c.says)
				require.ErrorContains(b, err, "stop ElasticJob's instances of this job and start again, or join all the same with core.WithElasticJob")
				require.Equal(b, core.PhaseFailed, a.State().Jobs[0].Phase)
				require.Equal(b, core.PhaseRunning, a.State().Jobs[1].Phase)
				ses := b.open(seed)
				require.Contains(b, b.value(ses, b.path(seed, "config")), "shardingTotalCount: 4")
				ids, err := ses.Children(b.Context(), b.path(seed, "instances"))
				require.NoError(b, err)
				require.Subset(b, []string{java1}, ids)
				a.stop(b)
				require.Zero(b, w.count())

				cfg = everySecond
				d := b.start("d", w, cfg, core.WithElasticJob())
				b.until("it is told", func() bool { return warned(d, java1) })
				j.dies()
				b.until("it fires", func() bool { return w.count() >= 8 })
				d.stop(b)
				require.Empty(b, w.doubled())
			})
		})
	}
}

// What is left of an instance of ElasticJob is none that lives.
func TestANodeThatElasticJobLeftBehindRefusesNobody(t *testing.T) {
	inBubble(t, func(b *bed) {
		seed := b.start("seed", newWitness(), everySecond)
		b.create(seed, b.path(seed, "instances/"+java1), "")
		seed.stop(b)
		w := newWitness()
		b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
	})
}

// One that comes while an instance prepares is refused too.
func TestElasticJobComesWhileAnInstancePrepares(t *testing.T) {
	for _, made := range []bool{false, true} {
		t.Run(fmt.Sprint("another made the job: ", made), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w, cfg := newWitness(), everySecond
				if made {
					seed := b.start("seed", newWitness(), everySecond)
					seed.stop(b)
					cfg.Shards, cfg.Overwrite = 7, true // so that there is something to write
				}
				a := b.prepare("a", w, cfg)
				var j *java
				a.gate.hold(func([]registry.Op) {
					if j == nil {
						j = b.java(a).joins()
					}
				})
				require.ErrorContains(b, a.Start(b.Context()), java1+" is registered")
				pause(3 * time.Second)
				require.NotNil(b, j)
				require.Zero(b, w.count())
				require.Len(b, of[event.Stopped](a), 1, "it is told once")
			})
		})
	}
}

// One that comes later is told at once, and once; while it does not lead, everything goes on.
func TestElasticJobThatComesLaterIsTold(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		require.False(b, warned(a, java1))
		j := b.java(a).joins()
		b.until("it is told", func() bool { return warned(a, java1, "is registered for this job") })
		before := w.count()
		b.until("fires go on", func() bool { return w.count() >= before+8 })
		j.dies()
		a.stop(b)
		require.Len(b, of[event.Warning](a), 1)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

// Why ElasticJob's guarantee nodes are not written: while one of ours leads its instances have no
// items, so that no listener of theirs counts; what ours wrote would count when they lead.
func TestNothingIsWrittenForElasticJobsOnceListeners(t *testing.T) {
	inBubble(t, func(b *bed) {
		seed := b.start("seed", newWitness(), everySecond)
		seed.stop(b)
		b.setConfig(seed, "jobName: hello", "jobListenerTypes:\n- once\njobName: hello")
		j := b.java(seed).joins()
		w := newWitness()
		a := b.start("a", w, everySecond, core.WithElasticJob())
		b.until("it fires", func() bool { return allOwned(4, a) && w.count() >= 12 })
		require.NotContains(b, j.owners(4), java1)
		require.Empty(b, b.nodes(b.store(a), b.path(a, "guarantee")))
	})
}

// While ElasticJob leads nothing begins beside it, and that is said. When one of ours leads
// again the fires until then are told, none is made up, and the items' nodes are ours.
func TestFindingE1WhileElasticJobLeadsNothingBegins(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.start("a", w, everySecond), b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("both fire", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 && w.count() >= 8 })
		j := b.java(a).joins().leads()
		for _, in := range []*instance{a, c} {
			b.until("it is told", func() bool { return warned(in, java1+" leads the job") && strings.Contains(in.job().Disabled, java1) })
		}
		j.shards(4)
		pause(1200 * time.Millisecond)
		before := w.count()
		last := w.last()
		pause(4 * time.Second)
		require.Equal(b, before, w.count(), "something begins beside ElasticJob")
		back := time.Now()
		j.dies()
		b.until("they fire again", func() bool { return w.count() >= before+8 })
		b.until("the items' nodes are ours", func() bool {
			owners := j.owners(4)
			return allOwned(4, a, c) && !slices.Contains(owners, java1) && !slices.Contains(owners, "")
		})
		a.stop(b)
		c.stop(b)
		require.NotEmpty(b, skips(a, event.SkipElasticJob))
		require.NotEmpty(b, skips(c, event.SkipElasticJob))
		for _, due := range w.times(func(s core.Shard) bool { return s.Due.After(last) }) {
			require.True(b, due.After(back.Add(-time.Second)), "%v was made up", due)
		}
		h := b.history(w, a, c)
		require.Empty(b, h.wrong())
		require.Empty(b, w.doubled())
		require.Empty(b, h.open(1, 4, last, back))
	})
}

// Nothing is made up from before a change of leader from ElasticJob, though nobody of ours
// was there to see it.
func TestFindingE1NothingIsMadeUpFromBeforeElasticJobLed(t *testing.T) {
	for _, java := range []bool{false, true} {
		t.Run(fmt.Sprint("ElasticJob: ", java), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				a := b.start("a", w, everySecond)
				b.until("it fires", func() bool { return w.count() >= 8 })
				a.stop(b)
				last := w.last()
				pause(2 * time.Second)
				if java {
					j := b.java(a).joins().leads()
					j.shards(4)
					pause(2 * time.Second)
					j.dies()
				}
				pause(time.Second)
				start := time.Now()
				c := b.start("c", w, everySecond)
				ran := w.count()
				b.until("it fires", func() bool { return w.count() >= ran+12 })
				c.stop(b)
				made := w.times(func(s core.Shard) bool { return s.Due.After(last) && s.Due.Before(start) })
				h := b.history(w, a, c)
				require.Empty(b, h.wrong())
				if java {
					require.Empty(b, made)
					require.NotEmpty(b, skips(c, event.SkipElasticJob))
				} else {
					require.NotEmpty(b, made)
				}
				require.Empty(b, h.open(1, 4, last, start))
			})
		})
	}
}

// While nobody leads after ElasticJob, what it assigned last still runs there.
func TestNothingBeginsUntilOneOfOursLeadsAfterElasticJob(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		j := b.java(a).joins().leads()
		b.until("it is told", func() bool { return warned(a, "leads the job") })
		at := b.path(a, "leader/election/instance")
		a.gate.decide(func(ops []registry.Op) fate {
			if slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Path == at && op.Kind == registry.OpCreateEphemeral }) {
				return deniedWhole
			}
			return deliver
		})
		pause(1200 * time.Millisecond)
		ran := w.count()
		j.commit(registry.Delete(at, registry.AnyVersion))
		pause(5 * time.Second)
		require.Equal(b, ran, w.count())
		require.Empty(b, a.job().Leader)
		a.gate.decide(nil)
		b.until("it fires", func() bool { return w.count() >= ran+4 })
		a.stop(b)
		require.Empty(b, b.history(w, a).wrong())
	})
}

// The items of an owner that died while ElasticJob led go on from there, though nothing in the
// registry says that it led.
func TestWhatAnOwnerOwedThatDiedWhileElasticJobLedIsNotMadeUp(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a, c := b.start("a", w, everySecond), b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("both fire", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 && w.count() >= 8 })
		j := b.java(a).joins().leads()
		b.until("it is told", func() bool { return warned(a, "leads the job") && warned(c, "leads the job") })
		last := w.last()
		b.crash(c)
		pause(3 * time.Second)
		back := time.Now()
		j.dies()
		b.until("the other has all", func() bool { return len(a.job().Items) == 4 })
		ran := w.count()
		b.until("it fires", func() bool { return w.count() >= ran+8 })
		a.stop(b)
		require.Empty(b, w.times(func(s core.Shard) bool { return s.Due.After(last) && s.Due.Before(back) }))
		h := b.history(w, a)
		require.Empty(b, h.wrong())
		require.Empty(b, h.open(1, 4, last, back))
	})
}

// A leader whose clock is ahead does not silence the others until then.
func TestAfterElasticJobAClockFarAheadSkipsNothingToCome(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		at := b.own(a, "inforce/schedule")
		s, err := layout.UnmarshalSchedule([]byte(b.value(b.store(a), at)))
		require.NoError(b, err)
		s.Floor = time.Now().Add(20 * time.Minute)
		b.set(a, at, string(layout.MarshalSchedule(s)))
		before := w.count()
		b.until("it fires on", func() bool { return w.count() >= before+12 })
		a.stop(b)
		require.Empty(b, skips(a, event.SkipElasticJob))
		require.Empty(b, w.missing(4, time.Second))
	})
}

// Beside an instance of ElasticJob the leader's work goes on: an instance without a ledger is
// none whose records are missing.
func TestBesideElasticJobATotalIsChanged(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		var j *java
		a.gate.hold(func(ops []registry.Op) { // between two steps of the leader
			if j == nil && slices.ContainsFunc(ops, func(op registry.Op) bool { return strings.HasSuffix(op.Path, "/inforce/base") }) {
				j = b.java(a).joins()
			}
		})
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
		b.until("all items are owned", func() bool { return allOwned(6, a) })
		require.NotNil(b, j)
		before := w.count()
		b.until("it fires", func() bool { return w.count() >= before+6 })
		b.setConfig(a, "shardingTotalCount: 6", "shardingTotalCount: 3")
		b.until("again", func() bool { return allOwned(3, a) })
		require.NotContains(b, j.owners(3), java1)
		a.stop(b)
		require.Empty(b, w.doubled())
	})
}

// Finding E 4: what says who owns an item is made right again, by reconciliation and by
// whoever is elected.
func TestFindingE4TheItemsInstanceNodesAreMended(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.start("a", w, everySecond), b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("both fire", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 && w.count() >= 8 })
		j := b.java(a)
		right := j.owners(4)
		spoil := func() {
			b.set(a, j.owner(0), "127.0.0.8@-@dead-aaaaaaaaaa")
			b.remove(a, j.owner(1))
			b.remove(a, j.owner(2))
			b.remove(a, b.path(a, "sharding/2"))
			require.NotEqual(b, right, j.owners(4))
		}
		mended := func() bool { return slices.Equal(right, j.owners(4)) }
		spoil()
		b.remove(a, b.path(a, "leader/election/instance"))
		b.until("it is mended by the election", mended)
		if b.fake {
			spoil()
			pause(10*time.Minute + time.Second)
			require.True(b, mended(), "by reconciliation: %v", j.owners(4))
		}
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.doubled())
	})
}

// Finding E 2: the class stands at the root of a job that Go makes, where one is given.
func TestFindingE2TheClassIsWrittenToTheRoot(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := core.JobConfig{Name: "hello", Cron: "0 0 0 1 1 ? 2099", Shards: 1}
		a := b.start("a", newWitness(), cfg)
		ses := b.open(a)
		root := strings.TrimSuffix(b.path(a, ""), "/")
		require.Empty(b, b.value(ses, root))
		cfg.Class = "com.acme.Hello"
		c := b.start("c", newWitness(), cfg) // it joins, and changes nothing
		require.Empty(b, b.value(ses, root))
		cfg.Name = "classed"
		d := b.start("d", newWitness(), cfg)
		at := strings.TrimSuffix(b.path(d, ""), "/")
		require.Equal(b, "com.acme.Hello", b.value(ses, at))
		cfg.Name = "begun" // somebody has made the directory
		require.NoError(b, registry.EnsurePath(b.Context(), ses, "/"+b.ns+"/begun"))
		e := b.start("e", newWitness(), cfg)
		require.Equal(b, "com.acme.Hello", b.value(ses, strings.TrimSuffix(b.path(e, ""), "/")))
		for _, in := range []*instance{a, c, d, e} {
			in.stop(b)
		}
	})
}

// Finding E 3: a configuration of ElasticJob 2 is refused, with what to change.
func TestFindingE3AConfigurationOfElasticJob2IsRefused(t *testing.T) {
	onEach(t, func(b *bed) {
		seed := b.start("seed", newWitness(), everySecond)
		seed.stop(b)
		const text = `{"jobName":"hello","jobClass":"com.acme.Hello","jobType":"SIMPLE","cron":"* * * * * ?","shardingTotalCount":4,` +
			`"failover":false,"misfire":true,"monitorExecution":true,"monitorPort":-1,"streamingProcess":false}`
		b.set(seed, b.path(seed, "config"), text)
		w := newWitness()
		err := b.prepare("a", w, everySecond).Start(b.Context())
		require.ErrorIs(b, err, core.ErrConfig)
		require.ErrorContains(b, err, "was written by ElasticJob 2")
		require.ErrorContains(b, err, "change by hand: jobClass (remove it), jobType (remove it)")
		require.JSONEq(b, text, b.value(b.store(seed), b.path(seed, "config")))
		require.Zero(b, w.count())
	})
}

// Finding E 7: what has no effect in a configuration of ElasticJob's is one Warning.
func TestFindingE7WhatHasNoEffectIsOneWarning(t *testing.T) {
	inBubble(t, func(b *bed) {
		seed := b.start("seed", newWitness(), everySecond)
		seed.stop(b)
		b.set(seed, b.path(seed, "config"), "jobName: hello\ncron: '* * * * * ?'\nshardingTotalCount: 4\nmonitorExecution: true\nmaxTimeDiffSeconds: 5\n"+
			"jobErrorHandlerType: DINGTALK\njobListenerTypes: [once]\nprops:\n  dingtalk.webhook: sesame\n  mine: '1'\n"+
			"jobExtraConfigurations:\n- !!org.apache.shardingsphere.elasticjob.tracing.yaml.YamlTracingConfiguration\n  type: RDB\n")
		a := b.start("a", newWitness(), core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 4, Monitor: core.MonitorOn})
		b.until("it fires", func() bool { return len(of[event.FireEnded](a)) > 0 }) // what was told before is seen then
		var found []event.Warning
		for _, e := range of[event.Warning](a) {
			if strings.Contains(e.Problem, "no effect here") {
				found = append(found, e)
			}
		}
		require.Len(b, found, 1)
		for _, word := range []string{"jobErrorHandlerType", "jobListenerTypes", "jobExtraConfigurations", "props.dingtalk.webhook"} {
			require.Contains(b, found[0].Problem, word)
		}
		require.NotContains(b, found[0].Problem, "sesame")
		require.NotContains(b, found[0].Problem, "mine")
	})
}
