package history

import (
	"cmp"
	"slices"
	"time"
)

// judgeOutcomes books what was told, and judges each fire of each item.
func (c *checker) judgeOutcomes(j *job) {
	for i := range c.records {
		if r := &c.records[i]; r.Job == j.name {
			c.book(j, r)
		}
	}
	keys := make([]Key, 0, len(j.fires))
	for k := range j.fires {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Item, b.Item), cmp.Compare(a.Epoch, b.Epoch))
	})
	for _, k := range keys {
		f := j.fires[k]
		c.judgeFire(j, k, f)
		c.judgeRuinedRun(j, k, f)
		c.judgeCut(j, k, f)
		c.tally(f)
	}
}

// book adds what a record tells to the fires that it is about.
func (c *checker) book(j *job, r *Record) {
	switch r.Kind {
	case Ended:
		f := j.fire(key(r, r.Item, r.Due))
		f.ended = append(f.ended, r)
	case Cut:
		f := j.fire(key(r, r.Item, r.Due))
		f.cuts = append(f.cuts, r)
	case Skipped, Folded:
		c.bookSkip(j, r)
		c.judgePolicy(j, r)
	}
}

// why is for what reason a fire is told not to run.
func why(r *Record) string {
	if r.Kind == Folded {
		return string(Folded)
	}
	return r.Reason
}

// policy is the one that a job had from its first configuration to its last; "": it changed.
func (j *job) policy() string {
	name := ""
	for i, r := range j.config {
		if i > 0 && r.Config.Misfire != name {
			return ""
		}
		name = r.Config.Misfire
	}
	return name
}

// judgePolicy judges that what is told is what the policy for missed fires lets be told.
func (c *checker) judgePolicy(j *job, r *Record) {
	k := Key{Job: j.name, Epoch: r.Epoch, Item: one(r.Items), Due: nanos(r.Due)}
	if policy := j.policy(); policy != "" && c.rules.MayTell != nil && !c.rules.MayTell(policy, why(r)) {
		c.blame(Outcome, k, r.At, "told as %q under the policy %q", why(r), policy)
	}
	if r.Kind == Folded && !r.Into.After(r.Due) {
		c.blame(Outcome, k, r.At, "folded into %s, which is no later fire", clock(r.Into))
	}
}

func (c *checker) bookSkip(j *job, r *Record) {
	var dues []int64
	switch {
	case !j.plan.judged || j.plan.delay > 0 || r.Count == 1 && (r.First.IsZero() || r.First.Equal(r.Due)):
		dues = []int64{nanos(r.Due)}
	case r.First.IsZero():
		dues = j.plan.latest(r.Count, nanos(r.Due))
	default:
		var fits bool
		dues, fits = c.meant(j, r)
		whole := nanos(r.First) > j.plan.from && nanos(r.Due) <= j.plan.to && !j.plan.isUnsure(nanos(r.First)) && !j.plan.isUnsure(nanos(r.Due))
		if whole && !fits {
			c.blame(Outcome, Key{Job: j.name, Epoch: r.Epoch, Item: one(r.Items), Due: nanos(r.Due)}, r.At,
				"told as skipped with count %d from %s on: %d fires were due", r.Count, clock(r.First), len(dues))
		}
	}
	c.report.Tally.Skipped[why(r)] += max(r.Count, 0) * len(r.Items)
	for _, item := range r.Items {
		if !c.spend(len(dues)) {
			return
		}
		for _, due := range dues {
			f := j.fire(Key{Job: j.name, Epoch: r.Epoch, Item: item, Due: due})
			f.skipped = append(f.skipped, r)
		}
	}
}

// meant are the fires that a range stands for: those of the schedules in force or, where it is none of
// theirs, those by a schedule that was replaced, told by one who need not have heard of that yet. What
// else was due in between is not told with it. fits is false where the range is of no schedule: then they
// are those in force.
func (c *checker) meant(j *job, r *Record) (dues []int64, fits bool) {
	first, last := nanos(r.First), nanos(r.Due)
	is := func(dues []int64) bool {
		return len(dues) == r.Count && r.Count > 0 && dues[0] == first && dues[r.Count-1] == last
	}
	dues = j.plan.between(first, last)
	if is(dues) {
		return dues, true
	}
	for _, s := range j.plan.replaced {
		if r.At > s.heard {
			continue
		}
		by := slices.Clone(j.plan.between(first, min(s.until, last)))
		if by = append(by, c.firstFires(s.table, max(first-1, s.until), last, r.Count-len(by)+1)...); is(by) {
			return by, true
		}
	}
	return dues, false
}

func one(items []int) int {
	if len(items) == 0 {
		return 0
	}
	return items[0]
}

