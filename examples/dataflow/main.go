// Command dataflow bills orders, ten at a time, until there are none left. How far each item has come stands in
// the registry, so whoever runs the item next goes on there. Stop it with Ctrl-C and start it again:
//
//	REGISTRY=etcd://127.0.0.1:2379/shop go run ./examples/dataflow
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/job"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"          // registers etcd://
	_ "github.com/elasticron/elasticron/registry/etcd/embedded" // registers embedded://
)

// orders is how many there are: 1 to orders, of which an item has every Total-th.
const orders = 100

// fetch returns the orders of an item behind the offset, which is the last one that was billed.
func fetch(_ context.Context, s core.Shard, from string, count int) (next []int, to string, err error) {
	last := 0
	if from != "" {
		if last, err = strconv.Atoi(from); err != nil {
			return nil, "", err
		}
	}
	for n := last + 1; n <= orders && len(next) < count; n++ {
		if n%s.Total == s.Item {
			next, last = append(next, n), n
		}
	}
	if len(next) == 0 {
		return nil, from, nil
	}
	return next, strconv.Itoa(last), nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, cmp.Or(os.Getenv("REGISTRY"), "embedded:///?namespace=shop"), func(s core.Shard, orders []int) {
		fmt.Printf("item %d bills %v\n", s.Item, orders)
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, bill func(s core.Shard, orders []int)) error {
	reg, err := registry.Open(ctx, url)
	if err != nil {
		return err
	}
	defer reg.Close()
	flow := &job.Dataflow[int]{
		Fetch: fetch,
		Process: func(_ context.Context, s core.Shard, orders []int) error {
			bill(s, orders)
			return nil
		},
		Streaming: true, FetchCount: 10,
	}
	return core.Run(ctx, reg, flow, core.JobConfig{Name: "bill", Cron: "* * * * * ?", Shards: 2})
}
