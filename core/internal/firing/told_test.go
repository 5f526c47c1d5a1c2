package firing

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/barrier"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/core/internal/timer"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A deaf firing has no registry and no clock, and its items wait for a place that never comes. close returns what it has told.
func deaf(total int) (f *Firing, closes func() []event.Event) {
	var mu sync.Mutex
	var told []event.Event
	events := dispatch.New(dispatch.Config{Silent: true, Listeners: []func(event.Event){func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, e)
	}}})
	job, _ := layout.New("shop", "job") // both are names
	f = &Firing{
		cfg:  Config{Host: idle{}, Job: job, Context: context.Background(), Events: events, Now: time.Now, Places: places.New(1, nil)},
		wall: timer.NewWall(time.Now), id: "id", machine: items.New(items.Config{Settings: items.Settings{Fires: fireless{}, Monitor: true}}),
	}
	led := ledger.New(1, total)
	for n := range total {
		led.Set(n, ledger.Item{Through: at(0)})
	}
	f.machine.Own(led, at(0))
	busy := lasting{make(chan struct{})}
	f.cfg.Places.Submit(busy)
	return f, func() []event.Event {
		for n := range total {
			f.cfg.Places.Drop(n)
		}
		close(busy.end)
		f.cfg.Places.Wait()
		events.Close()
		return told
	}
}

// An end that is recorded nowhere tells nothing: whoever has the item by now decides about its fires. What an attempt
// before would have recorded with it is nowhere either.
func TestOnlyWhatIsRecordedIsTold(t *testing.T) {
	skips := []items.Skip{{First: at(3), Last: at(4), Count: 2, Reason: event.SkipRunning}}
	folded := []items.Skip{{First: at(5), Last: at(5), Count: 1, Into: at(6)}}
	end := items.Action{Kind: items.End, Due: at(2), Through: at(4), Skips: skips, Next: at(6), NextSkips: folded}
	for name, c := range map[string]struct {
		rev                    registry.Revision
		failover, unknown      bool
		skipped, folded, ended int
		cut                    int
	}{
		"recorded":                       {rev: 7, skipped: 1, folded: 1, ended: 1},
		"recorded nowhere":               {cut: 1},
		"recorded nowhere, to be redone": {failover: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, closes := deaf(1)
			x := &change{Action: end, followed: true, failover: c.failover, unknown: c.unknown}
			f.Applied([]execution.Change{x}, c.rev)
			count := map[string]int{}
			for _, e := range closes() {
				count[fmt.Sprintf("%T", e)]++
			}
			want := map[string]int{}
			for name, n := range map[string]int{"event.ItemsSkipped": c.skipped, "event.ItemsFolded": c.folded, "event.ItemEnded": c.ended, "event.ItemCut": c.cut} {
				if n > 0 {
					want[name] = n
				}
			}
			require.Equal(t, want, count)
		})
	}
}

// Of a run that the record does not know others may have decided what came due meanwhile: that is not told again.
func TestAnEndOfAnUnknownRunTellsNothingThatOthersDecided(t *testing.T) {
	skips := []items.Skip{{First: at(3), Last: at(6), Count: 4, Reason: event.SkipRunning}}
	end := items.Action{Kind: items.End, Due: at(2), Through: at(6), Skips: skips}
	in := &ledger.Ledger{Epoch: 1}
	for through, tells := range map[int]bool{2: true, 4: false, 8: false} {
		c, rec := change{Action: end, now: time.Now, epoch: 1}, ledger.Item{Through: at(through)}
		require.True(t, c.Apply(&rec, in, false))
		require.True(t, c.unknown)
		if tells {
			require.Equal(t, ledger.Item{Through: at(6), Told: items.Told(skips)}, rec)
			require.Equal(t, skips, c.told())
			continue
		}
		require.Equal(t, ledger.Item{Through: at(through)}, rec, "what came due is decided anew")
		require.Empty(t, c.told())
		require.Equal(t, at(through), c.Through)
	}
}

func runsOf(f *Firing, manners ...manner) (runs []*run) {
	for n, m := range manners {
		runs = append(runs, f.newRun(items.Action{Kind: items.Run, Item: n, Due: time.Unix(0, m.due), MadeUp: m.madeUp, Redo: m.redo, Request: m.request}))
	}
	return runs
}

// Those that begin in one manner are told together, in the order in which the first of each stands.
func TestWhatBeginsAlikeIsToldTogether(t *testing.T) {
	one, other := at(1).UnixNano(), at(2).UnixNano()
	manners := []manner{
		{due: other}, {due: one}, {due: other}, {due: one, madeUp: true}, {due: one}, {due: one, redo: true}, {due: one, request: 3}, {due: other},
		{due: one, madeUp: true},
	}
	f, closes := deaf(len(manners))
	f.launch(nil)
	f.launch(runsOf(f, manners...))
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, f.cfg.Places.Queued())
	var told [][]int
	for _, e := range closes() {
		begun, is := e.(event.FireBegun)
		require.True(t, is)
		m := manners[begun.Items[0]]
		require.Equal(t, manner{begun.Due.UnixNano(), begun.MadeUp, begun.Redo, begun.Request}, m)
		told = append(told, begun.Items)
	}
	require.Equal(t, [][]int{{0, 2, 7}, {1, 4}, {3, 8}, {5}, {6}}, told)
}

