package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// Workers are this program again, with their task in the environment.
const (
	envWorker   = "ELASTICRON_QUICKSTART_WORKER"
	envRegistry = "ELASTICRON_QUICKSTART_REGISTRY"
	envItems    = "ELASTICRON_QUICKSTART_ITEMS"
	envPeriod   = "ELASTICRON_QUICKSTART_PERIOD"
	envRoot     = "ELASTICRON_QUICKSTART_ROOT"
)

const jobName = "index-go-source"

// work is a worker process. It stops when its input ends, which it does with its parent.
func work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	items, err := strconv.Atoi(os.Getenv(envItems))
	if err != nil {
		return fmt.Errorf("quickstart: %s: %w", envItems, err)
	}
	period, err := time.ParseDuration(os.Getenv(envPeriod))
	if err != nil {
		return fmt.Errorf("quickstart: %s: %w", envPeriod, err)
	}
	files, err := listFiles(os.Getenv(envRoot))
	if err != nil {
		return err
	}
	reg, err := registry.Open(ctx, os.Getenv(envRegistry))
	if err != nil {
		return err
	}
	defer reg.Close()
	out := newTeller(os.Stdout)
	var sched *core.Scheduler
	sched = core.New(reg, core.WithInstanceName(os.Getenv(envWorker)), core.WithLogger(nil),
		core.WithListener(func(e event.Event) { forward(out, sched, e) }))
	if err := sched.Add(indexJob(files, out), jobConfig(items, period)); err != nil {
		return err
	}
	if err := sched.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	patience, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	return sched.Stop(patience)
}

func jobConfig(items int, period time.Duration) core.JobConfig {
	return core.JobConfig{
		Name: jobName, Cron: "@every " + period.String(), Shards: items, Overwrite: true,
		Misfire:     core.MisfireAll, // a round is whole when each item has run in it
		Failover:    true,            // also in the round in which a worker is killed
		Description: "indexes the Go toolchain's source tree",
	}
}

// indexJob indexes the files that fall to an item.
func indexJob(files []string, out *teller) core.Job {
	return core.JobFunc(func(ctx context.Context, s core.Shard) error {
		sums, err := index(ctx, share(files, s.Item, s.Total), func(n int) {
			out.tell(message{Kind: kindProgress, Due: s.Due, Item: s.Item, Done: n})
		})
		if err == nil {
			out.tell(message{Kind: kindResult, Due: s.Due, Item: s.Item, Sums: sums, Again: s.Source == core.SourceFailover})
		}
		return err
	})
}

// forward tells the parent what the scheduler says.
func forward(out *teller, s *core.Scheduler, e event.Event) {
	switch e := e.(type) {
	case event.Started:
		out.tell(message{Kind: kindStarted, Instance: e.Instance})
	case event.LeaderChanged:
		out.tell(message{Kind: kindLeader, Leader: e.Leader})
	case event.ItemsChanged:
		out.tell(message{Kind: kindItems, Items: e.Items})
	case event.FireBegun:
		out.tell(message{Kind: kindBegun, Due: e.Due, Items: e.Items, Again: e.Redo, Next: s.State().Jobs[0].Next})
	case event.ItemEnded:
		if e.Err != nil {
			out.tell(message{Kind: kindFailed, Due: e.Due, Item: e.Item, Text: e.Err.Error()})
		}
	case event.ItemCut:
		out.tell(message{Kind: kindCut, Due: e.Due, Item: e.Item, Text: string(e.Reason)})
	case event.ItemsSkipped:
		out.tell(message{Kind: kindSkipped, Due: e.Due, Items: e.Items, Count: e.Count, Text: string(e.Reason)})
	case event.ItemsFolded:
		out.tell(message{Kind: kindSkipped, Due: e.Last, Items: e.Items, Count: e.Count, Text: "a later run stands for it"})
	case event.Resharded:
		out.tell(message{Kind: kindMoves, Moves: changesOfOwner(e.Moves)})
	case event.SessionLost:
		out.tell(message{Kind: kindNote, Text: "session lost: " + e.Err.Error()})
	case event.Waiting:
		if e.For != "" {
			out.tell(message{Kind: kindNote, Text: "waits for " + e.For})
		}
	case event.Warning:
		out.tell(message{Kind: kindNote, Text: e.Problem})
	}
}

// changesOfOwner leaves out items that had no owner before.
func changesOfOwner(moves []event.Move) int {
	n := 0
	for _, m := range moves {
		if m.From != "" {
			n++
		}
	}
	return n
}
