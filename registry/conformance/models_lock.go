package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/elasticron/elasticron/registry"
)

// lockKey is what the one history of a lock is about.
const lockKey = "the lock"

// A lockState is who holds the lock, and who was last.
type lockState struct {
	holder registry.Revision // 0: nobody
	last   registry.Revision
}

// A lockCall is something that a client did with the token of its lock.
type lockCall struct {
	what  lockWhat
	token registry.Revision // of an acquisition: what it was given
}

type lockWhat string

const (
	lockAcquire lockWhat = "acquire"
	lockBelieve lockWhat = "hold: Lost is open and Deadline ahead"
	lockWrite   lockWhat = "guarded write"
	lockRelease lockWhat = "release"
	lockEnd     lockWhat = "end of the session of" // not before this time; its outcome is never known
)

func (c lockCall) String() string { return fmt.Sprintf("%s token %d", c.what, c.token) }

// A lockAnswer is "done" or "refused".
type lockAnswer string

var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, in, out any) (bool, any) {
		s, c := state.(lockState), in.(lockCall)
		holds := s.holder == c.token
		switch c.what {
		case lockAcquire:
			if out == nil {
				return true, s // on its way: nobody else can tell
			}
			return s.holder == 0 && c.token > s.last, lockState{holder: c.token, last: c.token}
		case lockWrite:
			return out == nil || (out == lockAnswer("done")) == holds, s
		case lockBelieve:
			return holds, s
		}
		if holds {
			s.holder = 0
		}
		return true, s
	},
}

// A rivalry is several clients who want one lock.
type rivalry struct {
	*history
	dir string

	mu       sync.Mutex
	sessions map[int]registry.Session // of each client, the present one
}

func lockContenders(t *caseRun) {
	const clients, rounds = 4, 7
	r := &rivalry{history: newHistory(t), dir: t.path("lock"), sessions: map[int]registry.Session{}}
	t.create(t.s, r.dir, "")
	t.create(t.s, t.path("record"), "")
	r.run(clients, rounds, r.contend)
	if n := len(r.acts); n < clients*rounds {
		t.fatalf("%d calls in %d rounds of %d clients", n, rounds, clients)
	}
	r.explained(lockModel, "drop", "expire", "silence", "silence to the end", "AnswerLost", "drop of another")
}

// contend is one acquisition and all that comes of it.
func (r *rivalry) contend(c *actor) {
	r.mu.Lock()
	r.sessions[c.nr] = c.s
	r.mu.Unlock()
	joined := func() bool { return false }
	if c.round%3 == 1 {
		var err error
		if joined, err = c.h.Faults().NextCommit(c.s, AnswerLost); err != nil {
			c.errorf("void, nothing is proved: fault AnswerLost: %v", err)
			return
		}
	}
	call := c.now()
	l, err := c.s.Lock(c.ctx, r.dir, nil)
	ret := c.now()
	if err != nil {
		if !errors.Is(err, registry.ErrSessionLost) {
			c.errorf("%s: Lock: %v", c.name, err)
		}
		return
	}
	c.hit("AnswerLost", joined())
	c.add(act{client: c.name, key: lockKey, call: call, ret: ret, in: lockCall{lockAcquire, l.Token()}, out: lockAnswer("done")})
	r.tenure(c, l)
}

// tenure holds the lock through one fault.
func (r *rivalry) tenure(c *actor, l registry.Lock) {
	before := c.h.Faults().Hits(c.s)
	c.believe(l)
	harmed := c.now()
	kind := r.harmHolder(c)
	r.guarded(c, l)
	if kind != "expire" {
		c.believe(l)
	}
	if kind == "silence to the end" || kind == "expire" {
		select {
		case <-l.Lost():
		case <-c.ctx.Done():
			c.errorf("%s: Lost is open after the fault %s, Deadline was %v ago", c.name, kind, time.Since(c.s.Deadline()))
		}
	}
	if kind != "drop of another" {
		c.hit(kind, c.h.Faults().Hits(c.s) > before || kind == "expire")
	}
	r.release(c, l)
	r.guarded(c, l)
	end := act{client: c.name, key: lockKey, call: c.s.Deadline().Sub(c.began), ret: c.now(), in: lockCall{lockEnd, l.Token()}}
	if kind == "expire" { // the service ended it at once, whatever the client knows
		end.call = min(end.call, harmed)
		c.add(end)
	} else if c.s.Err() != nil {
		c.add(end)
	}
}

