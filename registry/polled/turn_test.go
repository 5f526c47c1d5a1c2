package polled_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

// inFlight is what config.go gives to a field that is zero.
const inFlight = 16

// As database/sql does, the pool gives its connection to any of those who wait.
func TestManyCommitsDoNotKeepHeartbeatsFromTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		pool := &pool{}
		l.disturb(pool.serve, nil)
		var all sync.WaitGroup
		for i := range 2000 {
			all.Go(func() {
				_, err := ses.Commit(t.Context(), registry.Create(fmt.Sprintf("/%d", i), nil))
				if err != nil && ses.Err() == nil {
					t.Errorf("commit: %v", err)
				}
			})
		}
		began := time.Now()
		all.Wait()
		require.NoError(t, ses.Err())
		require.Greater(t, time.Since(began), 3*timeout, "it took long enough to lose a session")
		require.LessOrEqual(t, pool.most, inFlight+2, "and a heartbeat, or the sessions that others keep")
	})
}

// A pool is of one connection.
type pool struct {
	mu      sync.Mutex
	busy    bool
	waiters map[chan struct{}]struct{}
	most    int // were here at once
}

// serve is a request of 20 ms.
func (p *pool) serve(context.Context, string) error {
	p.mu.Lock()
	if p.busy {
		turn := make(chan struct{})
		if p.waiters == nil {
			p.waiters = map[chan struct{}]struct{}{}
		}
		p.waiters[turn] = struct{}{}
		p.most = max(p.most, len(p.waiters)+1)
		p.mu.Unlock()
		<-turn
	} else {
		p.busy = true
		p.mu.Unlock()
	}
	<-time.After(20 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	for turn := range p.waiters { // Go begins anywhere
		delete(p.waiters, turn)
		close(turn)
		return nil
	}
	p.busy = false
	return nil
}

func TestWhoWaitsForATurnHasAskedNothing(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		l.disturb(only("commit", hang), nil)
		var stuck sync.WaitGroup
		hung, release := context.WithCancel(t.Context())
		for range inFlight {
			stuck.Go(func() { _, _ = ses.Commit(hung, registry.Create("/stuck", nil)) })
		}
		synctest.Wait()
		l.counts()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := ses.Commit(ctx, registry.Create("/a", nil))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, registry.ErrUncertain)
		_, err = ses.Get(ctx, "/a")
		require.ErrorIs(t, err, context.DeadlineExceeded)

		elapse(time.Minute) // heartbeats need no turn
		require.NoError(t, ses.Err())
		asked := l.counts()
		require.Zero(t, asked["commit"]+asked["read"])
		require.NotZero(t, asked["beat"])

		// A read outlives its wait, however long: that is no part of an attempt.
		var read error
		stuck.Go(func() { _, read = ses.Get(t.Context(), "/a") })
		elapse(time.Minute)
		release()
		l.disturb(nil, nil)
		stuck.Wait()
		require.NoError(t, read)
		require.Equal(t, 1, l.counts()["read"])
	})
}

func TestTheEndOfASessionEndsTheWaitForATurn(t *testing.T) {
	for name, end := range map[string]func(registry.Session, *ram.Database) error{
		"closed": func(s registry.Session, _ *ram.Database) error { return s.Close(context.Background()) },
		"expired": func(s registry.Session, db *ram.Database) error {
			return db.Store().End(context.Background(), s.ID(), polled.AnyBeat)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, db *ram.Database) {
				ses, l := open(t, db)
				l.disturb(only("commit", hang), nil)
				failed := make(chan error, inFlight+1)
				for range cap(failed) {
					go func() {
						_, err := ses.Commit(t.Context(), registry.Create("/a", nil))
						failed <- err
					}()
				}
				synctest.Wait()
				require.Equal(t, inFlight, l.counts()["commit"])
				require.NoError(t, end(ses, db))
				unknown := 0
				for range cap(failed) {
					err := <-failed
					require.ErrorIs(t, err, registry.ErrSessionLost)
					if errors.Is(err, registry.ErrUncertain) {
						unknown++
					}
				}
				require.Equal(t, inFlight, unknown, "of the one that waited all is known")
				require.Zero(t, l.counts()["commit"])
				l.disturb(nil, nil)
			})
		})
	}
}
