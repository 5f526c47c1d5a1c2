package dispatch

import (
	"log/slog"
	"maps"
	"slices"
	"time"
)

const (
	crowdTime  = 10 * time.Second
	crowdShown = 10 // in that time, of one problem
)

// A crowd keeps a log readable while one problem troubles many jobs, as an outage does each second, or one job all the
// time: it lets some of their warnings through and counts the others. The zero value is ready.
type crowd struct {
	since    time.Time
	over     <-chan time.Time // says when the time is over
	problems map[string]int   // how often each came
}

// admits reports whether a warning of a problem is to be written.
func (c *crowd) admits(now time.Time, problem string) bool {
	if c.problems == nil {
		c.since, c.over, c.problems = now, time.After(crowdTime), map[string]int{}
	}
	c.problems[problem]++
	return c.problems[problem] <= crowdShown
}

// rest gives the number of warnings that were not written, by their problem, once the time is over, and begins anew.
func (c *crowd) rest(now time.Time, over bool) (left []untold) {
	if c.problems == nil || !over && now.Sub(c.since) < crowdTime {
		return nil
	}
	for _, problem := range slices.Sorted(maps.Keys(c.problems)) {
		if n := c.problems[problem] - crowdShown; n > 0 {
			left = append(left, untold{problem, n, now.Sub(c.since)})
		}
	}
	c.over, c.problems = nil, nil
	return left
}

// An untold is a number of warnings of one problem that were not written.
type untold struct {
	problem string
	count   int
	within  time.Duration
}

func (u untold) attrs() []slog.Attr {
	return []slog.Attr{slog.Int("more", u.count), slog.Duration("within", u.within.Round(time.Millisecond))}
}
