//go:build unix

package job_test

import (
	"context"
	"fmt"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/job"
)

// A command is told its item as its last argument and in its environment.
func ExampleScript() {
	work := &job.Script{
		Args:   []string{"sh", "-c", `echo "item $ELASTICRON_ITEM of $ELASTICRON_TOTAL"`},
		Output: func(_ core.Shard, output []byte) { fmt.Printf("%s", output) },
	}
	_ = work.Run(context.Background(), core.Shard{Job: "hello", Item: 1, Total: 3}) // a scheduler does this
	// Output: item 1 of 3
}
