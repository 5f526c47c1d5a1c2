package firing

import "time"

// A spare is what waits until the clock of the process has called all that is due, so that it makes nothing late:
// what follows the return of functions, and setting the timer. It is guarded by the firing's lock.
type spare struct {
	asked    bool // the clock pokes the firing
	returned []returned
	unset    bool      // the timer is not set yet to what comes
	since    time.Time // after this instant
}

// A returned run is one whose function has returned.
type returned struct {
	run  *run
	err  error
	took time.Duration
	at   time.Time // when that was
}

// later reports whether the clock has more to call that is due, and has f poked after that. The caller holds mu.
func (f *Firing) later() bool {
	if !f.spare.asked {
		f.spare.asked = f.cfg.Clock.Later(f)
	}
	return f.spare.asked
}

// Poke implements timer.Poker.
func (f *Firing) Poke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spare.asked = false
	f.takeAllBack()
	if f.spare.unset {
		f.setTimer(f.spare.since)
	}
}

// takeAllBack goes on with all items whose functions have returned. The caller holds mu.
func (f *Firing) takeAllBack() {
	all := f.spare.returned
	if len(all) == 0 {
		return
	}
	f.spare.returned = nil
	for _, x := range all {
		if last := f.wall.Last(); x.at.After(last) { // the clock was set back since
			x.at = last
		}
		f.takeBack(x)
	}
	f.cfg.Host.Changed()
}
