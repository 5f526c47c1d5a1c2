package workqueue

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A task that fails, and that others poke too: each of its failures came with a poke of its own once, so that it ran
// ever more often.
func TestATaskThatIsPokedWhileItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		var mu sync.Mutex
		var r Retry
		failing, failures := errors.New("no"), 0
		var told []time.Duration
		begun := time.Now()
		var task *Task
		task = p.Task(func() {
			mu.Lock()
			defer mu.Unlock()
			failures++
			if r.Failed(task, failing) {
				told = append(told, time.Since(begun))
			}
		})
		task.Poke()
		const news = 100
		for range news {
			<-time.After(10 * time.Millisecond)
			task.Poke()
			synctest.Wait()
		}
		<-time.After(time.Minute)
		synctest.Wait()
		mu.Lock()
		// 50, 100, 200, 400, 800 and 1,600 ms, and every 2 s from then on.
		require.InDelta(t, news+6+29, failures, 4, "some come with news")
		// 1.55 s is when the pause is longer than a second, and each is told twice as late as the one before, where
		// it fails the next time.
		var seconds []float64
		for _, at := range told {
			seconds = append(seconds, at.Seconds())
		}
		require.Len(t, seconds, 5)
		require.InDeltaSlice(t, []float64{1.55, 5.15, 9.15, 17.15, 33.15}, seconds, 0.2)

		failing = errors.New("another one")
		before := len(told)
		mu.Unlock()
		<-time.After(2 * lastRetry)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Greater(t, len(told), before, "another error is told at once")
	})
}

// After a success it begins anew.
func TestARetryBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		var ran atomic.Int32
		task := p.Task(func() { ran.Add(1) })
		for range 2 {
			var r Retry
			require.False(t, r.Failed(task, errors.New("no")))
			was := ran.Load()
			<-time.After(firstRetry - 1)
			synctest.Wait()
			require.Equal(t, was, ran.Load())
			<-time.After(1)
			synctest.Wait()
			require.Equal(t, was+1, ran.Load())
		}
	})
}
