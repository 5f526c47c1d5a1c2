package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
	"github.com/elasticron/elasticron/registry/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	three   = retry.Config{Base: time.Second, Max: 3 * time.Second, Retries: 3}
	errAway = fmt.Errorf("test: %w: no answer", registry.ErrUnavailable)
)

// A script is the errors of the calls to come; after the last one they succeed.
type script struct {
	errs  []error
	calls int
}

func (s *script) next() error {
	s.calls++
	if len(s.errs) == 0 {
		return nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return err
}

// scripted is a registry in memory in front of which every call goes by the script.
type scripted struct {
	registry.Registry
	*script
}

func (r scripted) Open(ctx context.Context) (registry.Session, error) {
	if err := r.next(); err != nil {
		return nil, err
	}
	s, err := r.Registry.Open(ctx)
	return scriptedSession{s, r.script}, err
}

func (r scripted) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if err := r.next(); err != nil {
		return nil, err
	}
	s, err := r.Registry.OpenStore(ctx)
	return scriptedStore{s, r.script}, err
}

func (scripted) Warnings() []string { return []string{"mind the gap"} }

type scriptedSession struct {
	registry.Session
	*script
}

func (s scriptedSession) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	return s.Session.Get(ctx, paths...)
}

func (s scriptedSession) Children(ctx context.Context, path string) ([]string, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	return s.Session.Children(ctx, path)
}

func (s scriptedSession) Sync(ctx context.Context) error {
	if err := s.next(); err != nil {
		return err
	}
	return s.Session.Sync(ctx)
}

func (s scriptedSession) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := s.next(); err != nil {
		return 0, err
	}
	return s.Session.Commit(ctx, ops...)
}

func (s scriptedSession) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.next(); err != nil {
		return nil, err
	}
	return s.Session.Watch(ctx)
}

type scriptedStore struct {
	registry.StoreCloser
	*script
}

func (s scriptedStore) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := s.next(); err != nil {
		return 0, err
	}
	return s.StoreCloser.Commit(ctx, ops...)
}

// bed is a scripted registry with the repetition around it.
func bed(t *testing.T) (*script, registry.Registry) {
	t.Helper()
	s := &script{}
	reg, err := retry.Wrap(scripted{memory.NewServer(memory.Config{}).Registry("shop"), s}, three)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	return s, reg
}

// calls are those that are repeated.
func calls(ctx context.Context, s registry.Session) map[string]func() error {
	return map[string]func() error{
		"Get":      func() error { _, err := s.Get(ctx, "/a"); return err },
		"Children": func() error { _, err := s.Children(ctx, "/"); return err },
		"Sync":     func() error { return s.Sync(ctx) },
		"Commit": func() error {
			_, err := s.Commit(ctx, registry.Create("/"+fmt.Sprint(time.Now().UnixNano()), nil))
			return err
		},
		"Watch": func() error {
			w, err := s.Watch(ctx)
			if err == nil {
				err = w.Close()
			}
			return err
		},
	}
}

func TestWhatPassesByIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script, reg := bed(t)
		script.errs = []error{errAway, errAway}
		s, err := reg.Open(t.Context())
		require.NoError(t, err)
		defer s.Close(t.Context())
		require.Equal(t, 3, script.calls, "opening a session")
		for name, call := range calls(t.Context(), s) {
			script.errs, script.calls = []error{errAway, errAway, errAway}, 0
			began := time.Now()
			require.NoError(t, call(), name)
			require.Equal(t, 4, script.calls, name)
			// 1 s, 2 s, 3 s, each spread by half.
			require.GreaterOrEqual(t, time.Since(began), 3*time.Second, name)
			require.LessOrEqual(t, time.Since(began), 9*time.Second, name)

			script.errs, script.calls = []error{errAway, errAway, errAway, errAway, errAway}, 0
			require.ErrorIs(t, call(), registry.ErrUnavailable, name)
			require.Equal(t, 4, script.calls, "%s: the retries are used up", name)
		}
	})
}

func TestWhatMayHaveHappenedIsNeverRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script, reg := bed(t)
		s, err := reg.Open(t.Context())
		require.NoError(t, err)
		defer s.Close(t.Context())
		for _, last := range []error{
			registry.ErrUncertain,
			fmt.Errorf("%w: %w", registry.ErrUncertain, registry.ErrUnavailable),
			fmt.Errorf("%w: %w", registry.ErrUncertain, registry.ErrSessionLost),
			fmt.Errorf("%w: %w", registry.ErrSessionLost, registry.ErrUnavailable),
			registry.ErrDenied, registry.ErrClosed, registry.ErrInvalid, registry.ErrNotFound,
			&registry.CommitError{Err: registry.ErrVersion}, errors.New("of nobody knows what"),
		} {
			for name, call := range calls(t.Context(), s) {
				script.errs, script.calls = []error{last}, 0
				began := time.Now()
				require.Equal(t, last, call(), "%s is handed on as it is", name)
				require.Equal(t, 1, script.calls, "%s after %v", name, last)
				require.Zero(t, time.Since(began))
			}
		}
	})
}

func TestPausesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := func() []error {
			return []error{errAway, errAway, errAway, errAway, errAway, errAway, errAway, errAway}
		}
		script, reg := bed(t)
		s, err := reg.Open(t.Context())
		require.NoError(t, err)

		// With the context.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		script.errs = always()
		began := time.Now()
		require.ErrorIs(t, s.Sync(ctx), registry.ErrUnavailable)
		require.Equal(t, 10*time.Millisecond, time.Since(began))

		// With the session: the call that follows tells of its loss.
		script.errs = []error{errAway}
		time.AfterFunc(10*time.Millisecond, func() { _ = s.Close(context.Background()) })
		_, err = s.Commit(t.Context(), registry.Create("/b", nil))
		require.ErrorIs(t, err, registry.ErrSessionLost)

		// With the store.
		store, err := reg.OpenStore(t.Context())
		require.NoError(t, err)
		script.errs = []error{errAway}
		time.AfterFunc(10*time.Millisecond, func() { _ = store.Close(context.Background()) })
		_, err = store.Commit(t.Context(), registry.Create("/b", nil))
		require.ErrorIs(t, err, registry.ErrClosed)
		require.NoError(t, store.Close(t.Context()))

		// With the registry.
		script.errs = []error{errAway}
		time.AfterFunc(10*time.Millisecond, func() { _ = reg.Close() })
		_, err = reg.Open(t.Context())
		require.ErrorIs(t, err, registry.ErrClosed)
	})
}

// opened is the script of the scheme scripted.
var opened = &script{}

func init() {
	registry.Register("scripted", func(_ context.Context, _ *url.URL) (registry.Registry, error) {
		if err := opened.next(); err != nil {
			return nil, err
		}
		return scripted{memory.NewServer(memory.Config{}).Registry("shop"), opened}, nil
	})
}

func TestOpen(t *testing.T) {
	s := opened
	synctest.Test(t, func(t *testing.T) {
		s.errs, s.calls = []error{errAway, errAway}, 0
		reg, err := retry.Open(t.Context(), "scripted://h/shop", three)
		require.NoError(t, err)
		require.Equal(t, 3, s.calls)
		require.Equal(t, []string{"mind the gap"}, reg.(interface{ Warnings() []string }).Warnings())
		require.Equal(t, "shop", reg.Namespace())
		require.NoError(t, reg.Close())
		require.NoError(t, reg.Close())

		s.errs, s.calls = []error{registry.ErrDenied}, 0
		_, err = retry.Open(t.Context(), "scripted://h/shop", three)
		require.ErrorIs(t, err, registry.ErrDenied)
		require.Equal(t, 1, s.calls)
	})
	_, err := retry.Open(t.Context(), "scripted://h/shop", retry.Config{Retries: -1})
	require.EqualError(t, err, "retry: invalid request: -1 retries; give 1 to 1000")
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]retry.Config{
		"": {}, "retry: invalid request: base -1s is too short a pause; give at least 1ms": {Base: -time.Second},
		"retry: invalid request: max 1s is shorter than base 2s; give at least as much": {Base: 2 * time.Second, Max: time.Second},
		"retry: invalid request: 1001 retries; give 1 to 1000":                          {Retries: 1001},
	} {
		err := c.Validate()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, registry.ErrInvalid)
		_, err = retry.Wrap(nil, c)
		require.Error(t, err)
	}
	require.NoError(t, retry.Config{Base: 10 * time.Second}.Validate(), "Max follows")
}
