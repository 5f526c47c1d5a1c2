package conformance

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

func uncertainJoin(t *caseRun) {
	for _, fate := range []Fate{AnswerLost, RequestLost} {
		dir := t.path(fate.String())
		t.create(t.s, dir, "") // so that the next commit is the one that joins
		s := t.open()
		hit, err := t.h.Faults().NextCommit(s, fate)
		t.must("NextCommit: "+fate.String(), err)
		l := t.lock(s, dir)
		if !hit() {
			t.void("the fault has not met the commit")
		}
		t.queue(dir, 1)
		t.commit(s, l.Guard(), registry.Create(t.path(fate.String()+"-guarded"), nil))
		w := t.wait(t.open(), dir, 2)
		hit, err = t.h.Faults().NextCommit(s, fate)
		t.must("NextCommit: "+fate.String(), err)
		t.release(l)
		t.release(t.gets(w))
		if !hit() {
			t.void("the fault has not met the commit that releases")
		}
		t.queue(dir, 0)
		for how := range ways(s) { // and where it was joined without one
			l := t.lockBy(how, s, dir, nil)
			hit, err := t.h.Faults().NextCommit(s, fate)
			t.must("NextCommit: "+fate.String(), err)
			t.release(l)
			if !hit() {
				t.void("the fault has not met the commit that releases")
			}
			t.queue(dir, 0)
		}
	}
}

func waitSurvivesDrop(t *caseRun) {
	dir := t.path("lock")
	l := t.lock(t.s, dir)
	first, second := t.wait(t.open(), dir, 2), t.wait(t.open(), dir, 3)
	names := t.children(t.s, dir)
	for range 2 {
		t.drop(first.s)
		t.drop(second.s)
	}
	t.stillWaits(first)
	t.stillWaits(second)
	t.silent(first.s)
	t.still(func() {
		t.stillWaits(first)
		t.stillWaits(second)
		t.hasChildren(t.s, dir, names...)
	})
	t.cutOff(first.s, func() { t.release(l) })
	t.stillWaits(second)
	t.release(t.gets(first))
	t.gets(second)
}

// silent keeps s from the service until a third of the timeout is left of its session.
func (t *caseRun) silent(s registry.Session) {
	heal := t.blackhole(s)
	defer heal()
	t.eventually("a third of the timeout to be left", func() string {
		if left := time.Until(s.Deadline()); left > t.h.SessionTimeout()/3 {
			return left.String()
		}
		return ""
	})
	before := s.Deadline()
	heal()
	t.eventually("a heartbeat after the silence", func() string {
		t.alive(s)
		if s.Deadline().After(before) {
			return ""
		}
		return "Deadline stands"
	})
	t.proveHit(s)
}

// lateJoin lets the commit that joins be applied when its author has gone, by giving up or by Release.
func lateJoin(t *caseRun) {
	held, free := t.path("held"), t.path("free")
	t.create(t.s, free, "")
	l := t.lock(t.s, held)
	var sent time.Time
	for dir, how := range map[string]string{held: "Lock", free: "TryLock"} {
		s := t.openLate()
		hit, err := t.h.Faults().NextCommit(s, AppliedLate)
		t.must("NextCommit of session "+s.ID()+": AppliedLate", err)
		sent = time.Now()
		mine, err := ways(s)[how](t.within(LateBy/6), dir, nil)
		t.step("%s of session %s = %v", how, s.ID(), err)
		if !hit() {
			t.void("the fault has not met the commit")
		}
		if err == nil && dir == held {
			t.fatalf("sessions %s and %s both hold the lock", t.s.ID(), s.ID())
		}
		if err == nil {
			t.release(mine)
		}
	}
	t.elapse(time.Until(sent.Add(LateBy * 7 / 6)))
	t.queue(held, 1)
	t.queue(free, 0)
	t.held(l)
	t.release(l)
}

// A tenure is the time in which a contender could believe to hold the lock.
type tenure struct {
	session    string
	token      registry.Revision
	begin, end time.Time
}

// A contest is several contenders for one lock who harm themselves.
type contest struct {
	*caseRun
	dir, record string

	mu      sync.Mutex
	tenures []tenure
	hits    map[string]int // by kind of fault
}

