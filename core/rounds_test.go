package core_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// rounds notes for which rounds listeners were called, and what had ended by then.
type rounds struct {
	mu    sync.Mutex
	calls []core.Round
	hold  func(ctx context.Context, r core.Round) error
}

func (x *rounds) after(ctx context.Context, r core.Round) error {
	x.mu.Lock()
	x.calls = append(x.calls, r)
	hold := x.hold
	x.mu.Unlock()
	if hold != nil {
		return hold(ctx, r)
	}
	return nil
}

func (x *rounds) all() []core.Round {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.calls)
}

// listen is the option by which an instance of a job listens.
func (x *rounds) listen(job string) core.Option {
	return core.WithRoundListeners(job, core.RoundListeners{AfterAll: x.after, Again: true, Timeout: 5 * time.Second})
}

// ran counts the items of a fire that have returned.
func (w *witness) ran(due time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.runs {
		for _, s := range of {
			if s.Due.Equal(due) {
				n++
			}
		}
	}
	return n
}

// ordered requires that each round was called for once, in order, and is whole.
func (x *rounds) ordered(b *bed) {
	b.Helper()
	var last time.Time
	for _, r := range x.all() {
		require.True(b, r.Due.After(last), "%v after %v", r.Due, last)
		require.Equal(b, 1, r.Attempt)
		last = r.Due
	}
}

func TestAfterAllItemsOfARoundHaveEnded(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		var ended atomic.Int64
		w.hold = func(_ context.Context, s core.Shard) error {
			pause(time.Duration(s.Item) * 20 * time.Millisecond)
			ended.Add(1)
			return nil
		}
		var early atomic.Int64
		x.hold = func(_ context.Context, r core.Round) error {
			if int(ended.Load()) < 4 || w.ran(r.Due) < 4 {
				early.Add(1)
			}
			return nil
		}
		a := b.start("a", w, everySecond, x.listen(everySecond.Name))
		c := b.start("c", w, everySecond)
		b.until("shared", func() bool { return allOwned(4, a, c) })
		from := len(x.all())
		b.until("five rounds are over", func() bool { return len(x.all()) >= from+5 })
		x.ordered(b)
		for i, r := range x.all()[from+1:] {
			require.Zero(b, r.Merged, "%v", r)
			require.Equal(b, x.all()[from+i].Due.Add(time.Second), r.Due, "no round is left out")
			require.Equal(b, a.job().Instance, r.Instance)
		}
		require.Zero(b, early.Load())
		b.until("it is told", func() bool { return len(of[event.RoundHeard](a)) >= 5 })
		require.Empty(b, of[event.RoundLost](a))
	})
}

// after are the calls for rounds due after an instant.
func (x *rounds) since(due time.Time) []core.Round {
	return slices.DeleteFunc(x.all(), func(r core.Round) bool { return !r.Due.After(due) })
}

// leader returns who leads, and the others.
func leader(b *bed, ins ...*instance) (leads *instance, others []*instance) {
	b.until("somebody leads", func() bool {
		leads, others = nil, nil
		for _, in := range ins {
			if in.job().Instance != "" && in.job().Leader == in.job().Instance {
				leads = in
			} else {
				others = append(others, in)
			}
		}
		return leads != nil
	})
	return leads, others
}

// The leader dies while it is, or another one is, called for a round.
func TestWhoIsCalledForARoundDies(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		var stuck atomic.Pointer[core.Round]
		var free atomic.Bool
		x.hold = func(ctx context.Context, r core.Round) error {
			if r.Attempt == 1 && !free.Load() && len(x.all()) > 3 {
				stuck.CompareAndSwap(nil, &r)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		cfg := withFailover(everySecond)
		ins := []*instance{b.start("a", w, cfg, x.listen(cfg.Name)), b.start("c", w, cfg, x.listen(cfg.Name)), b.start("d", w, cfg, x.listen(cfg.Name))}
		b.until("shared", func() bool { return allOwned(4, ins...) })
		b.until("somebody is called", func() bool { return stuck.Load() != nil })
		free.Store(true)
		r := *stuck.Load()
		at := slices.IndexFunc(ins, func(in *instance) bool { return in.job().Instance == r.Instance })
		require.GreaterOrEqual(b, at, 0)
		leads, _ := leader(b, ins...)
		require.Equal(b, ins[at], leads, "the leader listens itself, and is called")
		b.crash(ins[at])
		left := slices.Delete(slices.Clone(ins), at, at+1)
		b.until("another one is called", func() bool {
			return slices.ContainsFunc(x.all(), func(o core.Round) bool { return o.Due.Equal(r.Due) && o.Attempt == 2 && o.Instance != r.Instance })
		})
		b.until("the death is told", func() bool { return len(of[event.RoundLost](left[0]))+len(of[event.RoundLost](left[1])) == 1 })
		b.until("the next rounds are called for", func() bool { return len(x.since(r.Due)) >= 3 })
		calls := map[time.Time]int{}
		for _, o := range x.all() {
			calls[o.Due.UTC()]++
		}
		for due, n := range calls {
			want := 1
			if due.Equal(r.Due) {
				want = 2
			}
			require.Equal(b, want, n, "%v", due)
		}
	})
}

