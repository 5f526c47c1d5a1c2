package conformance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A caseRun is one run of one case: its service, its part of the tree, its time,
// and a trail of what it did for whoever reads a failure.
type caseRun struct {
	*recorder
	h   *observation
	c   testCase
	ctx context.Context
	s   registry.Session // the first session, on a client of its own
	dir string           // a persistent node that only this run knows

	trailMu  sync.Mutex
	trail    []string
	trailMax int // lines of it in a failure; 0: 14
	inners   int // trials within this one, so far

	labelled string // what its goroutines are known by

	took atomic.Int64 // how long the last thing took that the case waited for
}

// pollEvery is the interval of all bounded polling.
const pollEvery = 3 * time.Millisecond

func (t *caseRun) begin() {
	t.s = t.open()
	t.dir = "/conformance-" + strings.ToLower(rand.Text()[:10])
	if err := registry.EnsurePath(t.ctx, t.s, t.dir); err != nil {
		t.fatalf("EnsurePath(%s) before the case began: %v", t.dir, err)
	}
}

// step adds a line to the trail.
func (t *caseRun) step(format string, args ...any) {
	t.trailMu.Lock()
	defer t.trailMu.Unlock()
	t.trail = append(t.trail, fmt.Sprintf(format, args...))
}

// framed is the text of a failure around what was seen, with the steps up to now.
func (t *caseRun) framed() func(saw string) string {
	t.trailMu.Lock()
	defer t.trailMu.Unlock()
	steps, shown := t.trail, cmp.Or(t.trailMax, 14)
	if len(steps) > shown {
		steps = append([]string{fmt.Sprintf("… %d steps before", len(steps)-shown)}, steps[len(steps)-shown:]...)
	}
	did := strings.Join(steps, "\n          ")
	return func(saw string) string {
		return fmt.Sprintf("rule:     %s\ndid:      %s\nsaw:      %s\ncontract: %s", t.c.rule, did, saw, t.c.place)
	}
}

// fatalf ends the case: format says what was seen instead.
func (t *caseRun) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	runtime.Goexit()
}

// errorf fails the case and goes on; for other goroutines than the case's own.
func (t *caseRun) errorf(format string, args ...any) { t.see(fmt.Sprintf(format, args...), t.framed) }

// void ends a case whose fault did not hit.
func (t *caseRun) void(format string, args ...any) {
	t.fatalf("void, nothing is proved: "+format, args...)
}

// must ends the case when a fault could not be injected.
func (t *caseRun) must(fault string, err error) {
	t.step("fault: %s", fault)
	if err != nil {
		t.void("fault %s: %v", fault, err)
	}
}

// path names a node in the run's own part of the tree.
func (t *caseRun) path(elem string) string { return t.dir + "/" + elem }

// registry returns a registry on a client of its own.
func (t *caseRun) registry() registry.Registry {
	reg := t.h.Registry(t.ctx, t.recorder)
	t.Cleanup(func() { _ = reg.Close() })
	return reg
}

// open returns a new session on a client of its own.
func (t *caseRun) open() registry.Session { return t.openOn(t.registry()) }

// openLate returns a session that lives without its service for LateBy.
func (t *caseRun) openLate() registry.Session {
	reg := t.h.LateRegistry(t.ctx, t.recorder)
	t.Cleanup(func() { _ = reg.Close() })
	return t.openOn(reg)
}

func (t *caseRun) openOn(reg registry.Registry) registry.Session {
	if t.c.store {
		return &lifelessSession{t.sessionOn(reg), t.store(reg)}
	}
	return t.sessionOn(reg)
}

func (t *caseRun) sessionOn(reg registry.Registry) registry.Session {
	s, err := reg.Open(t.ctx)
	if err != nil {
		t.fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	t.step("opened session %s", s.ID())
	return s
}

// within returns a part of the case's time.
func (t *caseRun) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.ctx, d)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until ok returns "", or fails with what it returned last.
func (t *caseRun) eventually(what string, ok func() string) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	giveUp := time.After(t.waits())
	start := time.Now()
	for {
		saw := ok()
		if saw == "" {
			t.took.Store(int64(time.Since(start)))
			return
		}
		select {
		case <-tick.C:
		case <-giveUp:
			t.fatalf("waited for: %s; at the end of the case: %s", what, saw)
		}
	}
}

// left is what remains of the case's time.
func (t *caseRun) left() time.Duration {
	deadline, _ := t.ctx.Deadline()
	return max(0, time.Until(deadline))
}

// waits is how long the case waits for one thing: no longer because it has much to do, and while it can still ask.
func (t *caseRun) waits() time.Duration { return min(caseTime, t.left()) * 19 / 20 }

