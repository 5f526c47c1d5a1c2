package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A counter that many sessions raise by compare-and-set loses nothing, and
// watchers end where it ends, whatever happens to connections.
func TestStressCounterAndWatchers(t *testing.T) {
	const sessions, rounds = 8, 50
	ctx := context.Background()
	srv := memory.NewServer(memory.Config{})
	_, first := dial(t, srv)
	commit(t, first, registry.Create("/n", []byte("0")), registry.Create("/done", nil))
	var work, follow sync.WaitGroup
	for i := range sessions {
		reg, ses := dial(t, srv)
		w := watch(t, ses)
		require.NoError(t, w.Add("/n", registry.Self))
		require.NoError(t, w.Add("/", registry.Children))
		follow.Go(func() { untilValue(t, w, sessions*rounds) })
		work.Go(func() {
			for n := range rounds {
				raise(ctx, t, ses, fmt.Sprintf("/done/%d-%d", i, n))
			}
		})
		work.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range rounds {
				disturb(srv, reg, random)
			}
		})
	}
	work.Wait()
	require.Equal(t, strconv.Itoa(sessions*rounds), string(get(t, first, "/n").Value))
	follow.Wait()
}

// raise adds 1, once: a commit of unknown outcome is repeated until its receipt exists.
func raise(ctx context.Context, t testing.TB, ses registry.Session, receipt string) {
	for {
		nodes, err := ses.Get(ctx, "/n")
		if err != nil {
			t.Error(err)
			return
		}
		n, _ := strconv.Atoi(string(nodes[0].Value))
		_, err = ses.Commit(ctx, registry.Create(receipt, nil), registry.Set("/n", fmt.Append(nil, n+1), nodes[0].Version))
		switch {
		case err == nil, errors.Is(err, registry.ErrExists):
			return
		case errors.Is(err, registry.ErrVersion), errors.Is(err, registry.ErrUncertain), errors.Is(err, registry.ErrUnavailable):
		default:
			t.Error(err)
			return
		}
	}
}

func disturb(srv *memory.Server, reg *memory.Registry, random *rand.Rand) {
	heal := []func() func(){reg.Refuse, reg.LoseRequests, reg.LoseAnswers, srv.Pause}[random.IntN(4)]()
	runtime.Gosched()
	reg.Drop()
	heal()
}

// untilValue follows /n in both scopes until each has delivered want.
func untilValue(t testing.TB, w registry.Watcher, want int) {
	last := map[registry.Scope]registry.Revision{}
	reached := map[registry.Scope]bool{}
	for len(reached) < 2 {
		events, err := w.Next(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		for _, ev := range events {
			if ev.Synced || ev.Node.Path != "/n" {
				continue
			}
			if ev.Node.Modified <= last[ev.Scope] {
				t.Errorf("went from revision %d to %d", last[ev.Scope], ev.Node.Modified)
			}
			last[ev.Scope] = ev.Node.Modified
			if string(ev.Node.Value) == strconv.Itoa(want) {
				reached[ev.Scope] = true
			}
		}
	}
}

// Sessions come, go, expire and lock while the server suffers everything: in
// the end nothing is left of them, and nobody's Done was late.
func TestStressLives(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T, srv *memory.Server) {
			ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
			defer stop()
			var workers sync.WaitGroup
			for i := range 10 {
				reg := srv.Registry("test")
				defer reg.Close()
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				workers.Go(func() {
					for ctx.Err() == nil {
						live(ctx, t, reg, random)
					}
				})
			}
			workers.Go(func() { torment(ctx, srv, rand.New(rand.NewPCG(seed, 99))) })
			workers.Wait()
			time.Sleep(timeout)
			synctest.Wait()
			require.NotContains(t, srv.Dump(), " E ")
		})
	}
}

// live is one session with a lock and an ephemeral node.
func live(ctx context.Context, t *testing.T, reg *memory.Registry, random *rand.Rand) {
	ses, err := reg.Open(ctx)
	if err != nil {
		return
	}
	defer func() { _ = ses.Close(ctx) }()
	defer func() {
		if isDone(ses) {
			return
		}
		if time.Now().After(ses.Deadline()) {
			t.Error("alive after its deadline")
		}
	}()
	_, _ = ses.Commit(ctx, registry.CreateEphemeral("/"+ses.ID(), nil))
	lock, err := ses.Lock(ctx, "/locks/one", []byte(ses.ID()))
	if err != nil {
		return
	}
	select {
	case <-time.After(time.Duration(random.IntN(3000)) * time.Millisecond):
	case <-lock.Lost():
	}
	_, _ = ses.Commit(ctx, lock.Guard())
	_ = lock.Release(ctx)
}

func torment(ctx context.Context, srv *memory.Server, random *rand.Rand) {
	fates := []memory.Fate{memory.AnswerLost, memory.RequestLost, memory.AppliedLate(time.Second), memory.Refused}
	var commits atomic.Int64
	srv.Intercept(func(string, []registry.Op) memory.Fate {
		if n := commits.Add(1); n%5 < 2 {
			return fates[int(n/5)%len(fates)]
		}
		return memory.Deliver
	})
	defer srv.Intercept(nil)
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		fault := []func() func(){srv.Refuse, srv.LoseRequests, srv.LoseAnswers, srv.Pause}[random.IntN(4)]
		heal := fault()
		time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		heal()
		srv.Expire(fmt.Sprintf("session-%d", random.IntN(100)))
		if random.IntN(4) == 0 {
			srv.Restart()
		}
	}
}
