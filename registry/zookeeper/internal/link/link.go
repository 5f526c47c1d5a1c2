package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/share"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// Config says whom to connect to and as whom.
type Config struct {
	// Servers are host:port. A name is looked up at every connection.
	Servers []string
	// SessionTimeout is what is asked for; the service may grant another.
	SessionTimeout time.Duration
	// DialTimeout bounds one attempt to connect to one server.
	DialTimeout time.Duration
	// TLS secures every connection when set.
	TLS *tls.Config
	// Digest is "user:password", shown at every connection; "" shows nothing.
	Digest string
	// Notify is called for every watch event, which uses up the watches that it is about, in the order of the wire,
	// from a goroutine of the connection. It must not block and must not call the Link. nil ignores events.
	Notify func(zk.Event)
	// Lookup finds the addresses of a host; nil asks the system.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Dial connects to an address; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// errExpired is why a session ended.
var errExpired = errors.New("the service has ended it")

// A Link is one session. Open makes it, Close ends it.
type Link struct {
	*lifetime.Lifetime

	cfg     Config
	zk      *zk.Conn
	events  <-chan zk.Event // closed when the client's goroutines have ended
	servers *servers
	watches *watches
	writes  *share.Queue[[]any, Written]
	work    sync.WaitGroup // of connections; what calls need is the Lifetime's

	mu       sync.Mutex
	id       int64
	password []byte
	byLeader time.Time     // when the newest request was sent of which the leader has heard
	byQuorum time.Time     // when the newest one was sent of which a quorum has heard
	created  time.Duration // the timeout that was granted at first: a leader that comes to power knows this one
	ends     time.Time     // when the session ends without another answer, by Deadline
	early    *time.Timer   // ends it, where that is before Deadline; nil: nothing does
	up       chan struct{} // closed while there is a connection with the session on it
	conn     *conn         // the latest that was dialled
	current  *conn         // the latest on which the session was confirmed
	probed   bool          // a server has shown that it is new enough
	fatal    error         // why no session can ever be had: Open fails with it

	zxid    atomic.Int64 // of the newest answer
	granted atomic.Int64 // the timeout that the service granted; 0: none yet

	askedMany atomic.Bool // a server was asked whether it reads several nodes by one request
	readsMany atomic.Bool // it does

	ended chan struct{} // closed once the client is at the dead end
	atEnd func()        // closes it, once
	left  chan struct{} // closed once the service has ended the session
	leave func()        // closes it, once
}

// Open waits for a session, and for another one where a slow service has ended that before it was of use. The error
// wraps ErrInvalid, ErrDenied, or ErrUnavailable with the reason of each server when ctx ends first.
func Open(ctx context.Context, cfg Config) (*Link, error) {
	for n := 0; ; n++ {
		l, err := open(ctx, cfg)
		if !errors.Is(err, registry.ErrSessionLost) {
			return l, err
		}
		if !wait.For(ctx, wait.Growing(n, firstPause, maxPause)) {
			return nil, fmt.Errorf("zookeeper: %w: %w (%s)", registry.ErrUnavailable, ctx.Err(), err.Error())
		}
	}
}

func open(ctx context.Context, cfg Config) (*Link, error) {
	l := &Link{
		Lifetime: lifetime.New("zookeeper"),
		cfg:      cfg, watches: newWatches(), servers: newServers(cfg), up: make(chan struct{}),
		left: make(chan struct{}), ended: make(chan struct{}),
	}
	l.leave, l.atEnd = sync.OnceFunc(func() { close(l.left) }), sync.OnceFunc(func() { close(l.ended) })
	l.writes = share.New(l.sharing())
	conn, events, err := zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithDialer(l.dial), zk.WithHostProvider(l.servers), zk.WithLogger(silence{}), zk.WithLogInfo(false),
		zk.WithEventCallback(l.observe), zk.WithMaxConnBufferSize(clientBuffer))
	if err != nil {
		return nil, fmt.Errorf("zookeeper: %w: %w", registry.ErrInvalid, err)
	}
	l.zk, l.events = conn, events
	l.work.Go(l.outlive)
	if err := l.awaitSession(ctx); err != nil {
		_ = l.Close(ctx)
		return nil, err
	}
	return l, nil
}

func (l *Link) awaitSession(ctx context.Context) error {
	err := l.await(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.fatal, err)
}

// Number is the session's at the service. Its text is the ID.
func (l *Link) Number() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// Disarm says that nobody needs a watch any more: it is not renewed on the next
// connection. The service keeps it until the next change or the session's end.
func (l *Link) Disarm(path string, children bool) { l.watches.disarm(path, children) }

// observe hears of the client's states, on its own goroutine. What matters is
// only that it learns of an expiry before it dials again.
func (l *Link) observe(ev zk.Event) {
	if ev.Type == zk.EventSession && ev.State == zk.StateExpired {
		l.expire()
	}
}

// expire ends a session that the service has ended.
func (l *Link) expire() {
	l.leave()
	l.Lose(errExpired)
}

// dial is the client's dialer. Once the session has ended it leads to a dead end.
func (l *Link) dial(_, server string, _ time.Duration) (net.Conn, error) {
	c, err := l.reach(server)
	if l.Err() != nil {
		return l.deadEnd(), nil //nolint:nilerr // the client is to finish, not to dial again
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *Link) reach(server string) (*conn, error) {
	raw, err := l.servers.dial(l.Context(), server, l.attemptTime())
	if err != nil {
		return nil, err
	}
	c := newConn(l, raw, server)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		_ = raw.Close()
		return nil, err
	}
	l.conn = c
	l.work.Go(c.flush)
	return c, nil
}

// outlive waits for the session's end, cuts the connection, and closes the client once
// it has found its way to the dead end.
func (l *Link) outlive() {
	<-l.Done()
	if reason := l.Err(); !errors.Is(reason, lifetime.ErrClosed) { // its owner says goodbye first
		l.cut(reason)
	}
	<-l.ended
	l.zk.Close()
}

type silence struct{}

func (silence) Printf(string, ...any) {}
