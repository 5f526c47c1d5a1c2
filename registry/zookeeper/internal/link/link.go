package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
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
	// Notify is called for every watch event, in the order of the wire, from a
	// goroutine of the connection. It must not block and must not call the Link.
	// nil ignores events.
	Notify func(Notification)
	// Lookup finds the addresses of a host; nil asks the system.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Dial connects to an address; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Log hears of connections made and lost; nil is silent.
	Log *slog.Logger
}

// A Notification is one watch event. It uses up the watches that it is about.
type Notification struct {
	Type zk.EventType
	Path string
}

// Reasons why a session ended.
var (
	errExpired   = errors.New("the service has ended it")
	errSilent    = errors.New("no request was answered in time")
	errWasClosed = errors.New("closed by its owner")
)

// A Link is one session. Open makes it, Close ends it.
type Link struct {
	cfg     Config
	log     *slog.Logger
	zk      *zk.Conn
	events  <-chan zk.Event // closed when the client's goroutines have ended
	servers *servers
	watches *watches

	life context.Context // ends with the session
	end  context.CancelFunc
	done chan struct{}
	work sync.WaitGroup

	mu       sync.Mutex
	err      error
	id       int64
	password []byte
	deadline time.Time
	byLeader time.Time // when the newest request was sent of which the leader has heard
	byQuorum time.Time // when the newest one was sent of which a quorum has heard
	alarm    *time.Timer
	up       chan struct{} // closed while there is a connection with the session on it
	conn     *conn         // the latest that was dialled
	current  *conn         // the latest on which the session was confirmed
	broke    error         // why the latest connection ended
	probed   bool          // a server has shown that it is new enough
	fatal    error         // why no session can ever be had: Open fails with it

	zxid    atomic.Int64 // of the newest answer
	granted atomic.Int64 // the timeout that the service granted; 0: none yet

	ready   chan struct{} // closed once zk and events are set
	left    chan struct{} // closed once gone is set
	buried  chan struct{} // closed once the client is at the grave
	leaving sync.Once
	burying sync.Once

	closing  sync.Once
	closeErr error
}

// Open asks for a session and waits for it. The error wraps ErrInvalid,
// ErrDenied, or ErrUnavailable with the reason of each server when ctx ends first.
func Open(ctx context.Context, cfg Config) (*Link, error) {
	if len(cfg.Servers) == 0 {
		return nil, fmt.Errorf("zookeeper: %w: no servers", registry.ErrInvalid)
	}
	l := &Link{
		cfg: cfg, log: cfg.Log, watches: newWatches(), servers: newServers(cfg),
		done: make(chan struct{}), up: make(chan struct{}),
		ready: make(chan struct{}), left: make(chan struct{}), buried: make(chan struct{}),
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.life, l.end = context.WithCancel(context.Background())
	conn, events, err := zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithDialer(l.dial), zk.WithHostProvider(l.servers), zk.WithLogger(silence{}), zk.WithLogInfo(false),
		zk.WithEventCallback(l.observe), zk.WithMaxConnBufferSize(clientBuffer))
	if err != nil {
		l.end()
		return nil, fmt.Errorf("zookeeper: %w: %w", registry.ErrInvalid, err)
	}
	l.zk, l.events = conn, events
	close(l.ready)
	if err := l.awaitSession(ctx); err != nil {
		_ = l.Close(ctx)
		return nil, err
	}
	return l, nil
}

func (l *Link) awaitSession(ctx context.Context) error {
	select {
	case <-l.connected():
		return nil
	case <-l.done:
	case <-ctx.Done():
	}
	l.mu.Lock()
	fatal := l.fatal
	l.mu.Unlock()
	if fatal != nil {
		return fatal
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("zookeeper: %w: %w (%w)", registry.ErrUnavailable, err, l.servers.reasons())
	}
	return fmt.Errorf("zookeeper: %w: %w", registry.ErrUnavailable, l.servers.reasons())
}

// ID is the session's number at the service.
func (l *Link) ID() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// Deadline is registry.Session's.
func (l *Link) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Done is closed when the session is lost or closed, no later than Deadline.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err is nil until Done is closed, then wraps registry.ErrSessionLost.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
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
	l.lose(errExpired)
}

// dial is the client's dialer. Once the session has ended it leads to a grave.
func (l *Link) dial(_, server string, _ time.Duration) (net.Conn, error) {
	c, err := l.reach(server)
	if l.ended() {
		return l.grave(), nil
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *Link) reach(server string) (*conn, error) {
	raw, err := l.servers.dial(l.life, server, l.attemptTime())
	if err != nil {
		return nil, err
	}
	c := newConn(l, raw, server)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		_ = raw.Close()
		return nil, l.err
	}
	l.conn = c
	l.work.Go(c.flush)
	return c, nil
}

func (l *Link) ended() bool { return l.life.Err() != nil }

type silence struct{}

func (silence) Printf(string, ...any) {}
