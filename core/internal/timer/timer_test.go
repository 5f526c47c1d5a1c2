package timer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A wall is a clock that can be set.
type wall struct{ offset atomic.Int64 }

func (w *wall) now() time.Time               { return time.Now().Add(time.Duration(w.offset.Load())) }
func (w *wall) set(by time.Duration)         { w.offset.Add(int64(by)) }
func (w *wall) in(d time.Duration) time.Time { return w.now().Add(d) }

// A log is what a clock called, with the time that had passed since it was made.
type log struct {
	mu    sync.Mutex
	begun time.Time
	calls []call
	jumps []jumped
}

type call struct {
	name  string
	after time.Duration
}

type jumped struct{ by, after time.Duration }

func (l *log) call(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call{name, time.Since(l.begun)})
}

func (l *log) take() []call {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls = nil
	return calls
}

func (l *log) takeJumps() []jumped {
	l.mu.Lock()
	defer l.mu.Unlock()
	jumps := l.jumps
	l.jumps = nil
	return jumps
}

// onClock runs a test with a clock in fake time and closes it.
func onClock(t *testing.T, test func(t *testing.T, c *Clock, w *wall, l *log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, l := &wall{}, &log{begun: time.Now()}
		c := New(w.now, func(by time.Duration) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.jumps = append(l.jumps, jumped{by, time.Since(l.begun)})
		})
		test(t, c, w, l)
		c.Close()
		c.Close()
	})
}

// pass lets fake time pass and what is due be called.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTimersComeInOrderAtTheirInstants(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		for name, in := range map[string]time.Duration{"d": time.Hour, "a": -time.Minute, "c": 7 * time.Second, "b": time.Millisecond} {
			due := w.in(in)
			c.Timer(func(at time.Time) {
				require.True(t, due.Equal(at), "a timer is told its due time")
				l.call(name)
			}).Set(due)
		}
		pass(2 * time.Hour)
		require.Equal(t, []call{{"a", 0}, {"b", time.Millisecond}, {"c", 7 * time.Second}, {"d", time.Hour}}, l.take())
		require.Empty(t, l.takeJumps())
	})
}

func TestManyTimersInOrder(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, _ *log) {
		random := rand.New(rand.NewPCG(1, 2))
		var last time.Time
		calls := 0
		all := make([]*Timer, 2_000)
		for i := range all {
			all[i] = c.Timer(func(due time.Time) {
				require.False(t, due.Before(last))
				require.Equal(t, w.now().Round(0), due)
				last = due
				calls++
			})
		}
		cleared := 0
		for i, k := range random.Perm(len(all)) {
			all[k].Set(w.in(time.Duration(1+random.IntN(100_000)) * time.Millisecond))
			switch {
			case i%3 == 0:
				all[k].Set(w.in(time.Duration(1+random.IntN(100_000)) * time.Millisecond))
			case i%7 == 0:
				all[k].Clear()
				all[k].Clear()
				cleared++
			}
		}
		pass(time.Hour)
		require.Equal(t, len(all)-cleared, calls)
	})
}

func TestSettingAgainReplaces(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		a, b := c.Timer(func(time.Time) { l.call("a") }), c.Timer(func(time.Time) { l.call("b") })
		a.Set(w.in(10 * time.Second))
		b.Set(w.in(20 * time.Second))
		a.Set(w.in(30 * time.Second)) // later, from the front
		b.Set(w.in(5 * time.Second))  // earlier
		pass(time.Minute)
		require.Equal(t, []call{{"b", 5 * time.Second}, {"a", 30 * time.Second}}, l.take())
		a.Set(w.in(time.Second)) // after it was called
		pass(time.Minute)
		require.Equal(t, []call{{"a", 61 * time.Second}}, l.take())
	})
}

func TestAClearedTimerDoesNotCall(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		a, b := c.Timer(func(time.Time) { l.call("a") }), c.Timer(func(time.Time) { l.call("b") })
		a.Clear() // never set
		a.Set(w.in(time.Second))
		b.Set(w.in(2 * time.Second))
		a.Clear()
		pass(time.Minute)
		require.Equal(t, []call{{"b", 2 * time.Second}}, l.take())
		a.Clear()
		a.Set(w.in(time.Second))
		pass(time.Minute)
		require.Equal(t, []call{{"a", 61 * time.Second}}, l.take())
	})
}

