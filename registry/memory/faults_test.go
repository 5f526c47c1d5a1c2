package memory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// doom gives the next commit its fate, the others none.
func doom(srv *memory.Server, fate memory.Fate) {
	var used atomic.Bool
	srv.Intercept(func(string, []registry.Op) memory.Fate {
		if used.Swap(true) {
			return memory.Deliver
		}
		return fate
	})
}

func TestFates(t *testing.T) {
	tests := []struct {
		name    string
		fate    memory.Fate
		err     error
		at, end string // the tree at once, and 3 s later
	}{
		{"deliver", memory.Deliver, nil, "/n \"v\"\n", "/n \"v\"\n"},
		{"answer lost", memory.AnswerLost, registry.ErrUncertain, "/n \"v\"\n", "/n \"v\"\n"},
		{"request lost", memory.RequestLost, registry.ErrUncertain, "", ""},
		{"applied late", memory.AppliedLate(3 * time.Second), registry.ErrUncertain, "", "/n \"v\"\n"},
		{"refused", memory.Refused, registry.ErrUnavailable, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *memory.Server) {
				reg, ses := dial(t, srv)
				doom(srv, tt.fate)
				value := []byte("v")
				_, err := ses.Commit(context.Background(), registry.Create("/n", value))
				value[0] = 'x'
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, tt.at, srv.Dump())
				time.Sleep(3 * time.Second)
				synctest.Wait()
				require.Equal(t, tt.end, srv.Dump())
				require.Equal(t, tt.err != nil, reg.Hits() == 1)
			})
		})
	}
}

func TestAppliedLateNeedsConditionsAndSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		ctx := context.Background()
		_, ses := dial(t, srv)
		commit(t, ses, registry.Create("/n", []byte("0")))
		doom(srv, memory.AppliedLate(3*time.Second))
		_, err := ses.Commit(ctx, registry.Set("/n", []byte("late"), 0))
		require.ErrorIs(t, err, registry.ErrUncertain)
		commit(t, ses, registry.Set("/n", []byte("1"), 0))
		time.Sleep(4 * time.Second)
		require.Equal(t, "/n \"1\"\n", srv.Dump())

		doom(srv, memory.AppliedLate(3*time.Second))
		_, err = ses.Commit(ctx, registry.Set("/n", []byte("late"), 1))
		require.ErrorIs(t, err, registry.ErrUncertain)
		srv.Expire(ses.ID())
		time.Sleep(4 * time.Second)
		require.Equal(t, "/n \"1\"\n", srv.Dump())
	})
}

// What a session that is lost to its client left in flight makes no ephemeral
// node, even though the server does not know of the loss.
func TestNoEphemeralAfterLoss(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		ctx := context.Background()
		reg, ses := dial(t, srv)
		const late = timeout - timeout/50 // between Done and expiry
		opened := time.Now()
		srv.Intercept(func(string, []registry.Op) memory.Fate { return memory.AppliedLate(late) })
		_, err := ses.Commit(ctx, registry.CreateEphemeral("/e", nil))
		require.ErrorIs(t, err, registry.ErrUncertain)
		_, err = ses.Commit(ctx, registry.Create("/p", nil))
		require.ErrorIs(t, err, registry.ErrUncertain)
		defer reg.LoseRequests()()
		<-ses.Done()
		require.Empty(t, srv.Dump())
		time.Sleep(time.Until(opened.Add(late)))
		synctest.Wait()
		require.Equal(t, "/p \"\"\n", srv.Dump())
	})
}

func TestInterceptSeesSessionAndOps(t *testing.T) {
	srv := memory.NewServer(memory.Config{})
	_, ses := dial(t, srv)
	ops := []registry.Op{registry.Create("/a", []byte("1")), registry.CreateEphemeral("/b", nil)}
	srv.Intercept(func(id string, got []registry.Op) memory.Fate {
		if id == ses.ID() && cmp.Equal(ops, got) && srv.Dump() == "" {
			return memory.Deliver
		}
		return memory.Refused
	})
	commit(t, ses, ops...)
	srv.Intercept(nil)
	commit(t, ses, registry.Create("/c", nil))
}

