package harness

import (
	"sync"
	"testing"
	"time"
)

// Stalls tells the longest time for which this process has stood still, from now on. What is late by no more may be a
// busy machine's doing. It is of no use in a bubble, whose time does not go on by itself.
func Stalls(t testing.TB) (longest func() time.Duration) {
	t.Helper()
	const every = 5 * time.Millisecond
	var mu sync.Mutex
	var most time.Duration
	last := time.Now()
	look := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		most, last = max(most, now.Sub(last)-every), now
		return most
	}
	ticker, done := time.NewTicker(every), make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-ticker.C:
				look()
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() {
		ticker.Stop()
		close(done)
		watch.Wait()
	})
	return look
}
