package latch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestCancelLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		lock := w.lock(w.session())
		ses := w.session()
		middle, last := w.begin(ses), w.begin(w.session())
		middle.cancel()
		require.True(t, middle.over())
		require.ErrorIs(t, middle.err, context.Canceled)
		require.NotContains(t, w.contenders(), ses.ID())
		require.False(t, last.over())
		release(t, lock)
		require.True(t, last.over())
		require.NoError(t, last.err)
	})
}

// The place of a canceled contender is removed as soon as the service answers.
func TestCancelWhileUnreachable(t *testing.T) {
	faults := map[string]func(*memory.Registry) func(){
		"refuse":   (*memory.Registry).Refuse,
		"requests": (*memory.Registry).LoseRequests,
		"answers":  (*memory.Registry).LoseAnswers,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w world) {
				w.lock(w.session())
				reg, ses := w.dial()
				a := w.begin(ses)
				heal := fault(reg)
				a.cancel()
				require.True(t, a.over())
				require.ErrorIs(t, a.err, context.Canceled)
				time.Sleep(3 * time.Second)
				heal()
				time.Sleep(time.Second)
				synctest.Wait()
				require.NotContains(t, w.contenders(), ses.ID())
				require.NoError(t, ses.Err())
			})
		})
	}
}

// A lock is waited for through an outage.
func TestOutageWhileLocking(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		reg, ses := w.dial()
		heal := reg.Refuse()
		a := w.begin(ses)
		time.Sleep(4 * time.Second)
		require.False(t, a.over())
		heal()
		<-a.done
		require.NoError(t, a.err)

		heal = reg.Refuse()
		defer heal()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := ses.Lock(ctx, "/other", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, registry.ErrUnavailable)
	})
}

// A contender whose session expires while it waits blocks nobody and never leads.
func TestExpiredWaiterNeverLeads(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		lock := w.lock(w.session())
		ses := w.session()
		expired, last := w.begin(ses), w.begin(w.session())
		require.True(t, w.Expire(ses.ID()))
		release(t, lock)
		require.True(t, last.over())
		require.NoError(t, last.err)
		<-expired.done
		require.ErrorIs(t, expired.err, registry.ErrSessionLost)
	})
}

// A contender whose node is deleted while it waits queues again, at the end.
func TestDeletedWaiterQueuesAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		root := w.session()
		lock := w.lock(w.session())
		ses := w.session()
		deleted, last := w.begin(ses), w.begin(w.session())
		names, err := root.Children(ctx, dir)
		require.NoError(t, err)
		for _, name := range names {
			nodes, err := root.Get(ctx, dir+"/"+name)
			require.NoError(t, err)
			if string(nodes[0].Value) == ses.ID() {
				_, err = root.Commit(ctx, registry.Delete(nodes[0].Path, registry.AnyVersion))
				require.NoError(t, err)
			}
		}
		synctest.Wait()
		require.Len(t, w.contenders(), 3)
		release(t, lock)
		require.True(t, last.over())
		require.False(t, deleted.over())
		release(t, last.lock)
		require.True(t, deleted.over())
		require.NoError(t, deleted.err)
	})
}

// When the directory vanishes with all who wait, it is made again.
func TestDirectoryVanishes(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		lock := w.lock(w.session())
		a, b := w.begin(w.session()), w.begin(w.session())
		require.NoError(t, registry.DeleteTree(context.Background(), w.session(), "/locks"))
		<-lock.Lost()
		require.NotEqual(t, a.over(), b.over())
		require.Len(t, w.contenders(), 2)
		for range 2 {
			if !a.over() {
				a, b = b, a
			}
			release(t, a.lock)
			a = b
		}
		require.Empty(t, w.contenders())
	})
}

func TestForeignChildrenAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		ses := w.session()
		require.NoError(t, registry.EnsurePath(ctx, ses, dir+"/someone"))
		_, err := ses.Commit(ctx, registry.CreateEphemeral(dir+"/a-lock-0000000001", nil))
		require.NoError(t, err)
		lock, err := ses.TryLock(ctx, dir, nil)
		require.NoError(t, err)
		release(t, lock)
	})
}

