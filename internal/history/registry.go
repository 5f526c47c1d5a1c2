package history

import (
	"slices"
	"time"
)

// judgeQuiet judges what stands when nothing is under way.
func (c *checker) judgeQuiet(j *job) {
	throughs := map[[2]int]time.Time{} // of epoch and item, at the quiescence before
	for _, r := range j.quiet {
		s := r.Snapshot
		blame := func(item int, format string, args ...any) {
			c.blame(Quiescence, Key{Job: j.name, Item: item}, r.At, format, args...)
		}
		for _, flag := range s.Flags {
			blame(0, "the flag %s stands", flag)
		}
		for item, id := range s.Running {
			if !j.runsAt(c, item, r.At) {
				blame(item, "a running node of %s stands, and nothing runs", id)
			}
		}
		c.judgeLeader(s, blame)
		c.judgeLedgers(j, r, blame)
		throughs = c.judgeCursors(j, r, throughs)
	}
}

// judgeCursors compares with the quiescence before, and returns what to compare with next.
func (c *checker) judgeCursors(j *job, r *Record, before map[[2]int]time.Time) map[[2]int]time.Time {
	now := map[[2]int]time.Time{}
	for _, l := range r.Snapshot.Ledgers {
		for _, h := range l.Items {
			k := [2]int{l.Epoch, h.Item}
			if was := before[k]; h.Through.Before(was) {
				c.blame(Cursor, Key{Job: j.name, Epoch: l.Epoch, Item: h.Item}, r.At, "through fell from %s to %s", clock(was), clock(h.Through))
			}
			now[k] = h.Through
		}
	}
	return now
}

func (c *checker) judgeLeader(s *Snapshot, blame func(int, string, ...any)) {
	switch {
	case len(s.Lives) == 0:
	case s.Leader == "":
		blame(0, "nobody leads")
	case s.Term == "":
		blame(0, "%s leads without a term", s.Leader)
	case !slices.Contains(s.Lives, s.Leader):
		blame(0, "%s leads, and its life is over", s.Leader)
	case c.lives[s.Term] != nil && s.Term != s.Leader:
		blame(0, "%s leads, and the term is that of %s", s.Leader, s.Term)
	}
}

// judgeLedgers judges that each item of the latest epoch stands in one ledger, that of a
// live one, and that nothing else stands.
func (c *checker) judgeLedgers(j *job, r *Record, blame func(int, string, ...any)) {
	s := r.Snapshot
	owners := map[[2]int]string{}
	for _, l := range s.Ledgers {
		live := slices.Contains(s.Lives, l.Instance)
		if !live && len(l.Items) > 0 && len(s.Lives) > 0 && !j.away(r, l) {
			blame(l.Items[0].Item, "the ledger of %s, whose life is over, holds %d items", l.Instance, len(l.Items))
		}
		if l.Held {
			blame(one(numbers(l)), "the ledger of %s is held", l.Instance)
		}
		for _, h := range l.Items {
			k := [2]int{l.Epoch, h.Item}
			if other, twice := owners[k]; twice {
				blame(h.Item, "it stands in the ledgers of %s and of %s", other, l.Instance)
			}
			owners[k] = l.Instance
			c.judgeHolding(j, r, l.Instance, h, blame)
		}
	}
	epoch, total := j.latest(r)
	if len(s.Lives) == 0 || !c.spend(max(0, total)) {
		return
	}
	for item := range total {
		if _, owned := owners[[2]int{epoch, item}]; !owned {
			blame(item, "nobody owns it")
		}
	}
}

const (
	// beginAhead is how long before it is due a fire's begin is recorded at most.
	beginAhead = 2 * time.Second
	// clocksApart is how far clocks are apart that nobody has set.
	clocksApart = 100 * time.Millisecond
)

// judgeHolding judges that nothing of an item is under way.
func (c *checker) judgeHolding(j *job, r *Record, owner string, h Holding, blame func(int, string, ...any)) {
	live := slices.Contains(r.Snapshot.Lives, owner)
	due := c.when(nanos(h.Run)) // it may have been begun ahead
	if !h.Run.IsZero() && !j.runsAt(c, h.Item, r.At) && (due <= r.At-clocksApart || due > r.At+beginAhead) {
		blame(h.Item, "the ledger of %s says that it runs the fire of %s, and nothing runs", owner, clock(h.Run))
	}
	if !h.Redo.IsZero() && live {
		blame(h.Item, "the ledger of %s says that it is to run the fire of %s again", owner, clock(h.Redo))
	}
	if h.Leaving {
		blame(h.Item, "it is leaving %s", owner)
	}
	if h.Bound != "" && (live && isThere(r.Snapshot, h.Bound) || !j.isStatic(r.At)) {
		blame(h.Item, "it is lent to %s, and belongs to %s", owner, h.Bound)
	}
}

