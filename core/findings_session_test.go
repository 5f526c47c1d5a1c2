package core_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// Finding 4: a session that is lost here was ended at the service while its cancelled
// functions unwound, so that others began their items before its Deadline.
func TestFinding4ALostSessionStandsUntilItsFunctionsHaveReturned(t *testing.T) {
	for name, unwind := range map[string]time.Duration{"soon": 120 * time.Millisecond, "late": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				var returned, cancelled atomic.Int64
				cfg := everySecond
				cfg.Shards = 1
				a := b.start("a", core.JobFunc(func(ctx context.Context, _ core.Shard) error {
					if cancelled.Load() != 0 {
						return nil
					}
					<-ctx.Done()
					cancelled.Store(time.Now().UnixNano())
					pause(unwind)
					returned.Store(time.Now().UnixNano())
					return nil
				}), cfg)
				b.until("it runs", func() bool { return len(a.job().Running) == 1 })
				watch := b.open(a)
				life := b.own(a, "lives/"+a.job().Instance)
				// It is told early that the session is lost: its Deadline is still to come.
				deadline := a.State().Deadline
				a.gate.lose()
				var gone time.Time
				b.until("the life is gone", func() bool {
					nodes, err := watch.Get(b.Context(), life)
					gone = time.Now()
					return err == nil && !nodes[0].Exists()
				})
				require.Positive(b, cancelled.Load(), "the function was not cancelled")
				require.True(b, time.Unix(0, cancelled.Load()).Before(deadline))
				if at := returned.Load(); at == 0 || time.Unix(0, at).After(gone) {
					require.False(b, gone.Before(deadline), "the session was ended %v before its Deadline while a function ran", deadline.Sub(gone))
				}
				if unwind < time.Second {
					require.Less(b, gone.Sub(time.Unix(0, returned.Load())), 50*time.Millisecond, "it is ended as soon as nothing runs")
				} else {
					require.Less(b, gone.Sub(deadline), 50*time.Millisecond, "it is ended at its Deadline at the latest")
				}
			})
		})
	}
}

// Finding 17: functions that waited for a place began after the Deadline, when a process
// was thawed that had been frozen meanwhile.
func TestFinding17NothingThatWaitsForAPlaceStartsAfterTheDeadline(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 8, Concurrency: 2}
		var started []string
		w := newWitness()
		a := b.prepare("a", w, cfg)
		frozen := make(chan struct{})
		w.hold = func(_ context.Context, s core.Shard) error {
			// Who is frozen does not look at its context, and nobody cancels it.
			<-frozen
			return nil
		}
		require.NoError(b, a.Start(b.Context()))
		b.until("two run, the others wait", func() bool { return len(a.job().Running) == 2 && len(a.job().Queued) == 6 })
		a.gate.frozen.Store(true) // its session does not say that it is over, as with a thread that was not scheduled
		deadline := a.State().Deadline
		b.crash(a)
		pause(time.Until(deadline) + time.Second)
		ran := w.count()
		close(frozen)
		pause(100 * time.Millisecond)
		w.mu.Lock()
		for _, runs := range w.runs {
			started = append(started, fmt.Sprint(runs))
		}
		w.mu.Unlock()
		require.Equal(b, ran, w.count(), "%v", started)
		a.gate.frozen.Store(false)
	})
}

// Findings 18 and C 10: an instance that was shut down from outside came back with the next
// session; with monitoring off it never left while an item ran; Stopped had no reason, and
// Run returned nil.
func TestFinding18AnInstanceThatWasShutDownStaysAway(t *testing.T) {
	for name, monitor := range map[string]core.Monitor{"recorded": core.MonitorOn, "unrecorded": core.MonitorOff} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bed) {
				cfg := everySecond
				cfg.Monitor = monitor
				release := make(chan struct{})
				w := newWitness()
				w.hold = func(context.Context, core.Shard) error { <-release; return nil }
				a := b.start("a", w, cfg)
				b.until("all run", func() bool { return len(a.job().Running) == 4 })
				id := a.job().Instance
				b.remove(a, b.path(a, "instances/"+id))
				pause(300 * time.Millisecond)
				require.Equal(b, core.PhaseRunning, a.job().Phase, "it leaves when what runs has ended")
				close(release)
				b.until("it has left", func() bool { return a.job().Phase == core.PhaseStopped })
				stopped := of[event.Stopped](a)
				b.until("it is told", func() bool { stopped = of[event.Stopped](a); return len(stopped) > 0 })
				require.Equal(b, []event.Stopped{{Job: "hello", Instance: id, Reason: event.StopShutDown}}, stopped)
				session := a.State().Session
				b.expire(session)
				b.until("another session", func() bool { s := a.State().Session; return s != "" && s != session })
				pause(2 * time.Second)
				require.Equal(b, core.PhaseStopped, a.job().Phase)
				names, err := b.store(a).Children(b.Context(), b.path(a, "instances"))
				require.NoError(b, err)
				require.Empty(b, names)
				ran := w.count()
				pause(1500 * time.Millisecond)
				require.Equal(b, ran, w.count())
			})
		})
	}
}

