package history

import (
	"cmp"
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
	if c.rules.Listen > 0 && len(byPhase[BeforeAll]) > 0 {
		c.judgeBarrier(j, byPhase[BeforeAll])
	}
}

// The phases of a call: before all items of a round start, and after all have ended.
const (
	BeforeAll = "before all items start"
	AfterAll  = "after all items have ended"
)

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
		at = min(at, l.ended())
	}
	return at
}

// judgeEnded judges that nothing of a round, or of one before, runs or begins once all of it is
// said to have ended.
func (c *checker) judgeEnded(j *job, call *Record) {
	if c.lifeOver(call) <= call.At {
		return // it was told late
	}
	// Under static sharding no round waits for an instance that is away, which may be back at any moment. A leader goes
	// by that until it hears that static sharding has ended.
	if j.isStatic(call.At) || j.isStatic(call.At-c.rules.Heard) {
		return
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

// A toldOutcome is when a fire of an item was told as skipped or folded.
type toldOutcome struct {
	due int64
	at  time.Duration
}

// toldOutcomes are in the order of their fires: a round is not over before them.
func (j *job) toldOutcomes() (all []toldOutcome) {
	for k, f := range j.fires {
		for _, r := range f.skipped {
			all = append(all, toldOutcome{k.Due, r.At})
		}
	}
	slices.SortFunc(all, func(a, b toldOutcome) int { return cmp.Compare(a.due, b.due) })
	return all
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
	outcomes := j.toldOutcomes()
	var ended time.Duration // of all runs so far, and of what does not run
	for i, n := range runs {
		ended = max(ended, n.entered.At)
		for len(outcomes) > 0 && outcomes[0].due <= n.Due {
			ended, outcomes = max(ended, outcomes[0].at), outcomes[1:]
		}
		if n.returned < never {
			ended = max(ended, n.returned)
		}
		if i+1 < len(runs) && runs[i+1].Due == n.Due {
			continue // not the last run of its round
		}
		by := later(ended, c.rules.Round)
		if cfg := j.configAt(by); cfg != nil && cfg.Unmonitored {
			continue // there are no rounds
		}
		if n.entered.At < c.rules.Calm || by > until || !c.calm(n.entered.At, by) {
			continue
		}
		heard := slices.ContainsFunc(calls, func(r *Record) bool { return r.At <= by && nanos(r.Due) >= n.Due })
		if !heard {
			c.blame(Rounds, n.Key, by, "nobody was called for its round")
		}
	}
}

// A hearing is a call of a listener before a round, and its return.
type hearing struct {
	call   *Record
	answer *Record // nil: it did not return
}

// slow is when the call was over, should its listener not have returned by then; never: it had. A process that
// stops cancels the call, and waits for it no longer than for what runs.
func (c *checker) slow(h hearing) time.Duration {
	over := min(later(h.call.At, c.rules.Listen), max(h.call.At, c.process(h.call.Who).stopping))
	switch {
	case h.answer == nil || h.answer.At > over:
		return over
	case h.answer.Slow:
		return h.answer.At
	}
	return never
}

// judgeBarrier judges that nothing was entered before the listener had returned.
func (c *checker) judgeBarrier(j *job, calls []*Record) {
	hearings := make([]hearing, len(calls))
	for i, call := range calls {
		hearings[i].call = call
		at := slices.IndexFunc(j.answers, func(r *Record) bool {
			return r.Reason == call.Reason && r.Due.Equal(call.Due) && r.Count == call.Count && r.Instance == call.Instance
		})
		if at >= 0 {
			hearings[i].answer = j.answers[at]
		}
	}
	listened := j.firstListened(calls)
	for _, n := range j.runs {
		if now := j.configAt(n.entered.At); now != nil && now.Unmonitored {
			continue // rounds are no more, and what was begun for one waits no longer
		}
		if n.entered.At < listened {
			continue
		}
		if n.entered.Request == 0 && n.entered.Fence != 0 && !c.waitedInVain(j, n) && !c.diedUntold(n) && !c.callerDied(j, n.entered.At) {
			c.judgeEntered(n, hearings)
		}
	}
	for k, f := range j.fires {
		for _, r := range f.ended {
			n := &run{Key: k, entered: r}
			if r.Refused && !c.waitedInVain(j, n) && !c.diedUntold(n) && !c.callerDied(j, r.At) && !c.refused(r, hearings) {
				c.blame(Barrier, k, r.At, "it failed for a listener before the round, and none had refused that")
			}
		}
	}
}

// firstListened is when the first of those registered that were ever called: a job may have begun without listeners.
func (j *job) firstListened(calls []*Record) time.Duration {
	first := never
	for _, l := range j.lives {
		if slices.ContainsFunc(calls, func(r *Record) bool { return r.Instance == l.id }) {
			first = min(first, l.started)
		}
	}
	if first == never { // nothing says when
		return 0
	}
	return first
}

// refused reports whether a listener had refused the round of an end, or was too slow.
func (c *checker) refused(r *Record, hearings []hearing) bool {
	return slices.ContainsFunc(hearings, func(h hearing) bool {
		no := h.answer != nil && h.answer.Err != "" && h.answer.At <= r.At && !h.call.Due.Before(r.Due)
		return no || c.slow(h) <= r.At
	})
}

// judgeEntered judges one function by the calls that were made.
func (c *checker) judgeEntered(n *run, hearings []hearing) {
	c.report.Tally.Judged[Barrier]++
	at := n.entered.At
	released := false
	var refusal *hearing
	for _, h := range hearings {
		due := nanos(h.call.Due)
		switch {
		case h.call.At > at:
		case c.slow(h) <= at: // it did not return in time, to this round or to one before
			return
		case due > n.Due && refusal != nil: // what is made up later is of no round
			released = true
		case due < n.Due || h.answer == nil || h.answer.At > at:
		case due == n.Due && h.answer.Err != "":
			refusal = &h
		default:
			released = true
		}
	}
	switch {
	case released:
	case refusal != nil:
		c.blame(Barrier, n.Key, at, "entered, and %s had refused the round: %s", refusal.call.Instance, refusal.answer.Err)
	default:
		c.blame(Barrier, n.Key, at, "entered, and no listener had returned that was called before the round")
	}
}

// waitedInVain reports whether the owner of a run told that it had waited too long.
func (c *checker) waitedInVain(j *job, n *run) bool {
	return slices.ContainsFunc(j.late, func(r *Record) bool {
		return r.Who == n.entered.Who && nanos(r.Due) == n.Due && slices.Contains(r.Items, n.Item)
	})
}

// tellingLate is how long it may take until it is told that items had waited too long: that asks
// the registry for whom.
const tellingLate = 6 * time.Second

// diedUntold reports whether the process that entered a function, or had it fail, was killed before it could have
// told that it had waited too long.
func (c *checker) diedUntold(n *run) bool {
	crashed := c.process(n.entered.Who).crashed
	return crashed >= n.entered.At && crashed <= later(n.entered.At, tellingLate)
}

// callerDied reports whether whoever was called may have died shortly before an instant: then
// nobody may have been called, or have returned.
func (c *checker) callerDied(j *job, at time.Duration) bool {
	return slices.ContainsFunc(j.lives, func(l *life) bool {
		over := min(l.ended(), c.brokeOf(l.who, l.session))
		return over <= at && later(over, c.rules.Settle) >= at
	})
}

// heldUpUntold reports whether a fire may have failed without a call, for a listener before its
// round, in a life that broke before it could tell: as with a function that had returned then,
// the record may say that it has ended.
func (c *checker) heldUpUntold(j *job, k Key) bool {
	held := slices.ContainsFunc(j.late, func(r *Record) bool { return nanos(r.Due) == k.Due }) ||
		slices.ContainsFunc(j.answers, func(r *Record) bool { return r.Reason == BeforeAll && r.Err != "" && nanos(r.Due) >= k.Due })
	from := c.when(k.Due)
	to := later(from, j.barred(c.rules.Listen)+c.rules.Settle)
	return held && slices.ContainsFunc(j.lives, func(l *life) bool {
		broke := c.brokeOf(l.who, l.session)
		if broke < from || broke == never || broke > to && c.calm(from, broke) { // a fault may have kept it from being recorded
			return false
		}
		var owns *Record // the last before it broke
		for _, r := range l.owns {
			if r.At <= broke {
				owns = r
			}
		}
		return owns != nil && slices.Contains(owns.Items, k.Item)
	})
}