// The leader dies between the end of a round and its claim: the next leader claims it.
func TestTheLeaderDiesBeforeARoundIsClaimed(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		a, c := b.start("a", w, everySecond), b.start("c", w, everySecond)
		d := b.start("d", w, everySecond, x.listen(everySecond.Name))
		b.until("called", func() bool { return len(x.all()) >= 2 })
		leads, others := leader(b, a, c, d)
		require.NotEqual(b, d, leads, "it came last")
		held := make(chan struct{})
		var once sync.Once
		leads.gate.hold(func(ops []registry.Op) {
			if slices.ContainsFunc(ops, func(op registry.Op) bool {
				return strings.HasSuffix(op.Path, "/inforce/claim") && op.Kind == registry.OpSet
			}) {
				once.Do(func() { close(held) })
				<-b.Context().Done()
			}
		})
		<-held
		leads.gate.hold(nil)
		last := x.all()[len(x.all())-1].Due
		b.crash(leads)
		b.until("the next leader claims", func() bool { return len(x.since(last)) >= 3 })
		leader(b, others...)
		x.ordered(b)
	})
}

// Items that are disabled count as absent; where all are there is no round.
func TestRoundsWithDisabledItems(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		cfg := everySecond
		cfg.Shards = 2
		a := b.start("a", w, cfg, x.listen(cfg.Name))
		b.start("c", w, cfg)
		b.start("empty", w, cfg) // owns nothing
		b.until("called", func() bool { return len(x.all()) >= 2 })
		b.create(a, b.path(a, "sharding/0/disabled"), "")
		from := x.all()[len(x.all())-1].Due
		b.until("rounds go on without it", func() bool { return len(x.since(from)) >= 3 })
		b.create(a, b.path(a, "sharding/1/disabled"), "")
		n, runs := len(x.all()), w.count()
		b.until("nothing runs", func() bool {
			pause(1500 * time.Millisecond)
			still := n == len(x.all()) && runs == w.count()
			n, runs = len(x.all()), w.count()
			return still
		})
		pause(3 * time.Second)
		require.Len(b, x.all(), n, "a round of which nothing ran is none")
		b.remove(a, b.path(a, "sharding/1/disabled"))
		b.until("rounds go on", func() bool { return len(x.all()) >= n+2 })
		x.ordered(b)
	})
}

// heard starts the instances a and c that share four items; c listens.
func (b *bed) heard(w *witness, x *rounds, cfg core.JobConfig) (a, c *instance) {
	b.Helper()
	a, c = b.start("a", w, cfg), b.start("c", w, cfg, x.listen(cfg.Name))
	b.until("shared", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 && len(x.all()) >= 1 })
	return a, c
}

// A round is over when what a dead instance ran has run again.
func TestARoundWaitsForWhatRunsAgain(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		stuck := w.stuckAt()
		a, _ := b.heard(w, x, withFailover(everySecond))
		stuck.holds(b, a, 2)
		n := len(x.all())
		pause(2500 * time.Millisecond)
		require.LessOrEqual(b, len(x.all()), n+1, "nothing is over while a runs")
		b.crash(a)
		b.until("they run again", func() bool { return len(w.again()) == 2 })
		due := w.again()[0].Due
		b.until("their round is over", func() bool {
			return slices.ContainsFunc(x.all(), func(r core.Round) bool { return !r.Due.Before(due) })
		})
		x.ordered(b)
	})
}

