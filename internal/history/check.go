package history

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// never is later than anything.
const never = time.Duration(1<<63 - 1)

// Check judges a history.
func Check(records []Record, rules Rules) Report {
	records = slices.Clone(records)
	byTime(records)
	rules.Heard = cmp.Or(rules.Heard, defaultHeard)
	rules.Unsure = cmp.Or(rules.Unsure, defaultUnsure)
	rules.Show = cmp.Or(rules.Show, defaultShow)
	rules.Most = cmp.Or(rules.Most, defaultMost)
	c := &checker{
		rules: rules, records: records,
		processes: map[string]*process{}, sessions: map[string]*session{}, lives: map[string]*life{},
		jobs: map[string]*job{},
		report: Report{
			Broken: map[Invariant]int{}, Ways: map[string]int{}, Excused: map[string]int{},
			Tally: Tally{
				Records: len(records), Skipped: map[string]int{}, Asked: map[string]int{}, Faults: map[string]Hits{}, Judged: map[Invariant]int{},
			},
		},
	}
	for i := range records {
		c.learn(&records[i])
	}
	c.closeFaults()
	for i := range records {
		c.follow(&records[i])
	}
	for _, j := range sorted(c.jobs) {
		c.plan(j)
		c.judgeRuns(j)
		c.judgeOutcomes(j)
		c.judgeCoverage(j)
		c.judgeDelay(j)
		c.judgeQuiet(j)
		c.judgeRequests(j)
		c.judgeGone(j)
		c.judgeChanges(j)
		c.judgeEpochs(j)
		c.judgeRounds(j)
		c.judgeBound(j)
		c.judgeClocks(j)
	}
	if c.rules.Most < 0 {
		c.blame(Coverage, Key{}, c.last, "more than can be judged: Rules.Most")
	}
	slices.SortStableFunc(c.report.Violations, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	slices.Sort(c.report.Tally.Lateness)
	return c.report
}

type checker struct {
	rules   Rules
	records []Record

	processes map[string]*process
	sessions  map[string]*session
	lives     map[string]*life
	jobs      map[string]*job
	open      map[string]*span // faults that stand
	faults    []span           // that disturb
	butClocks []span           // those but for clocks that were set
	woken     []time.Duration  // when servers that were paused went on
	last      time.Duration

	report Report
}

// A process is one who of the records.
type process struct {
	crashed  time.Duration // never: it was not
	stopping time.Duration
	pauses   []span
	set      time.Duration // when its clock was set first; never: it was not
	clock    []setting     // by time
	told     bool          // it has written a record that is not about its clock
}

// awake is when a process has been awake for so long since an instant: while it stands still
// no time passes for it.
func (p *process) awake(since, long time.Duration) time.Duration {
	for _, s := range p.pauses { // by time
		if s.to <= since || s.from >= later(since, long) {
			continue
		}
		if s.from > since {
			long -= s.from - since
		}
		since = s.to
	}
	return later(since, long)
}

// A session is one session with the registry.
type session struct {
	deadline time.Duration // the latest that is known
	lost     time.Duration
	closing  time.Duration
	err      string
}

// A life is one instance id.
type life struct {
	id, who, session, job string
	started               time.Duration
	stopped               time.Duration // told to have left
	replaced              time.Duration // the same process registered anew
	leaving               time.Duration // its process was about to take it back
	shut                  time.Duration // somebody shut it down: it leads no more, and leaves when what it has in hand has ended
	gone                  time.Duration
	owns                  []*Record
}

// ended is when the life ended but for what broke it.
func (l *life) ended() time.Duration { return min(l.stopped, l.replaced, l.leaving, l.gone) }

// A job is what the records hold about one.
type job struct {
	name        string
	config      []*Record // Configured
	schedules   []*Record
	bases       []*Record
	quiet       []*Record
	requested   []*Record
	led         []*Record
	runs        []*run
	calls       []*Record // Called
	answers     []*Record // Answered
	late        []*Record // LateRound
	clocks      []*Record // ClockOff, ClockAgrees
	lives       []*life
	fires       map[Key]*fire
	started     time.Time // the first Started, by the wall clock
	unmonitored bool
	failover    bool             // at any time
	current     map[string]*life // by process
	active      map[int][]*run
	plan        plan
}

// A run is one call of a function.
type run struct {
	Key
	entered   *Record
	returned  time.Duration // never: it did not
	cancelled time.Duration // never: it was not
}

// A fire is what is known about one fire of one item.
type fire struct {
	runs                 []*run
	ended, cuts, skipped []*Record
}

// unknown reports whether nothing is known about a fire; nil is one.
func (f *fire) unknown() bool {
	return f == nil || len(f.runs)+len(f.ended)+len(f.cuts)+len(f.skipped) == 0
}

// A span is a stretch of the common time.
type span struct{ from, to time.Duration }

func (c *checker) process(who string) *process {
	p := c.processes[who]
	if p == nil {
		p = &process{crashed: never, stopping: never, set: never}
		c.processes[who] = p
	}
	return p
}

func (c *checker) session(id string) *session {
	s := c.sessions[id]
	if s == nil {
		s = &session{lost: never, closing: never}
		c.sessions[id] = s
	}
	return s
}

func (c *checker) job(name string) *job {
	j := c.jobs[name]
	if j == nil {
		j = &job{name: name, fires: map[Key]*fire{}, current: map[string]*life{}, active: map[int][]*run{}}
		c.jobs[name] = j
	}
	return j
}

// life returns the life of an id, made when it is not known yet.
func (c *checker) life(j *job, id string) *life {
	l := c.lives[id]
	if l == nil {
		l = &life{id: id, job: j.name, started: never, stopped: never, replaced: never, leaving: never, shut: never, gone: never}
		c.lives[id] = l
		j.lives = append(j.lives, l)
	}
	return l
}

// learn takes what later judgements need to know ahead: how processes, sessions and
// lives ended, which faults stood when.
func (c *checker) learn(r *Record) {
	c.last = max(c.last, r.At)
	c.learnSession(r)
	c.learnLife(r)
	if r.Kind != ClockSet {
		c.process(r.Who).told = true
	}
	switch r.Kind {
	case FaultBegun, FaultEnded:
		c.learnFault(r)
	case Crashed:
		p := c.process(r.Of)
		p.crashed = min(p.crashed, r.At)
		c.report.Tally.Crashes++
	case LostWrites:
		c.report.Tally.LostWrites += r.Count
	case Stopping:
		p := c.process(r.Who)
		p.stopping = min(p.stopping, r.At)
	case ClockSet:
		p := c.process(r.Of)
		p.set = min(p.set, r.At)
		p.clock = append(p.clock, setting{at: r.At, ahead: r.Took, first: len(p.clock) == 0 && !p.told})
	case Paused:
		p := c.process(r.Of)
		p.pauses = append(p.pauses, span{r.At, never})
	case Resumed:
		if p := c.process(r.Of); len(p.pauses) > 0 {
			p.pauses[len(p.pauses)-1].to = r.At
		}
	}
}

func (c *checker) learnSession(r *Record) {
	if r.Session == "" {
		return
	}
	s := c.session(r.Session)
	s.deadline = max(s.deadline, r.Deadline)
	switch r.Kind {
	case Lost:
		if r.At < s.lost {
			s.lost, s.err = r.At, r.Err
		}
		c.report.Tally.Losses++
	case Closing:
		s.closing = min(s.closing, r.At)
	}
}

func (c *checker) learnLife(r *Record) {
	if r.Job == "" || r.Instance == "" {
		return
	}
	j := c.job(r.Job)
	l := c.life(j, r.Instance)
	switch r.Kind {
	case Gone:
		switch r.Node {
		case Life, "":
			l.gone = min(l.gone, r.At)
		case InstanceNode:
			l.shut = min(l.shut, r.At)
		}
		return // seen by others
	case Come:
		if r.Node == InstanceNode {
			l.shut = never // made anew before its process took it for that
		}
		return
	case Stopped:
		l.stopped = min(l.stopped, r.At)
	case Leaving:
		l.leaving = min(l.leaving, r.At)
	case Started, Registered:
		l.started = min(l.started, r.At)
		if before := j.current[r.Who]; before != nil && before != l {
			before.replaced = min(before.replaced, r.At)
		}
		j.current[r.Who] = l
	case Owns:
		l.owns = append(l.owns, r)
	}
	l.who = r.Who
	if r.Session != "" {
		l.session = r.Session
	}
}

func (c *checker) learnFault(r *Record) {
	if r.Kind == FaultEnded && r.Fault == PauseServer {
		c.woken = append(c.woken, r.At)
	}
	h := c.report.Tally.Faults[r.Fault]
	key := r.Fault + "\x00" + r.Of
	if c.open == nil {
		c.open = map[string]*span{}
	}
	if r.Kind == FaultBegun {
		h.Begun++
		if r.Disturbs && c.open[key] == nil {
			c.open[key] = &span{r.At, never}
		}
	} else {
		if r.Count > 0 {
			h.Hit++
		}
		if s := c.open[key]; s != nil {
			s.to = r.At
			c.stood(r.Fault, *s)
			delete(c.open, key)
		}
	}
	c.report.Tally.Faults[r.Fault] = h
}

// closeFaults takes those that never ended.
func (c *checker) closeFaults() {
	for key, s := range c.open {
		c.stood(key, *s)
	}
}

// stood takes how long a fault stood that disturbs.
func (c *checker) stood(name string, s span) {
	c.faults = append(c.faults, s)
	if !strings.HasPrefix(name, SetClock) {
		c.butClocks = append(c.butClocks, s)
	}
}

// follow sorts the records of jobs.
func (c *checker) follow(r *Record) {
	if r.Job == "" {
		return
	}
	j := c.job(r.Job)
	switch r.Kind {
	case Entered:
		c.enter(j, r)
	case Returned, Cancelled:
		j.leave(r)
	case Ended, Cut, Skipped, Folded:
		// judged with the plan
	case Called:
		j.calls = append(j.calls, r)
	case Answered:
		j.answers = append(j.answers, r)
	case LateRound:
		j.late = append(j.late, r)
	case ClockOff, ClockAgrees:
		j.clocks = append(j.clocks, r)
		if r.Kind == ClockOff {
			c.report.Tally.Off++
		}
	case Configured:
		if r.Config != nil {
			j.config = append(j.config, r)
			j.unmonitored = j.unmonitored || r.Config.Unmonitored
			j.failover = j.failover || r.Config.Failover
		}
	case SawSchedule:
		if r.Schedule != nil {
			j.schedules = append(j.schedules, r)
		}
	case SawBase:
		if r.Base != nil {
			j.bases = append(j.bases, r)
		}
	case Quiet:
		if r.Snapshot != nil {
			j.quiet = append(j.quiet, r)
		}
	case Requested:
		j.requested = append(j.requested, r)
	case Led:
		j.led = append(j.led, r)
	case Started:
		if j.started.IsZero() {
			j.started = r.Wall
		}
	case Stopped:
		if r.Err != "" && !c.comesBack(j, r) {
			c.blame(Failed, Key{Job: j.name}, r.At, "%s has left for good: %s", r.Instance, r.Err)
		}
	}
}

func (c *checker) enter(j *job, r *Record) {
	n := &run{Key: key(r, r.Item, r.Due), entered: r, returned: never, cancelled: never}
	j.runs = append(j.runs, n)
	j.active[r.Item] = append(j.active[r.Item], n)
	f := j.fire(n.Key)
	f.runs = append(f.runs, n)
	c.report.Tally.Runs++
}

// leave finds the run that returned, or whose context ended.
func (j *job) leave(r *Record) {
	active := j.active[r.Item]
	i := slices.IndexFunc(active, func(n *run) bool {
		return n.Key == key(r, r.Item, r.Due) && n.entered.Who == r.Who && n.entered.Instance == r.Instance
	})
	switch {
	case i < 0:
	case r.Kind == Cancelled:
		active[i].cancelled = min(active[i].cancelled, r.At)
	default:
		active[i].returned = r.At
		j.active[r.Item] = slices.Delete(active, i, i+1)
	}
}

func (j *job) fire(k Key) *fire {
	f := j.fires[k]
	if f == nil {
		f = &fire{}
		j.fires[k] = f
	}
	return f
}

func key(r *Record, item int, due time.Time) Key {
	return Key{Job: r.Job, Epoch: r.Epoch, Item: item, Due: nanos(due)}
}

// nanos is 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// calm reports whether no disturbing fault stood in a stretch, or shortly before it.
func (c *checker) calm(from, to time.Duration) bool { return calm(c.faults, from, to, c.rules.Settle) }

// calmButClocks is calm where clocks that are set count for nothing.
func (c *checker) calmButClocks(from, to time.Duration) bool {
	return calm(c.butClocks, from, to, c.rules.Settle)
}

func calm(faults []span, from, to, settle time.Duration) bool {
	for _, s := range faults {
		if s.from <= to && later(s.to, settle) >= from {
			return false
		}
	}
	return true
}

// later is t + d without overflow.
func later(t, d time.Duration) time.Duration {
	if t > never-d {
		return never
	}
	return t + d
}

// broke is when the life that ran something ended without its doing: its process was
// killed, its session lost, or its Deadline passed.
func (c *checker) broke(r *Record) time.Duration { return c.brokeOf(r.Who, r.Session) }

func (c *checker) brokeOf(process, session string) time.Duration {
	at := c.process(process).crashed
	if session == "" {
		return at
	}
	return min(at, c.session(session).lost)
}

func sorted[V any](m map[string]V) []V {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	values := make([]V, len(names))
	for i, name := range names {
		values[i] = m[name]
	}
	return values
}