// elapse lets a fault last for d: its length is what the case is about.
func (t *caseRun) elapse(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
		t.fatalf("the case ran out of time")
	}
}

// still waits to see that nothing happens: five times as long as the last thing took
// that did, so that a slow service has its time and a quick one costs none. ok, when
// given, looks on.
func (t *caseRun) still(ok func()) {
	wait := min(max(5*time.Duration(t.took.Load()), 200*time.Millisecond), 5*time.Second)
	for until := time.Now().Add(wait); time.Now().Before(until); {
		if ok != nil {
			ok()
		}
		t.elapse(10 * time.Millisecond)
	}
}

// expiry is the longest time that the service may take to expire a session.
func (t *caseRun) expiry() time.Duration { return t.h.SessionTimeout() + t.h.Grace() }

func describe(ops []registry.Op) string {
	var b strings.Builder
	for i, op := range ops {
		if i == 4 {
			fmt.Fprintf(&b, ", … (%d in all)", len(ops))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		path := op.Path
		if len(path) > 60 {
			path = path[:60] + "…"
		}
		fmt.Fprintf(&b, "%s %s", op.Kind, path)
		switch op.Kind {
		case registry.OpCheck, registry.OpSet, registry.OpDelete:
			fmt.Fprintf(&b, " v%d", op.Version)
		}
	}
	return b.String()
}

// try commits and notes it in the trail.
func (t *caseRun) try(ctx context.Context, s registry.Session, ops ...registry.Op) (registry.Revision, error) {
	start := time.Now()
	rev, err := s.Commit(ctx, ops...)
	if err == nil {
		t.took.Store(int64(time.Since(start)))
	}
	t.step("commit(%s) = %d, %v", describe(ops), rev, err)
	return rev, err
}

// commit must succeed.
func (t *caseRun) commit(s registry.Session, ops ...registry.Op) registry.Revision {
	rev, err := t.try(t.ctx, s, ops...)
	if err != nil {
		t.fatalf("commit(%s) failed: %v", describe(ops), err)
	}
	return rev
}

// create makes a persistent node and returns it.
func (t *caseRun) create(s registry.Session, path, value string) registry.Node {
	t.commit(s, registry.Create(path, []byte(value)))
	return t.present(s, path)
}

// createAll makes many empty nodes in commits that fit.
func (t *caseRun) createAll(s registry.Session, paths []string) {
	t.makeAll(s, 100, paths, func(p string) registry.Op { return registry.Create(p, nil) })
}

// ownAll makes ephemeral nodes, few in each commit: a service may look at all nodes of a session for each new one,
// and answers nobody meanwhile.
func (t *caseRun) ownAll(s registry.Session, paths []string) {
	t.makeAll(s, 20, paths, func(p string) registry.Op { return registry.CreateEphemeral(p, nil) })
}

func (t *caseRun) makeAll(s registry.Session, most int, paths []string, op func(path string) registry.Op) {
	for some := range slices.Chunk(paths, min(most, s.Limits().MaxOps)) {
		ops := make([]registry.Op, len(some))
		for i, p := range some {
			ops[i] = op(p)
		}
		if _, err := s.Commit(t.ctx, ops...); err != nil {
			t.fatalf("commit(%s) failed: %v", describe(ops), err)
		}
	}
	t.step("made %d nodes", len(paths))
}

// refused commits what must fail at index with want.
func (t *caseRun) refused(s registry.Session, index int, want error, ops ...registry.Op) {
	_, err := t.try(t.ctx, s, ops...)
	t.isCommitError(err, index, want, ops)
}

func (t *caseRun) isCommitError(err error, index int, want error, ops []registry.Op) {
	var ce *registry.CommitError
	switch {
	case err == nil:
		t.fatalf("commit(%s) succeeded; want %q at operation %d", describe(ops), want, index)
	case !errors.Is(err, want):
		t.fatalf("error %v; want %q at operation %d", err, want, index)
	case !errors.As(err, &ce):
		t.fatalf("error %v (%T) is no *CommitError", err, err)
	case ce.Index != index:
		t.fatalf("the error names operation %d; the first that fails is %d: %v", ce.Index, index, err)
	case ce.Op.Path != ops[index].Path, ce.Op.Kind != ops[index].Kind, ce.Op.Version != ops[index].Version,
		!bytes.Equal(ce.Op.Value, ops[index].Value):
		t.fatalf("CommitError.Op is %s with value %.40q; operation %d is %s with value %.40q",
			describe([]registry.Op{ce.Op}), ce.Op.Value, index, describe(ops[index:index+1]), ops[index].Value)
	}
}
