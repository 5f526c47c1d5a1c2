package history

import (
	"slices"
	"strings"
	"time"
)

// Warning is what a warning of the engine's is in a history: some tell of clocks.
func Warning(problem string) Kind {
	switch {
	case strings.HasPrefix(problem, "the clock is off: "):
		return ClockOff
	case strings.HasPrefix(problem, "the clock agrees with the leader's again"):
		return ClockAgrees
	}
	return Warned
}

// A setting is when a wall clock was set, and how far ahead of the true time it runs since.
type setting struct {
	at, ahead time.Duration
	first     bool // its process began so
}

// steady is how far ahead a process's clock runs, if it was not set anew for so long before an instant.
func (p *process) steady(at, long time.Duration) (ahead time.Duration, ok bool) {
	ok = true
	for _, s := range p.clock {
		if s.at <= at {
			ahead, ok = s.ahead, s.first || later(s.at, long) <= at
		}
	}
	return ahead, ok
}

// within is how far clocks may be off the leader's in a stretch; 0 where that is any distance, or
// was for a while.
func (j *job) within(from, to time.Duration) time.Duration {
	var bound time.Duration
	for i, r := range j.config {
		switch {
		case r.At > to:
			return bound
		case i > 0 && r.At >= from && r.Config.Within != bound:
			return 0
		}
		bound = r.Config.Within
	}
	return bound
}

// judgeClocks judges who runs anything while clocks differ by more than the configuration allows.
func (c *checker) judgeClocks(j *job) {
	if c.rules.Off == 0 {
		return
	}
	for _, n := range j.runs {
		r := n.entered
		p := c.process(r.Who)
		long := later(c.rules.Off, 2*j.barred(c.rules.Listen)) // what has begun may wait for a listener
		from := r.At - long
		bound := j.within(from, r.At)
		if bound == 0 || p.awake(from, long) > r.At {
			continue
		}
		if off := j.foundOff(r, c.life(j, r.Instance).started); off != nil {
			c.report.Tally.Judged[Clocks]++
			if off.At < from {
				c.blame(Clocks, n.Key, r.At, "entered %v after its clock was found to be off", r.At-off.At)
			}
			continue
		}
		leader, since := j.ledBy(r)
		if leader == nil || since > from || leader.who == r.Who || !c.calmButClocks(from, r.At) ||
			min(leader.ended(), c.brokeOf(leader.who, leader.session)) <= r.At {
			continue
		}
		ours, steady := p.steady(r.At, long)
		theirs, known := c.process(leader.who).steady(r.At, c.rules.LeadOff)
		if !steady || !known {
			continue
		}
		c.report.Tally.Judged[Clocks]++
		if by := (ours - theirs).Abs(); by > bound+clocksAgree {
			c.blame(Clocks, n.Key, r.At, "entered by a clock that is %v off that of the leader %s, and %v are allowed", by, leader.id, bound)
		}
	}
}

// clocksAgree is what a comparison may leave open: as long as a question and its answer take.
const clocksAgree = time.Second

// comesBack reports whether a job that did not start for its clock did later, or had no time to.
func (c *checker) comesBack(j *job, r *Record) bool {
	if j.within(r.At, r.At) == 0 || !strings.Contains(r.Err, "MaxTimeDiff") {
		return false
	}
	p := c.process(r.Who)
	return later(r.At, c.rules.LeadOff) >= min(p.crashed, p.stopping, c.last) ||
		slices.ContainsFunc(j.lives, func(l *life) bool { return l.who == r.Who && l.started > r.At && l.started < never })
}

// toldWithin is how much later than it happens an event is told: functions are entered meanwhile.
const toldWithin = 100 * time.Millisecond

// foundOff is when who writes r had found that its clock is off, in a life that began at since.
// Nil: it has not, or it agrees again.
func (j *job) foundOff(r *Record, since time.Duration) (off *Record) {
	for _, x := range j.clocks {
		switch {
		case x.Who != r.Who || x.At < since:
		case x.At > r.At && (x.Kind != ClockAgrees || x.At > r.At+toldWithin):
		case x.Kind == ClockAgrees:
			off = nil
		case off == nil:
			off = x
		}
	}
	return off
}

// ledBy is whom the process that writes r sees lead, and since when. Nil: nobody, or nobody known.
func (j *job) ledBy(r *Record) (leader *life, since time.Duration) {
	for _, x := range j.led {
		if x.Who != r.Who || x.At > r.At {
			continue
		}
		leader, since = nil, x.At
		for _, l := range j.lives {
			if l.id == x.Of && x.Of != "" {
				leader = l
			}
		}
	}
	return leader, since
}
