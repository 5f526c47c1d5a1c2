package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/memory"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// A bed is a registry service on which jobs run, and an Admin beside them.
type bed struct {
	*testing.T
	*admin.Admin
	client func() registry.Registry
	store  *unsure
	poll   time.Duration
	expire func(session string) bool // in a bubble
	began  []*instance
}

const sessionTimeout = harness.SessionTimeout

// inBubble runs a test on memory in fake time.
func inBubble(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{SessionTimeout: sessionTimeout})
		b := &bed{
			T: t, client: func() registry.Registry { return srv.Registry("shop") }, poll: 100 * time.Millisecond, expire: srv.Expire,
		}
		b.open()
		test(b)
	})
}

// chroots counts those of the tests on ZooKeeper, whose server they share.
var chroots atomic.Int64

// onEach runs a test on memory, etcd and ZooKeeper.
func onEach(t *testing.T, test func(b *bed)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { inBubble(t, test) })
	t.Run("etcd", func(t *testing.T) {
		cluster := testbed.StartEtcd(t, testbed.Options{})
		b := &bed{T: t, poll: 5 * time.Millisecond, client: func() registry.Registry {
			c := cluster.Client()
			reg, err := etcd.Open(t.Context(), etcd.Config{
				Endpoints: c.Endpoints(), Namespace: "shop", SessionTimeout: sessionTimeout, DialOptions: c.DialOptions(),
			})
			require.NoError(t, err)
			return reg
		}}
		b.open()
		test(b)
	})
	t.Run("zookeeper", func(t *testing.T) {
		server := testbed.SharedZooKeeper(t)
		chroot := fmt.Sprintf("/admin-%d-%d", os.Getpid(), chroots.Add(1))
		b := &bed{T: t, poll: 5 * time.Millisecond, client: func() registry.Registry {
			reg, err := zookeeper.Open(t.Context(), zookeeper.Config{
				Servers: server.Client().Addrs(), Namespace: "shop", SessionTimeout: sessionTimeout,
				Chroot: chroot,
			})
			require.NoError(t, err)
			return reg
		}}
		b.open()
		test(b)
	})
}

// open opens the Admin's store.
func (b *bed) open() {
	b.Helper()
	reg := b.client()
	store, err := reg.OpenStore(b.Context())
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, store.Close(context.Background()))
		require.NoError(b, reg.Close())
	})
	b.store = &unsure{Store: store}
	b.Admin, err = admin.New(b.store, reg.Namespace())
	require.NoError(b, err)
}

// An unsure store lets a test act before a commit, lose its answer, and be shown what is no more.
type unsure struct {
	registry.Store
	mu     sync.Mutex
	before func(ops []registry.Op)
	lose   func(ops []registry.Op) bool // the answer: the commit is applied
	drop   func(ops []registry.Op) bool // the commit
	stale  map[string]registry.Node     // what reads show, by path
}

func (u *unsure) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	nodes, err := u.Store.Get(ctx, paths...)
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, n := range nodes {
		if stale, is := u.stale[n.Path]; is {
			nodes[i] = stale
		}
	}
	return nodes, err
}

// show has reads show nodes as they were.
func (u *unsure) show(nodes ...registry.Node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stale = map[string]registry.Node{}
	for _, n := range nodes {
		u.stale[n.Path] = n
	}
}

func (u *unsure) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	u.mu.Lock()
	before, lose, drop := u.before, u.lose, u.drop
	u.mu.Unlock()
	if before != nil {
		before(ops)
	}
	if drop != nil && drop(ops) {
		return 0, fmt.Errorf("by the test: %w", registry.ErrUncertain)
	}
	rev, err := u.Store.Commit(ctx, ops...)
	if lose != nil && lose(ops) {
		return 0, fmt.Errorf("by the test: %w", registry.ErrUncertain)
	}
	return rev, err
}

// once returns true the first time.
func once() func([]registry.Op) bool {
	var mu sync.Mutex
	done := false
	return func([]registry.Op) bool {
		mu.Lock()
		defer mu.Unlock()
		was := done
		done = true
		return !was
	}
}

// put makes or replaces a node and the parents that it lacks.
func (b *bed) put(p, value string) {
	b.Helper()
	require.NoError(b, registry.EnsurePath(b.Context(), b.store.Store, p))
	_, err := b.store.Store.Commit(b.Context(), registry.Set(p, []byte(value), registry.AnyVersion))
	require.NoError(b, err)
}

func (b *bed) get(p string) registry.Node {
	b.Helper()
	nodes, err := b.store.Get(b.Context(), p)
	require.NoError(b, err)
	return nodes[0]
}

