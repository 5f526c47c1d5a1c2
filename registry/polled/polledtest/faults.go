package polledtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/polled"
)

type faults server

var _ conformance.Faults = (*faults)(nil)

// change acts on the wire of s and returns what acts on it once more.
func (f *faults) change(s registry.Session, begin, end func(*wire)) (heal func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.wires[s.ID()]
	if w == nil {
		return func() {}, fmt.Errorf("session %s was not opened here", s.ID())
	}
	begin(w)
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		end(w)
	}), nil
}

// Expire does what another client does to a session that is silent.
func (f *faults) Expire(s registry.Session) error {
	_, err := serve((*server)(f), 0, func(ctx context.Context, store polled.Store) (struct{}, error) {
		all, err := store.Sessions(ctx)
		if err == nil && !slices.ContainsFunc(all, func(row polled.Session) bool { return row.ID == s.ID() }) {
			err = fmt.Errorf("session %s had ended before", s.ID())
		}
		if err == nil {
			err = store.End(ctx, s.ID(), polled.AnyBeat)
		}
		return struct{}{}, err
	})
	return err
}

func (f *faults) Drop(s registry.Session) error {
	_, err := f.change(s, (*wire).cut, nil)
	return err
}

func (f *faults) Blackhole(s registry.Session, d conformance.Direction) (func(), error) {
	swallow := func(w *wire, more int) {
		if d != conformance.Answers {
			w.swallowRequests += more
		}
		if d != conformance.Requests {
			w.swallowAnswers += more
		}
	}
	return f.change(s, func(w *wire) { swallow(w, 1) }, func(w *wire) {
		swallow(w, -1)
		for r := range w.pending { // as the ends find out that they do not agree any more
			if r.lossy {
				w.snap(r)
			}
		}
		w.hangUp(func(l *line) bool { return l.wire == w && l.lossy })
	})
}

func (f *faults) Refuse(s registry.Session) (func(), error) {
	return f.change(s, func(w *wire) { w.refuses++; w.cut() }, func(w *wire) { w.refuses-- })
}

func (f *faults) Delay(s registry.Session, d time.Duration) (func(), error) {
	return f.change(s, func(w *wire) { w.delay += d }, func(w *wire) { w.delay -= d })
}

func (f *faults) NextCommit(s registry.Session, kind conformance.Fate) (func() bool, error) {
	planned := &fate{kind: kind}
	_, err := f.change(s, func(w *wire) { w.fates[s.ID()] = planned }, nil)
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return planned.hit
	}, err
}

// Hits of a session that was not opened here are none.
func (f *faults) Hits(s registry.Session) (hits int) {
	_, _ = f.change(s, func(w *wire) { hits = w.hits }, nil)
	return hits
}

func (f *faults) PauseServer() (func(), error) {
	(*server)(f).pause()
	return sync.OnceFunc((*server)(f).resume), nil
}

func (f *faults) RestartServer() error { return (*server)(f).restart() }

// LoseLeader cannot be: there is one server.
func (f *faults) LoseLeader() error { return conformance.ErrUnsupported }

// ForgetHistory has nothing to forget: a store keeps the present only.
func (f *faults) ForgetHistory() error { return nil }