func contendersUnderFaults(t *caseRun) {
	const contenders, rounds = 5, 8
	c := &contest{caseRun: t, dir: t.path("lock"), record: t.path("record"), hits: map[string]int{}}
	t.create(t.s, c.record, "0")
	var wg sync.WaitGroup
	for k := range contenders {
		wg.Go(func() { c.contend(k, rounds) })
	}
	wg.Wait()
	t.step("%d tenures under the faults %v", len(c.tenures), c.hits)
	for _, fault := range []string{"drop", "expire", "silence"} {
		if c.hits[fault] == 0 {
			t.void("no fault of the kind %s has hit", fault)
		}
	}
	if len(c.tenures) < contenders*rounds/2 {
		t.fatalf("%d tenures; %d were tried", len(c.tenures), contenders*rounds)
	}
	sort.Slice(c.tenures, func(i, j int) bool { return c.tenures[i].token < c.tenures[j].token })
	for i := 1; i < len(c.tenures); i++ {
		if a, b := c.tenures[i-1], c.tenures[i]; b.begin.Before(a.end) || a.token == b.token {
			t.fatalf("session %s with token %d believed to hold the lock for %v after session %s had it with token %d",
				a.session, a.token, a.end.Sub(b.begin), b.session, b.token)
		}
	}
}

func (c *contest) contend(k, rounds int) {
	var s registry.Session
	for round := 0; round < rounds && c.ctx.Err() == nil && !c.Failed(); round++ {
		if s == nil || s.Err() != nil {
			s = c.open()
		}
		l, err := s.Lock(c.ctx, c.dir, nil)
		if err != nil {
			if !errors.Is(err, registry.ErrSessionLost) {
				c.errorf("Lock: %v", err)
			}
			continue
		}
		c.tenure(s, l, k+round)
	}
}

// tenure holds the lock through one fault and one guarded write. A holder whose
// session the service was made to end learns it too late by design: it counts
// for its guarded writes only.
func (c *contest) tenure(s registry.Session, l registry.Lock, nr int) {
	now := tenure{session: s.ID(), token: l.Token(), begin: time.Now()}
	before := c.h.Faults().Hits(s)
	kind, heal := c.harm(s, nr)
	c.write(s, l)
	heal()
	now.end = earliest(time.Now(), s.Deadline())
	hit := c.h.Faults().Hits(s) > before
	if kind == "expire" {
		now.end = now.begin
		select {
		case <-l.Lost():
			hit = true
		case <-c.ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.h.SessionTimeout())
	defer cancel()
	_ = l.Release(ctx) // what a lost session leaves goes with it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tenures = append(c.tenures, now)
	if hit {
		c.hits[kind]++
	}
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// harm injects the fault of the round and returns what ends it.
func (c *contest) harm(s registry.Session, nr int) (kind string, heal func()) {
	f, err := c.h.Faults(), error(nil)
	kind, heal = "none", func() {}
	switch nr % 5 {
	case 0:
		kind, err = "drop", f.Drop(s)
	case 1:
		kind, err = "expire", f.Expire(s)
	case 3:
		kind = "silence"
		heal, err = f.Blackhole(s, Direction(nr%3))
	}
	if err != nil && s.Err() == nil {
		c.errorf("void: fault %s: %v", kind, err)
	}
	return kind, heal
}

// write sets the record to the token, under the guard: the record must never
// hold a smaller token after a greater one.
func (c *contest) write(s registry.Session, l registry.Lock) {
	ctx, cancel := context.WithTimeout(c.ctx, c.h.SessionTimeout()/8)
	defer cancel()
	nodes, err := s.Get(ctx, c.record)
	if err != nil {
		return
	}
	last, _ := strconv.ParseInt(string(nodes[0].Value), 10, 64)
	_, err = s.Commit(ctx, l.Guard(), registry.Set(c.record, fmt.Append(nil, int64(l.Token())), nodes[0].Version))
	if err == nil && last >= int64(l.Token()) {
		c.errorf("session %s wrote under token %d what had been written under token %d", s.ID(), l.Token(), last)
	}
}
