package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

const (
	period    = 2 * time.Second
	stopAfter = 8 * time.Second
)

// settings are the command line.
type settings struct {
	registry               string
	rounds, workers, items int
	keep                   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if os.Getenv(envWorker) != "" {
		return work(ctx)
	}
	s, err := parseFlags(os.Args[1:])
	if err != nil {
		return err
	}
	return direct(ctx, s)
}

func parseFlags(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.StringVar(&s.registry, "registry", "", "URL of a registry that is running, such as etcd://127.0.0.1:2379/demo; empty starts an embedded etcd")
	f.IntVar(&s.rounds, "rounds", 24, "whole rounds to see before the end")
	f.IntVar(&s.workers, "workers", 3, "worker processes")
	f.IntVar(&s.items, "items", 8, "sharding items")
	f.BoolVar(&s.keep, "keep", false, "keep the embedded etcd's folder and say where it is")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("quickstart: unknown argument %q; see -help", f.Arg(0))
	case s.rounds < 1:
		return s, fmt.Errorf("quickstart: -rounds %d: give at least 1", s.rounds)
	case s.workers < 2:
		return s, fmt.Errorf("quickstart: -workers %d: give at least 2, since one is killed", s.workers)
	case s.items < 1 || s.items > 1000:
		return s, fmt.Errorf("quickstart: -items %d: give 1 to 1000", s.items)
	case s.keep && s.registry != "":
		return s, errors.New("quickstart: -keep keeps the embedded etcd's folder; it means nothing with -registry")
	}
	if scheme, _, _ := strings.Cut(s.registry, ":"); scheme == "memory" || scheme == "embedded" {
		return s, fmt.Errorf("quickstart: -registry %s: lives in one process, and the workers are several; leave -registry out to share an embedded etcd", s.registry)
	}
	return s, nil
}

// provide returns the URL of the registry, and what ends it.
func provide(ctx context.Context, s settings, scr *screen) (string, func(), error) {
	if s.registry != "" {
		return s.registry, func() {}, nil
	}
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
	// Leases of two seconds: a killed worker is missed soon.
	url := "etcd://" + srv.Endpoint() + "/quickstart?session-timeout=2s"
	scr.say("embedded etcd at %s", srv.Endpoint())
	return url, func() {
		_ = srv.Close()
		if s.keep {
			fmt.Printf("kept: %s (open it with embedded://%s?namespace=quickstart)\n", dir, dir)
		}
	}, nil
}
