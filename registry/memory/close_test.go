package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestCloseOfAnUnreachableSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		heal := reg.LoseRequests()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		err := ses.Close(ctx)
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, ses.Err(), registry.ErrSessionLost)
		require.Equal(t, err, ses.Close(context.Background()))
		require.Equal(t, "/e E \"\"\n", srv.Dump())
		heal()

		_, second := dial(t, srv)
		defer srv.Refuse()()
		began = time.Now()
		require.ErrorIs(t, second.Close(context.Background()), registry.ErrUnavailable)
		require.Equal(t, timeout, time.Since(began))
		require.Empty(t, srv.Dump())
	})
}

func TestCloseWithAContextThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, ses.Close(ctx))
		require.Empty(t, srv.Dump())
	})
}

// Registry.Close does not wait, and does not let a Session.Close wait.
func TestRegistryCloseWaitsForNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		second, err := reg.Open(context.Background())
		require.NoError(t, err)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		resume := srv.Pause()
		closing := background(func() error { return ses.Close(context.Background()) })
		synctest.Wait()
		began := time.Now()
		require.NoError(t, reg.Close())
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, <-closing, registry.ErrUnavailable)
		require.True(t, isDone(second))
		require.NotEmpty(t, srv.Dump())
		resume()
		require.Empty(t, srv.Dump())
		_, err = reg.Open(context.Background())
		require.ErrorIs(t, err, registry.ErrClosed)
	})
}

func TestOpenWaitsForTheService(t *testing.T) {
	faults := map[string]func(*memory.Server) func(){
		"refuse":   (*memory.Server).Refuse,
		"requests": (*memory.Server).LoseRequests,
		"answers":  (*memory.Server).LoseAnswers,
		"pause":    (*memory.Server).Pause,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *memory.Server) {
				reg := srv.Registry("test")
				heal := fault(srv)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				_, err := reg.Open(ctx)
				cancel()
				require.ErrorIs(t, err, registry.ErrUnavailable)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var ses registry.Session
				opened := background(func() (err error) { ses, err = reg.Open(context.Background()); return err })
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Empty(t, opened)
				heal()
				require.NoError(t, <-opened)
				time.Sleep(time.Minute)
				require.NoError(t, ses.Err())
				failed := background(func() error {
					defer fault(srv)()
					_, err := reg.Open(context.Background())
					return err
				})
				synctest.Wait()
				require.NoError(t, reg.Close())
				require.ErrorIs(t, <-failed, registry.ErrClosed)
			})
		})
	}
}
