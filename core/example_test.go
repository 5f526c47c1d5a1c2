package core_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/memory" // registers memory://
)

// A job with one item that stops after its first run.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	reg, err := registry.Open(ctx, "memory://example/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	var once sync.Once
	hello := core.JobFunc(func(_ context.Context, s core.Shard) error {
		once.Do(func() {
			fmt.Printf("%s: item %d of %d (%s)\n", s.Job, s.Item, s.Total, s.Param)
			stop()
		})
		return nil
	})
	err = core.Run(ctx, reg, hello, core.JobConfig{
		Name: "hello", Cron: "@every 50ms", Shards: 1, ItemParams: map[int]string{0: "north"},
	})
	fmt.Println(err)
	// Output:
	// hello: item 0 of 1 (north)
	// <nil>
}

// Several jobs on one scheduler, with a listener of what happens.
func ExampleScheduler() {
	ctx := context.Background()
	reg, err := registry.Open(ctx, "memory://example/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	assigned := make(chan event.ItemsChanged, 8)
	sched := core.New(reg, core.WithListener(func(e event.Event) {
		if e, ok := e.(event.ItemsChanged); ok {
			assigned <- e
		}
	}))
	idle := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	for _, name := range []string{"orders", "invoices"} {
		if err := sched.Add(idle, core.JobConfig{Name: name, Cron: "0 0 2 * * ?", Shards: 3}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(sched.Add(idle, core.JobConfig{Name: "bad", Cron: "0 2 * * *", Shards: 3}))
	if err := sched.Start(ctx); err != nil {
		fmt.Println(err)
	}
	one, other := <-assigned, <-assigned
	fmt.Println(len(one.Items)+len(other.Items), "items")
	fmt.Println(sched.Stop(ctx))
	// Output:
	// job "bad": Cron: has 5 fields, Quartz has 6, seconds first, or 7 with the year; write 0 0 2 * * ?
	// 6 items
	// <nil>
}

// One instance is told when all items of a fire have ended, in the whole cluster.
func ExampleWithRoundListeners() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	reg, err := registry.Open(ctx, "memory://example/rounds")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	var once sync.Once
	listeners := core.RoundListeners{
		AfterAll: func(_ context.Context, r core.Round) error {
			once.Do(func() {
				fmt.Printf("%s: all items have ended, attempt %d\n", r.Job, r.Attempt)
				stop()
			})
			return nil
		},
		Again: true, // if this instance dies meanwhile another one may be called
	}
	work := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	err = core.Run(ctx, reg, work, core.JobConfig{Name: "hello", Cron: "@every 50ms", Shards: 3},
		core.WithRoundListeners("hello", listeners))
	fmt.Println(err)
	// Output:
	// hello: all items have ended, attempt 1
	// <nil>
}
