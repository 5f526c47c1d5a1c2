// Package link keeps one session with ZooKeeper on a client of github.com/go-zookeeper/zk, and makes of it what the
// contract of package registry asks: one connection at a time, one session, one life.
//
//	l, err := link.Open(ctx, link.Config{Servers: []string{"127.0.0.1:2181"}, SessionTimeout: 6 * time.Second})
//	...
//	defer l.Close(ctx)
//	value, stat, err := l.Get(ctx, "/shop", false)
//
// # What it adds to the client
//
// The client opens connections, and codes and decodes requests. Everything that concerns
// time and connections is decided here, by a net.Conn that understands frames:
//
//   - After the session has ended no server is dialled again. The bare client
//     opens a new session and runs what was queued on it.
//   - Deadline counts from the time at which an answered request was sent that a leader,
//     and one that a quorum must have heard of, and from the timeout that the server
//     granted; Done is closed by it. The bare client does not notice an expiry while it
//     is cut off, nor while its server is.
//   - A sync or a write is sent every eighth of the timeout, and a connection that
//     leaves a request unanswered for about a third of it (half, with one server) is
//     given up; one on which an answer goes on to come, once Deadline is near. An
//     endpoint that accepts and never answers costs a fifth. The bare client sends
//     pings, which any server answers by itself, and waits for 6.7 timeouts.
//   - Watches are armed and renewed here. On a new connection they are renewed before
//     anything else is sent, from the zxid of before the break. The bare client
//     sends queued requests first, and then asks for the changes since their
//     answers: it can miss an event.
//   - Credentials are shown before anything else too. The bare client locks
//     itself up when the connection breaks at that moment.
//   - A write error ends the connection and is never the result of a request. Writes
//     of concurrent requests share a system call, and so do reads.
//   - Every write brings the number of its transaction back, which the client drops: it is put into the answer, of a
//     multi as the result of one more set, of a create that is sent alone in the place of the path.
//   - Eight multis are sent one by one; those that come while as many are under way share
//     the next (package share), and are sent one by one when it is refused. The bare client
//     sends each alone, which keeps a server busy.
//   - Watch events go to one function and cannot be dropped.
//   - Names are looked up at every connection. With one server there is no pause of a
//     second before it is dialled again.
//
// # Requests
//
// Reads are repeated over broken connections until their context or the session ends. A Multi is carried out at most
// once: it is sent again only when the server has refused, as a whole, one that it was a part of. One whose caller has
// left may wait in the client for the next connection, and be carried out there.
//
// # Concurrency and goroutines
//
// A Link is safe for concurrent use. It has three goroutines, and the client's two while connected; a request runs on a
// goroutine of its own until it is answered, unless it is a read with the session's own context, which runs on the
// caller's. Close joins them all.
//
// # Errors
//
// Errors wrap registry.ErrUnavailable, ErrUncertain, ErrSessionLost, ErrDenied and ErrInvalid. What the server says of
// an operation is the client's error (zk.ErrNoNode and so on), bare.
package link
