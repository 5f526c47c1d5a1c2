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
		c := pending.NewConsumer("test", life, &mu)
		locked := func(f func()) {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
		_, err := c.Admit("a", registry.Self)
		require.ErrorIs(t, err, registry.ErrInvalid)
		_, err = c.Admit("/a", 7)
		require.ErrorIs(t, err, registry.ErrInvalid)
		target, err := c.Admit("/a", registry.Self)
		require.NoError(t, err)

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Next(short)
		require.Equal(t, context.DeadlineExceeded, err)

		time.AfterFunc(time.Second, func() {
			locked(func() { c.Put(&target, registry.Node{Path: "/a", Created: 3}); c.Announce() })
		})
		events, err := c.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.EqualValues(t, 3, events[0].Node.Created)

		locked(func() { c.Put(&target, registry.Node{Path: "/a"}); c.Refuse(target.Key, registry.ErrDenied) })
		_, err = c.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrDenied)
		require.EqualError(t, err, "watch /a (self): permission denied")
		events, err = c.Next(t.Context())
		require.NoError(t, err, "it is said once")
		require.Len(t, events, 1)

		time.AfterFunc(time.Second, func() { locked(func() { require.True(t, c.End()); require.False(t, c.End()) }) })
		_, err = c.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrClosed)
		_, err = c.Admit("/a", registry.Self)
		require.ErrorIs(t, err, registry.ErrClosed)

		other := pending.NewConsumer("test", life, &mu)
		time.AfterFunc(time.Second, func() { life.Lose(errors.New("reason")) })
		_, err = other.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrSessionLost)
		_, err = other.Admit("/a", registry.Self)
		require.ErrorIs(t, err, registry.ErrSessionLost)
	})
}
