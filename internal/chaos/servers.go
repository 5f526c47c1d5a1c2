package main

import (
	"context"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/zkserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

const (
	// sessionTimeout is what workers ask for.
	sessionTimeout = 3 * time.Second
	// serverTime bounds the start of servers.
	serverTime = 90 * time.Second
	namespace  = "chaos"
)

// The registries.
const (
	onEtcd      = "etcd"
	onZooKeeper = "zookeeper"
)

// servers are the processes that serve the registry. A zkserver.Cluster is one.
type servers interface {
	Addrs() []string
	Way() string
	Kill(i int) error
	Restart(ctx context.Context, i int) error
	RestartAll(ctx context.Context) error
	Pause(i int) error
	Resume(i int) error
	Leader(ctx context.Context) (int, error)
	Close() error
}

func startServers(ctx context.Context, kind, dir string, n int) (servers, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	if kind == onZooKeeper {
		c, err := zkserver.Start(ctx, zkserver.Options{Members: n, Own: true})
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	if kind == onPostgres {
		return startPostgres(ctx, n)
	}
	return startEtcd(ctx, dir, n)
}

// openRegistry opens a client.
func openRegistry(ctx context.Context, kind string, addrs []string) (registry.Registry, error) {
	switch kind {
	case onEtcd:
		r, err := etcd.Open(ctx, etcd.Config{Endpoints: addrs, Namespace: namespace, SessionTimeout: sessionTimeout})
		if err != nil {
			return nil, err
		}
		return r, nil
	case onZooKeeper:
		r, err := zookeeper.Open(ctx, zookeeper.Config{Servers: addrs, Namespace: namespace, SessionTimeout: sessionTimeout})
		if err != nil {
			return nil, err
		}
		return r, nil
	case onPostgres:
		return openPostgres(ctx, addrs)
	}
	return nil, fmt.Errorf("chaos: no registry %q", kind)
}

// A way is how one worker reaches the servers: a proxy to each.
type way []*testbed.Proxy

func newWay(addrs []string) (way, error) {
	var w way
	for _, addr := range addrs {
		p, err := testbed.NewProxy(addr)
		if err != nil {
			w.close()
			return nil, err
		}
		w = append(w, p)
	}
	return w, nil
}

func (w way) addrs() []string {
	var addrs []string
	for _, p := range w {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

func (w way) hits() int {
	n := 0
	for _, p := range w {
		n += p.Hits()
	}
	return n
}

// each applies a fault to every proxy.
func (w way) each(fault func(p *testbed.Proxy) func()) (heal func()) {
	var heals []func()
	for _, p := range w {
		heals = append(heals, fault(p))
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

func (w way) close() {
	for _, p := range w {
		p.Close()
	}
}
