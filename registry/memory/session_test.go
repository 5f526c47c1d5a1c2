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

func TestHourOfHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		last := ses.Deadline()
		for range 60 {
			time.Sleep(time.Minute)
			require.True(t, time.Now().Before(ses.Deadline()))
			require.True(t, last.Before(ses.Deadline()))
			last = ses.Deadline()
		}
		synctest.Wait()
		require.False(t, isDone(ses))
		require.Equal(t, "/e E \"\"\n", srv.Dump())
		require.InDelta(t, 2400, srv.Requests().Heartbeat, 1)
	})
}

// A silent client is done by its deadline, the server expires it a timeout after
// the last heartbeat it received, not before.
func TestSilenceEndsTheSession(t *testing.T) {
	silences := map[string]func(*memory.Registry) func(){
		"requests": (*memory.Registry).LoseRequests,
		"refuse":   (*memory.Registry).Refuse,
	}
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *memory.Server) {
				reg, ses := dial(t, srv)
				opened := time.Now()
				commit(t, ses, registry.CreateEphemeral("/e", nil))
				defer silence(reg)()
				deadline := ses.Deadline()
				require.Equal(t, opened.Add(timeout-timeout/10), deadline)
				<-ses.Done()
				require.False(t, time.Now().After(deadline))
				require.ErrorIs(t, ses.Err(), registry.ErrSessionLost)
				require.NotEmpty(t, srv.Dump())
				time.Sleep(time.Until(opened.Add(timeout - 1)))
				require.NotEmpty(t, srv.Dump())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				require.Empty(t, srv.Dump())
				require.Positive(t, reg.Hits())
			})
		})
	}
}

// With answers lost the server goes on to renew; the client must not believe it.
func TestLostAnswersEndTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		heal := reg.LoseAnswers()
		deadline := ses.Deadline()
		<-ses.Done()
		require.False(t, time.Now().After(deadline))
		lost := time.Now()
		for srv.Dump() != "" {
			time.Sleep(time.Second / 10)
		}
		require.True(t, time.Now().After(deadline))
		require.Less(t, time.Since(lost), timeout)
		heal()
		require.NoError(t, ses.Close(context.Background()))
	})
}

func TestBlipKeepsTheSession(t *testing.T) {
	faults := map[string]func(*memory.Server, *memory.Registry){
		"drop":           func(_ *memory.Server, r *memory.Registry) { r.Drop() },
		"drop all":       func(s *memory.Server, _ *memory.Registry) { s.Drop() },
		"restart":        func(s *memory.Server, _ *memory.Registry) { s.Restart() },
		"refuse 5s":      func(_ *memory.Server, r *memory.Registry) { during(r.Refuse) },
		"requests 5s":    func(_ *memory.Server, r *memory.Registry) { during(r.LoseRequests) },
		"answers 5s":     func(_ *memory.Server, r *memory.Registry) { during(r.LoseAnswers) },
		"all refused 5s": func(s *memory.Server, _ *memory.Registry) { during(s.Refuse) },
		"all deaf 5s":    func(s *memory.Server, _ *memory.Registry) { during(s.LoseRequests) },
		"all mute 5s":    func(s *memory.Server, _ *memory.Registry) { during(s.LoseAnswers) },
		"pause 5s":       func(s *memory.Server, _ *memory.Registry) { during(s.Pause) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *memory.Server) {
				reg, ses := dial(t, srv)
				commit(t, ses, registry.CreateEphemeral("/e", nil))
				before := get(t, ses, "/e")
				fault(srv, reg)
				time.Sleep(10 * timeout)
				synctest.Wait()
				require.NoError(t, ses.Err())
				require.Equal(t, before, get(t, ses, "/e"))
				require.Positive(t, reg.Hits())
			})
		})
	}
}

// during lasts 5 s: longer than a heartbeat's interval, shorter than the session.
func during(fault func() func()) {
	heal := fault()
	time.Sleep(5 * time.Second)
	heal()
	heal()
}

