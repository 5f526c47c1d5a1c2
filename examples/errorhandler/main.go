// Command errorhandler has an error handler of its own: it tells of each run that has failed for good, and stops the
// job in the whole cluster at the second one. A file names it as any other: jobErrorHandlerType: TWICE.
//
//	go run ./examples/errorhandler
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/errorhandler"
	"github.com/elasticron/elasticron/job/link"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"          // registers etcd://
	_ "github.com/elasticron/elasticron/registry/etcd/embedded" // registers embedded://
)

func init() {
	errorhandler.Register("TWICE", func(*errorhandler.Settings) errorhandler.Handler {
		var failures atomic.Int32
		return errorhandler.Func(func(ctx context.Context, f errorhandler.Failure) error {
			fmt.Printf("item %d of %s: %v\n", f.Shard.Item, f.Shard.Job, f.Err)
			if failures.Add(1) == 2 {
				return errors.Join(f.Err, f.Shard.DisableJob(ctx, "it failed twice"))
			}
			return f.Err
		})
	})
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
	handler, err := errorhandler.Open("TWICE", nil)
	if err != nil {
		return err
	}
	broken := core.JobFunc(func(context.Context, core.Shard) error { return errors.New("no such table") })
	// The handler sees what is left when three attempts have failed.
	work := link.Chain(broken, errorhandler.Link(handler), link.Retry(link.Retries{Max: 3, First: time.Millisecond}))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	disabled := core.WithListener(func(e event.Event) {
		if _, ok := e.(event.ConfigChanged); ok {
			fmt.Println("the job is disabled, on every instance")
			stop()
		}
	})
	return core.Run(ctx, reg, work, core.JobConfig{Name: "export", Cron: "* * * * * ?", Shards: 1}, disabled, core.WithLogger(nil))
}