// A call may set its own timer and others, clear others, and make new ones.
func TestSettingFromWithinACall(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		var every, other *Timer
		n := 0
		every = c.Timer(func(due time.Time) {
			l.call("every")
			switch n++; n {
			case 1:
				other.Set(due) // at once
				every.Set(due.Add(10 * time.Second))
			case 2:
				other.Set(due.Add(time.Second))
				every.Set(due.Add(-time.Hour)) // in the past: once more, at once
			case 3:
				other.Clear()
				c.Timer(func(time.Time) { l.call("new") }).Set(due.Add(2 * time.Hour))
			}
		})
		other = c.Timer(func(time.Time) { l.call("other") })
		every.Set(w.in(time.Second))
		pass(3 * time.Hour)
		require.Equal(t, []call{
			{"every", time.Second}, {"other", time.Second}, {"every", 11 * time.Second}, {"every", 11 * time.Second},
			{"new", 11*time.Second - time.Hour + 2*time.Hour},
		}, l.take())
	})
}

// A clock that is set forward makes timers come no more than a Glance later; the
// jump is told before they are called.
func TestAWallClockSetForward(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		a := c.Timer(func(time.Time) {
			require.Len(t, l.jumps, 1)
			l.call("a")
		})
		a.Set(w.in(time.Hour))
		pass(12 * time.Second)
		w.set(2 * time.Hour)
		pass(Glance)
		require.Equal(t, []jumped{{2 * time.Hour, 15 * time.Second}}, l.takeJumps())
		require.Equal(t, []call{{"a", 15 * time.Second}}, l.take())
	})
}

// A clock that is set back makes timers wait for the wall clock to come there.
func TestAWallClockSetBack(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		a := c.Timer(func(time.Time) { l.call("a") })
		a.Set(w.in(time.Minute))
		pass(12 * time.Second)
		w.set(-time.Hour)
		pass(Glance)
		require.Equal(t, []jumped{{-time.Hour, 15 * time.Second}}, l.takeJumps())
		pass(time.Hour)
		require.Empty(t, l.take())
		pass(time.Hour)
		require.Equal(t, []call{{"a", time.Hour + time.Minute}}, l.take())
		require.Empty(t, l.takeJumps())
	})
}

// The owner sets its timers anew when it is told: so it acts on a clock set back.
func TestTimersSetAnewOnAJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := &wall{}, &log{begun: time.Now()}
		var a *Timer
		ready := make(chan struct{})
		c := New(w.now, func(time.Duration) { <-ready; a.Set(w.in(time.Second)) })
		a = c.Timer(func(time.Time) { l.call("a") })
		close(ready)
		a.Set(w.in(time.Minute))
		pass(time.Second)
		w.set(-24 * time.Hour)
		pass(time.Minute)
		require.Equal(t, []call{{"a", Glance + time.Second}}, l.take())
		c.Close()
	})
}

// Drift below a second is no jump, however long it goes on; a second is one.
func TestWhatIsAJump(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		a := c.Timer(func(time.Time) {})
		a.Set(w.in(24 * time.Hour))
		for range 10 {
			w.set(jump - time.Millisecond)
			pass(Glance)
		}
		for range 10 {
			w.set(-jump + time.Millisecond)
			pass(Glance)
		}
		require.Empty(t, l.takeJumps())
		w.set(jump)
		pass(Glance)
		w.set(-jump)
		pass(Glance)
		jumps := l.takeJumps()
		require.Len(t, jumps, 2)
		require.Equal(t, [2]time.Duration{jump, -jump}, [2]time.Duration{jumps[0].by, jumps[1].by})
	})
}

