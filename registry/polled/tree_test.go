package polled_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

func TestGetAndChildren(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		other, _ := open(t, db)
		commit(t, ses, registry.Create("/d", []byte("x")), registry.Create("/d/b", nil), registry.CreateEphemeral("/d/B", nil), registry.Create("/d/a", nil))
		l.counts()
		nodes, err := ses.Get(t.Context(), "/d", "/none", "/d/B", "/d")
		require.NoError(t, err)
		d := registry.Node{Path: "/d", Value: []byte("x"), Created: 1, Modified: 1}
		want := []registry.Node{d, {Path: "/none"}, {Path: "/d/B", Created: 1, Modified: 1, Ephemeral: true, Owned: true}, d}
		require.Empty(t, cmp.Diff(want, nodes))
		nodes[0].Value[0] = 'y'
		require.Equal(t, "x", string(nodes[3].Value), "each is the receiver's own")
		nodes, err = other.Get(t.Context(), "/d/B")
		require.NoError(t, err)
		require.True(t, nodes[0].Ephemeral)
		require.False(t, nodes[0].Owned)

		for dir, want := range map[string][]string{"/d": {"B", "a", "b"}, "/d/a": {}, "/": {"d"}} {
			names, err := ses.Children(t.Context(), dir)
			require.NoError(t, err, dir)
			require.Equal(t, want, names)
		}
		_, err = ses.Children(t.Context(), "/none")
		require.ErrorIs(t, err, registry.ErrNotFound)
		require.Equal(t, map[string]int{"read": 5}, l.counts(), "one request each")
	})
}

func TestWhatCannotBeIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		l.counts()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range map[string]struct {
			want error
			run  func() error
		}{
			"no paths": {nil, func() error { _, err := ses.Get(t.Context()); return err }},
			"Get":      {registry.ErrInvalid, func() error { _, err := ses.Get(t.Context(), "/a", "b"); return err }},
			"Children": {registry.ErrInvalid, func() error { _, err := ses.Children(t.Context(), "/a/"); return err }},
			"Commit":   {registry.ErrInvalid, func() error { _, err := ses.Commit(t.Context(), registry.Create("a", nil)); return err }},
			"ended":    {context.Canceled, func() error { _, err := ses.Commit(ended, registry.Create("/a", nil)); return err }},
			"Sync":     {context.Canceled, func() error { return ses.Sync(ended) }},
			"Watch":    {context.Canceled, func() error { _, err := ses.Watch(ended); return err }},
			"read":     {context.Canceled, func() error { _, err := ses.Get(ended, "/a"); return err }},
		} {
			require.ErrorIs(t, call.run(), call.want, name)
		}
		require.Empty(t, l.counts())
	})
}

func TestReadsAreRetried(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		failures := 5
		l.disturb(only("read", func(context.Context, string) error {
			if failures--; failures >= 0 {
				return errReset
			}
			return nil
		}), nil)
		_, err := ses.Get(t.Context(), "/a")
		require.NoError(t, err)
		require.Equal(t, 6, l.counts()["read"])

		l.disturb(only("read", func(context.Context, string) error { return io.ErrUnexpectedEOF }), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = ses.Get(ctx, "/a")
		for _, want := range []error{registry.ErrUnavailable, context.DeadlineExceeded, io.ErrUnexpectedEOF} {
			require.ErrorIs(t, err, want)
		}
		l.counts()
		l.disturb(only("read", func(context.Context, string) error { return registry.ErrDenied }), nil)
		_, err = ses.Get(soon(t), "/a")
		require.ErrorIs(t, err, registry.ErrDenied)
		require.Equal(t, 1, l.counts()["read"], "who is refused is refused again")

		l.disturb(only("read", hang), nil)
		go func() {
			<-time.After(time.Second)
			_ = ses.Close(context.Background())
		}()
		_, err = ses.Get(t.Context(), "/a")
		require.ErrorIs(t, err, registry.ErrSessionLost)
	})
}

