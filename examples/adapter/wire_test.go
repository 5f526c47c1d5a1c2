package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry/conformance"
)

var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset")
)

// A server is the one process that has the file open. Clients reach it by wires.
type server struct {
	dsn     string
	stop    chan struct{} // closed at the end
	serving sync.WaitGroup
	turn    sync.Mutex // of those who write, in the order in which they came

	mu         sync.Mutex
	db         *sql.DB // nil while it is down
	statements map[string]*sql.Stmt
	paused     int
	resumed    chan struct{} // open while paused
}

// A wire is a client's way to the server: a driver of database/sql whose requests
// travel, are served, and come back, unless a fault has them. The server's mu
// guards it.
type wire struct {
	*server
	conns           map[*conn]struct{}
	refuses         int
	swallowRequests int
	swallowAnswers  int
	fates           map[string]*fate // of the next commit, by session
	hits            int
}

type fate struct {
	kind conformance.Fate
	hit  bool
}

// A conn is one connection. It costs no exchange, as opening a file does not.
type conn struct {
	wire   *wire
	broken chan struct{}
	lossy  bool // a fault has swallowed something of it
}

// An answer is what came of a request. As driver.Rows it has arrived as a whole.
type answer struct {
	columns []string
	rows    [][]driver.Value
	err     error
}

func (w *wire) Driver() driver.Driver { return nil }

func (w *wire) Connect(context.Context) (driver.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses > 0 || w.db == nil {
		w.hits++
		return nil, errRefused
	}
	c := &conn{wire: w, broken: make(chan struct{})}
	w.conns[c] = struct{}{}
	return c, nil
}

// cut breaks all connections that there are.
func (w *wire) cut() {
	w.hits += len(w.conns)
	for c := range w.conns {
		c.cut()
	}
}

func (c *conn) cut() {
	if _, open := c.wire.conns[c]; open {
		delete(c.wire.conns, c)
		close(c.broken)
	}
}

func (c *conn) Close() error {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.cut()
	return nil
}

func (c *conn) IsValid() bool {
	select {
	case <-c.broken:
		return false
	default:
		return true
	}
}

// ResetSession is how database/sql finds a connection in its pool broken.
func (c *conn) ResetSession(context.Context) error {
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return nil
}

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *conn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return driver.ResultNoRows, c.call(ctx, query, args).err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	a := c.call(ctx, query, args)
	return a, a.err
}

// call carries a request to the server and waits for the answer. Who gives up
// leaves the connection unusable.
func (c *conn) call(ctx context.Context, query string, named []driver.NamedValue) *answer {
	args := make([]any, len(named))
	for i, arg := range named {
		args[i] = arg.Value
		if b, ok := arg.Value.([]byte); ok {
			args[i] = slices.Clone(b) // served late, it is the caller's again
		}
	}
	answered := make(chan *answer, 1)
	c.send(query, args, answered)
	select {
	case a := <-answered:
		return a
	case <-c.broken:
		return &answer{err: errReset}
	case <-ctx.Done():
		_ = c.Close()
		return &answer{err: ctx.Err()}
	}
}

// send is what becomes of a request on its way.
func (c *conn) send(query string, args []any, answered chan<- *answer) {
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.swallowRequests > 0 {
		c.swallow()
		return
	}
	if w.paused > 0 {
		w.hits++
	}
	f, delay := w.fateOf(query, args), time.Duration(0)
	if f != nil && f.kind != conformance.AnswerLost {
		c.cut()
		delay = conformance.LateBy
	}
	if f != nil && f.kind == conformance.RequestLost {
		return
	}
	w.serving.Go(func() {
		a := w.serve(query, args, delay)
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case f != nil:
			c.cut()
		case w.swallowAnswers > 0:
			c.swallow()
		default:
			answered <- a
		}
	})
}

func (c *conn) swallow() {
	c.lossy = true
	c.wire.hits++
}

// fateOf returns what is planned for the commit that query is, or nil.
func (w *wire) fateOf(query string, args []any) *fate {
	if !strings.HasPrefix(query, "INSERT INTO ops") {
		return nil
	}
	id, _ := args[1].(string)
	f := w.fates[id]
	if f != nil {
		delete(w.fates, id)
		f.hit = true
		w.hits++
	}
	return f
}

// serve runs a statement, after a pause and whether anybody waits for it or not.
func (s *server) serve(query string, args []any, delay time.Duration) *answer {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stop:
		return nil
	}
	s.mu.Lock()
	for s.paused > 0 {
		resumed := s.resumed
		s.mu.Unlock()
		<-resumed
		s.mu.Lock()
	}
	stmt, err := s.prepared(query)
	s.mu.Unlock()
	if err != nil {
		return &answer{err: err}
	}
	if !strings.HasPrefix(query, "SELECT") {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	return run(stmt, args)
}

// prepared spares the compilation of the trigger, which costs most of a commit.
func (s *server) prepared(query string) (stmt *sql.Stmt, err error) {
	switch {
	case s.db == nil:
		return nil, errReset
	case s.statements[query] == nil:
		s.statements[query], err = s.db.Prepare(query) //nolint:sqlclosecheck // closed with the database
	}
	return s.statements[query], err
}

func run(stmt *sql.Stmt, args []any) *answer {
	rows, err := stmt.Query(args...)
	if err != nil {
		return &answer{err: err}
	}
	defer rows.Close()
	a := &answer{}
	a.columns, a.err = rows.Columns()
	for a.err == nil && rows.Next() {
		row, into := make([]driver.Value, len(a.columns)), make([]any, len(a.columns))
		for i := range row {
			into[i] = &row[i]
		}
		a.err = rows.Scan(into...)
		a.rows = append(a.rows, row)
	}
	if a.err == nil {
		a.err = rows.Err()
	}
	return a
}

func (a *answer) Columns() []string { return a.columns }
func (a *answer) Close() error      { return nil }

func (a *answer) Next(row []driver.Value) error {
	if len(a.rows) == 0 {
		return io.EOF
	}
	copy(row, a.rows[0])
	a.rows = a.rows[1:]
	return nil
}
