package admin_test

import (
	"context"
	"fmt"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/memory" // registers memory://
)

// An operator disables one item of a job that somebody else runs.
func Example() {
	ctx := context.Background()
	reg, err := registry.Open(ctx, "memory://operators/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	somebody := core.New(reg, core.WithLogger(nil))
	work := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	if err := somebody.Add(work, core.JobConfig{Name: "hello", Cron: "@hourly", Shards: 2}); err != nil {
		fmt.Println(err)
	}
	if err := somebody.Start(ctx); err != nil {
		fmt.Println(err)
	}
	defer somebody.Stop(ctx)

	store, err := reg.OpenStore(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(ctx)
	a, err := admin.New(store, reg.Namespace())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := a.DisableItem(ctx, "hello", 1); err != nil {
		fmt.Println(err)
	}
	it, err := a.Item(ctx, "hello", 1)
	fmt.Println(it.State, it.Why, err)
	// Output:
	// DISABLED the item is disabled (/shop/hello/sharding/1/disabled) <nil>
}
