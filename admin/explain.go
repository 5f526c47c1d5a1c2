package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// An Outcome is what became of a fire of an item, as far as the registry knows.
type Outcome string

const (
	// NotDue: the schedule has no fire at that instant.
	NotDue Outcome = "not due"
	// ToCome: it is due later.
	ToCome Outcome = "to come"
	// Runs: it runs now. Why says whether it runs again.
	Runs Outcome = "runs"
	// ToRunAgain: it began, its instance's life ended, and it waits to run again
	// (JobConfig.Failover).
	ToRunAgain Outcome = "to run again"
	// Owed: it was due and has not begun; it is made up or skipped when it can be.
	Owed Outcome = "owed"
	// Ended: it was the latest run of the item, and it ended.
	Ended Outcome = "ended"
	// Failed: it was the latest run of the item, and its function returned an error.
	Failed Outcome = "failed"
	// Skipped: it did not run and never will.
	Skipped Outcome = "skipped"
	// Cut: it began, its instance's life ended before its end was recorded, and it does not run
	// again. Why says why not.
	Cut Outcome = "cut"
	// Settled: it ran or was skipped. The record keeps no reason for a fire that long ago:
	// the log of the item's owner does.
	Settled Outcome = "settled"
	// Unrecorded: the job records nothing, or the item has no record.
	Unrecorded Outcome = "unrecorded"
)

// An Answer says why an item did or did not run at an instant.
type Answer struct {
	// Job, Item and At are what was asked.
	Job  string
	Item int
	At   time.Time
	// Outcome is what became of the fire.
	Outcome Outcome
	// Why says it in one sentence.
	Why string
	// Facts are what the answer was made of, a sentence each: the record, the switches, the
	// lives. What they say of now may have been otherwise then.
	Facts []string
}

// String is the answer on one line, with the facts.
func (a Answer) String() string {
	return strings.Join(append([]string{fmt.Sprintf("item %d of %s at %s: %s: %s", a.Item, a.Job, instant(a.At), a.Outcome, a.Why)}, a.Facts...), "; ")
}

// Explain answers why an item did not run at an instant, or what became of the fire that
// was due then. The instant is that of the fire, as Shard.Due has it.
func (a *Admin) Explain(ctx context.Context, job string, item int, at time.Time) (Answer, error) {
	v, err := a.view(ctx, job)
	if err != nil {
		return Answer{}, failed("explain", job, err)
	}
	if item < 0 || item >= max(v.total(), v.stored.ShardingTotalCount) {
		return Answer{}, failed("explain", job, ErrNoItem)
	}
	return v.explain(item, v.holdings()[item], at.Round(0)), nil
}

func (v *view) explain(item int, h holding, at time.Time) Answer {
	h = v.orphan(h)
	ans := Answer{Job: v.job.Name(), Item: item, At: at, Facts: v.facts(item, h)}
	ans.Outcome, ans.Why = v.fate(item, h, at)
	return ans
}

// fate decides by the record first, which is written before anything else is said.
func (v *view) fate(item int, h holding, at time.Time) (Outcome, string) {
	if out, why := v.recorded(item, h, at); out != "" {
		return out, why
	}
	if out, why := v.scheduled(h, at); out != "" {
		return out, why
	}
	switch {
	case at.After(v.now):
		return ToCome, "it is due in " + at.Sub(v.now).Round(time.Second).String()
	case v.configErr == nil && v.config.Monitor == core.MonitorOff:
		return Unrecorded, "the job's configuration says monitorExecution: false, so nothing that runs is recorded"
	case v.base != nil && !at.After(v.base.Through) && (!h.known || h.epoch >= v.base.Epoch):
		return Settled, fmt.Sprintf("it was due before the sharding total count became %d; the items of that time are gone", v.base.To)
	case !h.known:
		return Unrecorded, "no instance has a record of the item: " + v.waits(item, h)
	case at.After(h.item.Through):
		return Owed, v.waits(item, h)
	}
	if out, why := v.latest(h, at); out != "" {
		return out, why
	}
	if up := v.up(); !up.IsZero() && at.Before(up) {
		return Settled, "no instance was registered then, as far as the lives tell: the job is up since " + instant(up)
	}
	return Settled, "the record says that every fire until " + instant(h.item.Through) + " has its outcome, and keeps no more than that"
}

// recorded looks for the fire in the item's record.
func (v *view) recorded(item int, h holding, at time.Time) (Outcome, string) {
	switch {
	case v.ahead(h) && h.item.Run.Equal(at):
		return ToCome, "its begin is recorded on " + h.owner + ", and it is due in " + at.Sub(v.now).Round(time.Millisecond).String()
	case h.item.Running() && h.item.Run.Equal(at) && h.item.Redo.Lost != "":
		return Runs, "it runs again on " + h.owner + ": " + died(h.item.Redo)
	case h.item.Running() && h.item.Run.Equal(at):
		return Runs, "it runs on " + h.owner
	case h.item.Redo.Owed() && h.item.Redo.Due.Equal(at):
		return ToRunAgain, awaits(h, v.blocked(item, h))
	}
	for _, n := range h.item.Told.Notes() {
		switch {
		case n.Instance != "" && n.Due.Equal(at):
			why := "it began on " + n.Instance + ", whose life ended before its end was recorded; it may have finished, and does not run again"
			if n.Reason != "" {
				why += ": " + n.Reason
			}
			return Cut, why
		case n.Instance == "" && !at.Before(noteFirst(n)) && !at.After(n.Due):
			return Skipped, n.Reason
		}
	}
	return "", ""
}

