package history

import (
	"cmp"
	"slices"
	"time"
)

// judgeRuns judges functions against each other and against their sessions.
func (c *checker) judgeRuns(j *job) {
	fences := map[int]*run{}
	var active []*run
	for _, n := range j.runs {
		at := n.entered.At
		active = slices.DeleteFunc(active, func(other *run) bool { return c.ended(other) <= at })
		for _, other := range active {
			c.judgePair(j, other, n)
		}
		active = append(active, n)
		c.judgeFence(j, fences, n)
		c.judgeDeadline(n)
		c.judgeDue(n)
	}
	if c.rules.Late == 0 || j.plan.delay > 0 {
		return
	}
	free := map[int]time.Duration{} // since when nothing of an item runs
	up := c.ups(j)
	for _, n := range j.runs {
		c.judgeLate(j, n, max(free[n.Item], since(up, n.entered.At)))
		free[n.Item] = max(free[n.Item], min(c.ended(n), c.last))
	}
}

// ended is when a function did nothing any more.
func (c *checker) ended(n *run) time.Duration {
	return min(n.returned, c.process(n.entered.Who).crashed)
}

// judgePair judges two functions of which the second was entered while the first ran.
func (c *checker) judgePair(j *job, first, second *run) {
	a, b := first.entered, second.entered
	same := first.Item == second.Item && (a.Total == b.Total || a.Total == 0 || b.Total == 0)
	switch {
	case j.unmonitored && a.Who != b.Who:
	case !same && (a.Total == b.Total || first.Epoch > second.Epoch || j.unmonitored):
	case same && a.Who == b.Who:
		c.blame(Overlap, second.Key, b.At, "entered while the function entered at %v had not returned in the same process", show(a.At))
	case c.owned(a, b.At):
		what := "while the function of " + first.String()
		if !same {
			what = "of another total, while the function of " + first.String()
		}
		c.blame(Overlap, second.Key, b.At, "entered by %s %s ran at %s, whose session held until %s",
			b.Instance, what, a.Instance, show(c.holds(a)))
	}
}

// owned reports whether what a function was entered under still held at an instant: its
// session's Deadline had not passed, nor had the service ended it. A session that its
// own process ended under a running function held.
func (c *checker) owned(r *Record, at time.Duration) bool {
	if at >= c.holds(r) {
		return false
	}
	if r.Session == "" {
		return true
	}
	s := c.session(r.Session)
	return s.lost > at || s.closing <= at
}

// holds is the latest Deadline that is known of a function's session.
func (c *checker) holds(r *Record) time.Duration {
	deadline := r.Deadline
	if r.Session != "" {
		deadline = max(deadline, c.session(r.Session).deadline)
	}
	if deadline == 0 {
		return never
	}
	return deadline
}

func (c *checker) judgeFence(j *job, fences map[int]*run, n *run) {
	if n.entered.Fence == 0 {
		if !j.unmonitored && len(j.config) > 0 {
			c.blame(Fences, n.Key, n.entered.At, "entered without a fence")
		}
		return
	}
	if before := fences[n.Item]; before != nil && n.entered.Fence <= before.entered.Fence {
		if r := n.entered; r.Deadline > 0 && r.At > r.Deadline && c.process(r.Who).stoppedOnItsWay(r) {
			return // it is what fences are for
		}
		c.blame(Fences, n.Key, n.entered.At, "its fence %d is not above %d, that of %v, which was entered before",
			n.entered.Fence, before.entered.Fence, before.Key)
		return
	}
	fences[n.Item] = n
}

// judgeDeadline judges one function against its own session.
func (c *checker) judgeDeadline(n *run) {
	r := n.entered
	if r.Deadline == 0 {
		return
	}
	if late := r.At - r.Deadline; late > c.rules.Enter && !c.process(r.Who).stoppedOnItsWay(r) {
		c.blame(Deadline, n.Key, r.At, "entered %v after the Deadline of its session", late)
	}
	if c.rules.Cancel == 0 || r.Session == "" || c.session(r.Session).lost == never {
		return
	}
	p := c.process(r.Who)
	limit := p.awake(c.holds(r), c.rules.Cancel)
	if min(n.cancelled, c.ended(n)) > limit && limit < c.last {
		c.blame(Deadline, n.Key, limit, "runs on uncancelled %v after the Deadline of its session, or after its process woke", c.rules.Cancel)
	}
}

// ups are the stretches in which the job had a live instance, by time.
func (c *checker) ups(j *job) (up []span) {
	lives := slices.Clone(j.lives)
	slices.SortFunc(lives, func(a, b *life) int { return cmp.Compare(a.started, b.started) })
	for _, l := range lives {
		to := l.gone
		if to == never { // nobody saw it go
			to = min(l.stopped, l.replaced, c.process(l.who).crashed)
		}
		if n := len(up); n > 0 && l.started <= up[n-1].to {
			up[n-1].to = max(up[n-1].to, to)
			continue
		}
		up = append(up, span{l.started, to})
	}
	return up
}

// since is when the last of some stretches began, at an instant: what was due before it is
// made up from then on.
func since(up []span, at time.Duration) time.Duration {
	i, _ := slices.BinarySearchFunc(up, at, func(s span, at time.Duration) int { return cmp.Compare(s.from, at+1) })
	if i == 0 {
		return 0
	}
	return up[i-1].from
}

// wakeTime bounds how long after it woke a process is done with what it was at.
const wakeTime = 100 * time.Millisecond

