package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/elasticron/elasticron/internal/history"
)

// A jobSpec is one job of the run. Crons and Totals are what the driver changes between;
// the first is where it starts.
type jobSpec struct {
	name        string
	crons       []string
	totals      []int
	unmonitored bool
	failover    bool
	// static: items stay with their worker.
	static bool
	// within is how far a worker's clock may be off the leader's; 0 for any distance.
	within time.Duration
	// listened: every worker listens to the job's rounds; again: another one does where the
	// one that was called first has died.
	listened, again bool
	// failLate: items fail where the listener before a round is too late.
	failLate bool
	// longest bounds how long a function takes; most are much shorter.
	longest time.Duration
}

// restCron fires in no run.
const restCron = "0 0 0 1 1 ? 2099"

// jobs are all jobs of a run: a fast one, one by cron, one that overruns its period, a
// fixed delay, one without a record, one with static sharding, and one that bounds how far clocks
// may differ. Workers listen to the rounds of two of them.
var jobs = []jobSpec{
	{name: "fast", crons: []string{"@every 200ms", "@every 300ms"}, totals: []int{40, 28, 55}, longest: 20 * time.Millisecond, failover: true},
	{name: "cron", crons: []string{"* * * * * ?", "0/2 * * * * ?"}, totals: []int{60, 45}, longest: 200 * time.Millisecond, listened: true, failLate: true},
	{name: "long", crons: []string{"@every 1s"}, totals: []int{20, 33}, longest: 2 * time.Second, failover: true, listened: true, again: true},
	{name: "delay", crons: []string{"@delay 300ms"}, totals: []int{12, 9}, longest: 100 * time.Millisecond, failover: true},
	{name: "loose", crons: []string{"@every 500ms"}, totals: []int{20}, longest: 100 * time.Millisecond, unmonitored: true},
	{name: "bound", crons: []string{"@every 1s"}, totals: []int{16, 24}, longest: 300 * time.Millisecond, failover: true, static: true},
	{name: "timed", crons: []string{"@every 500ms"}, totals: []int{10}, longest: 100 * time.Millisecond, failover: true, within: time.Second},
}

func (s jobSpec) config() history.Config {
	return history.Config{Cron: s.crons[0], Zone: "UTC", Total: s.totals[0], Unmonitored: s.unmonitored, Failover: s.failover, Static: s.static, Within: s.within}
}

// listened is a job to whose rounds workers listen.
func listened() jobSpec {
	return jobs[slices.IndexFunc(jobs, func(s jobSpec) bool { return s.listened })]
}

// timed is a job that bounds how far clocks may differ.
func timed() jobSpec {
	return jobs[slices.IndexFunc(jobs, func(s jobSpec) bool { return s.within > 0 })]
}

// length is how long the function of one fire takes: one in eight up to longest, the
// others a twentieth of it.
func (s jobSpec) length(item int, due time.Time) time.Duration {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d/%d", s.name, item, due.UnixNano())
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	most := s.longest
	if r.IntN(8) > 0 {
		most /= 20
	}
	return time.Duration(r.Int64N(int64(most) + 1))
}

// timetable reads a schedule with another reader than the engine's own.
func timetable(s history.Schedule) (history.Timetable, error) {
	if text, ok := strings.CutPrefix(s.Cron, "@delay "); ok {
		d, err := time.ParseDuration(text)
		return history.Timetable{Delay: d}, err
	}
	if text, ok := strings.CutPrefix(s.Cron, "@every "); ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return history.Timetable{}, err
		}
		return history.Timetable{Next: func(after time.Time) (time.Time, bool) {
			n := after.UnixNano()
			return time.Unix(0, n-n%int64(d)+int64(d)).UTC(), true
		}}, nil
	}
	if s.Cron == restCron {
		return history.Timetable{Next: func(time.Time) (time.Time, bool) { return time.Time{}, false }}, nil
	}
	parsed, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(s.Cron)
	if err != nil {
		return history.Timetable{}, err
	}
	return history.Timetable{Next: func(after time.Time) (time.Time, bool) { return parsed.Next(after.UTC()), true }}, nil
}
