package testbed

import (
	"maps"
	"sync"
)

// A ZooKeeperClient is the way of one client to every member. Its faults are those
// of a Proxy, on all ways at once; it knows the frames of the protocol.
type ZooKeeperClient struct {
	ways

	bed *ZooKeeper

	counting sync.Mutex
	requests map[string]int
}

// NextCommit decides the fate of the client's next commit that has none yet: a
// create, set or delete, or a multi that does more than check. hit reports whether a commit has
// met it.
//
// AppliedLate keeps the client away from all servers until the commit is applied,
// as its reconnect would close the connection that brings it. If the session
// cannot live for LateBy without a heartbeat, the commit is never applied.
func (c *ZooKeeperClient) NextCommit(f Fate) (hit func() bool) { return c.decide(f) }

// Requests counts what the client has sent since ResetRequests, by operation:
// "connect", "create", "multi", "getData", "exists", "getChildren2", "ping" and so on;
// what the adapter keeps its sessions alive with is a "heartbeat".
func (c *ZooKeeperClient) Requests() map[string]int {
	c.counting.Lock()
	defer c.counting.Unlock()
	return maps.Clone(c.requests)
}

// ResetRequests begins to count anew.
func (c *ZooKeeperClient) ResetRequests() {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.requests = map[string]int{}
}

func (c *ZooKeeperClient) count(operation string) {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.requests[operation]++
}

// Close ends the client's connections for good. The test's end does too.
func (c *ZooKeeperClient) Close() { c.close() }
