package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elasticron/elasticron/internal/testbed/etcdmember"
	"github.com/elasticron/elasticron/registry"
)

// EtcdRequiredEnv makes tests of an etcd program fail, and not be skipped, where
// there is none.
const EtcdRequiredEnv = "ELASTICRON_ETCD_REQUIRED"

// StartEtcdProcess is StartEtcd with the program etcd of this machine, such as the
// older one of Debian's package etcd-server: each member is a child process. Without
// the program the test is skipped, or fails if ELASTICRON_ETCD_REQUIRED is 1.
func StartEtcdProcess(tb testing.TB, o Options) *Etcd {
	tb.Helper()
	program, err := exec.LookPath("etcd")
	if err != nil {
		if os.Getenv(EtcdRequiredEnv) == "1" {
			tb.Fatalf("testbed: no older etcd: %v", err)
		}
		text := fmt.Sprintf("\n!!! No older etcd ran: the tests that need it are SKIPPED: %v.\n"+
			"!!! Install Debian's package etcd-server; %s=1 makes them fail instead.", err, EtcdRequiredEnv)
		announce(text)
		tb.Skip(text)
	}
	o.program = program
	return StartEtcd(tb, o)
}

// etcdGuard runs a program and kills it when standard input ends, as it does with
// the process that holds the other end.
const etcdGuard = `trap '' PIPE
"$@" </dev/null >&2 &
server=$!
while read -r _; do :; done
kill -9 "$server" 2>/dev/null
wait "$server"`

// An etcdProcess is a member in a child process.
type etcdProcess struct {
	endpoint string
	cmd      *exec.Cmd
	stdin    io.Closer
	ended    func() error // waits for the guard, once
}

func (e *Etcd) startProgram(ctx context.Context, m etcdmember.Member) (etcdServer, error) {
	client, peer := "http://"+m.Client, "http://"+m.Peer
	arguments := []string{
		"-c", etcdGuard, "sh", e.options.program,
		"--name", m.Name, "--data-dir", m.Dir,
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", "http://" + m.Way,
		"--initial-cluster", m.Cluster,
		"--heartbeat-interval", strconv.FormatInt(m.Tick.Milliseconds(), 10),
		"--election-timeout", strconv.FormatInt(m.Election().Milliseconds(), 10),
		"--logger", "zap", "--log-level", "error",
	}
	if l := e.options.Limits; l != (registry.Limits{}) {
		arguments = append(arguments, "--max-txn-ops", strconv.Itoa(l.MaxOps), "--max-request-bytes", strconv.Itoa(l.MaxBytes))
	}
	cmd := exec.Command("sh", arguments...) //nolint:gosec // of this file's own making
	printed := &Output{}
	cmd.Stderr = printed
	detachProcess(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &etcdProcess{endpoint: m.Client, cmd: cmd, stdin: stdin, ended: sync.OnceValue(cmd.Wait)}
	if err := p.ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd at %s: %w: %s", m.Client, err, printed), p.Close())
	}
	return p, nil
}

// ready waits until the member is in a cluster that has a leader.
func (p *etcdProcess) ready(ctx context.Context) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for !hasLeader(ctx, p.endpoint) {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *etcdProcess) Endpoint() string { return p.endpoint }

// Close kills the member; its data stays.
func (p *etcdProcess) Close() error {
	_ = p.stdin.Close()
	err := p.ended()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil // it was killed
	}
	return err
}

// Output keeps what a child process prints. The zero value is ready.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (b *Output) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is all of it so far.
func (b *Output) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
