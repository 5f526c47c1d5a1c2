// Package postgres is the adapter for PostgreSQL, for those who run a database anyway
// and no etcd or ZooKeeper.
//
//	reg, err := registry.Open(ctx, "postgres://db1:5432,db2:5432/app/shop?session-timeout=6s")
//
// The path is the database, then the namespace. Settings of the URL: session-timeout, dial-timeout,
// max-conns, username, password-file, password-env (the name of an environment variable), ca, cert,
// key (PEM files) and tls=true. What the URL leaves open of the login comes from
// ELASTICRON_POSTGRES_USERNAME and ELASTICRON_POSTGRES_PASSWORD, then from what PostgreSQL's own clients
// read (a password file in the home directory).
//
// # The database
//
// Everything is in a schema named elasticron, which Open makes unless it is there; that needs the
// right CREATE on the database once. Other roles need USAGE on the schema, and SELECT, INSERT, UPDATE and
// DELETE on its tables. The encoding must be UTF8, and default_transaction_isolation read
// committed: Open refuses others. Namespaces share the tree of a database, as on the other registries; what must
// not disturb each other has databases of its own.
//
// # Guarantees
//
// Those of package registry, with the sessions of package registry/polled: rows with a counter,
// which the clients watch with their own clocks; the server's clock does not matter. Sessions
// expire while another one is open.
//
// A commit waits for the disk, and for synchronous standbys, whatever synchronous_commit is for the
// role. So a synchronous standby may be promoted: name all hosts in the URL, and the one that
// takes writes is used; sessions go on if that takes less than half their timeout, also where the old server
// falls silent and refuses nothing. All addresses of all hosts are asked at the same time. The old
// server must be kept from taking writes again, as always. Where synchronous_commit is remote_write, a
// standby whose machine fails at the same time may lack the last commits.
//
// A connection that may be dead, as a heartbeat was answered on another one alone, is cut when it is silent for six
// seconds: a commit that waited there is ErrUncertain.
//
// A commit that its caller gives up goes on at the server. It is not cancelled: PostgreSQL would let it be seen
// without the standby that it waits for, and a promotion would take it back.
//
// Promoting an asynchronous standby breaks the contract. It takes back commits that were answered:
// an item may run twice or never, a lock may be held twice, and revisions are given again. Restoring
// a backup while sessions are open does the same. Open warns of asynchronous standbys that are connected to the
// server. So does fsync=off when the machine fails.
//
// # Notifications
//
// What others write is told by NOTIFY, on one more connection, and seen at once; heartbeats are sent
// every quarter of the timeout. Behind a pooler in transaction mode, such as pgbouncer's,
// nothing can be heard: Open finds that out, warns, and then the database is polled, by
// default every half a second. Session mode is well. Warnings are events of the scheduler, when it starts.
//
// # Cost
//
//	a registry          at most max-conns connections (5), one of them for heartbeats, and the one that listens; one
//	                    more where a heartbeat waits, as it is sent again after an eighth of the timeout
//	a connection        where there are several addresses, a login at each before it
//	an idle session     two statements every quarter of the timeout; one of them writes a row
//	Get, Children       one statement, one round trip
//	Commit              one statement, one round trip; those of a database wait for each other, each for
//	                    the disk: a thousand in a second where the disk answers in a millisecond
//	a step              a notification to every client that listens, of at most 8000 bytes
//	the rest            as package registry/polled says
//
// A transaction that somebody leaves open and that has locked the row of elasticron.clock stops all commits:
// each is ErrUnavailable after five to ten seconds.
//
// # Concurrency
//
// As package registry says. A registry owns one goroutine, that of the bell, and those of its pools; Close
// joins them, and takes a second at most when the server does not answer.
//
// # Errors
//
// Those of package registry; errors.As finds the client's *pgconn.PgError. A commit is ErrUnavailable when
// nothing was sent, or when the server answered with an error, which rolls back; ErrDenied for
// want of rights; ErrUncertain after every other error, also when the server gave up
// waiting for a synchronous standby.
package postgres