// judgeFire judges that what was told of a fire fits together.
func (c *checker) judgeFire(j *job, k Key, f *fire) {
	at := f.first()
	c.judgeTwice(j, k, f)
	// A run without a record tells others nothing: they may skip its fire.
	known := !slices.ContainsFunc(f.runs, func(n *run) bool { return n.entered.Fence == 0 })
	if len(f.skipped) > 0 && len(f.runs) > 0 && known {
		c.blame(Outcome, k, max(f.runs[0].entered.At, f.skipped[0].At), "entered, and told as skipped: %s", why(f.skipped[0]))
	}
	if len(f.skipped) > 0 && len(f.ended) > 0 && known {
		c.blame(Outcome, k, at, "told as ended and as skipped: %s", why(f.skipped[0]))
	}
	if len(f.skipped) > 0 && len(f.cuts) > 0 {
		c.blame(Outcome, k, at, "told as cut and as skipped: %s", why(f.skipped[0]))
	}
	if folded := slices.IndexFunc(f.skipped, func(r *Record) bool { return r.Kind == Folded }); folded >= 0 && known {
		c.judgeFolded(j, k, f, f.skipped[folded])
	}
	if len(f.ended) > 0 && len(f.cuts) > 0 {
		c.blame(Outcome, k, f.cuts[0].At, "told as ended and as cut")
	}
	if n := len(f.ended); n > 1 && (!j.unmonitored || n > len(f.runs)) {
		c.blame(Outcome, k, f.ended[1].At, "told as ended %d times", n)
	}
	if len(f.ended) > 0 && !f.ended[0].Refused && !slices.ContainsFunc(f.runs, func(n *run) bool { return n.returned <= f.ended[0].At }) {
		c.blame(Outcome, k, f.ended[0].At, "told as ended, and no function had returned")
	}
}

// judgeFolded judges that a fire was folded once, and is not told otherwise; and that there
// is an outcome of what it was folded into, which may have been given back since.
func (c *checker) judgeFolded(j *job, k Key, f *fire, r *Record) {
	for _, other := range f.skipped {
		if why(other) != why(r) && !j.unmonitored {
			c.blame(Outcome, k, other.At, "told as folded and as skipped: %s", why(other))
			return
		}
		if !other.Into.Equal(r.Into) && !j.unmonitored {
			c.blame(Outcome, k, other.At, "folded into %s and into %s", clock(r.Into), clock(other.Into))
			return
		}
	}
	into := k
	into.Due = nanos(r.Into)
	if !j.plan.judged || j.unmonitored || into.Due <= j.plan.from || into.Due > j.plan.to || j.plan.isUnsure(into.Due) {
		return
	}
	if j.plan.told && !slices.ContainsFunc(j.plan.epochs, func(e epoch) bool { return e.number == k.Epoch && e.holds(into.Due) }) {
		return // given back, it is the next epoch's
	}
	if j.fires[into].unknown() && !c.heldUpUntold(j, into) {
		c.blame(Coverage, k, r.At, "folded into %s, of which nothing is known", clock(r.Into))
	}
}

// maxRuns is how often a fire is entered at most: after three deaths it is cut.
const maxRuns = 3

// judgeTwice knows that without a record a fire runs again at its next owner, and where
// the clock was set back; and that with failover it runs again once the life has ended in
// which it ran.
func (c *checker) judgeTwice(j *job, k Key, f *fire) {
	if len(f.runs) > maxRuns && j.failover && !j.unmonitored {
		c.blame(Outcome, k, f.runs[maxRuns].entered.At, "entered %d times: three lives may end in one fire", len(f.runs))
	}
	for i, n := range f.runs {
		for _, before := range f.runs[:i] {
			// The second may be the one that began first, and came to its function too late.
			if j.failover && (n.entered.Redo && c.over(before.entered, n.entered.At) || before.entered.Redo && c.over(n.entered, n.entered.At)) {
				continue
			}
			if !j.unmonitored || before.entered.Who == n.entered.Who && c.process(n.entered.Who).set > n.entered.At {
				c.blame(Outcome, k, n.entered.At, "entered twice: by %s at %v, and by %s",
					before.entered.Instance, show(before.entered.At), n.entered.Instance)
				return
			}
		}
	}
}

// over reports whether a run could have come to its next owner by an instant: its life had
// ended, or was about to be, by its own doing or not.
func (c *checker) over(r *Record, at time.Duration) bool {
	p := c.process(r.Who)
	if p.crashed <= at || p.stopping <= at || c.holds(r) <= at {
		return true
	}
	if l := c.lives[r.Instance]; l != nil && min(l.replaced, l.stopped) <= at {
		return true
	}
	return r.Session != "" && min(c.session(r.Session).lost, c.session(r.Session).closing) <= at
}

