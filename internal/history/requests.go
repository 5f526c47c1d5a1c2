package history

import (
	"slices"
	"time"
)

// The outcomes of items that were asked for.
const (
	succeeded  = "succeeded"
	failed     = "failed"
	crashed    = "crashed"
	superseded = "superseded"
)

// judgeRequests judges what became of requests by the last quiescence.
func (c *checker) judgeRequests(j *job) {
	if len(j.quiet) == 0 {
		return
	}
	last := j.quiet[len(j.quiet)-1]
	s := last.Snapshot
	kept := time.Duration(0) // since when all stand
	if c.rules.Kept > 0 {
		kept = last.At - c.rules.Kept
	}
	for _, r := range j.requested {
		if r.At >= last.At || r.At < kept {
			continue
		}
		runs := 0
		for _, a := range s.Asked {
			if a.Request == r.Of {
				runs++
			}
		}
		if runs != 1 {
			c.blame(Requests, Key{Job: j.name}, last.At, "the request %s of %s has %d answers", r.Of, show(r.At), runs)
		}
	}
	for _, a := range s.Asked {
		c.judgeAsked(j, last, a)
	}
	for _, n := range j.runs {
		number := n.entered.Request
		if number == 0 || n.entered.At > last.At || n.entered.At < kept {
			continue
		}
		known := slices.ContainsFunc(s.Asked, func(a Asked) bool {
			return a.Number == number && nanos(a.At) == n.Due && a.Epoch == n.Epoch && slices.Contains(a.Items, n.Item)
		})
		if !known {
			c.blame(Requests, n.Key, n.entered.At, "entered for run %d, which nobody asked for", number)
		}
	}
}

// judgeAsked judges one run that was asked for.
func (c *checker) judgeAsked(j *job, quiet *Record, a Asked) {
	if a.Problem != "" {
		c.report.Tally.Asked[a.Problem]++
		if len(a.Outcomes) > 0 || a.Open {
			c.blame(Requests, Key{Job: j.name}, quiet.At, "run %d was not accepted, and has outcomes", a.Number)
		}
		return
	}
	outcomes := map[int][]string{}
	for _, o := range a.Outcomes {
		for _, n := range o.Items {
			outcomes[n] = append(outcomes[n], o.Outcome)
		}
		c.report.Tally.Asked[o.Outcome] += len(o.Items)
	}
	for n := range outcomes {
		if !slices.Contains(a.Items, n) {
			c.blame(Requests, Key{Job: j.name, Epoch: a.Epoch, Item: n, Due: nanos(a.At)}, quiet.At, "run %d has an outcome of an item that it did not want", a.Number)
		}
	}
	for _, n := range a.Items {
		k := Key{Job: j.name, Epoch: a.Epoch, Item: n, Due: nanos(a.At)}
		switch of := outcomes[n]; {
		case a.Open && len(of) == 0:
			c.blame(Requests, k, quiet.At, "run %d is open, and the item has no outcome", a.Number)
		case len(of) != 1:
			c.blame(Requests, k, quiet.At, "run %d is closed with the outcomes %v of the item", a.Number, of)
		default:
			c.judgeOutcome(j, quiet, k, of[0])
		}
	}
}

// judgeOutcome judges that the outcome of an item fits what its function did.
func (c *checker) judgeOutcome(j *job, quiet *Record, k Key, outcome string) {
	f := j.fires[k]
	if f == nil {
		f = &fire{}
	}
	returned := slices.ContainsFunc(f.runs, func(n *run) bool { return n.returned <= quiet.At })
	switch outcome {
	case succeeded, failed:
		if !returned {
			c.blame(Requests, k, quiet.At, "answered as %s, and no function has returned", outcome)
		}
		if len(f.ended) > 0 && (f.ended[0].Err == "") != (outcome == succeeded) {
			c.blame(Requests, k, quiet.At, "answered as %s, and told as ended with %q", outcome, f.ended[0].Err)
		}
	case crashed, superseded:
		if len(f.ended) > 0 {
			c.blame(Requests, k, f.ended[0].At, "answered as %s, and told as ended", outcome)
		}
	default:
		if len(f.runs) > 0 {
			c.blame(Requests, k, f.runs[0].entered.At, "answered as %s, and entered", outcome)
		}
	}
}
