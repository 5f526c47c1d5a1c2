package history

import (
	"cmp"
	"slices"
	"time"
)

// A plan is what was due to a job, by wall clock in nanoseconds since 1970.
type plan struct {
	from, to int64   // what was due after from, up to to, needs an outcome
	grid     []int64 // the fires of the schedules in force, ascending
	extra    map[int64]bool
	unsure   []stretch // where nobody knows what was in force
	replaced []replaced
	epochs   []epoch // by from
	told     bool    // epochs were seen, and records carry them
	delay    time.Duration
	judged   bool
}

// A stretch is open at its start, closed at its end.
type stretch struct{ from, to int64 }

func (s stretch) holds(due int64) bool { return s.from < due && due <= s.to }

// A schedule that was replaced: what was due by it until an instant, and until when by the common clock
// a member may have fired by it all the same.
type replaced struct {
	table Timetable
	until int64
	heard time.Duration
}

// An epoch is the items that were due in a stretch.
type epoch struct {
	stretch
	number, total int
}

const (
	endless = int64(1<<63 - 1)
	// beforehand is how much earlier than a change was told it may have been in force.
	beforehand = 2 * time.Second
)

// plan derives what was due from the schedules and epochs that were in force.
func (c *checker) plan(j *job) {
	p := &j.plan
	p.extra = map[int64]bool{}
	if c.rules.Timetable == nil || len(j.quiet) == 0 || j.started.IsZero() {
		return
	}
	p.from = nanos(j.started)
	p.to = nanos(j.quiet[len(j.quiet)-1].Wall.Add(-c.rules.Tail))
	schedules, sure := c.inForce(j)
	if len(schedules) == 0 || p.to <= p.from {
		return
	}
	if sure {
		p.from = max(p.from, nanos(schedules[0].Since))
	}
	p.epochs = c.epochs(j)
	p.judged = len(p.epochs) > 0
	for i, s := range schedules {
		table, err := c.rules.Timetable(s)
		if err != nil {
			c.blame(Coverage, Key{Job: j.name}, j.quiet[0].At, "a schedule cannot be read: %v", err)
			continue
		}
		if table.Delay > 0 {
			p.delay = table.Delay
			continue
		}
		if table.Next == nil {
			continue
		}
		since, until := nanos(s.Since), p.to
		next := replacing(schedules[i+1:])
		if next != nil {
			until = min(until, nanos(next.Since))
		}
		p.grid = append(p.grid, c.fires(table, max(since, p.from-int64(time.Hour)), until)...)
		heard := until
		if next != nil {
			seen := c.seen(j, next.N)
			if seen != nil {
				more := c.unheard(seen.At)
				heard = max(heard, nanos(seen.Wall)+int64(more))
				p.replaced = append(p.replaced, replaced{table, until, later(seen.At, c.rules.Heard+more)})
			}
		}
		c.allow(p, table, s, next != nil, until, heard, sure)
	}
	slices.Sort(p.grid)
	p.grid = slices.Compact(p.grid)
}

// replacing is which of the schedules that follow one takes its place: the one that is in force first. One that a leader
// whose clock was ahead has put in force in a year never is, where another follows before.
func replacing(later []Schedule) (next *Schedule) {
	for i := range later {
		if next == nil || later[i].Since.Before(next.Since) {
			next = &later[i]
		}
	}
	return next
}

// allow adds the fires that a member may have run which had not heard of a change.
// The next schedule was there to be heard of at an instant: its commit may have been held up.
func (c *checker) allow(p *plan, table Timetable, s Schedule, replaced bool, until, there int64, sure bool) {
	heard := int64(c.rules.Heard)
	if !sure {
		heard = int64(c.rules.Unsure)
		since := nanos(s.Since)
		for _, due := range c.fires(table, since-int64(beforehand), since) {
			p.extra[due] = true
		}
		p.unsure = append(p.unsure, stretch{since - int64(beforehand), since + heard})
	}
	if replaced {
		for _, due := range c.fires(table, until, there+heard) {
			p.extra[due] = true
		}
	}
}

// seen is what the observer wrote when it saw a schedule first; nil: it did not.
func (c *checker) seen(j *job, n int) *Record {
	for _, r := range j.schedules {
		if r.Schedule.N == n {
			return r
		}
	}
	return nil
}

// unheard is how much later than Rules.Heard a member may hear of a schedule that is seen at
// an instant: a fault that stands then may keep it from him until it ends.
func (c *checker) unheard(at time.Duration) (more time.Duration) {
	for _, s := range c.faults {
		if s.from <= later(at, c.rules.Heard) && s.to > at && s.to < never {
			more = max(more, s.to-at)
		}
	}
	return more
}

// ranAhead reports whether an owner whose clock was set ahead came to a fire of a replaced
// schedule by that clock, before it can have heard of the change.
func (c *checker) ranAhead(p *plan, n *run) bool {
	r := n.entered
	if c.process(r.Who).set > r.At || n.Due > nanos(r.Wall) {
		return false
	}
	return slices.ContainsFunc(p.replaced, func(s replaced) bool {
		return r.At <= s.heard && len(c.fires(s.table, n.Due-1, n.Due)) == 1
	})
}

// fires are those due after one instant up to another.
func (c *checker) fires(table Timetable, after, upTo int64) []int64 {
	return c.firstFires(table, after, upTo, c.rules.Most)
}