func noteFirst(n ledger.Note) time.Time {
	if n.First.IsZero() {
		return n.Due
	}
	return n.First
}

// latest tells of the latest run, if it is of the fire: nothing was accounted for since,
// and it began no earlier than the fire was due.
func (v *view) latest(h holding, at time.Time) (Outcome, string) {
	l := h.item.Last
	if !at.Equal(v.through(h, at)) || l.Ended.IsZero() || l.Ended.Before(l.Began) || l.Began.Before(at) {
		return "", ""
	}
	if l.Failed {
		return Failed, fmt.Sprintf("it ran from %s to %s, and its function returned an error", instant(l.Began), instant(l.Ended))
	}
	return Ended, fmt.Sprintf("it ran from %s to %s", instant(l.Began), instant(l.Ended))
}

// through is up to where the fires of an item have their outcomes. Where the next one after an instant
// has been begun ahead of its time, that is this instant.
func (v *view) through(h holding, at time.Time) time.Time {
	if !h.item.Running() || !h.item.Run.Equal(h.item.Through) || !h.item.Run.After(h.item.Last.Ended) {
		return h.item.Through
	}
	s, err := v.timing()
	if err != nil {
		return h.item.Through
	}
	if next, ok := s.Next(at); ok && next.Equal(h.item.Run) {
		return at
	}
	return h.item.Through
}

// scheduled says that no fire was due at an instant, by the schedule that was in force
// then; "" when one was, or nobody can know.
func (v *view) scheduled(h holding, at time.Time) (Outcome, string) {
	c, err := v.rule()
	if err != nil {
		return "", ""
	}
	if v.schedule != nil && !at.After(v.schedule.Since) {
		past := v.schedule.Before // the latest first
		i := slices.IndexFunc(past, func(p layout.Past) bool { return at.After(p.Since) })
		if i < 0 && len(past) > 0 {
			i = len(past) - 1
		}
		if i < 0 {
			return NotDue, "the job's first schedule is in force since " + instant(v.schedule.Since)
		}
		c = ruleOf(past[i].Rule)
	}
	s, err := c.Schedule()
	if err != nil {
		return "", ""
	}
	if delay, delayed := s.Delay(); delayed {
		return NotDue, fmt.Sprintf("each fire of the item comes %v after the end of its run before (a fixed delay); the latest that is known was due at %s",
			delay, instant(h.item.Through))
	}
	next, ok := s.Next(at.Add(-1))
	if ok && next.Equal(at) {
		return "", ""
	}
	why := fmt.Sprintf("%q has no fire then", s)
	if prev, found := s.Prev(at, time.Time{}); found {
		why += "; the one before is " + instant(prev)
	}
	if ok {
		why += ", the next is " + instant(next)
	}
	return NotDue, why
}

// up is since when the job has had a live instance without a break; zero when none is
// there.
func (v *view) up() time.Time {
	var up time.Time
	for _, l := range v.lives {
		if up.IsZero() || l.Up.Before(up) {
			up = l.Up
		}
	}
	return up
}

// waits says what a fire waits for that is owed.
func (v *view) waits(item int, h holding) string {
	switch why := v.blocked(item, h); {
	case h.item.Redo.Owed():
		return awaits(h, why)
	case why != "":
		return why
	case h.item.Running():
		return "the item still runs the fire due at " + instant(h.item.Run) + " on " + h.owner
	}
	return "its owner " + h.owner + " has not begun it yet"
}

// facts are what the record, the switches and the lives say now.
func (v *view) facts(item int, h holding) []string {
	var facts []string
	say := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if v.configErr != nil {
		say("the configuration cannot be read: %v", v.configErr)
	}
	switch {
	case h.known && h.item.Lent():
		say("%s has it for %s, to which it is bound; every fire until %s is accounted for", h.owner, h.item.Bound, instant(h.item.Through))
	case h.known:
		say("%s owns it, and accounts for every fire until %s", h.owner, instant(h.item.Through))
	case h.owner != "":
		say("%s owns it, and keeps no record", h.owner)
	default:
		say("nobody owns it")
	}
	switch {
	case v.ahead(h):
		say("the fire due at %s is begun, ahead of its time", instant(h.item.Run))
	case h.item.Running():
		say("it runs the fire due at %s", instant(h.item.Run))
	}
	if h.item.Redo.Owed() {
		say("it is to run the fire due at %s again", instant(h.item.Redo.Due))
	}
	if h.item.Redo.Lost != "" {
		say("%s", died(h.item.Redo))
	}
	if l := h.item.Last; !l.Began.IsZero() {
		end := "no end of a run is known"
		if !l.Ended.IsZero() {
			end = "the latest end is of " + instant(l.Ended)
		}
		say("its latest run began at %s, and %s", instant(l.Began), end)
	}
	if why := v.blocked(item, h); why != "" {
		say("now %s", why)
	}
	if life, stands := v.lives[h.owner]; stands && !life.At.IsZero() {
		say("%s is registered since %s", h.owner, instant(life.At))
	}
	if s := v.schedule; s != nil && !s.Floor.IsZero() {
		say("an instance of ElasticJob led until %s at the latest; what was due until then and did not run is not made up", instant(s.Floor))
	}
	if up := v.up(); !up.IsZero() {
		say("the job has an instance since %s", instant(up))
	} else {
		say("no instance has a life")
	}
	return facts
}
