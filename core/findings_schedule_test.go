package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
)

// Finding 5: a changed cron ran fires that no schedule had: those of the new one since the
// last fire of the old.
func TestFinding5AChangedCronRunsNoFireOfThePast(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := core.JobConfig{Name: "hello", Cron: "0 0 0 * * ?", TimeZone: "UTC", Shards: 2}
		a := b.start("a", w, cfg)
		c := b.start("c", w, cfg)
		b.until("shared", func() bool { return allOwned(2, a, c) && len(c.job().Items) == 1 })
		pause(25*time.Hour + 1234*time.Millisecond)
		require.Len(b, w.times(nil), 2)
		changed := time.Now()
		b.setConfig(a, "cron: 0 0 0 * * ?", "cron: 0/10 * * * * ?")
		pause(35 * time.Second)
		a.stop(b)
		c.stop(b)
		dues := w.times(nil)[2:]
		require.Len(b, dues, 2*3)
		for _, due := range dues {
			require.True(b, due.After(changed), "%v is before the schedule was changed", due)
		}
		require.Empty(b, of[event.ItemsSkipped](a))
		require.Empty(b, of[event.ItemsSkipped](c))
		require.Empty(b, b.history(w, a, c).wrong())
	})
}

// Finding 5: what was due before the change is accounted for under the old schedule, also by
// an owner that lags.
func TestFinding5WhatTheOldScheduleOwedIsMadeUpUnderIt(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", TimeZone: "UTC", Shards: 2}
		w.hold = func(_ context.Context, s core.Shard) error {
			if s.Due.Second() == 5 {
				pause(13 * time.Second) // it owes the fires of :10 and :15
			}
			return nil
		}
		a := b.start("a", w, cfg)
		b.until("it runs", func() bool { return len(a.job().Running) == 2 })
		pause(11 * time.Second)
		nodes := func() layout.Schedule {
			n, err := b.store(a).Get(b.Context(), b.own(a, "inforce/schedule"))
			require.NoError(b, err)
			s, err := layout.UnmarshalSchedule(n[0].Value)
			require.NoError(b, err)
			return s
		}
		b.setConfig(a, "cron: 0/5 * * * * ?", "cron: 3/10 * * * * ?")
		pause(30 * time.Second)
		a.stop(b)
		in := nodes()
		require.Equal(b, "0/5 * * * * ?", in.Before[0].Cron)
		h := b.history(w, a)
		for due := time.Unix(w.first().Unix(), 0); !due.After(w.last()); due = due.Add(time.Second) {
			old, now := due.Second()%5 == 0, due.Second()%10 == 3
			for n := range 2 {
				t := turn{1, n, due.Unix()}
				switch {
				case !due.After(in.Since) && old, due.After(in.Since) && now:
					require.Positive(b, h.ran[t]+h.skipped[t], "%v; the change is of %v", t, in.Since)
				default:
					require.Zero(b, h.ran[t], "%v; the change is of %v", t, in.Since)
				}
			}
		}
		require.Empty(b, w.doubled())
	})
}

// Finding 6: with monitoring off each item that moved ran ten stale fires.
func TestFinding6UnrecordedItemsThatMoveRunNoStaleFires(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := everySecond
		cfg.Monitor = core.MonitorOff
		var stale atomic.Int64
		w := newWitness()
		w.hold = func(_ context.Context, s core.Shard) error {
			if late := time.Since(s.Due); late > 1500*time.Millisecond {
				stale.Add(1)
			}
			return nil
		}
		a := b.start("a", w, cfg)
		b.until("it fires", func() bool { return allOwned(4, a) && w.count() >= 4 })
		pause(6 * time.Second)
		c := b.start("c", w, cfg)
		b.until("shared", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		pause(2 * time.Second)
		a.stop(b)
		b.until("c has all", func() bool { return allOwned(4, c) })
		ran := w.count()
		b.until("c fires all", func() bool { return w.count() >= ran+8 })
		require.Zero(b, stale.Load())
	})
}

// Finding 7: monitoring that was switched off while an item ran, and on again, stopped the
// item for ever, and a changed total waited for it.
func TestFinding7MonitoringSwitchedWhileAnItemRuns(t *testing.T) {
	for _, last := range []string{"on", "off"} {
		t.Run(last, func(t *testing.T) {
			onEach(t, func(b *bed) {
				release := make(chan struct{})
				var held atomic.Bool
				w := newWitness()
				w.hold = func(context.Context, core.Shard) error {
					if held.CompareAndSwap(false, true) {
						<-release
					}
					return nil
				}
				a := b.start("a", w, everySecond)
				b.until("an item runs", held.Load)
				b.setConfig(a, "monitorExecution: true", "monitorExecution: false")
				b.until("it is in force", func() bool { return len(of[event.ConfigChanged](a)) == 1 })
				pause(1200 * time.Millisecond)
				if last == "off" {
					close(release)
					pause(1200 * time.Millisecond)
				}
				b.setConfig(a, "monitorExecution: false", "monitorExecution: true")
				b.until("it is in force", func() bool { return len(of[event.ConfigChanged](a)) == 2 })
				pause(1200 * time.Millisecond)
				if last == "on" {
					close(release)
				}
				for n := range 4 {
					before := len(w.times(func(s core.Shard) bool { return s.Item == n }))
					b.until(fmt.Sprintf("item %d goes on", n), func() bool {
						return len(w.times(func(s core.Shard) bool { return s.Item == n })) >= before+2
					})
				}
				b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
				b.until("a changed total does not wait", func() bool { return allOwned(6, a) })
				a.stop(b)
				require.Empty(b, w.overlap)
			})
		})
	}
}