// firstFires are the first of those, n at most.
func (c *checker) firstFires(table Timetable, after, upTo int64, n int) []int64 {
	var dues []int64
	for at := after; len(dues) < n && c.spend(1); {
		next, ok := table.Next(time.Unix(0, at).UTC())
		due := nanos(next)
		if !ok || due <= at || due > upTo {
			break
		}
		dues = append(dues, due)
		at = due
	}
	return dues
}

// spend reports whether so much more may be judged.
func (c *checker) spend(n int) bool {
	c.rules.Most -= n
	return c.rules.Most >= 0
}

// inForce are the schedules by their numbers. sure: an observer saw the nodes; else they
// are the configurations, from when the driver wrote them.
func (c *checker) inForce(j *job) (schedules []Schedule, sure bool) {
	seen := map[int]Schedule{}
	for _, r := range j.schedules {
		seen[r.Schedule.N] = *r.Schedule
	}
	for _, r := range j.schedules { // what came and went between two looks
		for s := r.Schedule.Before; s != nil; s = s.Before {
			if _, known := seen[s.N]; !known && s.N > 0 {
				seen[s.N] = *s
			}
		}
	}
	for _, s := range seen {
		schedules = append(schedules, s)
	}
	if len(schedules) > 0 {
		slices.SortFunc(schedules, func(a, b Schedule) int { return cmp.Compare(a.N, b.N) })
		c.unseen(j, schedules)
		return schedules, true
	}
	for i, r := range j.config {
		if i > 0 && r.Config.Cron == j.config[i-1].Config.Cron && r.Config.Zone == j.config[i-1].Config.Zone {
			continue
		}
		schedules = append(schedules, Schedule{N: i, Cron: r.Config.Cron, Zone: r.Config.Zone, Since: r.Wall})
	}
	return schedules, false
}

// unseen allows for schedules that came and went between two looks of the observer.
func (c *checker) unseen(j *job, schedules []Schedule) {
	for i := 1; i < len(schedules); i++ {
		before, s := schedules[i-1], schedules[i]
		if s.N == before.N+1 {
			continue
		}
		between := stretch{max(nanos(before.Since), j.plan.from), nanos(s.Since)}
		j.plan.unsure = append(j.plan.unsure, between)
		if s.Before == nil {
			continue
		}
		if table, err := c.rules.Timetable(*s.Before); err == nil && table.Next != nil {
			for _, due := range c.fires(table, between.from, between.to) {
				j.plan.extra[due] = true
			}
		}
	}
}

// epochs are the totals in force, by the base nodes or, where nobody saw any, by the
// configurations.
func (c *checker) epochs(j *job) []epoch {
	seen := map[int]Base{}
	for _, r := range j.bases {
		b := *r.Base
		if first, again := seen[b.Epoch]; again {
			b.Through = first.Through // the epoch began then, wherever a base that is made again says
		}
		seen[b.Epoch] = b
	}
	if len(seen) == 0 {
		return c.epochsOfConfig(j)
	}
	j.plan.told = true
	var bases []Base
	for _, b := range seen {
		bases = append(bases, b)
	}
	slices.SortFunc(bases, func(a, b Base) int { return cmp.Compare(a.Epoch, b.Epoch) })
	var epochs []epoch
	if first := bases[0]; first.From > 0 {
		epochs = append(epochs, epoch{stretch{-endless, nanos(first.Through)}, first.Epoch - 1, first.From})
	}
	for i, b := range bases {
		until := endless
		if i+1 < len(bases) {
			until = nanos(bases[i+1].Through)
			if bases[i+1].Epoch != b.Epoch+1 { // the observer missed one
				j.plan.unsure = append(j.plan.unsure, stretch{nanos(b.Through), until})
			}
		}
		epochs = append(epochs, epoch{stretch{nanos(b.Through), until}, b.Epoch, b.To})
	}
	c.report.Tally.Epochs += len(epochs) - 1
	return epochs
}

func (c *checker) epochsOfConfig(j *job) []epoch {
	var epochs []epoch
	for _, r := range j.config {
		at, n := nanos(r.Wall), len(epochs)
		if n > 0 && epochs[n-1].total == r.Config.Total {
			continue
		}
		if n == 0 {
			epochs = append(epochs, epoch{stretch{-endless, endless}, 0, r.Config.Total})
			continue
		}
		epochs[n-1].to = at
		epochs = append(epochs, epoch{stretch{at, endless}, 0, r.Config.Total})
		j.plan.unsure = append(j.plan.unsure, stretch{at - int64(beforehand), at + int64(c.rules.Unsure)})
		c.report.Tally.Epochs++
	}
	return epochs
}

// was reports whether any schedule wanted a fire, or may have.
func (p *plan) was(due int64) bool {
	_, found := slices.BinarySearch(p.grid, due)
	return found || p.extra[due]
}

func (p *plan) isUnsure(due int64) bool {
	return slices.ContainsFunc(p.unsure, func(s stretch) bool { return s.holds(due) })
}

// between are the fires from one to another, both included.
func (p *plan) between(first, last int64) []int64 {
	from, _ := slices.BinarySearch(p.grid, first)
	to, found := slices.BinarySearch(p.grid, last)
	if found {
		to++
	}
	if from >= to {
		return nil
	}
	return p.grid[from:to]
}

// latest are the last n fires up to one, oldest first.
func (p *plan) latest(n int, upTo int64) []int64 {
	to, found := slices.BinarySearch(p.grid, upTo)
	if found {
		to++
	}
	return p.grid[min(max(0, to-max(n, 0)), to):to]
}
