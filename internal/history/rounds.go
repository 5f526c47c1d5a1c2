package history

import (
	"slices"
	"time"
)

// judgeRounds judges for which rounds listeners were called, and when.
func (c *checker) judgeRounds(j *job) {
	byPhase := map[string][]*Record{}
	var phases []string
	for _, r := range j.calls {
		if byPhase[r.Reason] == nil {
			phases = append(phases, r.Reason)
		}
		byPhase[r.Reason] = append(byPhase[r.Reason], r)
	}
	for _, phase := range phases {
		c.judgeCalls(j, byPhase[phase])
	}
	calls := byPhase[AfterAll]
	for _, r := range calls {
		c.judgeEnded(j, r)
	}
	if len(calls) > 0 && c.rules.Round > 0 {
		c.judgeHeard(j, calls)
	}
}

// AfterAll is the phase of a call after all items of a round have ended.
const AfterAll = "after all items have ended"

// judgeCalls judges that each round is called for once, in order, and again only when the
// life that was called first has ended.
func (c *checker) judgeCalls(j *job, calls []*Record) {
	first := map[int64]*Record{}
	again := map[int64]*Record{}
	var latest *Record
	for _, r := range calls {
		k := Key{Job: j.name, Due: nanos(r.Due)}
		c.report.Tally.Judged[Rounds]++
		switch {
		case r.Count == 1 && first[k.Due] != nil:
			c.blame(Rounds, k, r.At, "%s was called first, and so was %s", first[k.Due].Instance, r.Instance)
		case r.Count == 1:
			first[k.Due] = r
			if latest != nil && r.Due.Before(latest.Due) && c.lifeOver(r) > r.At {
				c.blame(Rounds, k, r.At, "%s was called after the round of %s", r.Instance, clock(latest.Due))
			}
		case again[k.Due] != nil:
			c.blame(Rounds, k, r.At, "%s was called again, and so was %s", again[k.Due].Instance, r.Instance)
		default:
			again[k.Due] = r
			if was := first[k.Due]; was != nil && c.lifeOver(was) > r.At {
				c.blame(Rounds, k, r.At, "%s was called again, and the life of %s stands", r.Instance, was.Instance)
			}
		}
		if latest == nil || r.Due.After(latest.Due) {
			latest = r
		}
	}
}

// lifeOver is when the life of who wrote r ended, for whatever reason.
func (c *checker) lifeOver(r *Record) time.Duration {
	at := c.broke(r)
	if l := c.lives[r.Instance]; l != nil {
		at = min(at, l.stopped, l.replaced, l.leaving, l.gone)
	}
	return at
}

// judgeEnded judges that nothing of a round, or of one before, runs or begins once all of it is
// said to have ended.
func (c *checker) judgeEnded(j *job, call *Record) {
	if c.lifeOver(call) <= call.At {
		return // it was told late
	}
	if j.isStatic(call.At) {
		return // no round waits for an instance that is away, which may be back at any moment
	}
	for _, n := range j.runs {
		if n.entered.Request != 0 || n.Due > nanos(call.Due) || n.returned <= call.At || c.lifeOver(n.entered) <= max(call.At, n.entered.At) {
			continue
		}
		if n.entered.At <= call.At {
			c.blame(Rounds, n.Key, call.At, "it runs, and %s was called after the round of %s", call.Instance, clock(call.Due))
		} else {
			c.blame(Rounds, n.Key, n.entered.At, "it was entered after %s was called for the round of %s", call.Instance, clock(call.Due))
		}
	}
}

// judgeHeard judges that each round is called for, itself or with a later one, soon after the
// last run of it.
func (c *checker) judgeHeard(j *job, calls []*Record) {
	until := c.last
	for _, r := range j.quiet {
		until = min(until, r.At)
	}
	runs := slices.DeleteFunc(slices.Clone(j.runs), func(n *run) bool { return n.entered.Request != 0 })
	slices.SortStableFunc(runs, func(a, b *run) int { return int(min(1, max(-1, a.Due-b.Due))) })
	var ended time.Duration // of all runs so far
	for i, n := range runs {
		ended = max(ended, n.entered.At)
		if n.returned < never {
			ended = max(ended, n.returned)
		}
		if i+1 < len(runs) && runs[i+1].Due == n.Due {
			continue // not the last run of its round
		}
		by := later(ended, c.rules.Round)
		if n.entered.At < c.rules.Calm || by > until || !c.calm(n.entered.At, by) {
			continue
		}
		heard := slices.ContainsFunc(calls, func(r *Record) bool { return r.At <= by && nanos(r.Due) >= n.Due })
		if !heard {
			c.blame(Rounds, n.Key, by, "nobody was called for its round")
		}
	}
}
