package zookeeper_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
)

// A process that holds the latch is killed: its session's end wakes ours.
func testJavaHolderCrashes(c *contest) {
	j := c.jvm()
	holder := c.java(j)
	holder.await()
	next, last := c.ours(session(c.t, c.reg)), c.java(c.jvm())
	j.stop()
	next.await()
	c.left(holder)
	require.False(c.t, last.leads())
	next.release()
	last.await()
}

// A process that waits between two of ours crashes: it blocks nobody for longer
// than its session lives.
func testJavaWaiterCrashes(c *contest) {
	j := c.jvm()
	holder := c.ours(session(c.t, c.reg))
	holder.await()
	dead, last := c.java(j), c.ours(session(c.t, c.reg))
	j.crash()
	c.left(dead)
	require.False(c.t, last.leads())
	holder.release()
	last.await()
}

// The service ends the session of ours that holds the latch: Curator leads, and
// our guard fails.
func testHolderExpires(c *contest) {
	ses, _ := open(c.t, c.bed)
	holder := c.ours(ses)
	holder.await()
	next := c.java(c.jvm())
	c.expire(ses)
	next.await()
	<-holder.lock.Lost()
	_, err := c.onlooker.Commit(within(c.t, answerTime), holder.lock.Guard())
	require.ErrorIs(c.t, err, registry.ErrNotFound)
}

// Cut off from the service, ours knows that it does not hold the latch any more
// before Curator leads.
func testHolderCutOff(c *contest) {
	ses, client := open(c.t, c.bed)
	holder := c.ours(ses)
	holder.await()
	next := c.java(c.jvm())
	defer client.Blackhole(testbed.Both)()
	next.await()
	require.True(c.t, isClosed(holder.lock.Lost()))
	require.True(c.t, time.Now().After(ses.Deadline()))
}

// The session of ours ends that waits between two of Curator's.
func testWaiterExpires(c *contest) {
	one, two := c.jvm(), c.jvm()
	holder := c.java(one)
	holder.await()
	ses, _ := open(c.t, c.bed)
	dead, last := c.ours(ses), c.java(two)
	c.expire(ses)
	c.left(dead.member)
	require.False(c.t, last.leads())
	holder.release()
	last.await()
	<-dead.done
	require.ErrorIs(c.t, dead.err, registry.ErrSessionLost)
}

func (c *contest) expire(ses registry.Session) {
	c.t.Helper()
	id, err := strconv.ParseUint(ses.ID(), 16, 64)
	require.NoError(c.t, err)
	require.NoError(c.t, c.bed.Expire(int64(id)))
}

func (c *contest) exists(path string) bool {
	nodes, err := c.onlooker.Get(within(c.t, answerTime), path)
	require.NoError(c.t, err)
	return nodes[0].Exists()
}

// Curator makes containers, which vanish when they have become empty. One in
// which we stand does not; one that has vanished is made again.
func testContainers(c *contest) {
	j := c.jvm()
	for range 3 {
		first := c.java(j)
		first.await()
		j.do("latch", "elsewhere", "/elsewhere/latch")
		j.expect("elsewhere leads")
		lock := c.ours(c.onlooker)
		j.do("close", "elsewhere")
		first.release()
		lock.await()
		c.left(first)
		eventually(c.t, answerTime, "the other container gone", func() bool { return !c.exists("/elsewhere/latch") })
		c.queue()
		lock.release()
		c.left(lock.member)
		eventually(c.t, answerTime, "the container gone", func() bool { return !c.exists(c.dir) })
		lock = c.ours(c.onlooker)
		second := c.java(j)
		lock.await()
		lock.release()
		second.await()
		second.release()
		c.members = nil
		c.queue()
		require.True(c.t, c.exists(c.dir), "what we have made is no container")
		require.NoError(c.t, registry.DeleteTree(within(c.t, answerTime), c.onlooker, "/shop"))
	}
}

// A container vanishes whenever it is empty, also just before a node is made in it.
func testContainerVanishes(c *contest) {
	ctx := within(c.t, time.Minute)
	sweeper := session(c.t, c.reg)
	var swept atomic.Int64
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for !isClosed(done) {
			if _, err := sweeper.Commit(ctx, registry.Delete(c.dir, registry.AnyVersion)); err == nil {
				swept.Add(1)
			}
		}
	})
	defer work.Wait()
	defer close(done)
	locks := 0
	for ; locks < 25 || swept.Load() <= 10; locks++ {
		lock, err := c.onlooker.Lock(ctx, c.dir, nil)
		require.NoError(c.t, err, "lock %d, after the directory vanished %d times", locks, swept.Load())
		require.NoError(c.t, lock.Release(ctx))
	}
	c.t.Logf("the directory vanished %d times during %d locks", swept.Load(), locks)
}