// Without timers nobody looks at the clock; the next Set does.
func TestAJumpWhileNothingIsSetIsToldAtTheNextSet(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		pass(time.Hour)
		w.set(time.Hour)
		pass(24 * time.Hour)
		require.Empty(t, l.takeJumps())
		c.Timer(func(time.Time) { l.call("a") }).Set(w.in(time.Second))
		pass(time.Minute)
		require.Equal(t, []jumped{{time.Hour, 25 * time.Hour}}, l.takeJumps())
		require.Equal(t, []call{{"a", 25*time.Hour + time.Second}}, l.take())
	})
}

// Close waits for the call under way and calls nothing after it.
func TestCloseWhileACallIsUnderWay(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		gate := make(chan struct{})
		begun := 0
		for range 3 {
			c.Timer(func(time.Time) { begun++; <-gate }).Set(w.in(time.Second))
		}
		pass(time.Second)
		var closed atomic.Int32
		for range 2 {
			go func() { c.Close(); closed.Add(1) }()
		}
		pass(time.Minute)
		require.Zero(t, closed.Load())
		gate <- struct{}{}
		synctest.Wait()
		require.Equal(t, int32(2), closed.Load())
		a := c.Timer(func(time.Time) { begun++ })
		a.Set(w.in(time.Second)) // does nothing any more
		pass(time.Minute)
		a.Clear()
		require.Equal(t, 1, begun)
	})
}

func TestTenThousandTimersAtOneInstant(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		due := w.in(time.Minute)
		counts := make([]atomic.Int32, 10_000)
		for i := range counts {
			c.Timer(func(at time.Time) {
				if !due.Equal(at) {
					t.Error("not its due time")
				}
				counts[i].Add(1)
			}).Set(due)
		}
		requireCounts := func(want int32) {
			for i := range counts {
				if counts[i].Load() != want {
					require.FailNow(t, "timer", "%d was called %d times, want %d", i, counts[i].Load(), want)
				}
			}
		}
		pass(time.Minute - time.Nanosecond)
		requireCounts(0)
		pass(time.Nanosecond)
		requireCounts(1)
		pass(time.Hour)
		requireCounts(1)
	})
}

// Sets, clears and calls race in real time; every timer left set is called once.
func TestStress(t *testing.T) {
	c := New(time.Now, func(time.Duration) {})
	defer c.Close()
	const timers, setters = 64, 4
	var called [timers]atomic.Int64
	var all [timers]*Timer
	last := make(chan struct{}, timers)
	final := time.Now().Add(300 * time.Millisecond)
	for i := range all {
		all[i] = c.Timer(func(due time.Time) {
			called[i].Add(1)
			if due.Equal(final) {
				last <- struct{}{}
			}
		})
	}
	var wg sync.WaitGroup
	for k := range setters {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(k), 1))
			for time.Until(final) > 100*time.Millisecond {
				a := all[random.IntN(timers)]
				if random.IntN(4) == 0 {
					a.Clear()
				} else {
					a.Set(time.Now().Add(time.Duration(random.IntN(2_000)) * time.Microsecond))
				}
			}
		})
	}
	wg.Wait()
	for _, a := range all {
		a.Set(final)
	}
	timeout := time.After(10 * time.Second)
	for range all {
		select {
		case <-last:
		case <-timeout:
			require.FailNow(t, "a timer that was set was not called")
		}
	}
	require.Empty(t, last)
}

// BenchmarkTimers sets 100,000 timers at scattered instants and one of them again.
func BenchmarkTimers(b *testing.B) {
	const timers = 100_000
	fill := func(c *Clock, call func(time.Time)) []*Timer {
		random, far := rand.New(rand.NewPCG(3, 4)), time.Now().Add(time.Hour)
		all := make([]*Timer, timers)
		for i := range all {
			all[i] = c.Timer(call)
			all[i].Set(far.Add(time.Duration(random.Int64N(int64(time.Hour)))))
		}
		return all
	}
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := New(time.Now, func(time.Duration) {})
			fill(c, func(time.Time) {})
			c.Close()
		}
	})
	b.Run("reset", func(b *testing.B) {
		c := New(time.Now, func(time.Duration) {})
		defer c.Close()
		all := fill(c, func(time.Time) {})
		random, far := rand.New(rand.NewPCG(5, 6)), time.Now().Add(time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			all[random.IntN(timers)].Set(far.Add(time.Duration(random.Int64N(int64(time.Hour)))))
		}
	})
	b.Run("fire", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := &wall{}
			c := New(w.now, func(time.Duration) {})
			left := timers
			done := make(chan struct{})
			all := fill(c, func(time.Time) {
				if left--; left == 0 {
					close(done)
				}
			})
			w.set(3 * time.Hour)
			all[0].Set(time.Now())
			<-done
			c.Close()
		}
	})
}

