package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings are the command line.
type settings struct {
	duration time.Duration
	kinds    []string // of registries, each with a run of its own at the same time
	registry string   // of one run
	seed     uint64
	sizes    []int // servers of each part
	dir      string
	workers  int
	strikes  bool
	judge    string
}

const (
	exitBroken = 1
	exitUsage  = 2
	exitVoid   = 3
)

func main() { os.Exit(run()) }

func run() int {
	switch os.Getenv(envRole) {
	case roleWorker:
		return status(work())
	case roleEtcd:
		return status(serveEtcd())
	}
	s, err := parse(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
		return exitUsage
	}
	if s.judge != "" {
		return status(judge(s.judge, s.kinds[0], os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = driveEach(ctx, s, os.Stdout)
	void := (*voidError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &void):
		fmt.Fprintln(os.Stderr, err)
		return exitVoid
	}
	fmt.Fprintln(os.Stderr, err)
	return exitBroken
}

func status(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitBroken
	}
	return 0
}

func parse(args []string) (settings, error) {
	s := settings{}
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.DurationVar(&s.duration, "duration", 2*time.Minute, "how long faults are drawn, over all parts")
	registries := f.String("registry", onEtcd, "etcd, zookeeper or postgres (one server), or several with commas: runs at the same time")
	f.Uint64Var(&s.seed, "seed", 0, "of the faults; 0 draws one")
	sizes := f.String("servers", "1,3", "how many servers, for each part of the run")
	f.StringVar(&s.dir, "dir", "", "folder for the histories; empty: a temporary one, kept when the run does not end well")
	f.IntVar(&s.workers, "workers", 5, "worker processes")
	f.BoolVar(&s.strikes, "strikes", false, "no drawn faults: strike at every failpoint, once in every way; needs a build with -tags failpoint")
	f.StringVar(&s.judge, "judge", "", "run nothing; judge the histories in this folder (of one part) again")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n%2 == 0 {
			return s, fmt.Errorf("-servers %s: give odd numbers with commas between them", *sizes)
		}
		s.sizes = append(s.sizes, n)
	}
	for kind := range strings.SplitSeq(*registries, ",") {
		if !slices.Contains([]string{onEtcd, onZooKeeper, onPostgres}, kind) || slices.Contains(s.kinds, kind) {
			return s, fmt.Errorf("-registry %s: give etcd, zookeeper or postgres, or several with commas", *registries)
		}
		s.kinds = append(s.kinds, kind)
	}
	switch {
	case !supported:
		return s, errors.New("it needs Linux")
	case s.strikes && !haveFailpoints:
		return s, errors.New("-strikes needs a build with -tags failpoint")
	case s.workers < 3:
		return s, fmt.Errorf("-workers %d: give at least 3", s.workers)
	case s.duration < 10*time.Second:
		return s, fmt.Errorf("-duration %v: give at least 10s", s.duration)
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())
	}
	return s, nil
}
