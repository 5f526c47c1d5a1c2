package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// goCron is gocron as a contender: unrecorded by itself, and with a lock of etcd's for
// each run, which is what it offers where several instances run one job.
type goCron struct {
	sched   gocron.Scheduler
	tally   *contest.Tally
	client  *clientv3.Client
	session *concurrency.Session
}

func openGoCron(ctx context.Context, cfg contest.Config, tally *contest.Tally) (contest.Contender, error) {
	g := &goCron{tally: tally}
	var options []gocron.SchedulerOption
	if cfg.Contender == goCronLocked {
		var err error
		if g.client, err = dialEtcd(cfg.Server); err != nil {
			return nil, err
		}
		if g.session, err = concurrency.NewSession(g.client, concurrency.WithTTL(6), concurrency.WithContext(context.WithoutCancel(ctx))); err != nil {
			return nil, err
		}
		options = append(options, gocron.WithDistributedLocker(locker{g.session}))
	}
	var err error
	g.sched, err = gocron.NewScheduler(append(options, gocron.WithLocation(time.UTC))...)
	if err != nil {
		return nil, err
	}
	g.sched.Start()
	return g, nil
}

// Add counts each run as due at the latest instant of the period: gocron does not say
// which fire it runs.
func (g *goCron) Add(_ context.Context, jobs contest.Jobs) error {
	for i := jobs.First; i < jobs.First+jobs.Count; i++ {
		run := func() { g.tally.Began(i, time.Now().Truncate(max(jobs.Period, time.Second))) }
		if _, err := g.sched.NewJob(gocron.CronJob(jobs.Cron("*"), true), gocron.NewTask(run), gocron.WithName(contest.JobName(i))); err != nil {
			return err
		}
	}
	return nil
}

func (g *goCron) Close(context.Context) error {
	err := g.sched.Shutdown()
	if g.client != nil {
		err = errors.Join(err, g.session.Close(), g.client.Close())
	}
	return err
}

// locker locks a job while it runs.
type locker struct{ session *concurrency.Session }

func (l locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	m := concurrency.NewMutex(l.session, "/locks/"+job)
	if err := m.TryLock(ctx); err != nil {
		return nil, err
	}
	return lock{m}, nil
}

type lock struct{ mutex *concurrency.Mutex }

func (l lock) Unlock(ctx context.Context) error { return l.mutex.Unlock(ctx) }