// A wall is a clock that a test sets.
type wall struct{ offset atomic.Int64 }

func (c *wall) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *wall) set(by time.Duration) { c.offset.Store(int64(by)) }

// Finding 19: the wall clock set back stopped jobs with a fixed delay, and reconciliation,
// for the whole jump.
func TestFinding19AClockSetBackDoesNotStopFixedDelays(t *testing.T) {
	inBubble(t, func(b *bed) {
		var clock wall
		w := newWitness()
		a := b.start("a", w, core.JobConfig{Name: "delayed", Cron: "@delay 1s", Shards: 2, ReconcileInterval: time.Minute}, core.WithClock(clock.now))
		b.until("it runs", func() bool { return w.count() >= 6 })
		for _, by := range []time.Duration{-time.Hour, time.Hour, 0} {
			clock.set(by)
			pause(6 * time.Second) // the clock is looked at every five seconds
			ran := w.count()
			pause(20 * time.Second)
			require.InDelta(b, 40, w.count()-ran, 4, "by %v", by)
		}
		clock.set(-time.Hour)
		pause(6 * time.Second)
		// What reconciliation alone mends: a picture that somebody deleted.
		calls := a.gate.calls.Load()
		begun := w.count()
		pause(3 * time.Minute)
		require.Greater(b, a.gate.calls.Load()-calls, int64(2*(w.count()-begun)/2+3), "no reconciliation")
		a.stop(b)
		require.Empty(b, w.overlap)
	})
}

// Finding 19 once more: a run that ended after the clock was set, and before anybody had looked
// at it, was followed by its delay and by the whole jump.
func TestFinding19ADelayThatBeginsAfterTheClockWasSetIsNotMoved(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				var clock wall
				w := newWitness()
				w.holds(func(context.Context, core.Shard) error {
					pause(12 * time.Second)
					return nil
				})
				a := b.start("a", w, core.JobConfig{Name: "delayed", Cron: "@delay 20s", Shards: 1}, core.WithClock(clock.now))
				b.until("it runs", func() bool { return w.count() == 1 })
				pause(11 * time.Second)
				clock.set(by)
				pause(20 * time.Second) // it ends after one of them
				require.Equal(b, 1, w.count())
				pause(2 * time.Second)
				require.Equal(b, 2, w.count())
				pause(65 * time.Second)
				require.Equal(b, 4, w.count())
				for _, e := range of[event.FireEnded](a) {
					require.Equal(b, 12*time.Second, e.Took)
				}
				a.stop(b)
			})
		})
	}
}

// Finding 19: an instance that was years ahead excused the fires of years: `through` and `up`.
func TestFinding19RecordsYearsAheadAreSetBack(t *testing.T) {
	for name, cron := range map[string]string{"cron": "* * * * * ?", "delay": "@delay 1s"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				var clock wall
				clock.set(3 * 365 * 24 * time.Hour)
				w := newWitness()
				cfg := core.JobConfig{Name: "hello", Cron: cron, Shards: 2, ReconcileInterval: time.Minute}
				a := b.start("a", w, cfg, core.WithClock(clock.now))
				b.until("it runs, years ahead", func() bool { return w.count() >= 8 })
				a.stop(b)
				c := b.start("c", w, cfg)
				ran := w.count()
				pause(70 * time.Second) // it is looked at with the reconciliation
				require.Greater(b, w.count(), ran+8)
				if name == "cron" { // a delay counts from now
					require.Contains(b, fmt.Sprint(problems(c)), "ahead of the clock and is set back")
				}
				ran = w.count()
				pause(90 * time.Second)
				require.InDelta(b, 180, w.count()-ran, 8)
				d := b.start("d", w, cfg)
				b.until("it shares", func() bool { return allOwned(2, c, d) && len(d.job().Items) == 1 })
				ran = w.count()
				pause(10 * time.Second)
				require.InDelta(b, 20, w.count()-ran, 4)
			})
		})
	}
}

// Finding 19: as long as another instance says that the time is what the records say, nobody
// can know who is right.
func TestFinding19RecordsAheadStayWhileAnotherClockAgreesWithThem(t *testing.T) {
	inBubble(t, func(b *bed) {
		var clock wall
		clock.set(3 * 365 * 24 * time.Hour)
		w := newWitness()
		cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 2, ReconcileInterval: time.Minute}
		a := b.start("a", w, cfg, core.WithClock(clock.now))
		b.until("it runs, years ahead", func() bool { return w.count() >= 8 })
		c := b.start("c", w, cfg)
		b.until("shared", func() bool { return allOwned(2, a, c) && len(c.job().Items) == 1 })
		pause(3 * time.Minute)
		require.Contains(b, fmt.Sprint(problems(c)), "set the clocks right")
		require.NotContains(b, fmt.Sprint(problems(c)), "is set back")
		require.Empty(b, w.doubled())
	})
}