// judgeRuinedRun judges a fire that was entered and has no outcome.
func (c *checker) judgeRuinedRun(j *job, k Key, f *fire) {
	if len(f.runs) == 0 || len(f.ended)+len(f.cuts)+len(f.skipped) > 0 || j.unmonitored || len(j.quiet) == 0 {
		return
	}
	n := f.runs[len(f.runs)-1]
	if n.entered.At > j.quiet[len(j.quiet)-1].At {
		return
	}
	broke := c.broke(n.entered)
	switch {
	case n.returned < never && broke < never:
		c.report.Tally.Untold++ // it may have been recorded just before
		limit := later(n.returned, c.rules.Tell)
		if c.rules.Tell > 0 && broke > limit && c.calm(n.returned, limit) {
			c.blame(Outcome, k, limit, "returned, and nothing was told %v later: its life stood until %s", c.rules.Tell, show(broke))
		}
	case n.returned < never:
		c.blame(Outcome, k, n.returned, "returned, and nothing was told: its life stood")
	case broke < never:
		c.blame(Outcome, k, broke, "its life ended while it ran, and nobody told it as cut")
	default:
		c.blame(Outcome, k, n.entered.At, "entered, and it neither returned nor was cut")
	}
}

// judgeCut judges that what was told as cut ran in a life that had ended.
func (c *checker) judgeCut(_ *job, k Key, f *fire) {
	if len(f.cuts) == 0 || len(f.runs) == 0 {
		return
	}
	cut, r := f.cuts[0], f.runs[len(f.runs)-1].entered
	if !c.over(r, cut.At) {
		c.blame(Outcome, k, cut.At, "told as cut while the life %s stood", r.Instance)
	}
}

// first is when the fire was spoken of first.
func (f *fire) first() time.Duration {
	at := never
	for _, n := range f.runs {
		at = min(at, n.entered.At)
	}
	for _, told := range [][]*Record{f.ended, f.cuts, f.skipped} {
		for _, r := range told {
			at = min(at, r.At)
		}
	}
	return at
}

func (c *checker) tally(f *fire) {
	t := &c.report.Tally
	if !f.unknown() {
		t.Fires++
	}
	if len(f.ended) > 0 {
		t.Ended++
		if f.ended[0].Err != "" {
			t.Failed++
		}
	}
	if len(f.cuts) > 0 {
		t.Cut++
	}
	if slices.ContainsFunc(f.runs, func(n *run) bool { return n.entered.Redo }) {
		t.Again++
	}
}

// judgeCoverage judges that each fire that was due has an outcome, and that nothing ran
// that was not due.
func (c *checker) judgeCoverage(j *job) {
	p := &j.plan
	if !p.judged || p.delay > 0 {
		return
	}
	for _, n := range j.runs {
		c.judgeWanted(j, n)
	}
	if j.unmonitored {
		return
	}
	i := 0
	for _, due := range p.grid {
		for i < len(p.epochs)-1 && due > p.epochs[i].to {
			i++
		}
		if due <= p.from || due > p.to || p.isUnsure(due) || !p.epochs[i].holds(due) {
			continue
		}
		if !c.spend(max(0, p.epochs[i].total)) {
			return
		}
		for item := range p.epochs[i].total {
			c.report.Tally.Due++
			k := Key{Job: j.name, Epoch: p.epochs[i].number, Item: item, Due: due}
			f := j.fires[k]
			if f.unknown() && !c.heldUpUntold(j, k) {
				c.blame(Coverage, k, c.when(due), "it was due, and it neither ran nor was it told as skipped or cut")
			}
		}
	}
}

// judgeWanted judges that a function was entered for a fire that was due to its item.
func (c *checker) judgeWanted(j *job, n *run) {
	p := &j.plan
	if n.entered.Request != 0 { // judgeRequests
		return
	}
	if n.Due <= p.from || n.Due > p.to {
		return
	}
	if !p.was(n.Due) {
		if c.ranAhead(p, n) {
			return
		}
		c.blame(Coverage, n.Key, n.entered.At, "entered for a fire that no schedule had")
		return
	}
	if p.isUnsure(n.Due) || j.unmonitored {
		return
	}
	for _, e := range p.epochs {
		if e.holds(n.Due) && e.number == n.Epoch && n.Item < e.total {
			return
		}
	}
	c.blame(Coverage, n.Key, n.entered.At, "entered for a fire that its epoch did not have")
}

// when is the common time of a wall time, by the first record that has both.
func (c *checker) when(due int64) time.Duration {
	for i := range c.records {
		if r := &c.records[i]; !r.Wall.IsZero() {
			return r.At + time.Duration(due-nanos(r.Wall))
		}
	}
	return 0
}
