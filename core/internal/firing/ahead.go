package firing

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/lazymap"
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
	lazymap.Set(&f.armed, a.Item, a)
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
	_, held := f.armed[item]
	delete(f.armed, item)
	return held
}

// release launches what is due of that which is held. It looks at all of it only once something may be
// due: it is called with each run that returns. The caller holds mu.
func (f *Firing) release(now time.Time) {
	if f.first.IsZero() || f.first.After(now) {
		return
	}
	var runs []items.Action
	f.first = time.Time{}
	for _, a := range f.armed {
		switch {
		case !a.Due.After(now):
			runs = append(runs, a)
			delete(f.armed, a.Item)
		case f.first.IsZero() || a.Due.Before(f.first):
			f.first = a.Due
		}
	}
	slices.SortFunc(runs, func(a, b items.Action) int { return a.Item - b.Item })
	f.launch(runs)
}
