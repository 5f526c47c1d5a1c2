// Command strategy has a sharding strategy of its own: an instance whose name begins with "big" gets twice as many
// items as another. Every instance of the job must have it, since each may come to lead.
//
//	go run ./examples/strategy
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"          // registers etcd://
	_ "github.com/elasticron/elasticron/registry/etcd/embedded" // registers embedded://
	"github.com/elasticron/elasticron/strategy"
)

// Weighted deals the items out in turn, two at a time to the big ones.
type Weighted struct{}

// Name is what a configuration calls it.
func (Weighted) Name() string { return "WEIGHTED" }

// Assign is a pure function: equal input, equal answer, whatever the order of the instances.
func (Weighted) Assign(in strategy.Input) strategy.Assignment {
	out, turns := strategy.Assignment{}, []string{}
	for _, id := range slices.Sorted(slices.Values(in.Instances)) {
		turns = append(turns, id)
		if strings.Contains(id, "@-@big") { // an id is ip@-@name-life
			turns = append(turns, id)
		}
	}
	for item := 0; item < in.Total && len(turns) > 0; item++ {
		id := turns[item%len(turns)]
		out[id] = append(out[id], item)
	}
	return out
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	reg, err := registry.Open(ctx, cmp.Or(os.Getenv("REGISTRY"), "embedded:///?namespace=shop"))
	if err != nil {
		return err
	}
	defer reg.Close()
	idle := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	scheds := map[string]*core.Scheduler{}
	for _, name := range []string{"big", "small-1", "small-2"} { // three processes, usually
		sched := core.New(reg, core.WithInstanceName(name), core.WithStrategy("WEIGHTED", Weighted{}))
		scheds[name] = sched
		defer func() { _ = sched.Stop(ctx) }()
		if err := sched.Add(idle, core.JobConfig{Name: "hello", Cron: "@hourly", Shards: 8, Strategy: "WEIGHTED"}); err != nil {
			return err
		}
		if err := sched.Start(ctx); err != nil {
			return err
		}
	}
	owns := map[string]int{} // big has all of them at first
	for owns["big"] != 4 || owns["small-1"] != 2 || owns["small-2"] != 2 {
		<-time.After(10 * time.Millisecond)
		for name, sched := range scheds {
			owns[name] = len(sched.State().Jobs[0].Items)
		}
	}
	fmt.Println(owns)
	return nil
}
