// Package zookeeper keeps a registry in a ZooKeeper ensemble, with sessions and
// multis. Servers 3.5 to 3.9 will do, as they are installed.
//
//	reg, err := zookeeper.Open(ctx, zookeeper.Config{
//		Servers:   []string{"10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181"},
//		Namespace: "shop",
//	})
//
// or, importing the package for its URL scheme only:
//
//	reg, err := registry.Open(ctx, "zookeeper://10.0.0.1:2181,10.0.0.2:2181/shop?session-timeout=6s")
//
// # URL
//
// zookeeper://host:port,host:port/namespace; the port is 2181 when missing (a URL with ports needs one at its last
// host). Settings follow as ?name=value&name=value: chroot (a path), session-timeout and dial-timeout (durations),
// tls=true, ca, cert and key (PEM files; any of them switches TLS on), username, password-file, and password-env (the
// name of an environment variable). Login by environment: ELASTICRON_ZOOKEEPER_USERNAME, ELASTICRON_ZOOKEEPER_PASSWORD.
// A password in the URL is refused. Several IPv6 addresses do not fit a URL; use Config.
//
// # Paths
//
// The node /shop/hello of the registry is the node /shop/hello of ZooKeeper, or stands below the chroot, which Open
// makes when it is missing. Without a chroot /zookeeper and what is below belongs to the service: a commit that names
// it is refused, and the root's children do not show it.
//
// An empty value is written as an empty one, never as none, which clients in Java
// read as null. What has a time to live, and containers, read as persistent nodes.
//
// With a login every node is created for that user alone (all permissions, scheme "auth"), as ElasticJob and Curator do
// it; without one, for the world. So all members of a job give the same login. A wrong password is a user that nothing
// belongs to: Open fails with ErrDenied when it may not read the namespace's node; while that node is missing there is
// nothing to see.
//
// # Guarantees
//
// A commit is one request, a multi (one set or create is sent as that), carried out at most once. Commits that come
// while eight of the session are under way share the next multi, up to 512 operations or 64 KiB, and then have one
// revision; when one of them is refused each is sent again alone, and the next 64 too. Sequential nodes, which locks
// are made of, never share one: Created tells their holders apart.
//
// The limits of a commit are 500 operations, 768 KiB in all and 256 KiB in a value; a
// request of a mebibyte would cost the connection. The revision is the number of the
// transaction. A version beyond 32 bits is sent as one that no node has.
//
// A session is one session of ZooKeeper on one connection at a time. After its end nothing is sent for it any more.
// What a server answers by itself does not keep it alive, since a follower that is cut off from its leader goes on to
// answer pings and reads, and a leader that has lost its quorum syncs too. Deadline is the earlier of two: the send
// time of the last answered sync, write or reconnect, plus the timeout that the server granted, less a quarter; and
// that of the last answered write alone, plus the timeout, less an eighth. Done is closed a twentieth of the timeout
// before it. Where a reconnect is granted less time than before, Done comes by that; more does not count. A new leader
// may let sessions live on for a timeout after the election.
//
// Close with a context that has ended makes one attempt to end the session at the
// service, of a quarter of the timeout at most.
//
// ZooKeeper tells nobody that his rights were taken, and of what he may not read it tells him
// nothing more: a watch loses such a target, with ErrDenied, when something has it read again.
//
// Reads come from the server that the session is connected to, and are as new as the session's own writes and events.
// Sync is a multi of one check: it passes a quorum, which ZooKeeper's own sync does not.
//
// # Requests
//
// A commit, a Children and a Sync are one request each, or a part of one; Get is one for up to 32 paths, 8 of them at
// once, and for fewer where values are large: once that is known about 2 MiB are asked for at once, since the answers
// to heartbeats come behind them. Servers before 3.6 know no such request: there Get is one for each path, 64 at once, and
// the first connection of a session, on which that is found out, is closed and made again.
// Opening a Registry opens and closes a session, and reads the namespace's node, and each part of the chroot. A session
// sends a heartbeat every eighth of its timeout: in turn a sync and a multi that checks the root, which is a write of
// the ensemble and changes nothing. So a hundred sessions of 6 s cost it 67 small writes a second.
//
// The watchers of a session share its watches. One read goes out for each target and nothing else:
//
//	Add of a node                    1 getData; and 1 exists when it is absent
//	Add of a directory of n          1 getChildren2, n getData
//	Add of a directory that is not   1 getChildren2, 1 exists
//	a node is created or set         1 getData, whoever many watch it
//	a node is deleted                none for a child, 1 getData and 1 exists for a Self target
//	a directory gets or loses one    1 getChildren2 more, of all its names
//	nothing changes                  none
//
// Changes that follow each other faster than an answer comes share a read. A Watcher has no goroutine; up to 64 a
// session read while there is something to read. Remove and Close cost no request: the service keeps a watch until it
// fires once more or the session ends. A target costs about as much memory as its paths, and values only until Next
// takes them.
//
// # Locks
//
// A lock is Curator's LeaderLatch on the wire: a sequential ephemeral node _c_{uuid}-latch-{ten digits} in the
// directory, whose value is the caller's (Curator has the participant's id there). Locks and LeaderLatches of one
// directory exclude each other, in the order of the digits, and Curator lists ours among its participants. Other
// children are ignored; Curator's mutexes (lock-) are. Directories are made as persistent nodes; one that Curator made
// is a container and may vanish when it is empty, which a lock survives.
//
// A directory numbers its children with 31 bits over its whole life. When they are used up there is no order any more,
// for Curator neither: Lock then fails and says so, until the directory is deleted while nobody needs it.
//
//	a free lock    1 multi, 1 getChildren2, 2 getData (one arms a watch of the own node)
//	a wait         1 getData more, and when it ends 1 getChildren2 and 1 getData
//	a release      1 multi
//	TryLock        1 getChildren2 more; of a held lock 2 getChildren2 and 1 multi, and nothing else
//
// # Settings of the server
//
// tickTime bounds the session timeout: 2 to 20 ticks unless minSessionTimeout and maxSessionTimeout say otherwise, and
// a session expires up to a tick late. syncLimit × tickTime is how long servers take to notice that their leader, or a
// follower, has gone without a word (ten seconds as installed; a process that ends is noticed at once). Nobody can know
// meanwhile that a session lives: those with a timeout of less than about twice that are lost with such a leader, and
// opened anew. jute.maxbuffer as installed (a mebibyte) is enough; less would break large commits. Nothing is needed of
// extendedTypesEnabled, of containers or of four-letter words. Set autopurge.purgeInterval: as installed a server
// deletes no log and no snapshot, and heartbeats alone fill its disk (docs/operations.md).
//
// # Concurrency
//
// Registry and its sessions are safe for concurrent use. Sessions share nothing.
//
// # Errors
//
// Sentinels are those of package registry. The client's own errors stay reachable
// with errors.Is where they say more: zk.ErrNoAuth in a denial.
package zookeeper
