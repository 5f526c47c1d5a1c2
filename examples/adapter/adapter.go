package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// DefaultTimeout is the session timeout of a registry that a URL names.
const DefaultTimeout = 10 * time.Second

//go:embed schema.sql
var schema string

// A Registry is one client of one database. It implements registry.Registry.
type Registry struct {
	db        *sql.DB
	namespace string
	timeout   time.Duration
	ctx       context.Context // ends with the registry
	cancel    context.CancelFunc

	mu       sync.Mutex
	sessions map[*session]struct{} // not closed yet
}

var _ registry.Registry = (*Registry)(nil)

func init() { registry.Register("sqlite", openURL) }

// openURL serves sqlite:///namespace?file=path.
func openURL(ctx context.Context, u *url.URL) (registry.Registry, error) {
	file := u.Query().Get("file")
	if u.Host != "" || file == "" || len(u.Query()) != 1 || u.Fragment != "" {
		return nil, fmt.Errorf("sqlite: %w: want sqlite:///namespace?file=/path/of.db and nothing else", registry.ErrInvalid)
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w: %w", registry.ErrInvalid, err)
	}
	return New(ctx, db, strings.Trim(u.Path, "/"), DefaultTimeout)
}

// New returns a registry on db, which becomes its own: it is closed with the
// registry, or when New fails. New makes the tables that db lacks; timeout is that
// of every session.
func New(ctx context.Context, db *sql.DB, namespace string, timeout time.Duration) (*Registry, error) {
	var err error
	if namespace == "" || registry.ValidatePath("/"+namespace) != nil || timeout <= 0 {
		err = fmt.Errorf("sqlite: %w: namespace %q, timeout %v", registry.ErrInvalid, namespace, timeout)
	} else if _, failed := db.ExecContext(ctx, schema); failed != nil {
		err = fmt.Errorf("sqlite: %w: %w", cmp.Or(class(failed), registry.ErrUnavailable), failed)
	}
	if err != nil {
		_ = db.Close() // it has written nothing
		return nil, err
	}
	r := &Registry{db: db, namespace: namespace, timeout: timeout, sessions: map[*session]struct{}{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Namespace is what New or the URL was given.
func (r *Registry) Namespace() string { return r.namespace }

// Open implements registry.Registry.
func (r *Registry) Open(ctx context.Context) (registry.Session, error) {
	ctx, cancel := both(ctx, r.ctx)
	defer cancel()
	var s *session
	err := retry(ctx, func() (err error) {
		s, err = r.begin(ctx)
		return err
	})
	if r.ctx.Err() != nil {
		err = registry.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: open session: %w", err)
	}
	return s, nil
}

// begin makes one attempt, with an ID of its own: the row of one whose answer was
// lost has nobody who raises its counter, and expires.
func (r *Registry) begin(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout/2) // later its Deadline would be near
	defer cancel()
	s, sent := newSession(r), time.Now()
	_, err := r.db.ExecContext(ctx, "INSERT INTO sessions (id, timeout) VALUES (?, ?)", s.id, int64(r.timeout))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmp.Or(err, r.ctx.Err()); err != nil { // after its end Close does not see a session
		s.end(err)
		return nil, err
	}
	r.sessions[s] = struct{}{}
	s.acknowledged(sent)
	s.spawn(s.keepAlive)
	return s, nil
}

// Close implements registry.Registry.
func (r *Registry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout/10)
	defer cancel()
	var closing sync.WaitGroup
	r.mu.Lock()
	r.cancel()
	for s := range r.sessions {
		closing.Go(func() { _ = s.Close(ctx) }) // what cannot be told expires
	}
	r.mu.Unlock()
	closing.Wait()
	return r.db.Close()
}

// both returns a context that ends with the first of two.
func both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() { stop(); cancel() }
}

// retry repeats what may be repeated until it succeeds or ctx ends.
func retry(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		switch {
		case err == nil:
			return nil
		case errors.Is(class(err), registry.ErrDenied):
			return fmt.Errorf("%w: %w", registry.ErrDenied, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %w", registry.ErrUnavailable, ctx.Err(), err)
		}
	}
}