func TestExpireIsLearntFromTheNextRequest(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		ctx := context.Background()
		_, ses := dial(t, srv)
		_, other := dial(t, srv)
		commit(t, ses, registry.CreateEphemeral("/a", nil), registry.Create("/p", nil), registry.CreateEphemeral("/b", nil))
		require.True(t, srv.Expire(ses.ID()))
		require.False(t, srv.Expire(ses.ID()))
		require.Equal(t, "/p \"\"\n", srv.Dump())
		require.False(t, isDone(ses))
		_, err := ses.Commit(ctx, registry.CreateEphemeral("/c", nil))
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.True(t, isDone(ses))
		_, err = ses.Get(ctx, "/p")
		require.ErrorIs(t, err, registry.ErrSessionLost)
		_, err = ses.Watch(ctx)
		require.ErrorIs(t, err, registry.ErrSessionLost)
		_, err = ses.Lock(ctx, "/l", nil)
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.Equal(t, "/p \"\"\n", srv.Dump())
		require.NoError(t, other.Err())

		srv.Expire(other.ID())
		began := time.Now()
		<-other.Done()
		require.LessOrEqual(t, time.Since(began), timeout/4)
	})
}

func TestEphemeralsVanishInOneRevision(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		_, other := dial(t, srv)
		commit(t, ses, registry.Create("/d", nil), registry.CreateEphemeral("/d/b", nil), registry.CreateEphemeral("/d/a", nil))
		first := commit(t, other, registry.Create("/x", nil))
		require.NoError(t, ses.Close(context.Background()))
		require.Equal(t, first+2, commit(t, other, registry.Create("/y", nil)))
	})
}

func TestOwnedIsOfTheReader(t *testing.T) {
	srv := memory.NewServer(memory.Config{})
	_, ses := dial(t, srv)
	_, other := dial(t, srv)
	commit(t, ses, registry.CreateEphemeral("/e", []byte("v")))
	mine, theirs := get(t, ses, "/e"), get(t, other, "/e")
	require.True(t, mine.Owned)
	require.False(t, theirs.Owned)
	require.True(t, theirs.Ephemeral)
	mine.Value[0] = 'x'
	require.Equal(t, "v", string(get(t, ses, "/e").Value))
}

// A server that is paused for longer than a session lives forgets it on resuming.
func TestLongPauseExpires(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		resume := srv.Pause()
		time.Sleep(timeout)
		synctest.Wait()
		require.True(t, isDone(ses))
		require.NotEmpty(t, srv.Dump())
		resume()
		require.Empty(t, srv.Dump())
	})
}

// The deadline counts from when a heartbeat was sent, not from its answer.
func TestDeadlineCountsFromSending(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		opened := time.Now()
		resume := srv.Pause()
		time.Sleep(timeout/4 + time.Second)
		resume()
		synctest.Wait()
		require.Equal(t, opened.Add(timeout/4+timeout-timeout/10), ses.Deadline())
	})
}

// A restart gives every session its whole timeout again.
func TestRestartExtendsSessions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		defer reg.Refuse()()
		time.Sleep(5 * time.Second)
		srv.Restart()
		time.Sleep(timeout - 1)
		require.NotEmpty(t, srv.Dump())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Empty(t, srv.Dump())
	})
}

// A commit that passed its checks when the session ended is not sent any more.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		srv.Intercept(func(string, []registry.Op) memory.Fate {
			defer reg.Refuse()()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = ses.Close(ctx) // unknown to the server
			return memory.Deliver
		})
		_, err := ses.Commit(context.Background(), registry.Create("/n", nil))
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.NotErrorIs(t, err, registry.ErrUncertain)
		require.Empty(t, srv.Dump())
	})
}

func TestThousandSessions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg := srv.Registry("test")
		defer reg.Close()
		seen := map[string]struct{}{}
		for range 1000 {
			ses, err := reg.Open(context.Background())
			require.NoError(t, err)
			seen[ses.ID()] = struct{}{}
			require.Same(t, reg, srv.Client(ses.ID()))
		}
		require.Len(t, seen, 1000)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 40_000, srv.Requests().Heartbeat)
		require.NoError(t, reg.Close())
		for id := range seen {
			require.Nil(t, srv.Client(id))
		}
	})
}
