package job_test

import (
	"context"
	"fmt"
	"strconv"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/job"
)

// Orders are fetched behind the last one that was processed, until there are none.
func ExampleDataflow() {
	orders := []string{"apples", "pears", "plums"}
	work := &job.Dataflow[string]{
		Fetch: func(_ context.Context, _ core.Shard, from string, count int) ([]string, string, error) {
			done, _ := strconv.Atoi(from) // "" is the beginning
			end := min(done+count, len(orders))
			return orders[done:end], strconv.Itoa(end), nil
		},
		Process: func(_ context.Context, s core.Shard, orders []string) error {
			fmt.Println("item", s.Item, orders)
			return nil
		},
		Streaming: true, FetchCount: 2,
	}
	_ = work.Run(context.Background(), core.Shard{Job: "bill", Item: 0, Total: 1}) // a scheduler does this
	// Output:
	// item 0 [apples pears]
	// item 0 [plums]
}
