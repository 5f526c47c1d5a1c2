package workqueue

import "time"

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// tellAfter is the pause from which on somebody hears of it: what is over sooner is nobody's business.
	tellAfter = time.Second
	// What is told stays untold for a while then, which doubles from one to the next.
	firstQuiet = 2 * time.Second
	lastQuiet  = time.Minute
)

// A Retry pokes a task again that has failed, after a pause that grows with each failure in a row. Others may poke
// the task meanwhile, and it may fail again: one poke of the Retry's own is to come, however often that happens, and
// only what fails after that makes the pause longer. The zero value is ready. Methods are not safe for concurrent use.
type Retry struct {
	row   int           // failures in a row, but for those that came before a poke of its own
	pause time.Duration // before the latest poke
	due   time.Time     // of that
	quiet time.Duration
	until time.Time // the same error is not told before
	said  string    // what was told last
}

// Failed says that the task has failed. It reports whether somebody is to be told: not before it has gone on for a
// while, and then ever more rarely, unless the error is another one.
func (r *Retry) Failed(t *Task, err error) (tell bool) {
	now := time.Now()
	if now.Before(r.due) {
		return false
	}
	r.row++
	r.pause = min(max(2*r.pause, firstRetry), lastRetry)
	r.due = now.Add(r.pause)
	time.AfterFunc(r.pause, t.Poke)
	if r.pause < tellAfter {
		return false
	}
	said := err.Error()
	if said == r.said && now.Before(r.until) {
		return false
	}
	if said != r.said {
		r.quiet = 0
	}
	r.said, r.quiet = said, min(max(2*r.quiet, firstQuiet), lastQuiet)
	r.until = now.Add(r.quiet)
	return true
}

// Row is how many failures in a row there were, but for those that came before a poke of the Retry's own.
func (r *Retry) Row() int { return r.row }
