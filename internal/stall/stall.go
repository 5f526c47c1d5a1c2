package stall

import (
	"sync"
	"time"
)

// every is how often Watch looks at the time.
const every = 5 * time.Millisecond

// Watch tells the longest time for which this process has stood still, from now on until end, which must be called and
// may be called again.
func Watch() (longest func() time.Duration, end func()) {
	var mu sync.Mutex
	var most time.Duration
	last, ended := time.Now(), false
	look := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); !ended {
			most, last = max(most, now.Sub(last)-every), now
		}
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
	return look, sync.OnceFunc(func() {
		look()
		mu.Lock()
		ended = true
		mu.Unlock()
		ticker.Stop()
		close(done)
		watch.Wait()
	})
}
