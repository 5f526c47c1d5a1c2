package simulation

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/internal/history"
)

// timetable reads a schedule as the engine does.
func timetable(s history.Schedule) (history.Timetable, error) {
	parsed, err := schedule.Parse(schedule.Config{Expr: s.Cron, Zone: s.Zone})
	if err != nil {
		return history.Timetable{}, err
	}
	if delay, fixed := parsed.Delay(); fixed {
		return history.Timetable{Delay: delay}, nil
	}
	return history.Timetable{Next: parsed.Next}, nil
}

// rules are what the simulation holds an engine to.
func (w *world) rules() history.Rules {
	late := 10 * time.Second
	if w.crowded {
		late = 0
	}
	return history.Rules{
		Timetable: timetable,
		// A run may be under way when the snapshot is taken, and those behind it wait.
		Tail: 10*time.Second + 4*w.period,
		// What a fault left is mended within a session's timeout and the engine's longest pauses.
		Settle: 2*w.timeout + 5*time.Second,
		Owned:  time.Second, Led: time.Second, Changed: 20 * time.Second,
		Late: late, Again: 15 * time.Second, Cancel: time.Second,
		Show: 5,
	}
}

// judge returns what is wrong with a run, the first of each kind first.
func (w *world) judge() (history.Report, []violation) {
	report := history.Check(w.log.records, w.rules())
	found := w.violations
	for _, v := range report.Violations {
		if w.excused(v) {
			continue
		}
		found = append(found, violation{string(v.Invariant), v.String()})
	}
	return report, found
}

// A violation is one thing that is wrong with a run.
type violation struct{ invariant, text string }

// excused reports whether a violation is what the driver itself did: it ended the life
// that is said to have gone early, or forged the death of an owner.
func (w *world) excused(v history.Violation) bool {
	names := func(lives []string) bool {
		return slices.ContainsFunc(lives, func(id string) bool { return strings.Contains(v.Text, w.log.name(id)+" ") })
	}
	switch v.Invariant {
	case history.Quiescence:
		return w.abandoned(v.Key.Job)
	case history.Coverage:
		// So is an epoch that starts where such a clock stood.
		if w.misled && strings.Contains(v.Text, "its epoch did not have") {
			return true
		}
		return w.abandoned(v.Key.Job) || w.forgot(v.Key.Job, time.Unix(0, v.Key.Due))
	case history.Outcome:
		// Records of a clock that was a year ahead are set back, and the fires between excused.
		if w.misled && (strings.Contains(v.Text, "as skipped: ") || w.farAhead(v.Key.Due)) {
			return true
		}
		if strings.Contains(v.Text, "nobody told it as cut") && w.forgot(v.Key.Job, time.Unix(0, v.Key.Due)) {
			return true
		}
		// Without a record a fire may run, and end, at two instances.
		return strings.Contains(v.Text, "told as ended") && w.unrecorded(v.Key.Job)
	case history.Changed, history.Owned:
		return w.draining(v.Key.Job, v.At) || w.deserted(v.Key.Job, v.At)
	case history.Failed:
		return w.garbled // who starts while the configuration is unreadable cannot run, and says so
	case history.Early:
		left := func(id string) bool { return strings.Contains(v.Text, "the life "+id) }
		return names(w.struck) || slices.ContainsFunc(w.shut, left)
	case history.Overlap:
		return names(w.forged)
	}
	return false
}

// farAhead reports whether a fire was due a day and more after the run: a clock was set.
func (w *world) farAhead(due int64) bool {
	last := w.log.records[len(w.log.records)-1]
	return time.Unix(0, due).After(w.log.records[0].Wall.Add(last.At).Add(24 * time.Hour))
}

// draining reports whether items of another total than the configured one still ran a
// moment before: what is owed of it runs first, however long that takes.
func (w *world) draining(job string, at time.Duration) bool {
	total := 0
	for _, r := range w.log.records {
		if r.Kind == history.Configured && r.Job == job && r.At <= at {
			total = r.Config.Total
		}
	}
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		runs := r.Kind == history.Entered || r.Kind == history.Returned
		return runs && r.Job == job && r.Total != total && r.At > at-10*time.Second
	})
}

// abandoned reports whether every instance of a job had been shut down by the driver when
// all was quiet: nobody was left to tell anything.
func (w *world) abandoned(job string) bool {
	quiet := slices.IndexFunc(w.log.records, func(r history.Record) bool { return r.Kind == history.Quiet && r.Job == job })
	return quiet >= 0 && len(w.shut) > 0 && w.deserted(job, w.log.records[quiet].At)
}

// deserted reports whether nobody lived in a job for a while before an instant.
func (w *world) deserted(job string, at time.Duration) bool {
	living := map[string]bool{}
	for _, r := range w.log.records {
		if r.At > at {
			break
		}
		if r.Job != job || r.Node != "life" {
			continue
		}
		switch r.Kind {
		case history.Come:
			living[r.Instance] = true
		case history.Gone:
			delete(living, r.Instance)
		}
	}
	return len(living) == 0
}

// forgot reports whether what a job owed about an instant was known to nobody: the driver
// destroyed a ledger, and the leader warned that records are lost.
func (w *world) forgot(job string, due time.Time) bool {
	return slices.ContainsFunc(w.erased, func(e erasure) bool {
		warned := slices.ContainsFunc(w.log.records, func(r history.Record) bool {
			return r.Kind == history.Warned && r.Job == job && r.At >= w.common(e.at) && strings.Contains(r.Reason, "stood in no ledger")
		})
		return warned && e.job == job && due.After(e.at.Add(-10*w.period)) && due.Before(e.at.Add(10*w.period))
	})
}

// unrecorded reports whether a job was ever configured without monitoring.
func (w *world) unrecorded(job string) bool {
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == history.Configured && r.Job == job && r.Config.Unmonitored
	})
}

// A mask says which faults of a plan happen.
type mask uint64

func parseMask(text string) (mask, error) {
	if text == "" {
		return ^mask(0), nil
	}
	n, err := strconv.ParseUint(text, 16, 64)
	return mask(n), err
}

func (m mask) has(i int) bool { return m>>i&1 != 0 }

// shrink returns the fewest of the faults with which a run still breaks invariant, as
// far as leaving out halves, and then single ones, finds them.
func shrink(m mask, breaks func(m mask) bool) mask {
	for size := bits.Len64(uint64(m)); size > 0; size /= 2 {
		for from := 0; from < bits.Len64(uint64(m)); from += size {
			part := (mask(1)<<size - 1) << from
			if m&part != 0 && breaks(m&^part) {
				m &^= part
			}
		}
	}
	return m
}

// command repeats a run.
func command(seed uint64, m mask) string {
	return fmt.Sprintf("go test ./core/simulation -run TestSimulation -seed %d -faults %x -v", seed, uint64(m))
}
