package polledtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

var errBroken = errors.New("disk is broken")

// A recorder is a test that fails without consequences.
type recorder struct {
	testing.TB

	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.said = fmt.Sprintf(format, args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// saying returns what test said when it failed.
func saying(t *testing.T, test func(tb testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(r)
	}()
	<-ended
	return r.said
}

type brokenAtClose struct{ polled.Store }

func (s brokenAtClose) Close() error { return errors.Join(errBroken, s.Store.Close()) }

func TestAStoreThatFailsFailsTheTest(t *testing.T) {
	db := &ram.Database{}
	sound := func(context.Context) (polled.Store, error) { return db.Store(), nil }
	require.Equal(t, "polledtest: open the store: disk is broken", saying(t, func(tb testing.TB) {
		polledtest.New(tb, polled.Config{}, func(context.Context) (polled.Store, error) { return nil, errBroken })
	}))
	require.Equal(t, "polledtest: close the store: disk is broken", saying(t, func(tb testing.TB) {
		polledtest.New(tb, polled.Config{}, func(context.Context) (polled.Store, error) { return brokenAtClose{db.Store()}, nil }).Close()
	}))
	require.Contains(t, saying(t, func(tb testing.TB) {
		polledtest.New(tb, polled.Config{Poll: time.Minute}, sound)
	}), "polledtest: store: invalid request: polled.Config.Poll is 1m0s: want at most a quarter of SessionTimeout")
	require.Empty(t, saying(t, func(tb testing.TB) { polledtest.New(tb, polled.Config{}, sound).Close() }))
}

// A flawed store breaks one rule that the suite cannot see.
type flawed struct {
	polled.Store

	begin    func(s polled.Store, ctx context.Context, session string, timeout time.Duration) error
	beat     func(s polled.Store, ctx context.Context, session string) (registry.Revision, error)
	sessions func(all []polled.Session) []polled.Session
	end      func(s polled.Store, ctx context.Context, session string, beat int64) error
	read     func(nodes []polled.Node) []polled.Node
}

func (f flawed) Begin(ctx context.Context, session string, timeout time.Duration) error {
	if f.begin == nil {
		return f.Store.Begin(ctx, session, timeout)
	}
	return f.begin(f.Store, ctx, session, timeout)
}

func (f flawed) Beat(ctx context.Context, session string) (registry.Revision, error) {
	if f.beat == nil {
		return f.Store.Beat(ctx, session)
	}
	return f.beat(f.Store, ctx, session)
}

func (f flawed) Sessions(ctx context.Context) ([]polled.Session, error) {
	all, err := f.Store.Sessions(ctx)
	if f.sessions != nil {
		all = f.sessions(all)
	}
	return all, err
}

func (f flawed) End(ctx context.Context, session string, beat int64) error {
	if f.end == nil {
		return f.Store.End(ctx, session, beat)
	}
	return f.end(f.Store, ctx, session, beat)
}

func (f flawed) Read(ctx context.Context, paths, dirs []string) ([]polled.Node, error) {
	nodes, err := f.Store.Read(ctx, paths, dirs)
	if f.read != nil {
		nodes = f.read(nodes)
	}
	return nodes, err
}

func TestWhatTheSuiteCannotSeeIsFound(t *testing.T) {
	var last registry.Revision
	for says, f := range map[string]flawed{
		"Begin: disk is broken": {begin: func(polled.Store, context.Context, string, time.Duration) error { return errBroken }},
		"Sessions: {ID: Beat:0 Timeout:0s} after Begin with 7s and 0 heartbeats": {sessions: func([]polled.Session) []polled.Session { return nil }},
		"want that timeout, and a counter of 1": {begin: func(s polled.Store, ctx context.Context, session string, timeout time.Duration) error {
			return s.Begin(ctx, session, timeout/time.Second)
		}},
		"and 1 heartbeats; want that timeout, and a counter of 2": {beat: func(polled.Store, context.Context, string) (registry.Revision, error) { return 1, nil }},
		"Beat: the revision is 0; a commit before was 1": {beat: func(s polled.Store, ctx context.Context, session string) (registry.Revision, error) {
			rev, err := s.Beat(ctx, session)
			return max(0, rev-1), err
		}},
		"Read: 2 nodes at one path": {read: func(nodes []polled.Node) []polled.Node { return append(nodes, nodes...) }},
		"End: it removed a session whose counter had moved on, or its node": {end: func(s polled.Store, ctx context.Context, session string, _ int64) error {
			return s.End(ctx, session, polled.AnyBeat)
		}},
		"End: it left a session whose counter stood where it was asked to, or its node": {end: func(s polled.Store, ctx context.Context, session string, beat int64) error {
			return s.End(ctx, session, beat-1)
		}},
		"End of a session that has ended: disk is broken": {end: func(s polled.Store, ctx context.Context, session string, beat int64) error {
			if all, err := s.Sessions(ctx); err != nil || len(all) == 0 {
				return errBroken
			}
			return s.End(ctx, session, beat)
		}},
		"Beat: error <nil> for a session that has ended; want registry.ErrSessionLost": {beat: func(s polled.Store, ctx context.Context, session string) (registry.Revision, error) {
			rev, err := s.Beat(ctx, session)
			if err == nil {
				last = rev
			}
			return last, nil
		}},
		"End: the revision is 1 after an ephemeral node went, as it was before: nobody would look": {beat: func(s polled.Store, ctx context.Context, session string) (registry.Revision, error) {
			rev, err := s.Beat(ctx, session)
			return min(rev, 1), err
		}},
	} {
		t.Run(says, func(t *testing.T) {
			f.Store = (&ram.Database{}).Store()
			said := saying(t, func(tb testing.TB) {
				polledtest.New(tb, polled.Config{}, func(context.Context) (polled.Store, error) { return f, nil }).Close()
			})
			require.Contains(t, said, "polledtest: the store does not do what polled.Store says of ")
			require.Contains(t, said, says)
		})
	}
}

// lame is a session that no harness knows.
type lame struct{ registry.Session }

func (lame) ID() string { return "lame" }

func TestAFaultThatCannotBeIsAnError(t *testing.T) {
	db := &ram.Database{}
	h := polledtest.New(t, polled.Config{}, func(context.Context) (polled.Store, error) { return db.Store(), nil })
	defer h.Close()
	f := h.Faults()
	_, blackhole := f.Blackhole(lame{}, conformance.Both)
	_, refuse := f.Refuse(lame{})
	_, fate := f.NextCommit(lame{}, conformance.AnswerLost)
	for _, err := range []error{blackhole, refuse, fate, f.Drop(lame{})} {
		require.EqualError(t, err, "session lame was not opened here")
	}
	require.EqualError(t, f.Expire(lame{}), "session lame had ended before")
	require.ErrorIs(t, f.LoseLeader(), conformance.ErrUnsupported)
	require.Zero(t, f.Hits(lame{}))
}

// The data is that of the store which was closed, also when it cannot be opened again.
func TestARestartThatFailsIsTold(t *testing.T) {
	db, opened := &ram.Database{}, 0
	h := polledtest.New(t, polled.Config{}, func(context.Context) (polled.Store, error) {
		if opened++; opened == 2 {
			return nil, errBroken
		}
		return db.Store(), nil
	})
	defer h.Close()
	ses, err := h.Registry(t.Context(), t).Open(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, h.Faults().RestartServer(), errBroken)
	_, err = ses.Commit(t.Context(), registry.Create("/a", nil))
	require.ErrorIs(t, err, registry.ErrUnavailable, "the server is down")
	require.Positive(t, h.Faults().Hits(ses))
	require.NoError(t, h.Faults().RestartServer())
	_, err = ses.Commit(t.Context(), registry.Create("/a", nil))
	require.NoError(t, err)
}
