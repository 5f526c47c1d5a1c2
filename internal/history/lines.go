package history

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	around      = 4 * time.Second // of history that a violation shows, on each side
	linesBefore = 14
	linesAfter  = 8
)

// verbs are what a format stands open for.
var verbs = regexp.MustCompile(`%[a-z]`)

// blame tells a violation, unless it is excused.
func (c *checker) blame(i Invariant, k Key, at time.Duration, format string, args ...any) {
	v := Violation{Invariant: i, Key: k, At: at, Text: fmt.Sprintf(format, args...)}
	if c.rules.Excuse != nil {
		if why := c.rules.Excuse(v); why != "" {
			c.report.Excused[why]++
			return
		}
	}
	c.report.Broken[i]++
	way := string(i) + ": " + verbs.ReplaceAllString(format, "…")
	if c.report.Ways[way]++; c.report.Ways[way] > c.rules.Show {
		return
	}
	v.Lines = c.lines(k, at)
	c.report.Violations = append(c.report.Violations, v)
}

// lines are the records about an item around an instant, and those of its owners' lives.
func (c *checker) lines(k Key, at time.Duration) []string {
	a := about{key: k, from: at - around, to: later(at, around), processes: map[string]bool{}, sessions: map[string]bool{}}
	for i := range c.records {
		a.meet(&c.records[i])
	}
	delete(a.sessions, "")
	var before, after []string
	for i := range c.records {
		r := &c.records[i]
		switch {
		case !a.shows(r):
		case r.At <= at:
			before = append(before, r.String())
		default:
			after = append(after, r.String())
		}
	}
	before = before[max(0, len(before)-linesBefore):]
	return append(before, after[:min(len(after), linesAfter)]...)
}

// about is what a violation is about.
type about struct {
	key                 Key
	from, to            time.Duration
	processes, sessions map[string]bool // of those who had to do with it
}

// meet notes whose record of the item it is.
func (a *about) meet(r *Record) {
	if !a.near(r) || !a.item(r) {
		return
	}
	switch r.Kind {
	case Entered, Cut, Gone:
		a.processes[r.Who], a.sessions[r.Session] = true, true
	}
}

func (a *about) shows(r *Record) bool {
	switch {
	case r.Kind == Alive || r.Kind == Quiet:
		return false
	case r.Job != "":
		return a.near(r) && a.item(r)
	}
	return r.At >= a.from && r.At <= a.to && (a.sessions[r.Session] || a.processes[r.Who] || a.processes[r.Of])
}

// near reports whether a record is of the time, or of the fire.
func (a *about) near(r *Record) bool {
	return r.At >= a.from && r.At <= a.to || a.key.Due != 0 && nanos(r.Due) == a.key.Due
}

// item reports whether a record is about the item, or about the whole job.
func (a *about) item(r *Record) bool {
	if r.Job != a.key.Job {
		return false
	}
	switch r.Kind {
	case Entered, Returned, Cancelled, Ended, Cut:
		return r.Item == a.key.Item
	case Skipped, Folded, Owns, LateRound:
		return slices.Contains(r.Items, a.key.Item)
	case Gone, Come:
		return r.Node != Running || r.Item == a.key.Item
	}
	return true
}

// String is the record as a line for people.
func (r *Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s %-12s %s", show(r.At), clock(r.Wall), r.Who, r.Kind)
	add := func(set bool, format string, args ...any) {
		if set {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	item := ""
	switch r.Kind {
	case Entered, Returned, Cancelled, Ended, Cut:
		item = fmt.Sprintf("/%d", r.Item)
	case Come, Gone:
		if r.Node == Running {
			item = fmt.Sprintf("/%d", r.Item)
		}
	}
	add(r.Job != "", "%s%s", r.Job, item)
	add(len(r.Items) > 0, "items %v", r.Items)
	add(r.Epoch != 0, "epoch %d", r.Epoch)
	add(r.Total != 0, "of %d", r.Total)
	add(!r.First.IsZero(), "from %s", clock(r.First))
	add(!r.Due.IsZero(), "due %s", clock(r.Due))
	add(r.Fence != 0, "fence %d", r.Fence)
	add(r.Count != 0, "count %d", r.Count)
	add(r.Node != "", "%s", r.Node)
	add(r.Instance != "", "instance %s", r.Instance)
	add(r.Session != "", "session %s", r.Session)
	add(r.Deadline != 0, "deadline %v", show(r.Deadline))
	add(r.Fault != "", "%s", r.Fault)
	add(r.Of != "", "of %s", r.Of)
	add(r.Self, "(itself)")
	add(r.Took != 0, "%v", r.Took)
	add(r.Config != nil, "%+v", r.Config)
	add(r.Schedule != nil, "%+v", r.Schedule)
	add(r.Base != nil, "%+v", r.Base)
	add(r.Reason != "", "%s", r.Reason)
	add(r.Err != "", "error: %s", r.Err)
	add(r.Slow, "(too late)")
	return b.String()
}

// show is an instant of the common time, in seconds.
func show(at time.Duration) string {
	if at == never {
		return "never"
	}
	return fmt.Sprintf("%.6f", at.Seconds())
}
