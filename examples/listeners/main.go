// Command listeners opens a sum before any item of a fire starts, and tells it once all of them have ended, wherever
// they ran. Two instances share the items; one of them is called for each round and each of the two.
//
//	REGISTRY=etcd://127.0.0.1:2379/shop go run ./examples/listeners
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

// A ledger is where items write what they have found; in production a table, keyed by fire and item.
type ledger struct {
	mu    sync.Mutex
	found map[time.Time]int
}

func main() {
	reg, err := registry.Open(context.Background(), cmp.Or(os.Getenv("REGISTRY"), "etcd://127.0.0.1:2379/shop"))
	if err == nil {
		err = run(context.Background(), reg, os.Stdout)
		_ = reg.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run plays three rounds.
func run(ctx context.Context, reg registry.Registry, out io.Writer) error {
	sums := ledger{found: map[time.Time]int{}}
	count := core.JobFunc(func(_ context.Context, s core.Shard) error {
		sums.mu.Lock()
		defer sums.mu.Unlock()
		if _, open := sums.found[s.Due.UTC()]; !open {
			return fmt.Errorf("nobody has opened the round of %v", s.Due)
		}
		sums.found[s.Due.UTC()] += s.Item + 1
		return nil
	})
	rounds := make(chan core.Round, 100) // more than are played
	listener := core.RoundListeners{
		BeforeAll: func(_ context.Context, r core.Round) error {
			sums.mu.Lock()
			defer sums.mu.Unlock()
			sums.found[r.Due.UTC()] = 0
			return nil
		},
		AfterAll: func(_ context.Context, r core.Round) error { rounds <- r; return nil },
	}
	for _, name := range []string{"a", "b"} {
		s := core.New(reg, core.WithInstanceName(name), core.WithRoundListeners("count", listener))
		if err := s.Add(count, core.JobConfig{Name: "count", Cron: "@every 200ms", Shards: 4}); err != nil {
			return err
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
		defer func() { _ = s.Stop(ctx) }()
	}
	for n := range 3 {
		r := <-rounds
		sums.mu.Lock()
		fmt.Fprintf(out, "round %d: 4 items found %d\n", n+1, sums.found[r.Due.UTC()])
		sums.mu.Unlock()
	}
	return nil
}
