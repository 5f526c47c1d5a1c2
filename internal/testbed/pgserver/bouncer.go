package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/ports"
)

// A Bouncer is pgbouncer before a server.
type Bouncer struct {
	folder  *folder
	claim   *ports.Claim
	process *process
}

// StartBouncer starts pgbouncer, whose mode is "transaction" or "session".
func StartBouncer(ctx context.Context, s *Server, mode string) (*Bouncer, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // which is not in everybody's PATH
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("pgbouncer is %w (Debian's package pgbouncer)", ErrAbsent)
		}
	}
	f, err := newFolder()
	if err != nil {
		return nil, err
	}
	b := &Bouncer{folder: f}
	if err := b.start(ctx, program, s, mode); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Bouncer) start(ctx context.Context, program string, s *Server, mode string) error {
	var err error
	if b.claim, err = ports.Take(1); err != nil {
		return err
	}
	users, err := b.folder.write("users", fmt.Sprintf("%q \"\"\n", User))
	if err != nil {
		return err
	}
	host, port, _ := strings.Cut(s.Addr(), ":")
	config, err := b.folder.write("pgbouncer.ini", strings.Join([]string{
		"[databases]", fmt.Sprintf("* = host=%s port=%s", host, port),
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", b.claim.Number(0)), "unix_socket_dir =",
		"auth_type = trust", "auth_file = " + users, "pool_mode = " + mode, "max_client_conn = 300", "default_pool_size = 50", "",
	}, "\n"))
	if err != nil {
		return err
	}
	if b.process, err = b.folder.start("log", "TERM", program, config); err != nil {
		return err
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		conn, err := connect(ctx, b.Addr(), "postgres")
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("pgbouncer at %s: %w: %w: %s", b.Addr(), ctx.Err(), err, b.process.printed())
		}
	}
}

// Addr is host:port.
func (b *Bouncer) Addr() string { return b.claim.Addr(0) }

// Close ends it.
func (b *Bouncer) Close() error {
	if b.process != nil {
		b.process.stop()
	}
	return errors.Join(os.RemoveAll(b.folder.path), b.claim.Close())
}
