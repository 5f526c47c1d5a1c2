// Command several has several schedulers and registries in one process: two instances share the items of one job on one
// registry, and another job lives on a second registry, in a namespace and with a lifetime of its own.
//
//	ORDERS=etcd://127.0.0.1:2379/shop REPORTS=zookeeper://127.0.0.1:2181/shop go run ./examples/several
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"          // registers etcd://
	_ "github.com/elasticron/elasticron/registry/etcd/embedded" // registers embedded://
	_ "github.com/elasticron/elasticron/registry/memory"        // registers memory://
	_ "github.com/elasticron/elasticron/registry/zookeeper"     // registers zookeeper://
)

func main() {
	if err := run(context.Background(), cmp.Or(os.Getenv("ORDERS"), "embedded:///?namespace=shop"), cmp.Or(os.Getenv("REPORTS"), "memory://local/shop")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, ordersURL, reportsURL string) (err error) {
	orders, err := registry.Open(ctx, ordersURL)
	if err != nil {
		return err
	}
	defer orders.Close()
	reports, err := registry.Open(ctx, reportsURL)
	if err != nil {
		return err
	}
	defer reports.Close()
	runs := make(chan string, 100)
	for _, s := range []struct {
		name string
		reg  registry.Registry
		job  core.JobConfig
	}{
		{"one", orders, core.JobConfig{Name: "orders", Cron: "* * * * * ?", Shards: 2}},
		{"two", orders, core.JobConfig{Name: "orders", Cron: "* * * * * ?", Shards: 2}},
		{"three", reports, core.JobConfig{Name: "reports", Cron: "* * * * * ?", Shards: 1}},
	} {
		sched := core.New(s.reg, core.WithInstanceName(s.name))
		defer func() {
			patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			err = errors.Join(err, sched.Stop(patience)) // before its registry is closed
		}()
		if err := sched.Add(core.JobFunc(func(_ context.Context, shard core.Shard) error {
			select {
			case runs <- s.name + " runs items of " + shard.Job:
			default: // nobody asks any more
			}
			return nil
		}), s.job); err != nil {
			return err
		}
		if err := sched.Start(ctx); err != nil {
			return err
		}
	}
	for seen := map[string]bool{}; len(seen) < 3; { // until each has run something
		r := <-runs
		if !seen[r] {
			fmt.Println(r)
		}
		seen[r] = true
	}
	return nil
}
