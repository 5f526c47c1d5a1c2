package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings are the command line.
type settings struct {
	duration time.Duration
	registry string
	seed     uint64
	sizes    []int // servers of each part
	dir      string
	workers  int
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
		return status(judge(s.judge, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = drive(ctx, s, os.Stdout)
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
	f.StringVar(&s.registry, "registry", onEtcd, "etcd or zookeeper")
	f.Uint64Var(&s.seed, "seed", 0, "of the faults; 0 draws one")
	sizes := f.String("servers", "1,3", "how many servers, for each part of the run")
	f.StringVar(&s.dir, "dir", "", "folder for the histories; empty: a temporary one, kept when the run does not end well")
	f.IntVar(&s.workers, "workers", 5, "worker processes")
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
	switch {
	case !supported:
		return s, errors.New("it needs Linux")
	case s.registry != onEtcd && s.registry != onZooKeeper:
		return s, fmt.Errorf("-registry %s: give etcd or zookeeper", s.registry)
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
