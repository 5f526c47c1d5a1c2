package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/elasticron/elasticron/bench/internal/contest"
	"github.com/elasticron/elasticron/internal/testbed/zkserver"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

// The registries.
const (
	onEtcd      = "etcd"
	onZooKeeper = "zookeeper"
)

// A service is one server of a registry in a process of its own.
type service struct {
	addr  string
	pids  []int
	close func() error
	// profile has the server write a CPU profile of the window of an order; nil where it cannot.
	profile func(o contest.Order) error
}

// serverConfig is what a server is started with.
type serverConfig struct {
	Dir   string `json:"dir"`
	Fsync bool   `json:"fsync"`
}

// startService starts a server with its data in a folder of its own below dir.
func startService(ctx context.Context, registry, dir string, fsync bool) (*service, error) {
	data, err := os.MkdirTemp(dir, "elasticron-bench-")
	if err != nil {
		return nil, err
	}
	start := startEtcd
	if registry == onZooKeeper {
		start = startZooKeeper
	}
	s, err := start(ctx, serverConfig{data, fsync})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(data))
	}
	stop := s.close
	s.close = func() error { return errors.Join(stop(), os.RemoveAll(data)) }
	return s, nil
}

// startZooKeeper lets the server compile as a server does, which the test-bed's do not. 34,500 jobs are 700,000 nodes,
// which fill the gigabyte that ZooKeeper's own scripts give it: then it collects garbage, and does little else. A heap
// that is to grow first grows by whole collections, each of which stops the server for most of a second.
func startZooKeeper(ctx context.Context, cfg serverConfig) (*service, error) {
	sync := "forceSync=no"
	if cfg.Fsync {
		sync = "forceSync=yes"
	}
	options := zkserver.Options{
		Dir: cfg.Dir, Own: true, Tick: 2 * time.Second,
		Java:   []string{"-Xms4g", "-Xmx4g", "-XX:TieredStopAtLevel=4"},
		Config: []string{sync},
	}
	var cluster *zkserver.Cluster
	var err error
	for _, options.Way = range []string{"process", "maven"} { // a container keeps its data and its processes to itself
		if cluster, err = zkserver.Start(ctx, options); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	pids, err := descendants("java")
	if err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	return &service{addr: cluster.Addrs()[0], pids: pids, close: cluster.Close}, nil
}

func startEtcd(ctx context.Context, cfg serverConfig) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := spawn(self, roleEtcd)
	if err != nil {
		return nil, err
	}
	closing := func() error { p.end(10 * time.Second); return nil }
	if err := p.orders.Encode(cfg); err != nil {
		return nil, errors.Join(err, closing())
	}
	a, err := p.answer(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("etcd: %w", err), closing())
	}
	return &service{
		addr: a.Addr, pids: []int{p.cmd.Process.Pid}, close: closing,
		profile: func(o contest.Order) error { return p.orders.Encode(o) },
	}, nil
}

// serveEtcd is the whole of the child that is the server.
func serveEtcd(ctx context.Context, in io.Reader, out io.Writer) error {
	var cfg serverConfig
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&cfg); err != nil {
		return err
	}
	srv, err := embedded.Start(ctx, embedded.Config{Dir: cfg.Dir, Tune: func(c *embed.Config) {
		c.UnsafeNoFsync = !cfg.Fsync
		c.QuotaBackendBytes = 8 << 30
	}})
	answer := contest.Answer{}
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer.Addr = srv.Endpoint()
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil || answer.Error != "" {
		return err
	}
	for { // until nobody needs it
		var o contest.Order
		if decoder.Decode(&o) != nil {
			return errors.Join(err, srv.Close())
		}
		err = errors.Join(err, contest.Profile(ctx, o))
	}
}