// Finding C 10, of Run.
func TestFindingC10RunReturnsThatTheInstanceWasShutDown(t *testing.T) {
	inBubble(t, func(b *bed) {
		in := &instance{gate: b.registry()}
		id := make(chan string, 1)
		var own string // of the listener
		done := make(chan error, 1)
		go func() {
			done <- core.Run(b.Context(), in.gate, newWitness(), everySecond, core.WithIP("127.0.0.1"), core.WithListener(func(e event.Event) {
				switch e := e.(type) {
				case event.Started:
					own = e.Instance
				case event.FireBegun: // it has seen itself: it was given items
					select {
					case id <- own:
					default:
					}
				}
			}))
		}()
		ses, err := in.gate.Registry.Open(b.Context())
		require.NoError(b, err)
		_, err = ses.Commit(b.Context(), registry.Delete("/"+b.ns+"/hello/instances/"+<-id, registry.AnyVersion))
		require.NoError(b, err)
		require.ErrorIs(b, <-done, core.ErrShutDown)
		require.NoError(b, ses.Close(b.Context()))
	})
}

// Finding 25: after Start had failed with ErrDenied the scheduler went on logging in.
func TestFinding25AStartThatIsDeniedEndsTheScheduler(t *testing.T) {
	inBubble(t, func(b *bed) {
		reg := &denier{Registry: b.client(b.T, b.ns)}
		s := core.New(reg, core.WithLogger(nil))
		require.NoError(b, s.Add(newWitness(), everySecond))
		err := s.Start(b.Context())
		require.ErrorIs(b, err, registry.ErrDenied)
		<-s.Done()
		asked := reg.asked.Load()
		pause(5 * time.Minute)
		require.Equal(b, asked, reg.asked.Load())
		require.LessOrEqual(b, asked, int64(2))
		require.ErrorIs(b, s.Start(b.Context()), core.ErrStopped)
		require.NoError(b, reg.Close())
	})
}

// A denier lets nobody in.
type denier struct {
	registry.Registry
	asked atomic.Int64
}

// Open implements registry.Registry.
func (d *denier) Open(context.Context) (registry.Session, error) {
	d.asked.Add(1)
	return nil, fmt.Errorf("by the test: %w", registry.ErrDenied)
}

// Finding 25: an instance that was thawed after its session had expired said that its
// registration was removed from outside.
func TestFinding25AThawIsNoRemovalFromOutside(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		for range 5 {
			b.until("it fires", func() bool { return allOwned(4, a) && len(a.State().Session) > 0 })
			session := a.State().Session
			ran := w.count()
			b.expire(session)
			b.until("it is back", func() bool { s := a.State().Session; return s != "" && s != session && w.count() >= ran+8 })
		}
		require.Len(b, of[event.SessionLost](a), 5)
		require.Empty(b, slices.DeleteFunc(of[event.Warning](a), func(e event.Warning) bool {
			return !strings.Contains(e.Problem, "outside") && (e.Err == nil || !strings.Contains(e.Err.Error(), "outside"))
		}))
		for _, e := range of[event.SessionLost](a) {
			require.ErrorIs(b, e.Err, registry.ErrSessionLost)
		}
	})
}

// Finding 25: a job of which everything is disabled cost a commit at each fire.
func TestFinding25WhatIsWhollyDisabledCostsNoCommit(t *testing.T) {
	for name, below := range map[string][]string{
		"items": {"sharding/0/disabled", "sharding/1/disabled", "sharding/2/disabled", "sharding/3/disabled"},
		"job":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bed) {
				w := newWitness()
				a := b.start("a", w, everySecond)
				b.until("it fires", func() bool { return allOwned(4, a) && w.count() >= 4 })
				for _, p := range below {
					b.set(a, b.path(a, p), "")
				}
				if below == nil {
					b.setConfig(a, "disabled: false", "disabled: true")
				}
				b.until("it is seen", func() bool {
					return len(a.job().DisabledItems) == len(below) && (below != nil || a.job().Disabled != "")
				})
				pause(1100 * time.Millisecond) // what ran has ended
				calls, ran := b.rested(a), w.count()
				pause(4 * time.Second)
				require.Equal(b, calls, a.gate.calls.Load())
				require.Equal(b, ran, w.count())
				from := w.last()
				for _, p := range below {
					b.remove(a, b.path(a, p))
				}
				if below == nil {
					b.setConfig(a, "disabled: true", "disabled: false")
				}
				b.until("it fires again", func() bool { return w.count() >= ran+16 })
				end := w.last().Add(-2 * time.Second)
				a.stop(b)
				h := b.history(w, a)
				require.Empty(b, h.open(1, 4, from, end))
				require.Empty(b, h.wrong())
				require.GreaterOrEqual(b, skips(a, event.SkipDisabled)[0].Count, 3, "in bulk")
			})
		})
	}
}

