package firing

import (
	"errors"
	"time"

	"github.com/elasticron/elasticron/core/internal/barrier"
	"github.com/elasticron/elasticron/internal/layout"
)

// ErrHeldUp is why an item failed a fire without having been called: the listener before
// its round refused it, or did not return in time.
var ErrHeldUp = errors.New("the listener before the round did not let the item start")

// A LateRound is a round before which items waited in vain for the listener.
type LateRound struct {
	Due    time.Time
	Items  []int
	Waited time.Duration
	// Caller is who was being called; "" is nobody yet.
	Caller string
	// Failed: the items fail this fire; else they start.
	Failed bool
}

// SetBefore says what those want who listen before rounds.
func (f *Firing) SetBefore(r barrier.Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.let(f.barrier.Put(r, time.Now()))
}

// SetClaim says for which round the listener before it is called, or was.
func (f *Firing) SetClaim(c layout.Cursor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.let(f.barrier.Claim(c, time.Now()))
}

// submit hands an item to its function: when the listener before its round has returned, and
// there is a place. It reports whether the item waits for the listener. The caller holds mu.
func (f *Firing) submit(r *run) (waits bool) {
	v := barrier.Starts
	if r.Request == 0 { // what somebody asked for belongs to no round
		v = f.barrier.Arrive(r.Run.Item, r.Due, time.Now())
	}
	if v == barrier.Waits {
		return true
	}
	f.enter(r, v)
	return false
}

// enter lets an item in, or has it fail. The caller holds mu.
func (f *Firing) enter(r *run, v barrier.Verdict) {
	if v == barrier.Refused || v == barrier.LateFails {
		r.Refused = ErrHeldUp
	}
	f.cfg.Places.Submit(r)
}

// let lets in what the barrier releases. The caller holds mu.
func (f *Firing) let(released []barrier.Release) {
	late := map[int64]*LateRound{}
	var rounds []*LateRound
	for _, x := range released {
		r := f.runs[x.Item]
		if r == nil || !r.Due.Equal(x.Due) {
			continue
		}
		f.enter(r, x.Verdict)
		if x.Verdict != barrier.Late && x.Verdict != barrier.LateFails {
			continue
		}
		l := late[x.Due.UnixNano()]
		if l == nil {
			l = &LateRound{Due: x.Due, Failed: x.Verdict == barrier.LateFails}
			if c := f.barrier.Claimed(); c.Open() && !x.Due.After(c.Due) {
				l.Caller = c.Caller
			}
			late[x.Due.UnixNano()] = l
			rounds = append(rounds, l)
		}
		l.Items, l.Waited = append(l.Items, x.Item), max(l.Waited, x.Waited)
	}
	f.armBarrier(time.Now())
	for _, l := range rounds {
		f.cfg.Host.Late(*l)
	}
}

// armBarrier sets the timer by which waits end, which looks at all that wait. The caller holds mu.
func (f *Firing) armBarrier(now time.Time) {
	if f.waits != nil {
		f.waits.Stop()
		f.waits = nil
	}
	if next, ok := f.barrier.Next(); ok {
		f.waits = time.AfterFunc(next.Sub(now), f.waited)
	}
}

func (f *Firing) waited() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.let(f.barrier.Tick(time.Now()))
}