// Whatever becomes of the commits that make or delete a contender: the lock is
// taken, released, and at the end nothing of it is left or comes back.
func TestUnknownOutcomes(t *testing.T) {
	late := memory.AppliedLate(3 * time.Second)
	soon := memory.AppliedLate(time.Millisecond)
	tests := []struct {
		name  string
		kind  registry.OpKind
		fates []memory.Fate
	}{
		{"create answer lost", registry.OpCreateEphemeral, []memory.Fate{memory.AnswerLost}},
		{"create request lost", registry.OpCreateEphemeral, []memory.Fate{memory.RequestLost}},
		{"create refused", registry.OpCreateEphemeral, []memory.Fate{memory.Refused, memory.Refused, memory.Refused}},
		{"create late", registry.OpCreateEphemeral, []memory.Fate{late}},
		{"create late twice", registry.OpCreateEphemeral, []memory.Fate{late, late}},
		{"create soon", registry.OpCreateEphemeral, []memory.Fate{soon, memory.RequestLost, soon}},
		{"create mixed", registry.OpCreateEphemeral, []memory.Fate{late, memory.RequestLost, memory.Refused, memory.AnswerLost}},
		{"delete answer lost", registry.OpDelete, []memory.Fate{memory.AnswerLost}},
		{"delete request lost", registry.OpDelete, []memory.Fate{memory.RequestLost}},
		{"delete refused", registry.OpDelete, []memory.Fate{memory.Refused, memory.Refused, memory.Refused}},
		{"delete late", registry.OpDelete, []memory.Fate{late}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w world) {
				release(t, w.lock(w.session()))
				ses := w.session()
				w.fates(tt.kind, tt.fates...)
				lock := w.lock(ses)
				require.Len(t, w.contenders(), 1)
				require.True(t, held(t, ses, lock))
				next := w.begin(w.session())
				require.False(t, next.over())
				release(t, lock)
				<-next.done
				require.NoError(t, next.err)
				require.Greater(t, next.lock.Token(), lock.Token())
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.Len(t, w.contenders(), 1)
				require.False(t, closed(next.lock.Lost()))
				require.NoError(t, ses.Err())
			})
		})
	}
}

// A call that is canceled while its create is under way leaves nothing either,
// even when the create is applied later.
func TestCancelWhileCreating(t *testing.T) {
	for name, fate := range map[string]memory.Fate{
		"answer lost": memory.AnswerLost, "request lost": memory.RequestLost, "late": memory.AppliedLate(3 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			namedBubble(t, func(t *testing.T, w world) {
				release(t, w.lock(w.session()))
				reg, ses := w.dial()
				ctx, cancel := context.WithCancel(context.Background())
				attempts := 0
				w.Intercept(func(string, []registry.Op) memory.Fate {
					if attempts++; attempts == 1 {
						return fate
					}
					cancel() // before the second attempt is sent
					w.Intercept(nil)
					return memory.Deliver
				})
				_, err := ses.Lock(ctx, dir, nil)
				require.ErrorIs(t, err, context.Canceled)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.Empty(t, w.contenders())
				require.Equal(t, fate != memory.AnswerLost, reg.Requests().WatchAdd == 1)
				release(t, w.lock(w.session()))
			})
		})
	}
}

// Once settled, an unknown outcome costs nothing any more.
func TestSettledCreateIsNotWatched(t *testing.T) {
	namedBubble(t, func(t *testing.T, w world) {
		release(t, w.lock(w.session()))
		reg, ses := w.dial()
		w.fates(registry.OpCreateEphemeral, memory.AnswerLost)
		release(t, w.lock(ses))
		synctest.Wait()
		require.Equal(t, memory.Counts{Open: 1, Commit: 3, Children: 1, Get: 1, WatchAdd: 1}, reg.Requests())

		reg.ResetRequests()
		w.fates(registry.OpCreateEphemeral, memory.AppliedLate(time.Second))
		release(t, w.lock(ses))
		time.Sleep(1200 * time.Millisecond)
		require.Equal(t, memory.Counts{Commit: 4, Children: 1, Get: 1, WatchAdd: 2}, reg.Requests())
	})
}

// Somebody deletes the node of a lock whose create was uncertain, its owner never
// releases it, and then the create is applied: it blocks nobody.
func TestLateCreateAfterDeletion(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		release(t, w.lock(w.session()))
		ses, other := w.session(), w.session()
		w.fates(registry.OpCreateEphemeral, memory.AppliedLate(3*time.Second))
		lock := w.lock(ses)
		_, err := other.Commit(context.Background(), registry.Delete(lock.Path(), registry.AnyVersion))
		require.NoError(t, err)
		<-lock.Lost()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Empty(t, w.contenders())
	})
}

// Its node deleted and made again by a late create, a contender does not count on
// its old place.
func TestLateCreateWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		holder := w.lock(w.session())
		reg, ses := w.dial()
		w.fates(registry.OpCreateEphemeral, memory.AppliedLate(2*time.Second))
		waiter := w.begin(ses)
		heal := reg.LoseAnswers() // it learns nothing until both have happened
		other := w.session()
		names, err := other.Children(ctx, dir)
		require.NoError(t, err)
		for _, name := range names {
			if path := dir + "/" + name; path != holder.Path() {
				_, err := other.Commit(ctx, registry.Delete(path, registry.AnyVersion))
				require.NoError(t, err)
			}
		}
		between := w.begin(other)
		time.Sleep(3 * time.Second)
		require.Len(t, w.contenders(), 3)
		release(t, holder)
		heal()
		require.True(t, between.over())
		require.NoError(t, between.err)
		require.False(t, waiter.over())
		release(t, between.lock)
		<-waiter.done
		require.NoError(t, waiter.err)
		synctest.Wait()
		require.Len(t, w.contenders(), 1)
	})
}
