// Command start is the program of docs/start.md: the jobs of one file, a function among them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hello is called for each item of the job hello that this process owns, each time it fires.
func hello(_ context.Context, s core.Shard) error {
	fmt.Printf("hello: item %d of %d (%s)\n", s.Item, s.Total, s.Param)
	return nil
}

func run(ctx context.Context) error {
	cfg, err := config.Load("jobs.yaml")
	if err != nil {
		return err
	}
	reg, err := cfg.Open(ctx)
	if err != nil {
		return err
	}
	defer reg.Close()
	sched := core.New(reg)
	if err := cfg.Bind(sched, map[string]core.Job{"hello": core.JobFunc(hello)}); err != nil {
		return err
	}
	return sched.Run(ctx)
}
