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
// An empty folder (embedded:///?namespace=shop) means a temporary one, removed
// with the server; the server of a URL is closed with its Registry. Other
// processes reach it as etcd://host:port at Server.Endpoint.
//
// # Guarantees
//
// The server is a cluster of one member. It writes to disk before it answers,
// compacts its history by itself and says nothing. It allows commits of 2,000
// operations and 8 MiB; clients of it in other processes ask for them with
// etcd.Config.Limits or etcd://…?max-ops=2000&max-bytes=8388608. A folder is
// used by one server at a time.
//
// # Concurrency
//
// A Server is safe for concurrent use. Close is idempotent and cuts clients that
// are still connected.
//
// # Errors
//
// Bad settings wrap registry.ErrInvalid; a server that does not become ready in
// time wraps registry.ErrUnavailable.
package embedded
