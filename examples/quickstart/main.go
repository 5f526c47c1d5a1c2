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
)

const stopAfter = 8 * time.Second

// settings are the command line.
type settings struct {
	registry               string
	rounds, workers, items int
	zookeeper, keep        bool
}

// The exit status: 0 when the play came to its good end, and these.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell has it for Ctrl-C
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	status := statusOf(ctx, err)
	stop()
	if status != 0 {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(status)
	}
}

// statusOf is the exit status of a run whose context ends with a signal only.
func statusOf(ctx context.Context, err error) int {
	usage := (*usageError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	}
	return exitFailed
}

// A usageError is a command line that means nothing.
type usageError struct{ problem string }

func (e *usageError) Error() string { return "quickstart: " + e.problem }

func usagef(format string, args ...any) error {
	return &usageError{problem: fmt.Sprintf(format, args...)}
}

func run(ctx context.Context) error {
	if os.Getenv(envWorker) != "" {
		return work(ctx)
	}
	s, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return direct(ctx, s)
}

func parseFlags(args []string) (settings, error) {
	var s settings
	var said strings.Builder // by the flag package, which would say it twice
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(&said)
	f.StringVar(&s.registry, "registry", "", "URL of a registry that is running, such as etcd://127.0.0.1:2379/demo or zookeeper://127.0.0.1:2181/demo; empty starts an embedded etcd")
	f.BoolVar(&s.zookeeper, "zookeeper", false, "start a ZooKeeper instead of the embedded etcd: one that ELASTICRON_ZOOKEEPER names, a container, or a local Java process")
	f.IntVar(&s.rounds, "rounds", 24, "whole rounds to see before the end")
	f.IntVar(&s.workers, "workers", 3, "worker processes")
	f.IntVar(&s.items, "items", 8, "sharding items")
	f.BoolVar(&s.keep, "keep", false, "keep the embedded etcd's folder and say where it is")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Print(said.String())
		return s, err
	} else if err != nil {
		return s, usagef("%v; see -help", err)
	}
	if f.NArg() > 0 {
		return s, usagef("unknown argument %q; see -help", f.Arg(0))
	}
	return s, s.check()
}

func (s settings) check() error {
	switch {
	case s.rounds < 1:
		return usagef("-rounds %d: give at least 1", s.rounds)
	case s.workers < 2:
		return usagef("-workers %d: give at least 2, since one is killed", s.workers)
	case s.items < 1 || s.items > 1000:
		return usagef("-items %d: give 1 to 1000", s.items)
	case s.zookeeper && s.registry != "":
		return usagef("-zookeeper starts a registry and -registry names one that runs; leave one")
	case s.keep && (s.zookeeper || s.registry != ""):
		return usagef("-keep keeps the embedded etcd's folder; it means nothing with -registry and -zookeeper")
	}
	if scheme, _, _ := strings.Cut(s.registry, ":"); scheme == "memory" || scheme == "embedded" {
		return usagef("-registry %s: lives in one process, and the workers are several; leave -registry out to share an embedded etcd", scheme)
	}
	return nil
}
