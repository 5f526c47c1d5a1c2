package share

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry/internal/lifetime"
)

const (
	// MaxUnderWay requests are sent one by one; commits that come meanwhile share the next.
	MaxUnderWay = 8
	// While so many are under way, a request that could still grow waits, but no longer
	// than patience: one that says more costs the server less.
	enough   = 2
	patience = 5 * time.Millisecond
	// After a refusal, which costs each of those who shared a request of its own, so many
	// share none: a fight for one node then costs little.
	unsharedAfterRefusal = 64
)

// Config is how an adapter sends commits of type Q, and gets answers of type A. Who asks may go
// before his commit is sent.
type Config[Q, A any] struct {
	// Life is the session's.
	Life *lifetime.Lifetime
	// Alone sends one. It returns soon after ctx or the session has ended.
	Alone func(ctx context.Context, q Q) (A, error)
	// Together sends several as one request; it returns soon after the session has ended.
	// refused: nothing was done, for a reason that may be one of them alone.
	Together func(all []Q) (answers []A, refused bool, err error)
	// Room begins a request, and returns what reports whether it has room for one more, which then is in it.
	Room func() (add func(Q) bool)
	// Unknown is the error of a caller who leaves while his commit is under way, Left of one who leaves before. nil is
	// that of Life, or the plain one of ctx.
	Unknown, Left func(ctx context.Context) error
}

// A Queue sends the commits of one session. New makes it.
type Queue[Q, A any] struct {
	Config[Q, A]

	mu       sync.Mutex
	underWay int // requests, for one of which to end the others wait
	unshared int // commits that share nothing from now on
	waiting  []*entry[Q, A]
	held     *time.Timer // until what waits goes, full or not; nil: nothing is held

	// The request with which the first of those who wait go grows with each that comes: to
	// look at all of them anew would cost the square of them.
	add  func(Q) bool // nil: it has not begun
	fits int          // so many of them are in it
	full bool
}

// An entry is a commit that waits for a request to share.
type entry[Q, A any] struct {
	q      Q
	ctx    context.Context
	answer A
	err    error
	done   chan struct{} // closed once answer and err are set

	// Guarded by the queue.
	queued bool
	alone  bool // it was sent with nobody
}

func (e *entry[Q, A]) tell(answer A, err error) {
	e.answer, e.err = answer, err
	close(e.done)
}

// New returns a queue.
func New[Q, A any](cfg Config[Q, A]) *Queue[Q, A] {
	if cfg.Left == nil {
		cfg.Left = cfg.Life.Alive
	}
	return &Queue[Q, A]{Config: cfg}
}

// Waiting is the number of commits that wait for a request to share.
func (s *Queue[Q, A]) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// Do sends q, alone or with others. The error of Left comes from one that was not sent.
func (s *Queue[Q, A]) Do(ctx context.Context, q Q) (A, error) {
	e, counted := s.enter(ctx, q)
	if counted {
		defer s.leave()
	}
	if e == nil {
		return s.Alone(ctx, q)
	}
	select {
	case <-e.done:
		return e.answer, e.err
	case <-ctx.Done():
	case <-s.Life.Done():
	}
	var none A
	withdrawn, soon := s.withdraw(e)
	if withdrawn {
		return none, s.Left(ctx)
	}
	if soon || s.Life.Err() != nil {
		<-e.done
	}
	select {
	case <-e.done: // both: what is known is better
		return e.answer, e.err
	default:
		return none, s.Unknown(ctx)
	}
}

// enter returns nil for a commit that is sent at once. counted: leave must follow.
func (s *Queue[Q, A]) enter(ctx context.Context, q Q) (e *entry[Q, A], counted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.underWay < MaxUnderWay && len(s.waiting) == 0:
		s.underWay++
		return nil, true
	case s.unshared > 0:
		s.unshared--
		return nil, false
	case !s.Room()(q): // it would go alone after a wait
		return nil, false
	}
	e = &entry[Q, A]{q: q, ctx: ctx, queued: true, done: make(chan struct{})}
	s.waiting = append(s.waiting, e)
	s.depart(false)
	return e, false
}

// leave ends a request, and lets those who wait go.
func (s *Queue[Q, A]) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay--
	s.depart(false)
}

// release lets go what was held.
func (s *Queue[Q, A]) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = nil
	s.depart(true)
}

// depart lets those who wait go, as many requests as there is room for; the last of them
// though it is not full, if it must. s.mu is held.
func (s *Queue[Q, A]) depart(must bool) {
	for s.underWay < MaxUnderWay && len(s.waiting) > 0 {
		n := s.fill()
		if n == len(s.waiting) && s.underWay >= enough && !must {
			if s.held == nil {
				s.held = time.AfterFunc(patience, s.release)
			}
			return
		}
		batch := s.nextBatch(n)
		if s.Life.Go(func() { s.send(batch) }) {
			s.underWay++
			continue
		}
		for _, e := range batch {
			var none A
			e.tell(none, s.Life.Err())
		}
	}
	if len(s.waiting) == 0 && s.held != nil {
		s.held.Stop()
		s.held = nil
	}
}

// fill puts those who wait into one request, at least one, and returns how many. s.mu is held.
func (s *Queue[Q, A]) fill() int {
	if s.add == nil {
		s.add, s.fits, s.full = s.Room(), 0, false
	}
	for !s.full && s.fits < len(s.waiting) {
		if s.full = !s.add(s.waiting[s.fits].q) && s.fits > 0; !s.full {
			s.fits++
		}
	}
	return s.fits
}

// nextBatch takes the first n that wait. s.mu is held.
func (s *Queue[Q, A]) nextBatch(n int) []*entry[Q, A] {
	batch := s.waiting[:n:n]
	for _, e := range batch {
		e.queued = false
	}
	batch[0].alone = n == 1
	s.waiting = slices.Clone(s.waiting[n:])
	s.add = nil
	return batch
}

// withdraw takes back what was not sent. soon: what becomes of it is known soon.
func (s *Queue[Q, A]) withdraw(e *entry[Q, A]) (withdrawn, soon bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.queued {
		return false, e.alone
	}
	e.queued = false
	s.waiting = slices.DeleteFunc(s.waiting, func(other *entry[Q, A]) bool { return other == e })
	s.add = nil
	return true, false
}

func (s *Queue[Q, A]) send(batch []*entry[Q, A]) {
	defer s.leave()
	if len(batch) == 1 {
		batch[0].tell(s.Alone(batch[0].ctx, batch[0].q))
		return
	}
	all := make([]Q, len(batch))
	for i, e := range batch {
		all[i] = e.q
	}
	answers, refused, err := s.Together(all)
	if refused {
		s.sendAgain(batch)
		return
	}
	for i, e := range batch {
		var answer A
		if err == nil {
			answer = answers[i]
		}
		e.tell(answer, err)
	}
}

// sendAgain sends one by one what was refused together: none of it was done, and whose
// fault it was is theirs to find out.
func (s *Queue[Q, A]) sendAgain(batch []*entry[Q, A]) {
	s.mu.Lock()
	s.unshared = unsharedAfterRefusal
	s.mu.Unlock()
	var work sync.WaitGroup
	for _, e := range batch {
		work.Go(func() { e.tell(s.Alone(e.ctx, e.q)) })
	}
	work.Wait()
}
