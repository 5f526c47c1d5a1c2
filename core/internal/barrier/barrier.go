package barrier

import (
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
)

// A Rule is what those want who listen before rounds. The zero value is nobody.
type Rule struct {
	// On: somebody listens.
	On bool
	// Wait bounds how long an item waits.
	Wait time.Duration
	// Fail: an item that has waited so long fails this fire; else it starts.
	Fail bool
}

// A Verdict is what becomes of an item.
type Verdict uint8

const (
	// Waits: it is released later.
	Waits Verdict = iota
	// Starts: the listener has returned, or nobody listens.
	Starts
	// Refused: the listener has refused the round: the item fails this fire.
	Refused
	// Late: the wait was too long, or whoever listened is gone: the item starts without.
	Late
	// LateFails: the same, and the item fails this fire.
	LateFails
)

// A Release is the end of an item's wait.
type Release struct {
	Item    int
	Due     time.Time
	Waited  time.Duration
	Verdict Verdict
}

// A Barrier belongs to one instance of a job. At the zero one nobody waits.
type Barrier struct {
	rule    Rule
	claim   *layout.Cursor // nil: none was seen, as where nobody listens
	waiting map[int]wait
}

type wait struct {
	due   time.Time
	since time.Time
}

// Put puts a rule in force. Where nobody listens any more all are released.
func (b *Barrier) Put(r Rule, now time.Time) []Release {
	was := b.rule
	b.rule = r
	if r.On {
		return b.Tick(now)
	}
	return b.release(now, func(wait) Verdict { return tooLate(was) })
}

// Claim follows for which round the listener is called, or was.
func (b *Barrier) Claim(c layout.Cursor, now time.Time) []Release {
	if b.claim = nil; c != (layout.Cursor{}) {
		kept := c
		b.claim = &kept
	}
	return b.release(now, func(w wait) Verdict { return b.verdict(w.due) })
}

// Arrive says whether an item that has begun may start. One that waits is noted.
func (b *Barrier) Arrive(item int, due, now time.Time) Verdict {
	if !b.rule.On || failpoint.Mutant(failpoint.BarrierOpen) {
		return Starts
	}
	v := b.verdict(due)
	if v == Waits {
		lazymap.Set(&b.waiting, item, wait{due: due, since: now})
	}
	return v
}

// Leave takes an item out that waits. It reports whether it did.
func (b *Barrier) Leave(item int) bool {
	_, waits := b.waiting[item]
	delete(b.waiting, item)
	return waits
}

// Tick releases those that have waited too long.
func (b *Barrier) Tick(now time.Time) []Release {
	return b.release(now, func(w wait) Verdict {
		if now.Before(w.since.Add(b.rule.Wait)) {
			return Waits
		}
		return tooLate(b.rule)
	})
}

// End releases all, whatever they wait for.
func (b *Barrier) End(now time.Time) []Release {
	return b.release(now, func(wait) Verdict { return Starts })
}

// Next is when Tick is wanted next; false is never.
func (b *Barrier) Next() (next time.Time, ok bool) {
	for _, w := range b.waiting {
		if at := w.since.Add(b.rule.Wait); !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

// Claimed is the latest claim: who is being called, where an item waits for that.
func (b *Barrier) Claimed() layout.Cursor {
	if b.claim == nil {
		return layout.Cursor{}
	}
	return *b.claim
}

// verdict is what the claim says of a round. The rounds between it and the claim before have
// its answer; older ones had theirs, and those that were refused last are known.
func (b *Barrier) verdict(due time.Time) Verdict {
	c := b.Claimed()
	switch {
	case due.After(c.Due):
		return Waits
	case !due.After(c.Since) && c.Refused.Has(due):
		return Refused
	case !due.After(c.Since):
		return Starts
	case c.Open():
		return Waits
	case c.Failed:
		return Refused
	}
	return Starts
}

func tooLate(r Rule) Verdict {
	if r.Fail {
		return LateFails
	}
	return Late
}

func (b *Barrier) release(now time.Time, verdict func(wait) Verdict) (released []Release) {
	for item, w := range b.waiting {
		if v := verdict(w); v != Waits {
			delete(b.waiting, item)
			released = append(released, Release{Item: item, Due: w.due, Waited: now.Sub(w.since), Verdict: v})
		}
	}
	slices.SortFunc(released, func(x, y Release) int { return x.Item - y.Item })
	return released
}