// A registration of which somebody deletes the life and the ledger before the leader has given it anything
// goes whole with the next: a notice that it left behind held every change of the total up.
func TestARegistrationThatEndsBeforeItIsOpenedLeavesNothing(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("a runs", func() bool { return w.count() >= 4 })
		c := b.prepare("c", w, everySecond)
		var once sync.Once
		var gone atomic.Pointer[string]
		a.gate.ask(func(paths []string) { // its view
			at := slices.IndexFunc(paths, func(p string) bool {
				return path.Base(path.Dir(p)) == "ledgers" && strings.Contains(path.Base(p), "@-@c-")
			})
			if at < 0 {
				return
			}
			once.Do(func() {
				id := path.Base(paths[at])
				b.remove(a, b.own(a, "lives/"+id), b.own(a, "ledgers/"+id))
				gone.Store(&id)
			})
		})
		require.NoError(b, c.Start(b.Context()))
		b.until("both own some", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		require.NotNil(b, gone.Load())
		require.NotEqual(b, *gone.Load(), c.job().Instance)
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
		b.until("the total changes", func() bool { return allOwned(6, a, c) })
	})
}

// lifeIn returns which operation of a registration makes its life, -1 for none.
func lifeIn(ops []registry.Op) int {
	return slices.IndexFunc(ops, func(op registry.Op) bool {
		return op.Kind == registry.OpCreateEphemeral && path.Base(path.Dir(op.Path)) == "lives"
	})
}

// A registration whose first commit was applied late: another attempt had made it, and somebody had removed it, so that
// the instance had registered anew. What came late lived as long as the session, and was given items that nobody ran.
func TestARegistrationThatComesLateIsRemoved(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 4}
		c := b.start("c", w, cfg)
		ses := b.open(c)
		a := b.prepare("a", w, cfg)
		var id string
		a.gate.decide(func(ops []registry.Op) fate {
			at := lifeIn(ops)
			if at < 0 || id != "" {
				return deliver
			}
			id = path.Base(ops[at].Path)
			return appliedLate
		})
		require.NoError(b, a.Start(b.Context()))
		b.until("both own items", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
		require.Equal(b, id, a.job().Instance)
		b.remove(c, b.own(a, "ledgers/"+id))
		b.until("it has registered anew", func() bool { return a.job().Instance != id && a.job().Phase == core.PhaseRunning })
		a.gate.late.Wait()
		for _, dir := range []string{b.own(a, "lives"), b.own(a, "ledgers"), b.own(a, "notices"), b.path(a, "instances")} {
			b.until("nothing of it is left in "+dir, func() bool {
				names, err := ses.Children(b.Context(), dir)
				require.NoError(b, err)
				return len(names) == 2 && !slices.Contains(names, id)
			})
		}
		b.until("both own items again", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
	})
}

