package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// electionLatch is where ElasticJob has one of its latches.
const electionLatch = "/shop/hello/leader/election/latch"

// Curator's LeaderLatch and our locks are one queue.
func TestCurator(t *testing.T) {
	for _, version := range []string{curatorVersion, elasticJobCurator} {
		t.Run(version, func(t *testing.T) {
			classPath := needCurator(t, version)
			bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{})
			for name, test := range map[string]func(*contest){
				"Order": testOrder, "Exclusion": testExclusion,
				"JavaHolderCrashes": testJavaHolderCrashes, "JavaWaiterCrashes": testJavaWaiterCrashes,
				"HolderExpires": testHolderExpires, "HolderCutOff": testHolderCutOff, "WaiterExpires": testWaiterExpires,
				"Containers": testContainers, "ContainerVanishes": testContainerVanishes,
			} {
				t.Run(name, func(t *testing.T) { test(newContest(t, bed, classPath)) })
			}
		})
	}
}

// A contest is a latch that both sides contend for.
type contest struct {
	t         *testing.T
	bed       *testbed.ZooKeeper
	classPath string
	reg       *zookeeper.Registry
	onlooker  registry.Session
	dir       string
	members   []*member // that are in the queue, in the order in which they joined
	number    int       // of members so far
}

func newContest(t *testing.T, bed *testbed.ZooKeeper, classPath string) *contest {
	reg, _ := connect(t, bed)
	return &contest{t: t, bed: bed, classPath: classPath, reg: reg, onlooker: session(t, reg), dir: electionLatch}
}

// jvm starts a process with a client of its own, below the test's chroot.
func (c *contest) jvm() *jvm {
	c.t.Helper()
	return startJVM(c.t, c.classPath, c.bed.Client().Addrs()[0]+"/"+c.t.Name())
}

// A member has joined the queue.
type member struct {
	id      string
	leads   func() bool
	await   func() registry.Revision // until it leads; Created of its node
	release func()
}

// java lets a process join with one more latch.
func (c *contest) java(j *jvm) *member {
	c.t.Helper()
	id := fmt.Sprintf("java-%d", c.number)
	j.do("latch", id, c.dir, id)
	return c.joined(&member{
		id:    id,
		leads: func() bool { return j.do("has", id) == "true" },
		await: func() registry.Revision {
			c.t.Helper()
			j.expect(id + " leads")
			nodes, err := c.onlooker.Get(within(c.t, answerTime), j.do("node", id))
			require.NoError(c.t, err)
			require.Equal(c.t, id, string(nodes[0].Value))
			return nodes[0].Created
		},
		release: func() { j.do("close", id) },
	})
}

// An ours is a member of our side.
type ours struct {
	*member

	ses  registry.Session
	done chan struct{}
	lock registry.Lock
	err  error
}

func (c *contest) ours(ses registry.Session) *ours {
	c.t.Helper()
	o := &ours{ses: ses, done: make(chan struct{})}
	id := fmt.Sprintf("go-%d", c.number)
	ctx := within(c.t, time.Minute)
	go func() {
		defer close(o.done)
		o.lock, o.err = ses.Lock(ctx, c.dir, []byte(id))
	}()
	o.member = c.joined(&member{
		id:    id,
		leads: func() bool { return isClosed(o.done) },
		await: func() registry.Revision {
			c.t.Helper()
			<-o.done
			require.NoError(c.t, o.err)
			return o.lock.Token()
		},
		release: func() { require.NoError(c.t, o.lock.Release(within(c.t, answerTime))) },
	})
	return o
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// joined returns when m stands in the queue behind the others.
func (c *contest) joined(m *member) *member {
	c.t.Helper()
	c.members = append(c.members, m)
	c.number++
	c.queue()
	return m
}

// left forgets m, and returns when it does not stand in the queue any more.
func (c *contest) left(m *member) {
	c.t.Helper()
	c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o.id == m.id })
	c.queue()
}

// queue waits until the members stand in the queue in their order.
func (c *contest) queue() {
	c.t.Helper()
	want := make([]string, len(c.members))
	for i, m := range c.members {
		want[i] = m.id
	}
	var got []string
	eventually(c.t, answerTime, "the queue", func() bool {
		got = c.ids()
		return slices.Equal(want, got)
	})
}

// ids are the values of the nodes, by number.
func (c *contest) ids() []string {
	ctx := within(c.t, answerTime)
	require.NoError(c.t, c.onlooker.Sync(ctx))
	names, err := c.onlooker.Children(ctx, c.dir)
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	}
	require.NoError(c.t, err)
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	ids := []string{}
	for _, name := range names {
		nodes, err := c.onlooker.Get(ctx, path.Join(c.dir, name))
		require.NoError(c.t, err)
		if nodes[0].Exists() {
			ids = append(ids, string(nodes[0].Value))
		}
	}
	return ids
}

// Both sides lead in the order of arrival, with rising tokens, and wake each other.
// Curator shows ours among its participants.
func testOrder(c *contest) {
	one, two, shared := c.jvm(), c.jvm(), session(c.t, c.reg)
	c.ours(session(c.t, c.reg))
	c.java(one)
	c.ours(shared)
	c.ours(shared)
	c.java(two)
	c.java(one)
	c.ours(session(c.t, c.reg))
	c.java(two)
	require.Equal(c.t, "go-0* java-1 go-2 go-3 java-4 java-5 go-6 java-7", one.do("participants", "java-1"))
	require.Equal(c.t, "go-0*", two.do("leader", "java-4"))
	var last registry.Revision
	for _, m := range slices.Clone(c.members) {
		token := m.await()
		require.Greater(c.t, token, last)
		last = token
		c.queue()
		for _, behind := range c.members[1:] {
			require.False(c.t, behind.leads(), "%s leads beside %s", behind.id, m.id)
		}
		m.release()
		c.left(m)
	}
}

// What both sides count without any care but the latch's comes out right.
func testExclusion(c *contest) {
	const times, each = 10, 2
	ctx := within(c.t, 2*time.Minute)
	commit(c.t, c.onlooker, registry.Create("/count", []byte("0")))
	machines := []*jvm{c.jvm(), c.jvm()}
	var work sync.WaitGroup
	failures := make(chan error, 16)
	for range each {
		ses := session(c.t, c.reg)
		for range each {
			work.Go(func() { failures <- count(ctx, ses, c.dir, times) })
		}
	}
	for _, j := range machines {
		for i := range each {
			name := fmt.Sprint("counter-", i)
			j.do("count", name, c.dir, "/count", strconv.Itoa(times))
			work.Go(func() { failures <- j.await(ctx, name+" counted") })
		}
	}
	work.Wait()
	close(failures)
	for err := range failures {
		require.NoError(c.t, err)
	}
	nodes, err := c.onlooker.Get(ctx, "/count")
	require.NoError(c.t, err)
	require.Equal(c.t, strconv.Itoa(2*each*each*times), string(nodes[0].Value))
	c.queue()
}

func count(ctx context.Context, ses registry.Session, dir string, times int) error {
	for range times {
		lock, err := ses.Lock(ctx, dir, nil)
		if err != nil {
			return err
		}
		nodes, err := ses.Get(ctx, "/count")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(nodes[0].Value))
		if err != nil {
			return err
		}
		if _, err = ses.Commit(ctx, registry.Set("/count", fmt.Append(nil, n+1), registry.AnyVersion)); err != nil {
			return err
		}
		if err = lock.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}
