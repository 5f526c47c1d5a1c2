package firing

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/internal/failpoint"
)

// spread is where a job's begins stand among those of others that fire with it, from 0 to 1.
func spread(job string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job))
	return float64(h.Sum32()) / (1 << 32)
}

// hold keeps a run whose begin is recorded until it is due, made as far as it can be: what is left to do then
// makes those late that are due with it. It reports false when it is due already. The caller holds mu.
func (f *Firing) hold(a items.Action) bool {
	if !a.Due.After(f.cfg.Now()) || failpoint.Mutant(failpoint.AheadNotHeld) {
		return false
	}
	r := f.newRun(a)
	r.held = true
	if n := len(f.armed); n > 0 && f.armed[n-1].Due.Equal(a.Due) {
		r.Fire = f.armed[n-1].Fire
	} else {
		r.Fire = newFire(f, a.Due)
	}
	f.armed = append(f.armed, r)
	if f.first.IsZero() || a.Due.Before(f.first) {
		f.first = a.Due
	}
	if f.wake.IsZero() || a.Due.Before(f.wake) {
		f.wake = a.Due
		f.timer.Set(a.Due)
	}
	return true
}

// disarm drops a run that is held. It reports false when there is none. The caller holds mu.
func (f *Firing) disarm(item int) bool {
	r := f.runs[item]
	if r == nil || !r.held {
		return false
	}
	r.held = false
	r.over()
	return true
}

// release launches what is due of that which is held, and returns how much that is. It looks at all of it only
// once something may be due: it is called with each run that returns. The caller holds mu.
func (f *Firing) release(now time.Time) int {
	if f.first.IsZero() || f.first.After(now) {
		return 0
	}
	var due []*run
	armed := f.armed
	f.armed, f.first = f.armed[:0], time.Time{}
	for _, r := range armed {
		switch {
		case !r.held: // dropped since
		case !r.Due.After(now):
			r.held = false
			r.Instance, r.Epoch, r.Total = f.id, f.machine.Epoch(), f.machine.Total()
			due = append(due, r)
		default:
			f.armed = append(f.armed, r)
			if f.first.IsZero() || r.Due.Before(f.first) {
				f.first = r.Due
			}
		}
	}
	clear(armed[len(f.armed):])
	slices.SortFunc(due, func(a, b *run) int { return a.Run.Item - b.Run.Item })
	f.launch(due)
	return len(due)
}