// believe records that the client had reason to take itself for the holder.
func (c *actor) believe(l registry.Lock) {
	call := c.now()
	select {
	case <-l.Lost():
	default:
		if time.Now().Before(c.s.Deadline()) {
			c.add(act{client: c.name, key: lockKey, call: call, ret: c.now(), in: lockCall{lockBelieve, l.Token()}, out: lockAnswer("yes"), harmless: true})
		}
	}
}

// harmHolder injects the fault of the round. Silence that is not to end the
// session lasts for the next call only.
func (r *rivalry) harmHolder(c *actor) string {
	f := c.h.Faults()
	kind, err, heal := "none", error(nil), func() {}
	switch nr := c.nr + c.round; {
	case c.nr == 1 && c.round == 3:
		kind = "silence to the end"
		heal, err = f.Blackhole(c.s, Both)
	case nr%5 == 0:
		kind, err = "drop", f.Drop(c.s)
	case nr%5 == 1:
		kind, err = "expire", f.Expire(c.s)
	case nr%5 == 2:
		kind = "silence"
		if heal, err = f.Blackhole(c.s, Direction(nr%3)); err == nil {
			time.AfterFunc(c.h.SessionTimeout()/10, heal)
		}
	case nr%5 == 3:
		kind = "drop of another"
		r.dropAnother(c)
	}
	c.Cleanup(heal)
	if err != nil && c.s.Err() == nil {
		c.errorf("void, nothing is proved: fault %s: %v", kind, err)
	}
	return kind
}

// dropAnother cuts one who waits.
func (r *rivalry) dropAnother(c *actor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for nr, s := range r.sessions {
		if nr != c.nr && s.Err() == nil {
			before := c.h.Faults().Hits(s)
			_ = c.h.Faults().Drop(s)
			c.hit("drop of another", c.h.Faults().Hits(s) > before)
			return
		}
	}
}

// guarded writes under the guard of a lock that is held, or was.
func (r *rivalry) guarded(c *actor, l registry.Lock) {
	ctx, cancel := context.WithTimeout(c.ctx, c.h.SessionTimeout()/5)
	defer cancel()
	call := c.now()
	_, err := c.s.Commit(ctx, l.Guard(), registry.Set(c.path("record"), fmt.Append(nil, l.Token()), registry.AnyVersion))
	ret := c.now()
	out, tells := c.outcome(err, lockAnswer("done"), lockAnswer("refused"))
	if tells && classOf(err) != "" && (indexOf(err) != 0 || !errors.Is(err, registry.ErrNotFound)) {
		c.errorf("%s: guarded write: %v; want ErrNotFound at operation 0", c.name, err)
	} else if tells {
		c.add(act{client: c.name, key: lockKey, call: call, ret: ret, in: lockCall{lockWrite, l.Token()}, out: out, harmless: true})
	}
}

func (r *rivalry) release(c *actor, l registry.Lock) {
	ctx, cancel := context.WithTimeout(c.ctx, c.h.SessionTimeout())
	defer cancel()
	call := c.now()
	err := l.Release(ctx)
	done := act{client: c.name, key: lockKey, call: call, ret: c.now(), in: lockCall{lockRelease, l.Token()}}
	switch {
	case err == nil:
		done.out = lockAnswer("done")
	case errors.Is(err, registry.ErrSessionLost):
		return
	case ctx.Err() == nil:
		c.errorf("%s: Release: %v", c.name, err)
	}
	c.add(done)
}
