// Command oneoff runs a job that has no schedule: somebody asks for a run, and waits for what
// becomes of it.
//
//	REGISTRY=etcd://127.0.0.1:2379/shop go run ./examples/oneoff
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

func main() {
	reg, err := registry.Open(context.Background(), cmp.Or(os.Getenv("REGISTRY"), "etcd://127.0.0.1:2379/shop"))
	if err == nil {
		err = run(context.Background(), reg, os.Stdout)
		_ = reg.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts a worker, as other processes would, and asks for a report of one month.
func run(ctx context.Context, reg registry.Registry, out io.Writer) error {
	report := core.JobFunc(func(_ context.Context, s core.Shard) error {
		if s.Item == 2 {
			return fmt.Errorf("region %d has no figures for %s", s.Item, s.RequestParam)
		}
		return nil
	})
	s := core.New(reg)
	if err := s.Add(report, core.JobConfig{Name: "report", Cron: "@requests", Shards: 3}); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	defer func() { _ = s.Stop(ctx) }()

	store, err := reg.OpenStore(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close(ctx) }()
	a, err := admin.New(store, reg.Namespace())
	if err != nil {
		return err
	}
	id, err := a.Trigger(ctx, "report", request.Request{Param: "2026-11", By: "oneoff"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	result, err := a.Await(ctx, "report", id)
	if err != nil {
		return err
	}
	for _, it := range result.Items {
		fmt.Fprintf(out, "item %d %s %s\n", it.Item, it.Outcome, it.Text)
	}
	return nil
}
