package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/postgres"  // registers postgres://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

func main() {
	os.Exit(status())
}

// status runs the program and returns its exit status.
func status() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	file := flag.String("config", "examples/swap/swap.yaml", "the YAML `file`")
	patience := flag.Duration("patience", time.Minute, "how long the items may take")
	flag.Parse() // ends with 2 when the flags are wrong
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "swap: unknown argument %q; see -help\n", flag.Arg(0))
		return 2
	}
	err := run(ctx, *file, *patience)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "swap: interrupted")
		return 130
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// run shares the jobs of the file between two schedulers until each item has run twice.
func run(ctx context.Context, file string, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("swap: not every item ran twice within %v", patience))
	defer cancel()
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	fmt.Println(cfg)
	tally := newTally(cfg.Jobs)
	for _, name := range []string{"one", "two"} {
		end, err := start(ctx, cfg, name, tally)
		if err != nil && ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		if err != nil {
			return err
		}
		defer end()
	}
	select {
	case <-tally.done:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), tally.err())
	}
	fmt.Print(tally.table())
	return tally.err()
}

// start is what the main function of a service does: open, bind, start.
func start(ctx context.Context, cfg *config.Config, name string, t *tally) (end func(), err error) {
	reg, err := cfg.Open(ctx)
	if err != nil {
		return nil, err
	}
	sched := core.New(reg, core.WithInstanceName(name))
	end = func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := errors.Join(sched.Stop(patience), reg.Close()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if err = cfg.Bind(sched, map[string]core.Job{"tally": t}); err == nil {
		err = sched.Start(ctx)
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}
