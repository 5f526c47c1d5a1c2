package places

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A log notes what happens to runs, in order.
type log struct {
	mu     sync.Mutex
	lines  []string
	active int
	most   int
}

func (l *log) note(what string, item int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprint(what, " ", item))
}

func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// A run calls a function.
type run struct {
	*log
	item   int
	refuse bool
	first  bool
	call   func() error
	err    error
	took   time.Duration
}

func (r *run) Item() int { return r.item }

func (r *run) First() bool { return r.first }

func (r *run) Enter() bool {
	r.note("enter", r.item)
	return !r.refuse
}

func (r *run) Call() error {
	r.mu.Lock()
	r.active++
	r.most = max(r.most, r.active)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.active--
		r.mu.Unlock()
	}()
	r.note("call", r.item)
	if r.call == nil {
		return nil
	}
	return r.call()
}

func (r *run) Left(err error, took time.Duration) {
	r.err, r.took = err, took
	r.note("left", r.item)
}

func (r *run) Dropped() { r.note("dropped", r.item) }

func sleep(d time.Duration) func() error {
	return func() error { time.Sleep(d); return nil }
}

func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestPlacesAreTakenInTheOrderOfSubmission(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &log{}
		p := New(1, func(n int) { l.note("returned", n) })
		require.True(t, p.Idle())
		for n := range 3 {
			p.Submit(&run{log: l, item: n, call: sleep(time.Second)})
		}
		synctest.Wait()
		require.Equal(t, []int{0}, p.Running())
		require.Equal(t, []int{1, 2}, p.Queued())
		require.False(t, p.Idle())
		p.Wait()
		require.Equal(t, []string{
			"enter 0", "call 0", "left 0", "returned 0", "enter 1", "call 1", "left 1", "returned 1", "enter 2", "call 2",
			"left 2", "returned 2",
		}, l.take())
		require.True(t, p.Idle())
		require.Empty(t, p.Queued())
	})
}

func TestWhatGoesFirstWaitsBeforeTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &log{}
		p := New(1, nil)
		require.Equal(t, 1, p.Limit())
		for n := range 6 {
			p.Submit(&run{log: l, item: n, call: sleep(time.Second), first: n == 3 || n == 5})
		}
		require.True(t, p.Drop(1))
		p.Wait()
		var entered []string
		for _, line := range l.take() {
			if line[0] == 'e' {
				entered = append(entered, line)
			}
		}
		require.Equal(t, []string{"enter 0", "enter 3", "enter 5", "enter 2", "enter 4"}, entered)
	})
}

func TestTheLimitHolds(t *testing.T) {
	for _, limit := range []int{1, 3, 10} {
		inBubble(t, func(t *testing.T) {
			l := &log{}
			p := New(limit, nil)
			begun := time.Now()
			for n := range 10 {
				p.Submit(&run{log: l, item: n, call: sleep(time.Second)})
			}
			p.Wait()
			require.Equal(t, limit, l.most)
			require.Equal(t, time.Duration((9+limit)/limit)*time.Second, time.Since(begun))
		})
	}
}

// No goroutine exists for what waits.
func TestWhatWaitsCostsNoGoroutine(t *testing.T) {
	inBubble(t, func(*testing.T) {
		p := New(1, nil)
		p.Submit(&run{log: &log{}, call: sleep(time.Second)})
		synctest.Wait()
		before := runtime.NumGoroutine()
		for n := range 1000 {
			p.Submit(&run{log: &log{}, item: n + 1})
		}
		require.Less(t, runtime.NumGoroutine(), before+100)
		p.Wait()
	})
}

func TestDrop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &log{}
		p := New(1, nil)
		for n := range 4 {
			p.Submit(&run{log: l, item: n, call: sleep(time.Second)})
		}
		synctest.Wait()
		l.take()
		require.True(t, p.Drop(2))
		require.False(t, p.Drop(2))
		require.False(t, p.Drop(0), "it runs")
		require.False(t, p.Drop(9))
		require.Equal(t, []int{1, 3}, p.Queued())
		p.Submit(&run{log: l, item: 2}) // again, behind the others
		p.Wait()
		require.Equal(t, []string{
			"left 0", "enter 1", "call 1", "left 1", "enter 3", "call 3", "left 3", "enter 2", "call 2", "left 2",
		}, l.take())
		p.Submit(&run{log: l, item: 5})
		p.Wait()
		require.Equal(t, []string{"enter 5", "call 5", "left 5"}, l.take())
	})
}

