// Package etcdmember is one etcd server of a cluster for tests: quick, on the loopback interface, in the process of the
// test or in one of its own.
//
//	members := etcdmember.Cluster(dir, peers, peers)
//	server, err := members[0].Start(ctx, nil)
//	process, err := etcdmember.Spawn(ctx, program, members[0])
//
// In a process of its own the server runs without the race detector of the test, which would double the CPU time of
// both. The program is internal/testbed/cmd/etcdmember, which calls [Main]; it ends when the process that has started it
// ends, in whatever way.
//
// Servers and processes belong to who starts them. Closing is idempotent and may come from any goroutine.
package etcdmember

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

const (
	// One member elects itself; several must not take a busy machine for a dead leader.
	tickAlone    = 10 * time.Millisecond
	tickTogether = 50 * time.Millisecond
	electionIn   = 10 // ticks

	// startTime is for a process of its own; who has started it may give up before.
	startTime = 90 * time.Second
	cheapHash = 4 // as little as there is: the passwords of tests are no secret
)

// A Member is what a server is told.
type Member struct {
	Dir string `json:"dir"` // its data, which outlive it
	// Name of it in the cluster.
	Name string `json:"name"`
	// Client is the address at which it listens for clients; empty is a free one.
	Client string `json:"client"`
	// Peer is the address at which it listens for the others, Way the one at which they are told to find it.
	Peer string `json:"peer"`
	Way  string `json:"way"`
	// Cluster is all members, as etcd's --initial-cluster has them.
	Cluster string `json:"cluster"`
	// Tick is a beat of a leader.
	Tick time.Duration `json:"tick"`
	// Users: it will ask for logins.
	Users bool `json:"users"`
	// OwnLimits: a request may hold what etcd allows by default. Else it may hold what embedded allows.
	OwnLimits bool `json:"ownLimits"`
}

// Cluster returns the members of one cluster, with their data in a folder, etcd's own limits and no logins. They listen
// for each other at peers, and find each other by ways.
func Cluster(dir string, peers, ways []string) []Member {
	members, all := make([]Member, len(peers)), make([]string, len(peers))
	tick := tickAlone
	if len(peers) > 1 {
		tick = tickTogether
	}
	for i := range members {
		name := fmt.Sprint("m", i)
		members[i] = Member{
			Dir: filepath.Join(dir, fmt.Sprint("member", i)), Name: name, Peer: peers[i], Way: ways[i], Tick: tick, OwnLimits: true,
		}
		all[i] = name + "=http://" + ways[i]
	}
	for i := range members {
		members[i].Cluster = strings.Join(all, ",")
	}
	return members
}

// Election is how long a leader is missed before another is elected.
func (m Member) Election() time.Duration { return electionIn * m.Tick }

// Start starts a member in this process. tune, unless it is nil, may change its configuration last.
func (m Member) Start(ctx context.Context, tune func(*embed.Config)) (*embedded.Server, error) {
	return embedded.Start(ctx, embedded.Config{Dir: m.Dir, Addr: m.Client, Tune: func(c *embed.Config) {
		m.configure(c)
		if tune != nil {
			tune(c)
		}
	}})
}

func (m Member) configure(c *embed.Config) {
	c.TickMs, c.ElectionMs = uint(m.Tick.Milliseconds()), uint(m.Election().Milliseconds()) //nolint:gosec // a test's own
	c.UnsafeNoFsync = true
	if m.Users {
		c.BcryptCost = cheapHash
	}
	if m.OwnLimits {
		c.MaxTxnOps, c.MaxRequestBytes = embed.DefaultMaxTxnOps, embed.DefaultMaxRequestBytes
	}
	c.Name = m.Name
	c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: m.Peer}}
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: m.Way}}
	c.InitialCluster = m.Cluster
}

// Main is a process that is the member of its one argument.
func Main() error {
	if len(os.Args) != 2 { //nolint:mnd // the program and its argument
		return errors.New("want one argument, a member as JSON")
	}
	return Serve(os.Args[1])
}

// Serve is a process that is a member, which it is told as JSON. It says on standard output where clients find it, and
// ends with its standard input.
func Serve(told string) error {
	var m Member
	if err := json.Unmarshal([]byte(told), &m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	server, err := m.Start(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := fmt.Println(server.Endpoint()); err != nil { //nolint:forbidigo // its parent reads this
		return errors.Join(err, server.Close())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}

// A Process is a member in a process of its own.
type Process struct {
	endpoint string
	cmd      *exec.Cmd
	stdin    io.Closer
	ended    func() error // waits for its end, once
}

// Spawn starts a member by a program that calls Main, and waits until it serves, or ctx ends.
func Spawn(ctx context.Context, program string, m Member) (*Process, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, string(text)) //nolint:gosec // of the project's own making; Close ends it
	var printed strings.Builder
	cmd.Stderr = &printed
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, stdin: stdin, ended: sync.OnceValue(cmd.Wait)}
	stop := context.AfterFunc(ctx, func() { _ = stdin.Close() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if stop() && err == nil {
		p.endpoint = strings.TrimSpace(line)
		return p, nil
	}
	err = errors.Join(err, ctx.Err(), p.Close())
	if strings.Contains(printed.String(), syscall.EADDRINUSE.Error()) {
		err = errors.Join(err, syscall.EADDRINUSE)
	}
	return nil, fmt.Errorf("etcd in a process of its own: %w: %s", err, strings.TrimSpace(printed.String()))
}

// Endpoint is the client address, host:port.
func (p *Process) Endpoint() string { return p.endpoint }

// Close kills the process; the data stay.
func (p *Process) Close() error {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.stdin.Close()
	err := p.ended()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil // it was killed
	}
	return err
}