// stoppedOnItsWay reports whether a function was entered right after its process woke,
// for a fire that came due before the process was stopped, before its Deadline: it was
// looked at then, and nothing but the fence sees such a stop (semantics, "a paused process").
// What comes due in the stop is not excused.
func (p *process) stoppedOnItsWay(r *Record) bool {
	return slices.ContainsFunc(p.pauses, func(s span) bool {
		return s.from < r.Deadline && s.to <= r.At && r.At-s.to <= wakeTime && r.Wall.Sub(r.Due) >= r.At-s.from
	})
}

// judgeLate judges the lateness of a function by its owner's clock, where no fault is
// about. The time before free does not count: the item's run before went on, or nobody was up.
func (c *checker) judgeLate(j *job, n *run, free time.Duration) {
	r := n.entered
	if r.Redo || r.Request != 0 || r.Wall.IsZero() || r.Due.IsZero() || j.plan.judged && j.plan.isUnsure(n.Due) {
		return
	}
	late := min(r.Wall.Sub(r.Due), r.At-free) - j.barred(c.rules.Listen)
	if !c.calm(r.At-max(late, 0), r.At) || c.lingering(j, r.At-max(late, 0), r.At) || c.changing(j, r.At) {
		return
	}
	if whole := r.Wall.Sub(r.Due) - j.barred(c.rules.Listen); c.rules.Missed > 0 && j.policy() == c.rules.Unmissed && whole > c.rules.Missed && !j.unmonitored {
		c.blame(Late, n.Key, r.At, "entered %v after its due time, and nothing that was missed is made up", whole)
	}
	if j.isStatic(r.At) {
		return // the time for which its instance was away counts for nobody
	}
	c.report.Tally.Judged[Late]++
	c.report.Tally.Lateness = append(c.report.Tally.Lateness, late)
	if late > c.rules.Late {
		c.blame(Late, n.Key, r.At, "entered %v after its due time", late)
	}
}

// judgeDue judges that a function is not entered before its fire is due: its begin may be recorded
// ahead. What the clock of another process has recorded, that was set, may run at once.
func (c *checker) judgeDue(n *run) {
	r := n.entered
	if r.Request != 0 || r.Wall.IsZero() || r.Due.IsZero() || c.wasSet(r.At) {
		return
	}
	c.report.Tally.Judged[NotDue]++
	if ahead := r.Due.Sub(r.Wall); ahead > 0 {
		c.blame(NotDue, n.Key, r.At, "entered %v before it was due", ahead)
	}
}

// wasSet reports whether any clock was set until an instant, by more than clocks are apart.
func (c *checker) wasSet(at time.Duration) bool {
	for _, p := range c.processes {
		if slices.ContainsFunc(p.clock, func(s setting) bool { return s.at <= at && s.ahead.Abs() > clocksApart }) {
			return true
		}
	}
	return false
}

// barred is how long items may wait for a listener before their round: for others, and for its
// return.
func (j *job) barred(listen time.Duration) time.Duration {
	if !slices.ContainsFunc(j.calls, func(r *Record) bool { return r.Reason == BeforeAll }) {
		return 0
	}
	return 2 * listen
}

// lingering reports whether a killed process's life still stood in a stretch, or its items
// were just being made up.
func (c *checker) lingering(j *job, from, to time.Duration) bool {
	return slices.ContainsFunc(j.lives, func(l *life) bool {
		crashed := c.process(l.who).crashed
		over := l.gone
		if over == never {
			over = crashed
		}
		return crashed != never && crashed <= to && later(over, c.rules.Settle+c.rules.Owned) >= from
	})
}

// changing reports whether the configuration was changed shortly before.
func (c *checker) changing(j *job, at time.Duration) bool {
	return slices.ContainsFunc(j.config, func(r *Record) bool {
		return r.At <= at && at <= later(r.At, c.rules.Settle+c.rules.Changed)
	})
}

// judgeDelay judges that items of a fixed delay run again.
func (c *checker) judgeDelay(j *job) {
	if j.plan.delay == 0 || c.rules.Again == 0 || !j.plan.judged {
		return
	}
	limit := j.plan.delay + c.rules.Again
	last := map[int]time.Duration{}
	end := j.quiet[len(j.quiet)-1].At
	for _, r := range j.config {
		if len(r.Config.Cron) > 0 && r.At < end && r.Config.Cron != j.config[0].Config.Cron {
			end = min(end, r.At)
		}
	}
	judge := func(item int, from, to time.Duration) {
		if to > end || !c.calm(from, to) || c.lingering(j, from, to) || c.changing(j, to) || c.changing(j, from) {
			return
		}
		c.report.Tally.Judged[Coverage]++
		if to-from > limit {
			c.blame(Coverage, Key{Job: j.name, Item: item}, to, "its function did not run again for %v; its delay is %v", to-from, j.plan.delay)
		}
	}
	slices.SortStableFunc(j.runs, func(a, b *run) int { return cmp.Compare(a.entered.At, b.entered.At) })
	for _, n := range j.runs {
		if at, ran := last[n.Item]; ran {
			judge(n.Item, at, n.entered.At)
		}
		last[n.Item] = min(c.ended(n), c.last)
	}
	total := j.plan.epochs[len(j.plan.epochs)-1].total
	if !c.spend(max(0, total)) {
		return
	}
	for item := range total {
		if at, ran := last[item]; ran && end > at {
			judge(item, at, end)
		} else if !ran {
			c.blame(Coverage, Key{Job: j.name, Item: item}, end, "its function never ran")
		}
	}
}