func TestAListenerThatFailsHoldsUpNothing(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		wrong := errors.New("the listener failed")
		x.hold = func(ctx context.Context, r core.Round) error {
			switch r.Due.Second() % 10 {
			case 2:
				return wrong
			case 4:
				panic("by the test")
			case 6:
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		a := b.start("a", w, everySecond, x.listen(everySecond.Name))
		pause(25 * time.Second)
		x.ordered(b)
		var errs []error
		merged := 0
		for _, e := range of[event.RoundHeard](a) {
			errs = append(errs, e.Err)
			merged += e.Merged
		}
		eachKindOf(b, errs, wrong)
		heard := of[event.RoundHeard](a)
		require.NotZero(b, merged, "rounds that end while the listener is waited for are one")
		require.Equal(b, int(heard[len(heard)-1].Due.Sub(heard[0].Due)/time.Second)+1, len(heard)+merged, "none is left out")
	})
}

// eachKindOf requires that listeners have failed in each way, and in no other.
func eachKindOf(b *bed, errs []error, wrong error) {
	b.Helper()
	var failed, panicked, late int
	for _, err := range errs {
		switch p := (*core.PanicError)(nil); {
		case errors.Is(err, wrong):
			failed++
		case errors.As(err, &p):
			panicked++
		case errors.Is(err, context.DeadlineExceeded):
			late++
		default:
			require.NoError(b, err)
		}
	}
	require.NotZero(b, failed)
	require.NotZero(b, panicked)
	require.NotZero(b, late)
}

// Where nobody listens there is no node, no watch and no operation; a listener costs two
// operations a fire in commits that are made anyway, and the leader one commit and two reads.
func TestWhatListenersCost(t *testing.T) {
	for _, listens := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := memory.NewServer(memory.Config{})
			b := &bed{T: t, ns: "shop", fake: true, client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }}
			cfg := core.JobConfig{Name: "hello", Cron: "0/10 * * * * ?", Shards: 8, Concurrency: 100, ReconcileInterval: -1}
			x, w := &rounds{}, newWitness()
			var opts []core.Option
			if listens {
				opts = append(opts, x.listen(cfg.Name))
			}
			in := b.start("a", w, cfg, opts...)
			b.until("settled", func() bool { return allOwned(8, in) })
			pause(time.Minute)
			synctest.Wait()
			srv.ResetRequests()
			pause(time.Minute)
			synctest.Wait()
			got := srv.Requests()
			got.Heartbeat = 0
			if !listens {
				require.Equal(b, memory.Counts{Commit: 6 * 2}, got)
				nodes, err := b.store(in).Get(b.Context(), b.own(in, "rounds"), b.own(in, "inforce/claim"))
				require.NoError(b, err)
				require.False(b, nodes[0].Exists() || nodes[1].Exists())
				return
			}
			require.Len(b, x.since(time.Now().Add(-60*time.Second)), 6)
			require.Equal(b, memory.Counts{Commit: 6 * 4, Get: 6, Children: 6}, got)
		})
	}
}

func TestListenersNeedRounds(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   core.JobConfig
		l     core.RoundListeners
		field string
	}{
		"no monitoring": {core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 1, Monitor: core.MonitorOff}, core.RoundListeners{AfterAll: (&rounds{}).after}, "Monitor"},
		"a delay":       {core.JobConfig{Name: "hello", Cron: "@delay 1s", Shards: 1}, core.RoundListeners{AfterAll: (&rounds{}).after}, "Cron"},
		"negative":      {core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 1}, core.RoundListeners{AfterAll: (&rounds{}).after, Timeout: -1}, "RoundListeners.Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.cfg.Validate(core.WithRoundListeners("hello", c.l))
			var wrong *core.ConfigError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, c.field, wrong.Field)
			require.NoError(t, func() error { c.cfg.Name = "other"; return c.cfg.Validate(core.WithRoundListeners("hello", c.l)) }())
		})
	}
}

// The registry's configuration counts: listeners that have no rounds by it are told.
func TestListenersWithoutRoundsAreTold(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		a := b.start("a", w, everySecond, x.listen(everySecond.Name))
		b.until("called", func() bool { return len(x.all()) >= 2 })
		b.setConfig(a, "monitorExecution: true", "monitorExecution: false")
		b.until("it is told", func() bool {
			return slices.ContainsFunc(of[event.Warning](a), func(e event.Warning) bool { return strings.HasPrefix(e.Problem, "there are no rounds") })
		})
		pause(2 * time.Second)
		n := len(x.all())
		pause(5 * time.Second)
		require.Len(b, x.all(), n)
		b.setConfig(a, "monitorExecution: false", "monitorExecution: true")
		b.until("called again", func() bool { return len(x.all()) >= n+3 })
		x.ordered(b)
	})
}
