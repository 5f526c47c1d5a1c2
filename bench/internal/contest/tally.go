package contest

import (
	"slices"
	"sync"
	"time"
)

// A Tally counts runs. It is safe for concurrent use.
type Tally struct {
	mu     sync.Mutex
	window *window
	jobs   []progress
	items  int // of each job
	marked time.Time
	unrun  int       // jobs that have not run since the mark
	first  time.Time // since the mark, of a job that others ran before it
	last   time.Time // since the mark, of the job that ran last
}

// progress is what is known of one job.
type progress struct {
	ran      time.Time // the begin of its latest run
	next     time.Time // the due time of its next run, for contenders that skip none
	ranSince bool      // the mark
	runs     int64
}

// A window is a time in which fires are due.
type window struct {
	from, to time.Time
	late     []time.Duration // of each run that was due in it
	begun    int             // in it, whatever was due
}

// A Result is what a window has shown.
type Result struct {
	// Begun are the runs that began in the window.
	Begun int `json:"begun"`
	// Ran are the runs that were due in the window, and OnTime those of them that began less
	// than a second late.
	Ran    int `json:"ran"`
	OnTime int `json:"onTime"`
	// P50, P99 and Max are the lateness of those that were due in it.
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// An Awakening says how jobs went on after a mark.
type Awakening struct {
	// Waiting are the jobs that have not run since.
	Waiting int `json:"waiting"`
	// First is when the first of the jobs that had not run here before the mark did, and
	// Last when the last of all did.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// late runs begin a second or more after they were due.
const late = time.Second

// recent is how long ago a job has run at most that runs here.
const recent = 3 * time.Second

// Grow makes room for further jobs.
func (t *Tally) Grow(jobs, items int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs = append(t.jobs, make([]progress, jobs)...)
	t.items = items
}

// Began counts a run of a contender that says when it was due.
func (t *Tally) Began(job int, due time.Time) {
	at := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(&t.jobs[job], at, due)
}

// BeganNext counts a run of a contender that says nothing, and skips no fire: its
// first one was due at the latest instant of the period, each further one a period later.
func (t *Tally) BeganNext(job int, period time.Duration) {
	at := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.jobs[job]
	if p.next.IsZero() {
		p.next = at.Truncate(period)
	}
	due := p.next
	p.next = due.Add(period)
	t.count(p, at, due)
}

func (t *Tally) count(p *progress, at, due time.Time) {
	t.awake(p, at)
	p.ran = at
	p.runs++
	if w := t.window; w != nil {
		if !at.Before(w.from) && at.Before(w.to) {
			w.begun++
		}
		if !due.Before(w.from) && due.Before(w.to) {
			w.late = append(w.late, at.Sub(due))
		}
	}
}

func (t *Tally) awake(p *progress, at time.Time) {
	if t.marked.IsZero() || p.ranSince {
		return
	}
	p.ranSince = true
	t.unrun--
	t.last = at
	if t.first.IsZero() && t.marked.Sub(p.ran) > recent {
		t.first = at
	}
}

// Open begins to count what is due from one instant to another.
func (t *Tally) Open(from, to time.Time, runs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.window = &window{from: from, to: to, late: make([]time.Duration, 0, runs)}
}

// Close ends what Open began.
func (t *Tally) Close() Result {
	t.mu.Lock()
	w := t.window
	t.window = nil
	t.mu.Unlock()
	slices.Sort(w.late)
	r := Result{Begun: w.begun, Ran: len(w.late)}
	r.OnTime, _ = slices.BinarySearch(w.late, late)
	if n := len(w.late); n > 0 {
		r.P50, r.P99, r.Max = w.late[n/2], w.late[n*99/100], w.late[n-1]
	}
	return r
}

// Mark forgets which jobs have run.
func (t *Tally) Mark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marked, t.first, t.last, t.unrun = time.Now(), time.Time{}, time.Time{}, len(t.jobs)
	for i := range t.jobs {
		t.jobs[i].ranSince = false
	}
}

// Since says what has run since the mark.
func (t *Tally) Since() Awakening {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Awakening{Waiting: t.unrun, First: t.first, Last: t.last}
}

// Idle counts the jobs that have not run as often as they have items: those that have
// just been added.
func (t *Tally) Idle() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for i := range t.jobs {
		if t.jobs[i].runs < int64(t.items) {
			n++
		}
	}
	return n
}
