package errorhandler_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/errorhandler"
	"github.com/elasticron/elasticron/job/link"
)

// A handler of one's own, which is told of what is left when all attempts have failed.
func ExampleLink() {
	handler := errorhandler.Func(func(_ context.Context, f errorhandler.Failure) error {
		fmt.Println(f.Text())
		return f.Err
	})
	work := core.JobFunc(func(context.Context, core.Shard) error { return errors.New("no such table") })
	job := link.Chain(work, errorhandler.Link(handler), link.Retry(link.Retries{Max: 2, First: time.Millisecond}))
	_ = job.Run(context.Background(), core.Shard{ // a scheduler does this
		Job: "orders", Item: 2, Total: 3, Instance: "10.0.0.1@-@web-1", Due: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
	})
	// Output:
	// job orders: item 2 of 3 failed
	// fire: 2026-01-02T03:00:00Z
	// instance: 10.0.0.1@-@web-1
	// error: after 2 attempts: no such table
}
