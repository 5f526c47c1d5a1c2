package coretest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/job/link"
)

// An ItemRun is one run of one item.
type ItemRun struct {
	// Shard is what the job was told.
	Shard core.Shard
	// Begun is when it was called.
	Begun time.Time
	// Ended is set once it has returned; Took and Err mean nothing before.
	Ended bool
	// Took is how long it took.
	Took time.Duration
	// Err is what it returned, a *core.PanicError, or core.ErrGoexit.
	Err error
}

// Fire calls a job once for each item of a configuration, now and all at once, and returns the
// runs by item. There is no scheduler: this tests what the function does, links included.
func Fire(t *testing.T, work core.Job, cfg core.JobConfig) []ItemRun {
	t.Helper()
	if work == nil {
		t.Fatal("coretest: Fire without a job; give one")
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	runs := make([]ItemRun, cfg.Shards)
	due := time.Now()
	var all sync.WaitGroup
	for n := range runs {
		all.Go(func() {
			s := core.Shard{
				Job: cfg.Name, Item: n, Total: cfg.Shards, Param: cfg.ItemParams[n], JobParam: cfg.JobParam, Due: due,
				Instance: "127.0.0.1@-@coretest", Fence: 1, Source: core.SourceRequest, Attempt: 1,
				TaskID: fmt.Sprintf("%s@-@%d@-@READY@-@127.0.0.1@-@coretest", cfg.Name, n),
			}
			runs[n] = ItemRun{Shard: s, Begun: time.Now(), Ended: true, Err: core.ErrGoexit}
			defer func() { runs[n].Took = time.Since(runs[n].Begun) }()
			runs[n].Err = link.Call(context.Background(), work, s)
		})
	}
	all.Wait()
	return runs
}