// A text that is asked for is the item's affair: Error may panic, or want a lock that the engine holds.
func TestTheErrorOfARunIsAskedForItsTextBeforeAnyLock(t *testing.T) {
	f, closes := deaf(1)
	f.asked = map[int64]*asked{3: {results: map[string]*results{}}}
	r := runsOf(f, manner{due: at(1).UnixNano(), request: 3})[0]
	states := 0
	fails := &stating{func() string { states++; f.State(); panic("oh no") }}
	f.cfg.Host = answering{err: fails}
	require.Same(t, fails, r.Call())
	require.Equal(t, 1, states)
	res, is := f.resultsOf(3).(*results)
	require.True(t, is)
	c := &change{Action: items.Action{Kind: items.End, Item: 0, Request: 3}, err: fails, said: r.said}
	f.mu.Lock() // as the recorder calls it while an owner is told
	op := res.Op([]execution.Change{c})
	res.committed(c)
	f.mu.Unlock()
	got, err := layout.UnmarshalResults(op.Value)
	require.NoError(t, err)
	require.Equal(t, []layout.Answer{{Items: "0", Outcome: string(request.Failed), Text: "panic in Error: oh no"}}, got.Results)
	require.Equal(t, 1, states, "once")
	closes()
}

type stating struct{ say func() string }

func (s *stating) Error() string { return s.say() }

// An answering host's function returns an error.
type answering struct {
	idle
	err error
}

func (h answering) Call(context.Context, *Run) error { return h.err }

// circular wraps itself: whoever unwraps it comes to no end.
type circular struct{}

func (circular) Error() string   { return "circular" }
func (c circular) Unwrap() error { return c }

// A run that is killed ends, whatever its function returns.
func TestAKilledRunEndsWithWhateverItsFunctionReturns(t *testing.T) {
	killed := &request.KilledError{By: "me"}
	for name, c := range map[string]struct{ returns, ends error }{
		"canceled": {fmt.Errorf("oh: %w", context.Canceled), killed}, "another": {context.DeadlineExceeded, context.DeadlineExceeded},
		"in a circle": {circular{}, circular{}}, "nothing": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, closes := deaf(1)
			r := runsOf(f, manner{due: at(1).UnixNano()})[0]
			r.cancel(killed)
			f.cfg.Host = answering{err: c.returns}
			require.Equal(t, c.ends, r.Call())
			closes()
		})
	}
}

// All that wait at the barrier wait for as long: its timer is made once, and looked for by none of them.
func TestTheBarriersTimerIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1000
		f, closes := deaf(total)
		late := lateHost{}
		f.cfg.Host = &late
		f.SetBefore(barrier.Rule{On: true, Wait: time.Minute})
		manners := slices.Repeat([]manner{{due: at(1).UnixNano()}}, total)
		runs := runsOf(f, manners...)
		var timers []*time.Timer
		for len(runs) > 0 {
			f.mu.Lock()
			f.launch(runs[:100])
			timers = append(timers, f.waits)
			f.mu.Unlock()
			runs = runs[100:]
			time.Sleep(time.Second)
		}
		require.NotNil(t, timers[0])
		require.Len(t, slices.Compact(timers), 1)
		time.Sleep(50*time.Second - 1)
		synctest.Wait()
		time.Sleep(time.Nanosecond)
		for i := range 10 {
			synctest.Wait()
			f.mu.Lock()
			require.Len(t, late.rounds, i+1)
			require.Len(t, late.rounds[i].Items, 100)
			f.mu.Unlock()
			time.Sleep(time.Second)
		}
		f.mu.Lock()
		require.Nil(t, f.waits)
		f.mu.Unlock()
		closes()
	})
}

type lateHost struct {
	idle
	rounds []LateRound
}

func (h *lateHost) Late(r LateRound) { h.rounds = append(h.rounds, r) }

// What a launch, and what a stop, costs each item, at most as many as a job has.
func BenchmarkOfManyItems(b *testing.B) {
	manners := map[string]func(n int) manner{
		"one fire":  func(int) manner { return manner{due: at(1).UnixNano()} },
		"own fires": func(n int) manner { return manner{due: at(n).UnixNano()} }, // a fixed delay
		"redos":     func(n int) manner { return manner{due: at(n).UnixNano(), redo: true} },
	}
	for name, of := range manners {
		for _, total := range []int{1_000, 10_000, 100_000} {
			all := make([]manner, total)
			for n := range all {
				all[n] = of(n)
			}
			measure := func(what string, do func(f *Firing, runs []*run)) {
				b.Run(fmt.Sprintf("%s/%s/items=%d", what, name, total), func(b *testing.B) {
					for b.Loop() {
						b.StopTimer()
						f, closes := deaf(0)
						runs := runsOf(f, all...)
						b.StartTimer()
						do(f, runs)
						b.StopTimer()
						closes()
						b.StartTimer()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*total), "ns/item")
				})
			}
			measure("launch", func(f *Firing, runs []*run) {
				f.launch(runs)
				for n := range runs {
					f.cfg.Places.Drop(n)
				}
			})
			measure("wait", func(f *Firing, runs []*run) {
				f.SetBefore(barrier.Rule{On: true, Wait: time.Hour})
				f.launch(runs)
				f.SetBefore(barrier.Rule{On: true, Wait: 2 * time.Hour})
				for _, r := range runs {
					f.barrier.Leave(r.Run.Item)
				}
				f.waits.Stop()
			})
			measure("drop", func(f *Firing, runs []*run) {
				f.launch(runs)
				actions := make([]items.Action, len(runs))
				for n, r := range runs {
					actions[n] = items.Action{Kind: items.Drop, Item: n, Due: r.Due}
				}
				f.perform(actions)
			})
		}
	}
}
