package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/elasticron/elasticron/registry"
)

func casOneWinner(t *caseRun) {
	const writers = 64
	t.create(t.s, t.path("set"), "")
	sessions := []registry.Session{t.s, t.open(), t.open(), t.open()}
	var set, made atomic.Int32
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			s := sessions[i%len(sessions)]
			value := fmt.Append(nil, i)
			t.counts(&set, registry.ErrVersion, s, registry.Set(t.path("set"), value, 0))
			t.counts(&made, registry.ErrExists, s, registry.Create(t.path("create"), value))
		})
	}
	wg.Wait()
	if set.Load() != 1 || made.Load() != 1 {
		t.fatalf("of %d writers each, %d set at version 0 and %d created the same node", writers, set.Load(), made.Load())
	}
	t.sync(t.s)
	if n := t.present(t.s, t.path("set")); n.Version != 1 {
		t.fatalf("version %d after one Set", n.Version)
	}
}

// eachItsOwn has an adapter that lets commits share a request take them apart again.
func eachItsOwn(t *caseRun) {
	const callers, rounds = 96, 4
	for i := range callers {
		t.create(t.s, t.path(fmt.Sprint(i)), "")
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			path := t.path(fmt.Sprint(i))
			for round := range registry.Version(rounds) {
				ops := []registry.Op{registry.Create(path+"/"+fmt.Sprint(round), nil), registry.Set(path, fmt.Append(nil, i, round), round)}
				want, index := error(nil), 1
				switch i % 8 { // one in four is refused, after an operation that could be applied
				case 3:
					want, ops[1].Version = registry.ErrVersion, round+7
				case 7:
					want, ops[1] = registry.ErrNotFound, registry.Check(path+"/none", registry.AnyVersion)
				}
				_, err := t.s.Commit(t.ctx, ops...)
				var refusal *registry.CommitError
				switch {
				case !errors.Is(err, want) || (err == nil) != (want == nil):
					t.errorf("commit(%s) = %v; want %v", describe(ops), err, want)
				case errors.As(err, &refusal) && (refusal.Index != index || refusal.Op.Path != ops[index].Path):
					t.errorf("commit(%s) names operation %d, %s", describe(ops), refusal.Index, refusal.Op.Path)
				}
			}
		})
	}
	wg.Wait()
	for i := range callers {
		n, want := t.latest(t.s, t.path(fmt.Sprint(i))), rounds
		if i%4 == 3 {
			want = 0
		}
		children := len(t.children(t.s, n.Path))
		if int(n.Version) != want || children != want {
			t.fatalf("%s is at version %d and has %d children after %d commits", n.Path, n.Version, children, want)
		}
	}
}

// counts adds one when the commit succeeds and accepts no error but want.
func (t *caseRun) counts(n *atomic.Int32, want error, s registry.Session, op registry.Op) {
	switch _, err := s.Commit(t.ctx, op); {
	case err == nil:
		n.Add(1)
	case !errors.Is(err, want):
		t.errorf("commit(%s) = %v; want success or %q", describe([]registry.Op{op}), err, want)
	}
}

func counterNoLostUpdate(t *caseRun) {
	const writers, each = 8, 25
	path := t.path("counter")
	t.create(t.s, path, "")
	var wg sync.WaitGroup
	for range writers {
		s := t.open()
		wg.Go(func() {
			for done := 0; done < each && t.ctx.Err() == nil; {
				ok, err := increment(t.ctx, s, path)
				if err != nil {
					t.errorf("increment: %v", err)
					return
				}
				if ok {
					done++
				}
			}
		})
	}
	wg.Wait()
	n := t.latest(t.s, path)
	if len(n.Value) != writers*each || int(n.Version) != writers*each {
		t.fatalf("the counter stands at %d, version %d, after %d acknowledged additions", len(n.Value), n.Version, writers*each)
	}
}

// increment makes the value one byte longer; false when another was faster.
func increment(ctx context.Context, s registry.Session, path string) (bool, error) {
	nodes, err := s.Get(ctx, path)
	if err != nil {
		return false, err
	}
	n := nodes[0]
	_, err = s.Commit(ctx, registry.Set(path, []byte(strings.Repeat("x", len(n.Value)+1)), n.Version))
	if errors.Is(err, registry.ErrVersion) {
		return false, nil
	}
	return err == nil, err
}

func revisionsIncrease(t *caseRun) {
	sessions := []registry.Session{t.s, t.open(), t.open()}
	for i := range sessions {
		t.create(t.s, t.path(fmt.Sprint(i)), "")
	}
	var last registry.Revision
	for i := range 30 {
		k := i % len(sessions)
		rev := t.commit(sessions[k], registry.Set(t.path(fmt.Sprint(k)), nil, registry.AnyVersion))
		if rev <= last {
			t.fatalf("revision %d was acknowledged before %d", last, rev)
		}
		last = rev
	}
}