// Whose nodes were deleted, and whose ledger was overwritten, is taken for dead, and others are given its items. When it
// registers anew it brings none of those, though it knows that it had them.
func TestItemsThatWereGivenAwayAreNotBroughtBack(t *testing.T) {
	for _, value := range []string{"garbage", ""} { // "": the ledger is deleted
		t.Run("ledger:"+value, func(t *testing.T) {
			onEach(t, func(b *bed) {
				w := newWitness()
				cfg := core.JobConfig{Name: "hello", Cron: "0 0 * * * ?", Shards: 4}
				c := b.start("c", w, cfg)
				b.until("c leads", func() bool { return len(c.job().Items) == 4 && c.job().Leader == c.job().Instance })
				a := b.start("a", w, cfg)
				b.until("both own items", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
				var mu sync.Mutex
				brought, given := []int(nil), false
				a.gate.hold(func(ops []registry.Op) {
					if lifeIn(ops) < 0 {
						return
					}
					for begun := time.Now(); len(c.job().Items) < 4 && time.Since(begun) < 20*time.Second; {
						pause(time.Millisecond)
					}
					mu.Lock()
					defer mu.Unlock()
					brought, given = nil, given || len(c.job().Items) == 4
					for _, op := range ops {
						if led, err := ledger.Decode(op.Value); op.Kind == registry.OpCreate && path.Base(path.Dir(op.Path)) == "ledgers" && err == nil {
							brought = led.Numbers()
						}
					}
				})
				id := a.job().Instance
				led := b.own(a, "ledgers/"+id)
				gone := []registry.Op{registry.Delete(led, registry.AnyVersion)}
				if value != "" {
					gone[0] = registry.Set(led, []byte(value), registry.AnyVersion)
				}
				for _, node := range []string{b.own(a, "lives/"+id), b.own(a, "notices/"+id), b.path(a, "instances/"+id)} {
					gone = append(gone, registry.Delete(node, registry.AnyVersion))
				}
				_, err := b.store(c).Commit(b.Context(), gone...)
				require.NoError(b, err)
				b.until("it registers anew, when its items are given away", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return given
				})
				b.until("both own items again", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
				require.NotEqual(b, id, a.job().Instance)
				mu.Lock()
				with := slices.Clone(brought)
				mu.Unlock()
				require.Empty(b, with)
			})
		})
	}
}

// Whose ledger was deleted, and made again as it was, keeps its items when it registers anew.
func TestItemsOfAReplacedLedgerAreKept(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 4}
		c := b.start("c", w, cfg)
		a := b.start("a", w, cfg)
		b.until("both own items", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
		id := a.job().Instance
		led := b.own(a, "ledgers/"+id)
		ses := b.open(c)
		nodes, err := ses.Get(b.Context(), led)
		require.NoError(b, err)
		_, err = ses.Commit(b.Context(), registry.Delete(led, registry.AnyVersion))
		require.NoError(b, err)
		_, err = ses.Commit(b.Context(), registry.Create(led, nodes[0].Value)) // ErrExists: it was quicker
		if err == nil {
			b.until("it is registered anew", func() bool { return a.job().Instance != id && a.job().Phase == core.PhaseRunning })
		}
		b.until("both own items", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
		for _, i := range []*instance{a, c} {
			for _, e := range of[event.Warning](i) {
				require.NotContains(b, e.Problem, "stood in no ledger")
			}
		}
	})
}

// A registration whose commit was applied while its outcome was not known, and of which nodes were deleted before its
// maker tried again: it registers anew, and nothing of the former one stays. It once tried to make the same nodes for ever.
func TestARegistrationThatIsNotKnownAndBrokenIsMadeAnew(t *testing.T) {
	for name, broken := range map[string][]string{
		"the life":           {"lives"},
		"life and ledger":    {"lives", "ledgers"},
		"life and notice":    {"lives", "notices"},
		"all but the ledger": {"lives", "notices", "instances"},
		"all but the notice": {"lives", "ledgers", "instances"},
		"everything":         {"lives", "ledgers", "notices", "instances"},
		"the ledger":         {"ledgers"},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bed) {
				w := newWitness()
				cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 2}
				c := b.start("c", w, cfg)
				ses := b.open(c)
				a := b.prepare("a", w, cfg)
				var id string
				var attempts int
				a.gate.decide(func(ops []registry.Op) fate {
					at := lifeIn(ops)
					if at < 0 || attempts == 2 {
						return deliver
					}
					if attempts++; attempts == 1 {
						id = path.Base(ops[at].Path)
						return answerLost
					}
					var gone []registry.Op
					for _, dir := range broken {
						node := b.own(a, dir+"/"+id)
						if dir == "instances" {
							node = b.path(a, dir+"/"+id)
						}
						gone = append(gone, registry.Delete(node, registry.AnyVersion))
					}
					_, err := ses.Commit(b.Context(), gone...)
					require.NoError(b, err)
					return deliver
				})
				require.NoError(b, a.Start(b.Context()))
				b.until("both own items", func() bool { return len(a.job().Items) == 1 && len(c.job().Items) == 1 })
				require.Equal(b, 2, attempts)
				for _, dir := range []string{b.own(a, "lives"), b.own(a, "ledgers"), b.own(a, "notices"), b.path(a, "instances")} {
					b.until("nothing is left over in "+dir, func() bool {
						names, err := ses.Children(b.Context(), dir)
						require.NoError(b, err)
						return slices.Equal(names, slices.Sorted(slices.Values([]string{a.job().Instance, c.job().Instance})))
					})
				}
			})
		})
	}
}
