package workqueue

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// bubble runs a test in fake time. Its end fails when a goroutine is left.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestAPokeRunsTheTaskOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		runs := 0
		task := p.Task(func() { runs++ })
		synctest.Wait()
		require.Zero(t, runs, "a new task is idle")
		for want := 1; want <= 3; want++ {
			task.Poke()
			synctest.Wait()
			require.Equal(t, want, runs)
		}
	})
}

// Any number of pokes while it runs make it run once more, and pokes while it is
// queued none.
func TestPokesWhileItRunsAreOneMoreRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		gate := make(chan struct{})
		runs := 0
		task := p.Task(func() { runs++; <-gate })
		task.Poke()
		synctest.Wait()
		for range 5 {
			task.Poke()
		}
		gate <- struct{}{}
		synctest.Wait()
		require.Equal(t, 2, runs)
		gate <- struct{}{}
		synctest.Wait()
		require.Equal(t, 2, runs)
	})
}

func TestPokesWhileItIsQueuedAreOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		gate := make(chan struct{})
		runs := 0
		blocker, task := p.Task(func() { <-gate }), p.Task(func() { runs++ })
		blocker.Poke()
		synctest.Wait()
		for range 5 {
			task.Poke()
		}
		synctest.Wait()
		require.Zero(t, runs)
		gate <- struct{}{}
		synctest.Wait()
		require.Equal(t, 1, runs)
	})
}

func TestATaskMayPokeItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		runs := 0
		var task *Task
		task = p.Task(func() {
			if runs++; runs < 10 {
				task.Poke()
				task.Poke()
			}
		})
		task.Poke()
		synctest.Wait()
		require.Equal(t, 10, runs)
	})
}

// A task that always wants to run again does not keep others from running.
func TestTasksTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := NewPool(1)
		var order []int
		tasks := make([]*Task, 3)
		for i := range tasks {
			tasks[i] = p.Task(func() {
				if order = append(order, i); len(order) < 9 {
					tasks[i].Poke()
				}
			})
		}
		gate := make(chan struct{})
		p.Task(func() { <-gate }).Poke()
		synctest.Wait()
		for _, task := range tasks {
			task.Poke()
		}
		close(gate)
		p.waitIdle()
		require.Equal(t, []int{0, 1, 2, 0, 1, 2, 0, 1, 2}, order[:9])
		p.Close()
	})
}

// waitIdle waits until nothing runs; the pool stays open.
func (p *Pool) waitIdle() { p.wg.Wait() }

func TestTheLimitIsKeptAndUsed(t *testing.T) {
	for _, limit := range []int{1, 3, 16} {
		bubble(t, func(t *testing.T) {
			p := NewPool(limit)
			defer p.Close()
			now, most, runs := 0, 0, 0
			var mu sync.Mutex
			for range 50 {
				p.Task(func() {
					mu.Lock()
					now++
					runs++
					most = max(most, now)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					now--
					mu.Unlock()
				}).Poke()
			}
			begun := time.Now()
			p.waitIdle()
			require.Equal(t, limit, most)
			require.Equal(t, 50, runs)
			require.Equal(t, time.Duration((50+limit-1)/limit)*time.Second, time.Since(begun))
		})
	}
}

func TestAnIdlePoolHasNoGoroutine(t *testing.T) {
	others := goleak.IgnoreCurrent()
	p := NewPool(8)
	tasks := make([]*Task, 1000)
	for i := range tasks {
		tasks[i] = p.Task(func() {})
	}
	require.NoError(t, goleak.Find(others))
	for range 3 {
		for _, task := range tasks {
			task.Poke()
		}
		p.waitIdle()
		require.NoError(t, goleak.Find(others), "the pool is open and idle")
	}
}

// Close waits for what runs, drops what is queued and what was poked again, and
// refuses what is poked later.
func TestCloseWaitsDropsAndRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := NewPool(1)
		gate := make(chan struct{})
		long, queued := 0, 0
		running, waiting := p.Task(func() { long++; <-gate }), p.Task(func() { queued++ })
		running.Poke()
		synctest.Wait()
		waiting.Poke()
		running.Poke() // again
		var closed atomic.Int32
		for range 3 {
			go func() { p.Close(); closed.Add(1) }()
		}
		synctest.Wait()
		require.Zero(t, closed.Load(), "a task runs")
		waiting.Poke()
		running.Poke()
		close(gate)
		synctest.Wait()
		require.Equal(t, int32(3), closed.Load())
		waiting.Poke()
		running.Poke()
		p.Close()
		synctest.Wait()
		require.Equal(t, [2]int{1, 0}, [2]int{long, queued})
	})
}

func TestCloseOfAPoolThatNeverRan(t *testing.T) {
	p := NewPool(1)
	p.Close()
	p.Close()
}

// Every poke is followed by a whole run, no task runs twice at once, and the
// limit holds, while many poke at once and the pool is closed in the middle.
func TestStress(t *testing.T) {
	const limit, tasks, pokers, pokes = 4, 20, 8, 2_000
	p := NewPool(limit)
	var active atomic.Int32
	var begun, ran [tasks]atomic.Int64 // begun: runs that have begun
	var busy [tasks]atomic.Bool
	var poked [tasks]*Task
	for i := range poked {
		poked[i] = p.Task(func() {
			if busy[i].Swap(true) {
				t.Error("a task runs twice at once")
			}
			if active.Add(1) > limit {
				t.Error("more run than the limit")
			}
			begun[i].Add(1)
			runtime.Gosched()
			ran[i].Add(1)
			active.Add(-1)
			busy[i].Store(false)
		})
	}
	storm := func() {
		var wg sync.WaitGroup
		for k := range pokers {
			wg.Go(func() {
				for n := range pokes {
					poked[(n*7+k)%tasks].Poke()
				}
			})
		}
		wg.Wait()
	}
	storm()
	p.waitIdle()
	for i, task := range poked {
		before := begun[i].Load()
		require.Positive(t, before)
		task.Poke()
		p.waitIdle()
		require.Equal(t, before+1, begun[i].Load(), "a poke after the last run is a run")
	}
	done := make(chan struct{})
	go func() { defer close(done); storm() }()
	runtime.Gosched()
	p.Close()
	require.Zero(t, active.Load())
	<-done
	for i := range poked {
		require.Equal(t, begun[i].Load(), ran[i].Load())
	}
}

// What was pressed goes before what was poked, also where it was poked before; and nothing runs twice for that.
func TestPressedTasksGoFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		gate := make(chan struct{})
		var ran []string
		task := func(name string) *Task { return p.Task(func() { ran = append(ran, name); <-gate }) }
		first, a, b, c := task("first"), task("a"), task("b"), task("c")
		round := func() (order []string) {
			t.Helper()
			synctest.Wait()
			for range 10 {
				select {
				case gate <- struct{}{}:
				default:
				}
				synctest.Wait()
			}
			order, ran = ran, nil
			return order
		}
		first.Poke()
		synctest.Wait()
		a.Poke()
		b.Poke()
		c.Press()
		b.Press()
		b.Press()
		c.Poke()
		first.Press() // it runs
		require.Equal(t, []string{"first", "c", "b", "first", "a"}, round())
		first.Poke()
		synctest.Wait()
		b.Press()
		a.Poke()
		b.Poke()
		require.Equal(t, []string{"first", "b", "a"}, round(), "it is not pressed for ever")
		first.Poke()
		synctest.Wait()
		b.Poke()
		a.Press()
		go p.Close()
		synctest.Wait()
		b.Press()
		require.Equal(t, []string{"first"}, round(), "what is queued is dropped")
	})
}
