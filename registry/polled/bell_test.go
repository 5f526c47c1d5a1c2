package polled_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

// A ringing line has a bell, which a test rings. A mute one tells nothing after it has begun.
type ringing struct {
	*line

	steps   chan polled.Step
	listens chan struct{} // a token for each call of Listen
	fail    chan error
}

var _ polled.Bell = (*ringing)(nil)

func (r *ringing) Listen(ctx context.Context, heard func(polled.Step)) error {
	r.listens <- struct{}{}
	for {
		select {
		case step := <-r.steps:
			heard(step)
		case err := <-r.fail:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listen returns a session on a line with a bell that has begun.
func listen(t *testing.T, db *ram.Database) (registry.Session, *ringing) {
	t.Helper()
	r := &ringing{
		line:  &line{Store: db.Store(), asked: map[string]int{}},
		steps: make(chan polled.Step), listens: make(chan struct{}, 100), fail: make(chan error),
	}
	reg, err := polled.New(r, polled.Config{Name: "ram", Namespace: "shop", SessionTimeout: timeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	ses, err := reg.Open(t.Context())
	require.NoError(t, err)
	rev, err := ses.Commit(t.Context(), registry.Create("/first", nil))
	require.NoError(t, err)
	<-r.listens
	r.steps <- polled.Step{Revision: rev, Unknown: true}
	synctest.Wait()
	return ses, r
}

// followed is a watcher of /a that has told its absence.
func followed(t *testing.T, s registry.Session) registry.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Add("/a", registry.Self))
	events, err := w.Next(soon(t))
	require.NoError(t, err)
	require.Len(t, events, 2)
	return w
}

// tells is what the watcher tells, and how long that took.
func tells(t *testing.T, w registry.Watcher) (registry.Node, time.Duration) {
	t.Helper()
	began := time.Now()
	events, err := w.Next(soon(t))
	require.NoError(t, err)
	require.Len(t, events, 1)
	return events[0].Node, time.Since(began)
}

func TestWhatABellTellsIsSeenAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, bell := listen(t, db)
		other, _ := open(t, db)
		w := followed(t, ses)
		rev, err := other.Commit(t.Context(), registry.Create("/a", []byte("x")), registry.Create("/b", nil))
		require.NoError(t, err)
		bell.counts()
		go func() { bell.steps <- polled.Step{Revision: rev, Paths: []string{"/a", "/b"}} }()
		node, took := tells(t, w)
		require.Equal(t, "x", string(node.Value))
		require.Zero(t, took)
		require.Equal(t, map[string]int{"read": 1}, bell.counts())

		commit(t, other, registry.Set("/b", nil, registry.AnyVersion))
		go func() { bell.steps <- polled.Step{Revision: rev + 1, Paths: []string{"/b"}} }()
		elapse(0)
		require.Empty(t, bell.counts(), "nobody follows it")

		commit(t, other, registry.Set("/a", []byte("y"), registry.AnyVersion))
		go func() { bell.steps <- polled.Step{Revision: rev + 2, Unknown: true} }()
		node, took = tells(t, w)
		require.Equal(t, "y", string(node.Value))
		require.Zero(t, took)
	})
}

func TestHeartbeatsAreRareWhileABellIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		_, bell := listen(t, db)
		elapse(poll) // the first one is as without a bell
		bell.counts()
		elapse(4 * timeout)
		require.Equal(t, map[string]int{"beat": 16, "sessions": 16}, bell.counts())
		bell.fail <- errors.New("connection reset")
		elapse(timeout / 4)
		bell.counts()
		elapse(timeout)
		require.Equal(t, map[string]int{"beat": 20, "sessions": 20}, bell.counts(), "and it is polled without one")
	})
}

// A commit of one's own is not looked at twice.
func TestTheRingOfAnOwnCommit(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, bell := listen(t, db)
		w := followed(t, ses)
		rev, err := ses.Commit(t.Context(), registry.Create("/a", nil))
		require.NoError(t, err)
		tells(t, w)
		bell.counts()
		bell.steps <- polled.Step{Revision: rev, Paths: []string{"/a"}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = w.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, bell.counts())
	})
}

// What a bell does not tell, the next heartbeat sees; and a bell that is silent for longer is asked
// to begin again.
func TestADeafBell(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, bell := listen(t, db)
		other, _ := open(t, db)
		w := followed(t, ses)
		commit(t, other, registry.Create("/a", []byte("x")))
		node, took := tells(t, w)
		require.Equal(t, "x", string(node.Value))
		require.LessOrEqual(t, took, timeout/4)
		require.Empty(t, bell.listens)
		elapse(timeout / 4)
		elapse(time.Second)
		require.Len(t, bell.listens, 1)
		<-bell.listens

		bell.steps <- polled.Step{Revision: 100, Unknown: true}
		elapse(timeout)
		require.Empty(t, bell.listens, "it hears again")
	})
}

// After a break everything is looked at, since nobody knows what was missed.
func TestABellThatBeginsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, bell := listen(t, db)
		other, _ := open(t, db)
		w := followed(t, ses)
		bell.fail <- errors.New("connection reset")
		rev, err := other.Commit(t.Context(), registry.Create("/a", nil))
		require.NoError(t, err)
		<-bell.listens
		go func() { bell.steps <- polled.Step{Revision: rev, Unknown: true} }()
		_, took := tells(t, w)
		require.Zero(t, took)
	})
}

func TestASilentSessionIsEndedInTimeWithRareHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, _ := listen(t, db)
		other, wire := open(t, db)
		commit(t, other, registry.CreateEphemeral("/a", nil))
		elapse(timeout)
		wire.disturb(hang, nil)
		began := time.Now()
		for has(t, db, "/a") {
			elapse(poll / 4)
			require.LessOrEqual(t, time.Since(began), timeout+timeout/4+poll)
		}
		require.False(t, isDone(ses))
	})
}