// latest is the epoch in force at a quiescence, and its total, by the best that is known:
// the base, the configuration, the ledgers of the living.
func (j *job) latest(r *Record) (epoch, total int) {
	s := r.Snapshot
	for _, l := range s.Ledgers {
		if slices.Contains(s.Lives, l.Instance) && l.Epoch >= epoch {
			epoch, total = l.Epoch, l.Total
		}
	}
	if s.Base != nil {
		return s.Base.Epoch, s.Base.To
	}
	if last := len(j.plan.epochs) - 1; j.plan.told && last >= 0 {
		return j.plan.epochs[last].number, j.plan.epochs[last].total
	}
	if n := j.configured(r.At); n > 0 {
		total = n
	}
	return epoch, total
}

func numbers(l Ledger) []int {
	var items []int
	for _, h := range l.Items {
		items = append(items, h.Item)
	}
	return items
}

// configured is the total that the configuration said at an instant; 0: nobody knows.
func (j *job) configured(at time.Duration) int {
	if c := j.configAt(at); c != nil {
		return c.Total
	}
	return 0
}

// configAt is the configuration of a job at an instant; nil before it has one.
func (j *job) configAt(at time.Duration) (c *Config) {
	for _, r := range j.config {
		if r.At <= at {
			c = r.Config
		}
	}
	return c
}

// runsAt reports whether a function of the item runs at an instant, or is about to.
func (j *job) runsAt(c *checker, item int, at time.Duration) bool {
	return slices.ContainsFunc(j.runs, func(n *run) bool {
		return n.Item == item && n.entered.At <= at && c.ended(n) > at
	})
}

// judgeGone judges each life that was seen gone: not too early, and then replaced soon.
func (c *checker) judgeGone(j *job) {
	for _, r := range j.led {
		if r.Self {
			c.report.Tally.Leaders++
		}
	}
	for _, l := range j.lives {
		if l.gone == never || l.who == "" {
			continue
		}
		c.judgeEarly(j, l)
		c.judgeOwned(j, l)
		c.judgeLed(j, l)
	}
}

// judgeEarly judges that a life stood until the Deadline of its session.
func (c *checker) judgeEarly(j *job, l *life) {
	p := c.process(l.who)
	if l.session == "" || min(p.crashed, p.stopping, l.stopped, l.replaced) <= l.gone {
		return
	}
	s := c.session(l.session)
	if s.deadline <= l.gone {
		return
	}
	var running *run
	for _, n := range j.runs {
		if n.entered.Instance == l.id && n.entered.At <= l.gone && c.ended(n) > l.gone {
			running = n
		}
	}
	if min(s.lost, s.closing, l.leaving) <= l.gone && running == nil {
		return // given up early, with nothing in it
	}
	if c.rules.Woke > 0 && slices.ContainsFunc(c.woken, func(at time.Duration) bool {
		return l.gone > at-c.rules.Woke && l.gone < at+c.rules.Woke
	}) {
		c.report.Upstream++
		return
	}
	k := Key{Job: j.name}
	if running != nil {
		k = running.Key
	}
	c.blame(Early, k, l.gone, "the life %s was seen gone %v before the Deadline of its session, lost: %v, ended by its process: %v",
		l.id, s.deadline-l.gone, s.lost <= l.gone, min(s.closing, l.leaving) <= l.gone)
}

// judgeOwned judges that others own the items of a life that is gone.
func (c *checker) judgeOwned(j *job, l *life) {
	limit := later(l.gone, c.rules.Owned)
	owned := l.items(l.gone)
	if c.rules.Owned == 0 || limit > c.last || len(owned) == 0 || !c.undisturbed(j, l, limit) || j.isStatic(l.gone) {
		return
	}
	now := map[int]bool{}
	others := false
	for _, other := range j.lives {
		if other == l || !c.stands(other, limit) {
			continue
		}
		others = true
		for _, item := range other.items(limit) {
			now[item] = true
		}
	}
	if !others {
		return
	}
	c.report.Tally.Judged[Owned]++
	for _, item := range owned {
		if !now[item] {
			c.blame(Owned, Key{Job: j.name, Item: item}, limit, "%s was gone at %v, and nobody owns it %v later", l.id, show(l.gone), c.rules.Owned)
		}
	}
}