func (b *bed) remove(p string) {
	b.Helper()
	_, err := b.store.Store.Commit(b.Context(), registry.Delete(p, registry.AnyVersion))
	if !errors.Is(err, registry.ErrNotFound) {
		require.NoError(b, err)
	}
}

// until waits for cond, by polling, for at most 30 s.
func (b *bed) until(what string, cond func() bool) {
	b.Helper()
	settled := func() bool {
		if b.expire != nil { // in a bubble: all that belongs to this instant has happened
			synctest.Wait()
		}
		return cond()
	}
	for deadline := time.Now().Add(30 * time.Second); !settled(); {
		if time.Now().After(deadline) {
			for _, in := range b.began {
				b.Log(in.says())
			}
			require.FailNow(b, "still not: "+what)
		}
		pause(b.poll)
	}
}

// pause is the interval of bounded polling, and fake time in a bubble.
func pause(d time.Duration) { <-time.After(d) }

// An instance is a scheduler with one job, as somebody else runs it.
type instance struct {
	*core.Scheduler
	mu   sync.Mutex
	ran  []core.Shard
	seen []event.Event
	hold func(ctx context.Context, s core.Shard) error
}

// What runs at once does not depend on the processors of the machine.
var everySecond = core.JobConfig{Name: "hello", Cron: "* * * * * ?", TimeZone: "UTC", Shards: 4, Concurrency: 4}

func (b *bed) start(name, ip string, cfg core.JobConfig, opts ...core.Option) *instance {
	b.Helper()
	in := b.prepare(name, ip, cfg, opts...)
	require.NoError(b, in.Start(b.Context()))
	b.began = append(b.began, in)
	return in
}

func (b *bed) prepare(name, ip string, cfg core.JobConfig, opts ...core.Option) *instance {
	b.Helper()
	reg, in := b.client(), &instance{}
	in.Scheduler = core.New(reg, append(opts, core.WithInstanceName(name), core.WithIP(ip), core.WithLogger(nil), core.WithListener(func(e event.Event) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.seen = append(in.seen, e)
	}))...)
	require.NoError(b, in.Add(core.JobFunc(in.run), cfg))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(b, in.Stop(ctx))
		require.NoError(b, reg.Close())
	})
	return in
}

func (in *instance) run(ctx context.Context, s core.Shard) error {
	in.mu.Lock()
	in.ran = append(in.ran, s)
	hold := in.hold
	in.mu.Unlock()
	if hold != nil {
		return hold(ctx, s)
	}
	return nil
}

// says is what the instance says of itself, for whom a test failed.
func (in *instance) says() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return fmt.Sprintf("%+v; %d runs; told first: %+v", in.State(), len(in.ran), in.seen[:min(10, len(in.seen))])
}

func (in *instance) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.ran)
}

func (in *instance) onRun(f func(ctx context.Context, s core.Shard) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hold = f
}

// told is an event that the instance told and that f wants, and whether there is one.
func told[E event.Event](in *instance, f func(E) bool) (E, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, e := range in.seen {
		if e, ok := e.(E); ok && f(e) {
			return e, true
		}
	}
	var none E
	return none, false
}

func (in *instance) job() core.JobState { return in.State().Jobs[0] }

func (in *instance) id() string { return in.job().Instance }

// stop stops it as its program would.
func (in *instance) stop(b *bed) {
	b.Helper()
	require.NoError(b, in.Stop(b.Context()))
}

// spread reports whether each instance owns as many items as it should.
func spread(counts map[*instance]int) bool {
	for in, n := range counts {
		if len(in.job().Items) != n {
			return false
		}
	}
	return true
}

// fires waits until an instance has run something more.
func (b *bed) fires(in *instance) {
	b.Helper()
	ran := in.count()
	b.until("it fires", func() bool { return in.count() >= ran+4 })
}

// rests waits until nothing that had begun is left, and sees that nothing begins.
func (b *bed) rests(in *instance) {
	b.Helper()
	pause(1200 * time.Millisecond)
	ran := in.count()
	pause(3 * time.Second)
	require.Equal(b, ran, in.count(), "something begins")
}

func lines(report admin.Report) string {
	var out strings.Builder
	for _, l := range report.Leftovers {
		fmt.Fprintf(&out, "%s %s", l.Kind, l.Path)
		switch {
		case l.Deleted:
			out.WriteString(" deleted")
		case l.Kept != "":
			out.WriteString(" kept: " + l.Kept)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
