// Package etcd keeps a registry in an etcd cluster, with leases and transactions. It is tested with etcd 3.7.3.
//
//	reg, err := etcd.Open(ctx, etcd.Config{
//		Endpoints: []string{"10.0.0.1:2379", "10.0.0.2:2379"},
//		Namespace: "shop",
//	})
//
// or, importing the package for its URL scheme only:
//
//	reg, err := registry.Open(ctx, "etcd://10.0.0.1:2379,10.0.0.2:2379/shop?session-timeout=6s")
//
// # URL
//
// etcd://host:port,host:port/namespace; the port is 2379 when missing (a URL with ports needs one at its last host).
// Settings follow as ?name=value&name=value: session-timeout and dial-timeout (durations), tls=true, ca, cert and key
// (PEM files; any of them switches TLS on), username, password-file, password-env (the name of an environment
// variable), max-ops and max-bytes. Login by environment: ELASTICRON_ETCD_USERNAME, ELASTICRON_ETCD_PASSWORD. A
// password in the URL is refused. Several IPv6 addresses do not fit a URL; use Config.
//
// # Keys
//
// Everything lives below one etcd prefix, depth first, so that a level of children is one prefix: the node
// /shop/hello/config is the key /elasticron/3/shop/hello/config, and the children of /shop/hello are the keys that
// begin with /elasticron/3/shop/hello/. The value of a key is the value of its node. This is fixed before 1.0. The
// namespace is not put before any path.
//
// With role based access a role needs, for each depth it uses, read and write on /elasticron/1/shop and on the prefixes
// /elasticron/2/shop/, /elasticron/3/shop/ and so on, and the same below /elasticron/1/elasticron for Elasticron's own
// state. For each new ephemeral node etcd then looks at the rights to all that the session has, a microsecond for each,
// unless the user has the role root: thousands of jobs had better be spread over several sessions.
//
// With users, all of a Registry shares one login, which it makes again once the service refuses it, to a heartbeat too.
// A session that has a node which its user may not write any more is lost: etcd 3.7.3 refuses its heartbeats.
//
// # Guarantees
//
// A commit is one transaction and one request. All that it requires is compared, strict tree included, at most three
// comparisons an operation. Where it is refused a second request compares all anew, and brings the state that explains
// the refusal, of the same revision. A write is sent again only when the service has certainly not taken it: its own
// typed refusal that passes, one of those above, or a request that never left. clientv3's own repetition of writes is
// switched off: it repeats them when a deadline ends at the server first, which may apply them twice.
//
// Commits of a session that come while eight are under way share the next request, as long as none writes what another
// writes or relies on, up to 64 KiB and the 128 operations that a member takes as installed. Each is applied or refused
// for itself; they have one revision. Those of locks share none, nor do those of more than 32 operations. Reads share
// requests likewise, up to 128 ranges; what is refused together is asked for again, each by itself.
//
// A session is one lease, in whole seconds. A heartbeat leaves every quarter of the timeout, answered or not: a session
// lives on while answers come to take half of the timeout. Deadline is the send time of the last one that was
// acknowledged, plus the timeout, less a tenth; Done is closed a twentieth of the timeout before it. A lease that is
// revoked is noticed by the next heartbeat, or by the next commit that creates an ephemeral node.
//
// Every read is linearizable; Sync sends nothing. Get asks for up to 128 nodes in one request. When the leader of the
// cluster is lost, leases live on for a full timeout after the election. A heartbeat is answered by the leader. One
// that has lost its quorum may answer for up to two election timeouts more; the leader that follows it adds one to
// every lease, and is elected no sooner than one after the cut, unless its members have just started.
//
// Close with a context that has ended makes one attempt to revoke the lease, of a quarter of the timeout at most. A
// commit that the service answers with "no space" may have been applied, and is ErrUncertain.
//
// etcd itself can end leases that are kept alive, before their Deadline, when a paused leader of three members comes
// back: seen three times under faults, and related, it seems, to etcd's issue 15247.
//
// # Cost of a watch target
//
// A Watcher has one stream and two goroutines of its own, and starts both with its first target. Measured with client
// and server in one process: six goroutines a Watcher, those of gRPC and of the server included, and none for a further
// target; 1.1 KiB for each of 10,000 Self targets, 140 to 170 bytes for each of
// 20,000 children of one target; and the values that Next has not taken yet.
// States are read in batches of 128 targets. With several endpoints a Watcher asks for a sign of life every quarter of
// the session timeout, two small messages, since a member that hangs breaks no connection for many seconds.
//
// # Settings of the server
//
// etcd as installed keeps all history: set --auto-compaction-mode and --auto-compaction-retention, since nothing here
// compacts. When --quota-backend-bytes (2 GiB as installed) is used up every commit fails, with ErrUncertain, and so
// does Open, until somebody compacts, defragments and disarms the alarm; sessions live on. See docs/operations.md.
//
// # Concurrency
//
// Registry and its sessions are safe for concurrent use, and share connections.
//
// # Errors
//
// Sentinels are those of package registry. The client's own errors stay
// reachable: rpctypes.EtcdError with errors.As, gRPC's with status.FromError.
package etcd
