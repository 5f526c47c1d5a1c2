package leading

import "time"

const (
	// turn is how long an instance has to be elected before the next one tries, and turns are how many wait
	// one after the other: of a thousand that saw the leader go, few ask the registry at once.
	turn  = 100 * time.Millisecond
	turns = 10
)

// standsBack reports whether the instance waits for another one to be elected. Nobody leads.
func (l *Leader) standsBack() bool {
	ahead := l.ahead()
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := time.Duration(ahead) * turn
	if l.back || l.weary {
		wait = standBack
	}
	if l.vacant.IsZero() {
		l.vacant = time.Now()
	}
	left := wait - time.Since(l.vacant)
	if left > 0 {
		time.AfterFunc(left, l.work.Poke)
	}
	return left > 0
}

// ahead is how many instances may be elected before this one.
func (l *Leader) ahead() (n int) {
	f := l.cfg.Host.Facts()
	l.mu.Lock()
	former := l.former
	l.mu.Unlock()
	own := l.cfg.Job.ElectionOrder(l.cfg.ID)
	for _, id := range f.Lives {
		if id != former && id != l.cfg.ID && l.cfg.Job.ElectionOrder(id) < own && f.Eligible(id) {
			n++
		}
	}
	return min(n, turns)
}
