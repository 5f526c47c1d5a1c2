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

// hold keeps a run whose begin is recorded until it is due. It reports false when it is due
// already. The caller holds mu.
func (f *Firing) hold(a items.Action) bool {
	if !a.Due.After(f.cfg.Now()) || failpoint.Mutant(failpoint.AheadNotHeld) {
		return false
	}
	f.armed = append(f.armed, a)
	if f.wake.IsZero() || a.Due.Before(f.wake) {
		f.wake = a.Due
		f.timer.Set(a.Due)
	}
	return true
}

// disarm drops a run that is held. It reports false when there is none. The caller holds mu.
func (f *Firing) disarm(item int) bool {
	i := slices.IndexFunc(f.armed, func(a items.Action) bool { return a.Item == item })
	if i < 0 {
		return false
	}
	f.armed = slices.Delete(f.armed, i, i+1)
	return true
}

// release launches what is due of that which is held. The caller holds mu.
func (f *Firing) release(now time.Time) {
	var runs []items.Action
	f.armed = slices.DeleteFunc(f.armed, func(a items.Action) bool {
		if a.Due.After(now) {
			return false
		}
		runs = append(runs, a)
		return true
	})
	f.launch(runs)
}