// judgeLed judges that another leads when a leader is gone.
func (c *checker) judgeLed(j *job, l *life) {
	limit := later(l.gone, c.rules.Led)
	if c.rules.Led == 0 || limit > c.last || !c.undisturbed(j, l, limit) {
		return
	}
	leader, next := "", ""
	for _, r := range j.led {
		if r.Of == "" || !r.Self {
			continue
		}
		if r.At <= l.gone {
			leader = r.Of
		}
		if r.At <= limit {
			next = r.Of
		}
	}
	others := slices.ContainsFunc(j.lives, func(other *life) bool { return other != l && c.stands(other, limit) && other.started < l.gone })
	if leader != l.id || !others {
		return
	}
	c.report.Tally.Judged[Leader]++
	if next == l.id {
		c.blame(Leader, Key{Job: j.name}, limit, "the leader %s was gone at %v, and nobody leads %v later", l.id, show(l.gone), c.rules.Led)
	}
}

// items are those that a life owned at an instant, as it told.
func (l *life) items(at time.Duration) []int {
	var items []int
	for _, r := range l.owns {
		if r.At <= at {
			items = r.Items
		}
	}
	return items
}

// stands reports whether a life stands at an instant, and may own and lead what others did.
func (c *checker) stands(l *life, at time.Duration) bool {
	if l.who == "" || l.started > at {
		return false
	}
	p := c.process(l.who)
	return min(p.crashed, p.stopping, l.stopped, l.replaced, l.shut, l.gone) > at
}

// undisturbed reports whether nothing but the end of one life is about, until limit.
func (c *checker) undisturbed(j *job, l *life, limit time.Duration) bool {
	if !c.calm(l.gone, limit) {
		return false
	}
	for _, r := range j.config {
		if r.At <= limit && later(r.At, c.rules.Settle) >= l.gone {
			return false
		}
	}
	for who, p := range c.processes {
		if who == l.who {
			continue
		}
		for _, s := range p.pauses {
			if s.from <= limit && later(s.to, c.rules.Settle) >= l.gone {
				return false
			}
		}
	}
	return !slices.ContainsFunc(j.lives, func(other *life) bool {
		if other == l || other.who == "" {
			return false
		}
		p := c.process(other.who)
		left := min(p.crashed, p.stopping, other.stopped, other.replaced, other.shut)
		if other.session != "" {
			left = min(left, c.session(other.session).lost)
		}
		over := other.gone
		if over == never {
			over = left
		}
		return left <= limit && later(over, c.rules.Settle) >= l.gone
	})
}

// judgeEpochs judges that no epoch begins with a total that was configured long ago: a leader that has not heard
// of the configuration since would begin one.
func (c *checker) judgeEpochs(j *job) {
	if c.rules.Changed == 0 || len(j.config) == 0 {
		return
	}
	latest := 0
	for _, b := range j.bases {
		if b.Base.Epoch <= latest {
			continue
		}
		latest = b.Base.Epoch
		from := b.At - c.rules.Changed
		if !c.calm(from, b.At) { // the commit may have been held up, or the observer
			from -= c.rules.Settle
		}
		if from < j.config[0].At {
			continue
		}
		c.report.Tally.Judged[Changed]++
		// Who configures tells it once that is acknowledged: others may have seen it before.
		known := func(r *Record) bool { return r.At > from && r.At <= b.At+beforehand && r.Config.Total == b.Base.To }
		if j.configured(from) != b.Base.To && !slices.ContainsFunc(j.config, known) {
			c.blame(Changed, Key{Job: j.name, Epoch: latest}, b.At, "an epoch of %d items begins, which nobody has configured since %v; %d are configured",
				b.Base.To, show(from), j.configured(b.At))
		}
	}
}

// judgeChanges judges that changed totals are in force soon.
func (c *checker) judgeChanges(j *job) {
	if c.rules.Changed == 0 || j.unmonitored {
		return
	}
	for i, r := range j.config {
		if i == 0 || r.Config.Total == j.config[i-1].Config.Total {
			continue
		}
		limit := later(r.At, c.rules.Changed)
		if limit > c.last || !c.calm(r.At, limit) || c.lingering(j, r.At, limit) || i+1 < len(j.config) && j.config[i+1].At <= limit {
			continue
		}
		c.report.Tally.Judged[Changed]++
		inForce := slices.ContainsFunc(j.lives, func(l *life) bool {
			return slices.ContainsFunc(l.owns, func(o *Record) bool { return o.At > r.At && o.At <= limit && o.Total == r.Config.Total })
		})
		if !inForce {
			c.blame(Changed, Key{Job: j.name}, limit, "the total %d was configured at %v, and nobody owns items of it %v later",
				r.Config.Total, show(r.At), c.rules.Changed)
		}
	}
}
