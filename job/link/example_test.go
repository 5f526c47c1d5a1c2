package link_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/job/link"
)

// A job that succeeds at its second attempt.
func ExampleChain() {
	errBusy := errors.New("busy")
	work := core.JobFunc(func(_ context.Context, s core.Shard) error {
		if s.Attempt == 1 {
			return errBusy
		}
		return nil
	})
	job := link.Chain(work,
		link.Listen(link.Listener{After: func(_ context.Context, s core.Shard, _ time.Duration, err error) {
			fmt.Printf("item %d ended: %v\n", s.Item, err)
		}}),
		link.Retry(link.Retries{Max: 3, First: time.Millisecond, If: func(err error) bool { return errors.Is(err, errBusy) }}),
		link.Timeout(link.Limit{After: 30 * time.Second}),
	)
	_ = job.Run(context.Background(), core.Shard{Attempt: 1}) // a scheduler does this
	// Output: item 0 ended: <nil>
}
