package link

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/elasticron/elasticron/core"
)

// Retries say how a failed run is tried again. The zero value tries three times.
type Retries struct {
	// Max is the number of attempts in all. 0 is 3, negative is no bound.
	Max int
	// First and Longest bound the pause between two attempts, which doubles each time and
	// is spread at random by half. 0 is 1 s and 1 min.
	First, Longest time.Duration
	// If says which errors are worth another attempt; nil takes all. A run whose
	// context has ended is never tried again.
	If func(error) bool
}

// Retry calls the job again when it fails. It is the same run with the same Shard.Fence and
// Shard.TaskID; Shard.Attempt counts on. The item keeps its place (JobConfig.Concurrency)
// during the pause, which ends early, without another attempt, when Shard.Yield is closed or
// the context ends. The error is that of the last attempt.
func Retry(r Retries) Link {
	r.Max, r.First, r.Longest = cmp.Or(r.Max, 3), cmp.Or(r.First, time.Second), cmp.Or(r.Longest, time.Minute)
	return func(next core.Job) core.Job {
		return core.JobFunc(func(ctx context.Context, s core.Shard) error {
			pauses := backoff.NewExponentialBackOff()
			pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = r.First, r.Longest, 2
			for tried := 1; ; tried++ {
				err := Call(ctx, next, s)
				if err == nil || ctx.Err() != nil || tried == r.Max || (r.If != nil && !r.If(err)) || !pause(ctx, s, pauses.NextBackOff()) {
					return after(tried, err)
				}
				s.Attempt++
			}
		})
	}
}

// after says how often was tried, where that was more than once.
func after(tried int, err error) error {
	if err == nil || tried == 1 {
		return err
	}
	return fmt.Errorf("after %d attempts: %w", tried, err)
}

// pause reports whether it lasted.
func pause(ctx context.Context, s core.Shard, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.Yield:
	}
	return false
}