// A poker is a log's call.
type poker struct {
	log  *log
	name string
}

func (p poker) Poke() { p.log.call(p.name) }

// What is spared comes after all that is due at the instant, and before what is due later.
func TestWhatIsSparedComesAfterWhatIsDue(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		c.Spare(poker{l, "idle"})
		due := w.in(time.Second)
		for _, name := range []string{"a", "b", "c"} {
			c.Timer(func(time.Time) {
				l.call(name)
				if name != "c" {
					c.Spare(poker{l, "after " + name})
				}
			}).Set(due)
		}
		later := c.Timer(func(time.Time) {
			l.call("later")
			c.Spare(poker{l, "after later"}) // nothing else is due
		})
		later.Set(due.Add(time.Millisecond))
		pass(time.Minute)
		var order []string
		for _, x := range l.take() {
			order = append(order, x.name)
		}
		require.Equal(t, "idle", order[0])
		require.ElementsMatch(t, []string{"a", "b", "c"}, slices.DeleteFunc(slices.Clone(order[1:5]), func(s string) bool { return len(s) > 1 }))
		require.Equal(t, []string{"later", "after later"}, order[len(order)-2:])
		for i, name := range order {
			require.False(t, strings.HasPrefix(name, "after ") && i < 3, "%v", order)
		}
	})
}

// Whatever is due, what is spared waits no longer than Patience.
func TestWhatIsSparedWaitsForABound(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		due := w.in(time.Second)
		for i := range 20 {
			c.Timer(func(time.Time) {
				if i == 0 {
					c.Spare(poker{l, "spared"})
				}
				time.Sleep(30 * time.Millisecond)
			}).Set(due.Add(time.Duration(i)))
		}
		pass(time.Minute)
		calls := l.take()
		require.Len(t, calls, 1)
		require.LessOrEqual(t, calls[0].after, time.Second+Patience+30*time.Millisecond)
	})
}

// However much is spared, it is looked at in between what is due.
func TestWhatIsSparedHoldsUpNothing(t *testing.T) {
	onClock(t, func(t *testing.T, c *Clock, w *wall, l *log) {
		due := w.in(time.Second)
		slow := slowly{l}
		for range 2 {
			c.Timer(func(time.Time) {
				for range 10 * few {
					if !c.Later(slow) {
						break
					}
				}
			}).Set(due)
		}
		c.Timer(func(time.Time) { l.call("due") }).Set(due.Add(few * time.Millisecond))
		pass(time.Minute)
		calls := l.take()
		require.Len(t, calls, 10*few+1)
		at := slices.IndexFunc(calls, func(x call) bool { return x.name == "due" })
		require.Positive(t, at)
		require.LessOrEqual(t, calls[at].after, time.Second+2*few*time.Millisecond)
		require.False(t, c.Later(slow), "it keeps up")
		require.Empty(t, l.take())
	})
}

// A slow poker takes a millisecond.
type slowly struct{ log *log }

func (p slowly) Poke() {
	time.Sleep(time.Millisecond)
	p.log.call("spared")
}

// A clock that is closed keeps nothing.
func TestAClosedClockPokesWhatItSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := &wall{}, &log{begun: time.Now()}
		c := New(w.now, func(time.Duration) {})
		called := make(chan struct{})
		for range 2 {
			c.Timer(func(time.Time) {
				c.Spare(poker{l, "spared"})
				close(called)
				time.Sleep(10 * time.Millisecond)
			}).Set(w.in(-time.Second))
		}
		<-called
		c.Close()
		c.Spare(poker{l, "at once"})
		require.Equal(t, []call{{"spared", 10 * time.Millisecond}, {"at once", 10 * time.Millisecond}}, l.take())
	})
}
