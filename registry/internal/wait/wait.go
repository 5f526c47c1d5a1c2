package wait

import (
	"context"
	"time"
)

// For waits until d has passed or ctx ends, and reports whether ctx still lived.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Growing is the pause after n attempts before this one, or rounds of them: first, and twice
// as long each time, up to longest.
func Growing(n int, first, longest time.Duration) time.Duration {
	return min(first<<min(n, 10), longest)
}

// Wake lets who waits for c know, unless that is under way. c has room for one.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
