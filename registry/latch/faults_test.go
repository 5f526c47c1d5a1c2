package latch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
	"github.com/elasticron/elasticron/registry/memory"
)

// Many contenders under every fault: tokens rise in the order of guarded
// commits and nothing is left. The registry itself is the judge: each holder
// writes its token in one commit with its guard. Unless sessions are also ended
// behind their owners' backs, no two may believe in the lock at once either.
func TestContendersUnderFaults(t *testing.T) {
	for seed := range uint64(5) {
		for _, expire := range []bool{false, true} {
			t.Run(fmt.Sprintf("expire=%v/%d", expire, seed), func(t *testing.T) {
				bubble(t, func(t *testing.T, w world) { contend(t, &contest{world: w, expire: expire}, seed) })
			})
		}
	}
}

type contest struct {
	world
	expire          bool
	writes, holders atomic.Int64
}

func contend(t *testing.T, c *contest, seed uint64) {
	root := c.session()
	_, err := root.Commit(context.Background(), registry.Create("/record", []byte("0")))
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	fates := []memory.Fate{memory.AnswerLost, memory.RequestLost, memory.AppliedLate(2 * time.Second), memory.Refused}
	var commits atomic.Int64
	c.Intercept(func(string, []registry.Op) memory.Fate {
		if n := commits.Add(1); n%10 < 3 {
			return fates[int(n/10)%len(fates)]
		}
		return memory.Deliver
	})
	var work sync.WaitGroup
	for i := range uint64(8) {
		reg := c.Registry("test")
		defer reg.Close()
		var current atomic.Value
		work.Go(func() {
			random := rand.New(rand.NewPCG(seed, i))
			for ctx.Err() == nil {
				c.live(ctx, reg, random, &current)
			}
		})
		work.Go(func() { c.torment(ctx, reg, rand.New(rand.NewPCG(seed, 100+i)), &current) })
	}
	work.Wait()
	c.Intercept(nil)
	time.Sleep(timeout)
	synctest.Wait()
	require.Empty(t, c.contenders())
	require.Greater(t, c.writes.Load(), int64(50))
}

// live is one session that locks a few times.
func (c *contest) live(ctx context.Context, reg *memory.Registry, random *rand.Rand, current *atomic.Value) {
	ses, err := c.open(ctx, reg)
	if err != nil {
		return
	}
	defer func() { _ = ses.Close(ctx) }()
	current.Store(ses.ID())
	for range 5 {
		patience, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(10000))*time.Millisecond)
		lock, err := ses.Lock(patience, dir, []byte(ses.ID()))
		cancel()
		if err == nil {
			c.hold(ctx, ses, lock, time.Duration(random.IntN(500))*time.Millisecond)
		}
	}
}

func (c *contest) hold(ctx context.Context, ses registry.Session, lock registry.Lock, d time.Duration) {
	if n := c.holders.Add(1); n > 1 && !c.expire {
		c.t.Errorf("%d holders", n)
	}
	holding, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	c.record(holding, ses, lock)
	select {
	case <-holding.Done():
	case <-lock.Lost():
	}
	c.holders.Add(-1)
	release, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = lock.Release(release)
}

// record writes the token under the guard, and fails the test when a greater
// one is there.
func (c *contest) record(ctx context.Context, ses registry.Session, lock registry.Lock) {
	nodes, err := ses.Get(ctx, "/record")
	if err != nil {
		return
	}
	var last registry.Revision
	_, _ = fmt.Sscan(string(nodes[0].Value), &last)
	_, err = ses.Commit(ctx, lock.Guard(), registry.Set("/record", fmt.Append(nil, lock.Token()), nodes[0].Version))
	switch {
	case err == nil && lock.Token() <= last:
		c.t.Errorf("token %d after %d", lock.Token(), last)
	case err == nil:
		c.writes.Add(1)
	case errors.Is(err, registry.ErrVersion):
		c.t.Error("somebody wrote while the guard passed")
	}
}

func (c *contest) torment(ctx context.Context, reg *memory.Registry, random *rand.Rand, current *atomic.Value) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(random.IntN(10000)) * time.Millisecond)
		heal := []func() func(){reg.Refuse, reg.LoseRequests, reg.LoseAnswers, c.Pause}[random.IntN(4)]()
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		heal()
		switch id, _ := current.Load().(string); random.IntN(5) {
		case 0:
			c.Restart()
		case 1:
			reg.Drop()
		case 2:
			if c.expire {
				c.Expire(id)
			}
		}
	}
}

// A session whose Get is preceded by something.
type interrupted struct {
	registry.Session
	before func(paths []string)
}

func (i interrupted) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	i.before(paths)
	return i.Session.Get(ctx, paths...)
}

// A contender that is deleted before it has read itself does not lead either, nor by what somebody else makes there.
func TestNoPhantom(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("again=%v", again), func(t *testing.T) {
			bubble(t, func(t *testing.T, w world) { noPhantom(t, w, again) })
		})
	}
}

func noPhantom(t *testing.T, w world, again bool) {
	ctx := context.Background()
	release(t, w.lock(w.session()))
	ses, other := w.session(), w.session()
	commit := func(ops ...registry.Op) {
		_, err := other.Commit(ctx, ops...)
		require.NoError(t, err)
	}
	var first string
	reads := 0
	delay := interrupted{ses, func(paths []string) {
		switch reads++; {
		case reads == 1:
			first = paths[0]
			commit(registry.Delete(first, registry.AnyVersion))
			if again {
				commit(registry.Create(first, nil))
			}
		case reads == 2 && again:
			commit(registry.Delete(first, registry.AnyVersion)) // else it is waited for
		}
	}}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	running, end := context.WithCancel(ctx)
	defer end()
	var opts []latch.Option
	if form, ok := ses.(latch.Form); ok {
		opts = append(opts, latch.WithForm(form))
	}
	lock, err := latch.Acquire(ctx, delay, dir, nil, false, func(fn func(context.Context)) { tasks.Go(func() { fn(running) }) }, opts...)
	require.NoError(t, err)
	require.GreaterOrEqual(t, reads, 2)
	require.NotEqual(t, first, lock.Path())
	require.True(t, held(t, other, lock))
	release(t, lock)
}
