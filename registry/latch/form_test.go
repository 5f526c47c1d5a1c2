package latch_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// requests makes ses count what it is asked for.
func requests(ses *numbered) map[string]int {
	seen := map[string]int{}
	ses.before = func(request string) { seen[request]++ }
	return seen
}

// Where the numbers tell the order, nobody reads the others' nodes: a wait
// costs one target, a wake one list and a look at the own node.
func TestNumberedRequests(t *testing.T) {
	numberedBubble(t, func(t *testing.T, w world) {
		release(t, w.lock(w.session())) // makes the directory
		ses := w.session().(*numbered)
		seen := requests(ses)
		lock := w.lock(ses)
		synctest.Wait()
		require.Equal(t, map[string]int{"join": 1, "children": 1, "get": 1, "watch self": 1}, seen)
		clear(seen)
		release(t, lock)
		require.Equal(t, map[string]int{"commit": 1}, seen)
		for range 5 {
			w.begin(w.session())
		}
		clear(seen)
		last := w.begin(ses)
		require.Equal(t, map[string]int{"join": 1, "children": 1, "get": 1, "watch self": 1, "watch until gone": 1}, seen)
		clear(seen)
		time.Sleep(time.Hour)
		require.Empty(t, seen)
		last.cancel()
		<-last.done
	})
}

func TestNumberedWake(t *testing.T) {
	numberedBubble(t, func(t *testing.T, w world) {
		lock := w.lock(w.session())
		ses := w.session().(*numbered)
		waiter := w.begin(ses)
		behind := w.session().(*numbered)
		w.begin(behind)
		seen, unseen := requests(ses), requests(behind)
		release(t, lock)
		require.True(t, waiter.over())
		require.NoError(t, waiter.err)
		require.Equal(t, map[string]int{"children": 1, "get": 1}, seen)
		require.Empty(t, unseen)
	})
}

// An attempt of unknown outcome is applied after all, before the one that was
// answered; somebody has queued up between the two. The contender's place is
// the first of its own, and it does not wait for itself. It leaves both.
func TestOwnNodeAhead(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, registry.Session, registry.Lock){
		"released": func(t *testing.T, _ registry.Session, lock registry.Lock) { release(t, lock) },
		"deleted": func(t *testing.T, other registry.Session, lock registry.Lock) {
			_, err := other.Commit(context.Background(), registry.Delete(lock.Path(), registry.AnyVersion))
			require.NoError(t, err)
			<-lock.Lost()
		},
	} {
		t.Run(name, func(t *testing.T) {
			numberedBubble(t, func(t *testing.T, w world) {
				release(t, w.lock(w.session()))
				ses, other := w.session().(*numbered), w.session()
				w.fates(registry.OpCreateEphemeral, memory.AppliedLate(5*time.Millisecond))
				var between *attempt
				joins := 0
				ses.before = func(request string) {
					if request != "join" {
						return
					}
					if joins++; joins == 2 {
						time.Sleep(10 * time.Millisecond)
						between = w.begin(other)
					}
				}
				lock := w.lock(ses)
				require.Equal(t, 2, joins)
				require.Len(t, w.contenders(), 3)
				require.False(t, between.over())
				require.True(t, held(t, other, lock))
				leave(t, other, lock)
				require.True(t, between.over())
				require.NoError(t, between.err)
				synctest.Wait()
				require.Len(t, w.contenders(), 1)
			})
		})
	}
}

// A node of an old attempt stands behind the one that counts, which somebody
// deletes: both are out of the queue.
func TestOwnNodeBehind(t *testing.T) {
	numberedBubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		release(t, w.lock(w.session()))
		ses, other := w.session(), w.session()
		w.fates(registry.OpCreateEphemeral, memory.AppliedLate(3*time.Second))
		lock := w.lock(ses)
		time.Sleep(4 * time.Second)
		require.Len(t, w.contenders(), 2)
		require.True(t, held(t, other, lock))
		waiter := w.begin(other)
		require.False(t, waiter.over())
		_, err := other.Commit(ctx, registry.Delete(lock.Path(), registry.AnyVersion))
		require.NoError(t, err)
		<-lock.Lost()
		require.True(t, waiter.over())
		require.NoError(t, waiter.err)
		require.Len(t, w.contenders(), 1)
	})
}

// A call that is canceled before it could look whether its create was applied
// leaves nothing, whenever that is.
func TestCancelBeforeLooking(t *testing.T) {
	for name, fate := range map[string]memory.Fate{
		"answer lost": memory.AnswerLost, "request lost": memory.RequestLost, "late": memory.AppliedLate(3 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			numberedBubble(t, func(t *testing.T, w world) {
				release(t, w.lock(w.session()))
				ses := w.session().(*numbered)
				w.fates(registry.OpCreateEphemeral, fate)
				ctx, cancel := context.WithCancel(context.Background())
				ses.before = func(request string) {
					if request == "sync" {
						cancel()
					}
				}
				_, err := ses.Lock(ctx, dir, nil)
				require.ErrorIs(t, err, context.Canceled)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.Empty(t, w.contenders())
				release(t, w.lock(w.session()))
			})
		})
	}
}