// While a function does not return, what was dropped is not kept, however often it waits again, as after each loss of the
// session.
func TestWhatWasDroppedIsNotKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var l log
		p, free := New(1, nil), make(chan struct{})
		p.Submit(&run{log: &l, item: 0, call: func() error { <-free; return nil }})
		for range 100 {
			for n := 1; n < 10; n++ {
				p.Submit(&run{log: &l, item: n, first: n%2 == 0})
			}
			for n := 1; n < 9; n++ {
				require.True(t, p.Drop(n))
			}
			require.False(t, p.Drop(1))
			require.Equal(t, []int{9}, p.Queued())
			require.LessOrEqual(t, len(p.first.all), 8)
			require.True(t, p.Drop(9))
			require.LessOrEqual(t, len(p.others.all), 2)
		}
		p.Submit(&run{log: &l, item: 1})
		close(free)
		p.Wait()
		require.Equal(t, []string{"enter 0", "call 0", "left 0", "enter 1", "call 1", "left 1"}, l.take())
	})
}

func TestARunMayRefuseItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &log{}
		p := New(1, func(n int) { l.note("returned", n) })
		p.Submit(&run{log: l, item: 0, refuse: true})
		p.Submit(&run{log: l, item: 1})
		p.Wait()
		require.Equal(t, []string{"enter 0", "dropped 0", "returned 0", "enter 1", "call 1", "left 1", "returned 1"}, l.take())
	})
}

// Finding C 3: a function that panics, or ends its goroutine, gives its place back.
func TestHoweverAFunctionEndsItGivesItsPlaceBack(t *testing.T) {
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		call  func() error
		check func(t *testing.T, err error)
	}{
		"error": {func() error { return mine }, func(t *testing.T, err error) { t.Helper(); require.Equal(t, mine, err) }},
		"panic": {func() error { panic("oh") }, func(t *testing.T, err error) {
			t.Helper()
			p, ok := errors.AsType[*PanicError](err)
			require.True(t, ok)
			require.Equal(t, "oh", p.Value)
			require.EqualError(t, err, "panic: oh")
			require.Contains(t, string(p.Stack), "places_test.go")
		}},
		"panic of nothing": {func() error { panic(nil) }, func(t *testing.T, err error) {
			t.Helper()
			_, ok := errors.AsType[*PanicError](err)
			require.True(t, ok)
		}},
		"Goexit": {func() error { runtime.Goexit(); return nil }, func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, ErrGoexit)
		}},
		"Goexit while it panics": {func() error { defer runtime.Goexit(); panic("oh") }, func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, ErrGoexit)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l := &log{}
				returned := 0
				p := New(1, func(int) { returned++ })
				var runs []*run
				for n := range 5 {
					r := &run{log: l, item: n, call: func() error { time.Sleep(time.Second); return c.call() }}
					runs = append(runs, r)
					p.Submit(r)
				}
				p.Wait()
				for _, r := range runs {
					c.check(t, r.err)
					require.Equal(t, time.Second, r.took)
				}
				require.Equal(t, 5, returned)
				require.Empty(t, p.Running())
				p.Submit(&run{log: l, item: 9})
				p.Wait()
				require.Equal(t, "left 9", l.take()[5*3+2])
			})
		})
	}
}

// A run may submit another one, and Wait joins that too.
func TestWaitJoinsWhatRunsSubmit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &log{}
		p := New(2, nil)
		var next func(n int) *run
		next = func(n int) *run {
			return &run{log: l, item: n, call: func() error {
				time.Sleep(time.Second)
				if n < 5 {
					p.Submit(next(n + 1))
				}
				return nil
			}}
		}
		begun := time.Now()
		p.Submit(next(0))
		p.Wait()
		require.Equal(t, 6*time.Second, time.Since(begun))
	})
}

// Whatever is submitted and dropped: what enters does so in order, no more than the limit
// at once, and each run is called, dropped or taken out, once.
func TestAnyOrderOfSubmissionsAndDrops(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		plan := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(t, "plan")
		inBubble(outer, func(*testing.T) {
			l := &log{}
			p := New(limit, nil)
			submitted, dropped := 0, 0
			for _, what := range plan {
				switch {
				case what < 5:
					ends := []func() error{nil, sleep(time.Second), func() error { runtime.Goexit(); return nil },
						func() error { panic("oh") }}
					r := &run{log: l, item: submitted, refuse: what == 4}
					if what < 4 {
						r.call = ends[what]
					}
					p.Submit(r)
					submitted++
				case what < 8:
					if waiting := p.Queued(); len(waiting) > 0 && p.Drop(waiting[len(waiting)/2]) {
						dropped++
					}
				default:
					time.Sleep(700 * time.Millisecond)
				}
			}
			p.Wait()
			var entered, over []string
			for _, line := range l.take() {
				switch line[0] {
				case 'e':
					entered = append(entered, line)
				case 'l', 'd':
					over = append(over, line)
				}
			}
			if len(entered) != submitted-dropped || len(over) != len(entered) || l.most > limit || !p.Idle() {
				t.Fatalf("%d submitted, %d dropped, %v, %v, %d at once", submitted, dropped, entered, over, l.most)
			}
			slices.Sort(over)
			if len(slices.Compact(over)) != len(entered) {
				t.Fatalf("%v", over)
			}
		})
	})
}
