package polled_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

// slowly lets an answer take a second.
func slowly(context.Context, string) error {
	<-time.After(time.Second)
	return nil
}

func TestDeadlineCountsFromTheSendTime(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		l.disturb(nil, slowly)
		sent := time.Now()
		ses, err := reg.Open(t.Context())
		require.NoError(t, err)
		require.Equal(t, sent.Add(timeout*9/10), ses.Deadline())
		opened := time.Now()
		elapse(poll + time.Second)
		require.Equal(t, opened.Add(poll+timeout*9/10), ses.Deadline(), "the first heartbeat was sent a poll after Open")
		l.disturb(nil, nil)
	})
}

func TestAnHourOfHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		w, err := ses.Watch(t.Context())
		require.NoError(t, err)
		for i := range 100 {
			require.NoError(t, w.Add("/"+string(rune('a'+i%26))+"/x", registry.Scope(i%2)))
		}
		_, err = w.Next(t.Context())
		require.NoError(t, err)
		elapse(poll) // the first heartbeat tells a revision
		l.counts()
		for range 60 {
			elapse(time.Minute)
			require.True(t, time.Now().Before(ses.Deadline()))
		}
		polls := int(time.Hour / poll)
		require.Equal(t, map[string]int{"beat": polls, "sessions": polls}, l.counts(), "an idle session asks this and nothing else")
		require.NoError(t, ses.Err())
		require.True(t, has(t, db, "/e"))
	})
}

func TestDoneBeforeDeadlineWhenCutOff(t *testing.T) {
	for name, cut := range map[string]func(*line){
		"requests swallowed": func(l *line) { l.disturb(hang, nil) },
		"answers swallowed":  func(l *line) { l.disturb(nil, hang) },
		"refused":            func(l *line) { l.disturb(refuse, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, db *ram.Database) {
				ses, l := open(t, db)
				commit(t, ses, registry.CreateEphemeral("/e", nil))
				cut(l)
				deadline := ses.Deadline()
				<-ses.Done()
				require.Equal(t, deadline, ses.Deadline())
				require.Equal(t, timeout/50, time.Until(deadline), "a timer may be late, Done may not")
				require.ErrorIs(t, ses.Err(), registry.ErrSessionLost)
				require.ErrorContains(t, ses.Err(), "ram: session lost: session "+ses.ID()+": no heartbeat was acknowledged in time")
				require.True(t, has(t, db, "/e"), "it is others that end it")
				l.disturb(nil, nil)
				require.NoError(t, ses.Close(t.Context()))
				require.False(t, has(t, db, "/e"))
			})
		})
	}
}

func TestABlipKeepsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		_, _ = open(t, db) // which would end it
		for _, disturbance := range []func(context.Context, string) error{hang, refuse} {
			before := ses.Deadline()
			l.disturb(disturbance, nil)
			elapse(timeout / 3)
			l.disturb(nil, nil)
			elapse(timeout / 2)
			require.True(t, ses.Deadline().After(before))
			require.NoError(t, ses.Err())
		}
	})
}

// A silent session is ended a timeout after its counter was seen to stand, by its
// own timeout and not that of who looks.
func TestSilentSessionsAreEnded(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		const other = 3 * time.Second
		raw, begun := db.Store(), time.Now()
		require.NoError(t, raw.Begin(t.Context(), "other", other))
		_, err := raw.Commit(t.Context(), "other", []registry.Op{registry.CreateEphemeral("/e", nil)})
		require.NoError(t, err)
		ses, _ := open(t, db)
		w, err := ses.Watch(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Add("/e", registry.Self))
		_, err = w.Next(t.Context())
		require.NoError(t, err)
		elapse(poll + other)
		require.True(t, has(t, db, "/e"), "it was seen first a poll ago")
		events, err := w.Next(soon(t))
		require.NoError(t, err)
		require.False(t, events[0].Node.Exists())
		require.Equal(t, other+2*poll, time.Since(begun), "who ends a session looks at once")
		require.False(t, has(t, db, "/e"))
		_, err = raw.Beat(t.Context(), "other")
		require.ErrorIs(t, err, registry.ErrSessionLost)
	})
}

func TestAHeartbeatInTimeSavesASession(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		raw := db.Store()
		require.NoError(t, raw.Begin(t.Context(), "other", time.Second))
		_, l := open(t, db)
		saved := 0
		l.disturb(only("end", func(ctx context.Context, _ string) error { // it comes just before the end
			saved++
			_, err := raw.Beat(ctx, "other")
			return err
		}), nil)
		elapse(timeout)
		require.Greater(t, saved, 3)
		_, err := raw.Beat(t.Context(), "other")
		require.NoError(t, err)
		l.disturb(nil, nil)
	})
}

func TestASessionThatOthersEndedIsLost(t *testing.T) {
	for name, notice := range map[string]func(registry.Session){
		"by a heartbeat": func(ses registry.Session) { <-ses.Done() },
		"by a commit": func(ses registry.Session) {
			_, err := ses.Commit(context.Background(), registry.Create("/a", nil))
			require.ErrorIs(t, err, registry.ErrSessionLost)
			require.NotErrorIs(t, err, registry.ErrUncertain)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, db *ram.Database) {
				ses, l := open(t, db)
				require.NoError(t, db.Store().End(t.Context(), ses.ID(), polled.AnyBeat))
				before := time.Now()
				notice(ses)
				synctest.Wait()
				require.True(t, isDone(ses))
				require.LessOrEqual(t, time.Since(before), poll)
				l.counts()
				_, err := ses.Get(t.Context(), "/a")
				require.ErrorIs(t, err, registry.ErrSessionLost)
				_, err = ses.Commit(t.Context(), registry.Create("/a", nil))
				require.ErrorIs(t, err, registry.ErrSessionLost)
				_, err = ses.Watch(t.Context())
				require.ErrorIs(t, err, registry.ErrSessionLost)
				require.ErrorIs(t, ses.Sync(t.Context()), registry.ErrSessionLost)
				require.Empty(t, l.counts(), "nothing is sent for a dead session")
			})
		})
	}
}

func TestCloseTriesAlsoWithoutTime(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, _ := open(t, db)
		commit(t, ses, registry.CreateEphemeral("/e", nil))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, ses.Close(ctx))
		require.NoError(t, ses.Close(ctx), "again")
		require.False(t, has(t, db, "/e"))
		require.ErrorIs(t, ses.Err(), registry.ErrSessionLost)
	})
}

func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		l.disturb(hang, nil)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := ses.Close(ctx)
		require.ErrorContains(t, err, "its nodes vanish when it expires")
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.Equal(t, 3*time.Second, time.Since(start))
		start = time.Now()
		other, _ := open(t, db)
		require.NoError(t, other.Close(t.Context()))
		require.Zero(t, time.Since(start))
		l.disturb(nil, nil)
	})
}
