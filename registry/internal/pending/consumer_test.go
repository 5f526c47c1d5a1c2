package pending_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/pending"
)

func TestConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := lifetime.New("test")
		var mu sync.Mutex
		var target *pending.Target
		hooks := pending.Hooks[*pending.Target]{
			New:   func(t pending.Target) *pending.Target { return &t },
			Start: func(t *pending.Target) { target = t },
			Stop:  func(*pending.Target) { target = nil },
		}
		c := pending.NewConsumer(life.Context(), "test", &mu, hooks)
		locked := func(f func()) {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
		require.ErrorIs(t, c.Add("a", registry.Self), registry.ErrInvalid)
		require.ErrorIs(t, c.Add("/a", 7), registry.ErrInvalid)
		require.NoError(t, c.Add("/a", registry.Self))
		first := target
		require.NoError(t, c.Add("/a", registry.Self))
		require.Same(t, first, target, "it is watched already")

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Next(short)
		require.Equal(t, context.DeadlineExceeded, err)

		time.AfterFunc(time.Second, func() {
			locked(func() { c.Put(target, registry.Node{Path: "/a", Created: 3}) })
		})
		events, err := c.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.EqualValues(t, 3, events[0].Node.Created)

		require.NoError(t, c.Add("/b", registry.Self))
		other := target
		c.Remove("/b", registry.Self)
		require.Nil(t, target)
		require.NoError(t, c.Add("/b", registry.Self))
		require.NotSame(t, other, target)
		locked(func() { c.Put(target, registry.Node{Path: "/b"}); c.Refuse(first, registry.ErrDenied) })
		_, err = c.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrDenied)
		require.EqualError(t, err, "watch /a (self): permission denied")
		events, err = c.Next(t.Context())
		require.NoError(t, err, "it is said once")
		require.Len(t, events, 1)

		require.NoError(t, c.Add("/a", registry.Self))
		time.AfterFunc(time.Second, func() { _, _ = c.Close(), c.Close() })
		_, err = c.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrClosed)
		require.Nil(t, target, "they are stopped")
		require.ErrorIs(t, c.Add("/a", registry.Self), registry.ErrClosed)

		last := pending.NewConsumer(life.Context(), "test", &mu, hooks)
		time.AfterFunc(time.Second, func() { life.Lose(errors.New("reason")) })
		_, err = last.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.ErrorIs(t, last.Add("/a", registry.Self), registry.ErrSessionLost)
	})
}