// A read that is stuck on a connection is asked again while the session lives.
func TestAReadThatHangsIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		first := true
		l.disturb(only("read", func(ctx context.Context, request string) error {
			if first {
				first = false
				return hang(ctx, request)
			}
			return nil
		}), nil)
		start := time.Now()
		_, err := ses.Get(t.Context(), "/a")
		require.NoError(t, err)
		require.InDelta(t, timeout/2, time.Since(start), float64(time.Second/10))
	})
}

// Asked again with no more time, what takes longer than an attempt would never come.
func TestALargeAnswerThatTakesLongComes(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		commit(t, ses, registry.Create("/d", nil), registry.Create("/d/a", nil))
		l.disturb(nil, only("read", func(ctx context.Context, _ string) error {
			select {
			case <-time.After(timeout * 3 / 2):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
		names, err := ses.Children(soon(t), "/d")
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, names)
		follow(t, ses, map[string]registry.Scope{"/d": registry.Children})
		require.NoError(t, ses.Err())
		l.disturb(nil, nil)
	})
}

func TestWhatTheErrorOfACommitMeans(t *testing.T) {
	lost := errors.New("answer lost")
	for name, c := range map[string]struct {
		err     error
		is, not error
	}{
		"unknown":            {lost, registry.ErrUncertain, registry.ErrUnavailable},
		"cut off":            {context.DeadlineExceeded, registry.ErrUncertain, registry.ErrUnavailable},
		"unavailable":        {registry.ErrUnavailable, registry.ErrUnavailable, registry.ErrUncertain},
		"denied":             {registry.ErrDenied, registry.ErrDenied, registry.ErrUncertain},
		"refused":            {&registry.CommitError{Index: 1, Err: registry.ErrDenied}, registry.ErrDenied, registry.ErrUncertain},
		"refused, where?":    {&registry.CommitError{Index: 2, Err: registry.ErrExists}, registry.ErrUncertain, registry.ErrUnavailable},
		"refused, where? -1": {&registry.CommitError{Index: -1, Err: registry.ErrExists}, registry.ErrUncertain, registry.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, db *ram.Database) {
				ses, l := open(t, db)
				l.disturb(nil, only("commit", func(context.Context, string) error { return c.err }))
				ops := []registry.Op{registry.Create("/a", nil), registry.Create("/b", nil)}
				rev, err := ses.Commit(t.Context(), ops...)
				require.Zero(t, rev)
				require.ErrorIs(t, err, c.is)
				require.NotErrorIs(t, err, c.not)
				require.Equal(t, 1, l.counts()["commit"], "a commit is sent once")
				if refused := (*registry.CommitError)(nil); name == "refused" {
					require.ErrorAs(t, err, &refused)
					require.Equal(t, ops[1], refused.Op)
				} else {
					require.ErrorIs(t, err, c.err, "the store's own error can be reached")
				}
				require.NoError(t, ses.Err())
			})
		})
	}
}

func TestACommitInFlightAtTheLossIsUncertain(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		l.disturb(nil, hang)
		_, err := ses.Commit(t.Context(), registry.Create("/a", nil))
		require.True(t, isDone(ses))
		require.ErrorIs(t, err, registry.ErrUncertain)
		require.ErrorIs(t, err, registry.ErrSessionLost)
		l.disturb(nil, nil)
	})
}

func TestACommitThatWasNotSentIsNotUncertain(t *testing.T) {
	unsent := func(ctx context.Context, request string) error {
		return errors.Join(registry.ErrUnavailable, hang(ctx, request))
	}
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		l.disturb(unsent, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := ses.Commit(ctx, registry.Create("/a", nil))
		require.Equal(t, context.DeadlineExceeded, err, "plainly")
		_, err = ses.Commit(t.Context(), registry.Create("/a", nil))
		require.Equal(t, ses.Err(), err)
		require.NotErrorIs(t, err, registry.ErrUncertain)
		l.disturb(nil, nil)
	})
}
