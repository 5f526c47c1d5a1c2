package pgserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elasticron/elasticron/internal/ports"
)

const (
	// User may do everything, without a password.
	User = "elasticron"
	// LoginUser, if a test creates it, needs its password.
	LoginUser = "login"

	pollEvery = 20 * time.Millisecond
)

// Options of a server.
type Options struct {
	// Settings are lines for postgresql.conf.
	Settings []string
	// Files are put into the data folder, by name: certificates, say.
	Files map[string]string
}

// A Server is one PostgreSQL.
type Server struct {
	bin    string
	folder *folder
	claim  *ports.Claim

	mu      sync.Mutex
	process *process
	stopped []int // processes that Pause has stopped
}

// settings of every server; later lines win.
var settings = []string{
	"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "max_connections = 300", "shared_buffers = 16MB",
	"fsync = off", "full_page_writes = off", "wal_level = replica", "max_wal_senders = 5", "hot_standby = on",
	"autovacuum_naptime = 10s", "log_line_prefix = '%m [%p] '",
}

const (
	trusted = " all 127.0.0.1/32 trust\n"
	access  = "host all " + LoginUser + " 127.0.0.1/32 scram-sha-256\nhost all" + trusted + "host replication" + trusted
)

// Start starts a server with a new cluster of databases, which ctx bounds.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	err = s.folder.run(filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", User, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err == nil {
		err = s.configure(o)
	}
	if err == nil {
		err = s.Restart(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newServer() (*Server, error) {
	programs, err := bin()
	if err != nil {
		return nil, err
	}
	f, err := newFolder()
	if err != nil {
		return nil, err
	}
	claim, err := ports.Take(1)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(f.path))
	}
	return &Server{bin: programs, folder: f, claim: claim}, nil
}

func (s *Server) data() string { return filepath.Join(s.folder.path, "data") }

// configure writes what stands in files.
func (s *Server) configure(o Options) error {
	lines := append(append([]string{"port = " + strconv.Itoa(s.claim.Number(0))}, settings...), o.Settings...)
	files := map[string]string{"postgresql.conf": strings.Join(lines, "\n") + "\n", "pg_hba.conf": access}
	maps.Copy(files, o.Files)
	for name, text := range files {
		if _, err := s.folder.write(filepath.Join("data", name), text); err != nil {
			return err
		}
	}
	return nil
}

// Addr is host:port.
func (s *Server) Addr() string { return s.claim.Addr(0) }

// Connect opens a connection as User to a database.
func (s *Server) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return connect(ctx, s.Addr(), database)
}

func connect(ctx context.Context, addr, database string) (*pgx.Conn, error) {
	host, port, _ := strings.Cut(addr, ":")
	return pgx.Connect(ctx, fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=disable", host, port, User, database))
}

// Exec runs statements in a database.
func (s *Server) Exec(ctx context.Context, database, statements string) error {
	conn, err := s.Connect(ctx, database)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statements)
	return errors.Join(err, conn.Close(ctx))
}

// Version is the server's own word for it.
func (s *Server) Version(ctx context.Context) (version string, err error) {
	conn, err := s.Connect(ctx, "postgres")
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	return version, errors.Join(err, conn.Close(ctx))
}

// Restart kills the server, if it runs, and starts it on its data.
func (s *Server) Restart(ctx context.Context) error {
	for {
		s.Kill()
		p, err := s.folder.start("log", "QUIT", filepath.Join(s.bin, "postgres"), "-D", s.data())
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.process = p
		s.mu.Unlock()
		switch err := s.ready(ctx); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("PostgreSQL at %s: %w: %s", s.Addr(), err, p.printed())
		}
		// It refuses while a process of the one before has not quite ended.
	}
}

// attempt is how long a server is waited for before it is started anew.
const attempt = 10 * time.Second

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		conn, err := s.Connect(ctx, "postgres")
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Kill ends the server with all its processes, as a crash does. It may be started again.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	if family := s.family(); len(family) > 0 {
		suspend(family[0]) // no child is born any more
		for _, pid := range append(s.family()[1:], family[0]) {
			kill(pid)
		}
	}
	s.process.stop()
	s.process, s.stopped = nil, nil
}

// family are the server's processes, the first before its children.
func (s *Server) family() (pids []int) {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	first, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		return nil
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
	pids = []int{first}
	for word := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Pause stops all the server's processes; nothing is lost.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("pgserver: it does not run")
	}
	for range 2 { // the first ends before its children are known: none is made any more
		for _, pid := range s.family() {
			if suspend(pid) {
				s.stopped = append(s.stopped, pid)
			}
		}
	}
	return nil
}

// Resume lets what Pause has stopped go on.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pid := range s.stopped {
		resume(pid)
	}
	s.stopped = nil
}

// Standby makes a server that replays what this one writes, under a name for
// synchronous_standby_names.
func (s *Server) Standby(ctx context.Context, name string) (*Server, error) {
	standby, err := newServer()
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(s.Addr(), ":")
	err = standby.folder.run(filepath.Join(s.bin, "pg_basebackup"), "-h", host, "-p", port, "-U", User, "-D", standby.data(),
		"-c", "fast", "-X", "stream", "--no-sync")
	if err == nil {
		err = standby.configure(Options{Settings: []string{fmt.Sprintf(
			"primary_conninfo = 'host=%s port=%s user=%s application_name=%s'", host, port, User, name),
			// A promotion may wait for one, or for several where the first server has just gone; 5 s as installed.
			"wal_retrieve_retry_interval = 100ms",
		}})
	}
	if err == nil {
		_, err = standby.folder.write(filepath.Join("data", "standby.signal"), "")
	}
	if err == nil {
		err = standby.Restart(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	return standby, nil
}

// Promote makes a standby a server of its own, and returns once it takes writes.
func (s *Server) Promote(ctx context.Context) error {
	if err := s.Exec(ctx, "postgres", "SELECT pg_promote()"); err != nil {
		return fmt.Errorf("promote: %w: %s", err, s.Log())
	}
	return nil
}

// Close ends the server and removes its data.
func (s *Server) Close() error {
	s.Kill()
	return errors.Join(os.RemoveAll(s.folder.path), s.claim.Close())
}

// Log is the end of what the server has said.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return ""
	}
	return s.process.printed()
}
