// Package embedded runs an etcd server inside this process: for a program that
// is its own registry, for trying things out, and for tests.
//
//	srv, err := embedded.Start(ctx, embedded.Config{Dir: "/var/lib/shop/etcd"})
//	...
//	defer srv.Close()
//	reg, err := srv.Registry(ctx, etcd.Config{Namespace: "shop"})
//
// or, importing the package for its URL scheme only:
//
//	reg, err := registry.Open(ctx, "embedded:///var/lib/shop/etcd?namespace=shop")
//
// An empty folder (embedded:///?namespace=shop) means a temporary one, removed with the server; the server of a URL is
// closed with its Registry. The settings of a URL are
//
//	namespace        of the jobs; it has no default
//	addr             where clients are served, host:port; by default 127.0.0.1 and a free port
//	session-timeout  how long a session outlives its last heartbeat, such as 6s, the default
//
// # Sharing it
//
// A folder belongs to one server at a time. Give it an address that stays, and other
// processes open it as any etcd while that one runs:
//
//	embedded:///var/lib/shop/etcd?namespace=shop&addr=127.0.0.1:2379   // the first process
//	etcd://127.0.0.1:2379/shop                                         // the others
//
// A process that opens the folder in use is refused, with the address of its server.
// When the first process ends, the others wait until it is back. Where that will not do,
// run an etcd of its own. Server.Endpoint is the address of a server that Start made.
//
// # Guarantees
//
// The server is a cluster of one member. It writes to disk before it answers, compacts its history by itself and says
// nothing. It allows commits of 2,000 operations and 8 MiB; clients of it in other processes ask for them with
// etcd.Config.Limits or etcd://…?max-ops=2000&max-bytes=8388608.
//
// # Concurrency
//
// A Server is safe for concurrent use. Close is idempotent and cuts clients that are still connected.
//
// # Errors
//
// Bad settings wrap registry.ErrInvalid; a server that does not become ready in time wraps registry.ErrUnavailable.
package embedded