// Whatever breaks under way makes commits uncertain and reads wait.
func TestCallsUnderFaults(t *testing.T) {
	tests := []struct {
		name    string
		fault   func(*memory.Registry) func()
		applied bool
	}{
		{"requests", (*memory.Registry).LoseRequests, false},
		{"answers", (*memory.Registry).LoseAnswers, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *memory.Server) {
				ctx := context.Background()
				reg, ses := dial(t, srv)
				_, other := dial(t, srv)
				heal := tt.fault(reg)
				wrote := background(func() error { _, err := ses.Commit(ctx, registry.Create("/n", nil)); return err })
				read := background(func() error { _, err := ses.Children(ctx, "/"); return err })
				time.Sleep(time.Second)
				synctest.Wait()
				require.Empty(t, wrote)
				require.Empty(t, read)
				require.Equal(t, tt.applied, get(t, other, "/n").Exists())
				reg.Drop()
				require.ErrorIs(t, <-wrote, registry.ErrUncertain)
				synctest.Wait()
				require.Empty(t, read)

				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := ses.Get(short, "/n")
				require.ErrorIs(t, err, registry.ErrUnavailable)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				_, err = ses.Commit(short, registry.Create("/m", nil))
				require.Equal(t, context.DeadlineExceeded, err)
				short, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err = ses.Commit(short, registry.Create("/m", nil))
				require.ErrorIs(t, err, registry.ErrUncertain)
				require.ErrorIs(t, err, context.DeadlineExceeded)

				heal()
				require.NoError(t, <-read)
				require.Equal(t, tt.applied, get(t, ses, "/m").Exists())
			})
		})
	}
}

func TestRefuse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		heal := reg.Refuse()
		_, err := ses.Commit(context.Background(), registry.Create("/n", nil))
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.NotErrorIs(t, err, registry.ErrUncertain)
		read := background(func() error { return ses.Sync(context.Background()) })
		synctest.Wait()
		require.Empty(t, read)
		heal()
		require.NoError(t, <-read)
		require.Empty(t, srv.Dump())
	})
}

// A commit that is uncertain because its session was lost says both.
func TestUncertainBySessionLoss(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		defer reg.LoseAnswers()()
		_, err := ses.Commit(context.Background(), registry.Create("/n", nil))
		require.ErrorIs(t, err, registry.ErrUncertain)
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.Equal(t, "/n \"\"\n", srv.Dump())
	})
}

// What reached a paused server is served when it resumes, in order, even if its
// author has given up; a restart forgets it.
func TestPauseServesLater(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *memory.Server) {
			ctx := context.Background()
			_, ses := dial(t, srv)
			resume := srv.Pause()
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := ses.Commit(short, registry.Create("/n", nil))
			require.ErrorIs(t, err, registry.ErrUncertain)
			waiting := background(func() error { _, err := ses.Commit(ctx, registry.Create("/n/m", nil)); return err })
			synctest.Wait()
			require.Empty(t, srv.Dump())
			if restart {
				srv.Restart()
				require.ErrorIs(t, <-waiting, registry.ErrUncertain)
				require.NoError(t, ses.Sync(ctx))
				require.Empty(t, srv.Dump())
			} else {
				resume()
				require.NoError(t, <-waiting)
				require.Equal(t, "/n \"\"\n/n/m \"\"\n", srv.Dump())
			}
			resume()
			require.NoError(t, ses.Sync(ctx))
		})
	}
}

// What arrives late at a paused server waits as everything does.
func TestAppliedLateWhilePaused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		doom(srv, memory.AppliedLate(time.Second))
		_, err := ses.Commit(context.Background(), registry.Create("/n", nil))
		require.ErrorIs(t, err, registry.ErrUncertain)
		resume := srv.Pause()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Empty(t, srv.Dump())
		resume()
		require.NotEmpty(t, srv.Dump())
	})
}

// An answer that was swallowed does not come when the fault is over.
func TestSwallowedAnswerNeverComes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		heal := srv.LoseAnswers()
		wrote := background(func() error { _, err := ses.Commit(context.Background(), registry.Create("/n", nil)); return err })
		synctest.Wait()
		heal()
		require.ErrorIs(t, <-wrote, registry.ErrUncertain)
	})
}

func TestRequestsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		ctx := context.Background()
		reg, ses := dial(t, srv)
		dial(t, srv)
		require.Equal(t, memory.Counts{Open: 2}, srv.Requests())
		srv.ResetRequests()
		reg.ResetRequests()
		_, err := ses.Get(ctx, "/a", "/b", "/c")
		require.NoError(t, err)
		_, err = ses.Children(ctx, "/")
		require.NoError(t, err)
		require.NoError(t, ses.Sync(ctx))
		commit(t, ses, registry.Create("/a", nil), registry.Create("/b", nil))
		w, err := ses.Watch(ctx)
		require.NoError(t, err)
		require.NoError(t, w.Add("/a", registry.Self))
		require.NoError(t, w.Add("/a", registry.Self))
		time.Sleep(timeout / 4)
		synctest.Wait()
		require.NoError(t, ses.Close(ctx))
		own := memory.Counts{Get: 1, Children: 1, Sync: 1, Commit: 1, WatchAdd: 1, Heartbeat: 1, Close: 1}
		require.Equal(t, own, reg.Requests())
		all := own
		all.Heartbeat = 2
		require.Equal(t, all, srv.Requests())
	})
}
