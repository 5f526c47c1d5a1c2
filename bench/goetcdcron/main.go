//go:build ignore

// Goetcdcron is go-etcd-cron as a contender. Its module cannot be had from a registry, so
// bench builds this file in a workspace of its own beside a folder with its source.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/diagridio/go-etcd-cron/api"
	"github.com/diagridio/go-etcd-cron/cron"
	"github.com/go-logr/zapr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

func main() {
	if err := contest.Serve(context.Background(), os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintln(os.Stderr, "go-etcd-cron:", err)
		os.Exit(1)
	}
}

type contender struct {
	client *clientv3.Client
	cron   api.Interface
	cancel context.CancelFunc
	ended  chan error
	period time.Duration
}

func open(_ context.Context, cfg contest.Config, tally *contest.Tally) (contest.Contender, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{cfg.Server}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	c := &contender{client: client, ended: make(chan error, 1)}
	c.cron, err = cron.New(cron.Options{
		Log: zapr.NewLogger(zap.NewNop()), Client: client, Namespace: "bench", ID: cfg.Name,
		TriggerFn: func(r *api.TriggerRequest, answer func(*api.TriggerResponse)) {
			if i, err := contest.JobNumber(r.GetName()); err == nil {
				tally.BeganNext(i, c.period)
			}
			answer(&api.TriggerResponse{Result: api.TriggerResponseResult_SUCCESS})
		},
	})
	if err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	go func() { c.ended <- c.cron.Run(ctx) }()
	for !c.cron.IsElected() {
		select {
		case err := <-c.ended:
			return nil, fmt.Errorf("it has ended: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return c, nil
}

// adding is how many jobs are added at once.
const adding = 128

// Add leaves alone what another instance has added.
func (c *contender) Add(ctx context.Context, jobs contest.Jobs) error {
	c.period = jobs.Period
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(adding)
	schedule := jobs.Cron("*")
	for i := jobs.First; i < jobs.First+jobs.Count; i++ {
		group.Go(func() error {
			_ = c.cron.AddIfNotExists(ctx, contest.JobName(i), &api.Job{Schedule: &schedule})
			return nil
		})
	}
	return group.Wait()
}

func (c *contender) Close(context.Context) error {
	c.cancel()
	<-c.ended
	return c.client.Close()
}
