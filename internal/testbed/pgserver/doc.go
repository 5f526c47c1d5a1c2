// Package pgserver runs PostgreSQL and pgbouncer for tests: Debian's packages, as child
// processes on a free port of the loopback interface, with their data in a temporary
// folder.
//
//	srv, err := pgserver.Start(ctx, pgserver.Options{})
//	...
//	defer srv.Close()
//	url := "postgres://" + srv.Addr() + "/postgres/shop?username=" + pgserver.User
//
// PostgreSQL does not run as root: then it runs as the user postgres of the package. A
// killed server's data is what the system has been given; fsync is off, since no test
// takes the machine's power away.
//
// # Guarantees
//
// Servers end when this process ends, in whatever way, and their folders with them, but for one that
// was just being filled. Addr stays over restarts.
//
// # Concurrency and errors
//
// A Server's methods may be called concurrently, but those that start and end it in turn. Where
// nothing is installed the error is ErrAbsent; another one has what the server printed.
package pgserver