// A node that a look has found is accounted for, and where a look settles all, so is
// one that it has not found: nothing is watched afterwards.
func TestSettled(t *testing.T) {
	for _, tt := range []struct {
		name    string
		settles bool
		fate    memory.Fate
		joins   int
	}{
		{"found", false, memory.AnswerLost, 1},
		{"found where looks settle", true, memory.AnswerLost, 1},
		{"not found where looks settle", true, memory.RequestLost, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			numberedBubble(t, func(t *testing.T, w world) {
				w.numbers.settles = tt.settles
				release(t, w.lock(w.session()))
				ses := w.session().(*numbered)
				w.fates(registry.OpCreateEphemeral, tt.fate)
				seen := requests(ses)
				release(t, w.lock(ses))
				synctest.Wait()
				require.Equal(t, map[string]int{"join": tt.joins, "sync": 1, "children": 2, "get": 1, "watch self": 1, "commit": 1}, seen)
				require.Empty(t, w.contenders())
			})
		})
	}
}

// The same for a call that was canceled before it could look.
func TestSettledAfterCancel(t *testing.T) {
	for fate, commits := range map[memory.Fate]int{memory.AnswerLost: 1, memory.RequestLost: 0} {
		numberedBubble(t, func(t *testing.T, w world) {
			w.numbers.settles = true
			release(t, w.lock(w.session()))
			ses := w.session().(*numbered)
			w.fates(registry.OpCreateEphemeral, fate)
			ctx, cancel := context.WithCancel(context.Background())
			seen := map[string]int{}
			ses.before = func(request string) {
				if seen[request]++; request == "sync" {
					cancel()
				}
			}
			_, err := ses.Lock(ctx, dir, nil)
			require.ErrorIs(t, err, context.Canceled)
			synctest.Wait()
			require.Equal(t, commits, seen["commit"])
			delete(seen, "commit")
			require.Equal(t, map[string]int{"join": 1, "sync": 2, "children": 1}, seen)
			require.Empty(t, w.contenders())
		})
	}
}

// An empty directory may vanish at any time, as a container of ZooKeeper's does.
func TestDirectoryVanishesWhileJoining(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		other, ses := w.session(), w.session()
		vanished := 0
		w.Intercept(func(_ string, ops []registry.Op) memory.Fate {
			if ops[0].Kind == registry.OpCreateEphemeral && vanished < 3 {
				vanished++
				require.NoError(t, registry.EnsurePath(ctx, other, dir))
				require.NoError(t, registry.DeleteTree(ctx, other, "/locks"))
			}
			return memory.Deliver
		})
		lock := w.lock(ses)
		require.Equal(t, 3, vanished)
		next := w.begin(other)
		release(t, lock)
		require.True(t, next.over())
		require.NoError(t, next.err)
		release(t, next.lock)
	})
}

// When the service's numbers have run out there is no order any more: everybody
// is told, nobody gets the lock, and nobody stays in the queue.
func TestNumbersRunOut(t *testing.T) {
	for name, offset := range map[string]registry.Revision{"stuck": math.MaxInt32 - 3, "wrapped": -1 << 31} {
		t.Run(name, func(t *testing.T) {
			numberedBubble(t, func(t *testing.T, w world) {
				ctx := context.Background()
				ses := w.session()
				require.NoError(t, registry.EnsurePath(ctx, ses, dir)) // revision 2
				w.numbers.offset = offset
				_, err := ses.Lock(ctx, dir, nil)
				require.ErrorIs(t, err, errRunOut)
				require.ErrorContains(t, err, dir)
				synctest.Wait()
				require.Empty(t, w.contenders())
			})
		})
	}
}

// The node of somebody else shows it too, to who waits already as well.
func TestNumbersOfOthersRunOut(t *testing.T) {
	numberedBubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		other := w.session()
		lock := w.lock(other)
		waiter := w.begin(w.session())
		_, err := other.Commit(ctx, registry.CreateEphemeral(dir+"/_c_x-latch--2147483648", nil))
		require.NoError(t, err)
		for _, acquire := range []func(context.Context, string, []byte) (registry.Lock, error){other.Lock, other.TryLock} {
			_, err = acquire(ctx, dir, nil)
			require.ErrorIs(t, err, errRunOut)
		}
		require.False(t, waiter.over())
		release(t, lock)
		require.True(t, waiter.over())
		require.ErrorIs(t, waiter.err, errRunOut)
		synctest.Wait()
		require.Len(t, w.contenders(), 1)
	})
}

// What a form refuses comes back at once, and nothing is left.
func TestJoinRefused(t *testing.T) {
	numberedBubble(t, func(t *testing.T, w world) {
		ses := w.session()
		_, err := ses.Commit(context.Background(), registry.CreateEphemeral("/e", nil))
		require.NoError(t, err)
		_, err = ses.Lock(context.Background(), "/e", nil)
		var refused *registry.CommitError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, registry.ErrEphemeralParent)
	})
}
