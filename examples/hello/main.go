// Command hello is the program of README.md: one job of three items.
//
//	REGISTRY=etcd://127.0.0.1:2379/shop go run ./examples/hello
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd" // registers etcd://
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

func run(ctx context.Context) error {
	reg, err := registry.Open(ctx, cmp.Or(os.Getenv("REGISTRY"), "etcd://127.0.0.1:2379/shop"))
	if err != nil {
		return err
	}
	defer reg.Close()
	hello := core.JobFunc(func(ctx context.Context, s core.Shard) error {
		fmt.Printf("%s: item %d of %d (%s)\n", s.Job, s.Item, s.Total, s.Param)
		return nil
	})
	return core.Run(ctx, reg, hello, core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 3})
}
