package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

// provide returns the URL of the registry, and what ends it. Sessions last two
// seconds where the play decides: a killed worker is missed soon.
func provide(ctx context.Context, s settings, scr *screen) (string, func(), error) {
	switch {
	case s.registry != "":
		return s.registry, func() {}, try(ctx, s.registry)
	case s.zookeeper:
		return provideZooKeeper(ctx, scr)
	}
	return provideEtcd(ctx, s, scr)
}

// try opens the registry once: what is wrong with it is said once, and not by each
// worker.
func try(ctx context.Context, url string) error {
	reg, err := registry.Open(ctx, url)
	if err != nil {
		return fmt.Errorf("quickstart: -registry: %w", err)
	}
	return reg.Close()
}

func provideEtcd(ctx context.Context, s settings, scr *screen) (string, func(), error) {
	dir := ""
	if s.keep {
		var err error
		if dir, err = os.MkdirTemp("", "elasticron-quickstart-"); err != nil {
			return "", nil, err
		}
	}
	srv, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err != nil {
		return "", nil, err
	}
	scr.say("embedded etcd at %s", srv.Endpoint())
	return "etcd://" + srv.Endpoint() + "/quickstart?session-timeout=2s", func() {
		_ = srv.Close()
		if s.keep {
			fmt.Printf("kept: %s (open it with embedded://%s?namespace=quickstart)\n", dir, dir)
		}
	}, nil
}

func provideZooKeeper(ctx context.Context, scr *screen) (string, func(), error) {
	scr.say("looking for a way to run ZooKeeper")
	srv, err := zkserver.Start(ctx, zkserver.Options{})
	if err != nil {
		return "", nil, fmt.Errorf("quickstart: -zookeeper: %w", err)
	}
	addrs := strings.Join(srv.Addrs(), ",")
	scr.say("ZooKeeper %s at %s, by %s", srv.Version(), addrs, srv.Way())
	// Of this run alone: a server that others share keeps what a run leaves behind.
	return fmt.Sprintf("zookeeper://%s/quickstart-%d?session-timeout=2s", addrs, os.Getpid()), func() { _ = srv.Close() }, nil
}
