package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

const (
	crowdJobs      = 10_000
	crowdInstances = 10
	// quickInstances are those of a quick run: ten processes under the race detector fill two cores for minutes.
	quickInstances = 3
	// bereavedProfile is how long the profiles of a survivor and of the server are, from the kill on: its session lasts
	// for six seconds, in which nearly nothing happens.
	bereavedProfile = 12 * time.Second
)

// crashOfTen has ten instances share many jobs, and kills one; a quick run has three.
func crashOfTen(ctx context.Context, s *settings, contender string, _ figures) (figures, error) {
	jobs := contest.Jobs{Count: s.scaled(crowdJobs), Items: 1, Recorded: true}
	a, err := s.arena(ctx)
	if err != nil {
		return nil, err
	}
	a.counts = true
	found, err := func() (figures, error) {
		begun := time.Now()
		all, err := a.crowd(ctx, contender, jobs)
		if err != nil {
			return nil, err
		}
		found := figures{"start": time.Since(begun).Seconds()}
		if err := wait(ctx, time.Now().Add(min(rest, s.patience))); err != nil {
			return nil, err
		}
		return found, a.bereave(ctx, contender, all, jobs.Count, found)
	}()
	return found, errors.Join(err, a.close())
}

// crowd starts instances that share jobs, and returns when every item has an owner.
func (a *arena) crowd(ctx context.Context, contender string, jobs contest.Jobs) ([]*client, error) {
	var adding errgroup.Group
	var all []*client
	instances := crowdInstances
	if a.settings.quick {
		instances = quickInstances
	}
	for range instances {
		c, err := a.enter(ctx, contender)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		adding.Go(func() error {
			_, err := c.add(ctx, jobs)
			return err
		})
	}
	if err := adding.Wait(); err != nil {
		return nil, err
	}
	_, err := settled(ctx, all, jobs.Count)
	return all, err
}

// settled waits until instances own so many items together, and each has had its own for a while. It returns when
// the last was given.
func settled(ctx context.Context, all []*client, items int) (last time.Time, err error) {
	err = poll(ctx, func() (bool, error) {
		owned := 0
		for _, c := range all {
			a, err := c.ask(ctx, contest.Order{Do: contest.DoOwned})
			if err != nil {
				return false, err
			}
			owned += a.Owned.Items
			if a.Owned.At.After(last) {
				last = a.Owned.At
			}
		}
		return owned == items && time.Since(last) > time.Second, nil
	})
	return last, err
}

// bereave kills one of several instances and finds out when others own what it had.
func (a *arena) bereave(ctx context.Context, contender string, all []*client, items int, found figures) error {
	present, done, err := a.instances(ctx, contender)
	if err != nil {
		return err
	}
	defer done()
	dies, survive := all[0], all[1:]
	had, err := dies.ask(ctx, contest.Order{Do: contest.DoOwned})
	if err != nil {
		return err
	}
	if err := dies.cmd.Process.Kill(); err != nil {
		return err
	}
	profiled := func() error { return nil }
	if folder := a.settings.profile; folder != "" {
		if profiled, err = a.profileBereaved(ctx, survive[0], folder); err != nil {
			return err
		}
	}
	expired, err := expiry(ctx, present, len(survive))
	if err := errors.Join(err, profiled()); err != nil {
		return err
	}
	last, err := settled(ctx, survive, items)
	found["owned"], found["moved"] = max(0, last.Sub(expired).Seconds()), float64(had.Owned.Items)
	return err
}

// profileBereaved has a survivor, and the server where it can, write profiles from now on. done waits for the former.
func (a *arena) profileBereaved(ctx context.Context, survivor *client, folder string) (done func() error, err error) {
	o := contest.Order{Do: contest.DoMeasure, From: time.Now(), File: filepath.Join(folder, "server.pprof")}
	o.To = o.From.Add(bereavedProfile)
	if serve := a.service.profile; serve != nil {
		if err := serve(o); err != nil {
			return nil, err
		}
	}
	o.File = filepath.Join(folder, "client.pprof")
	return func() error { _, err := survivor.answer(ctx); return err }, survivor.orders.Encode(o)
}

// instances returns how the instances of the first job are counted.
func (a *arena) instances(ctx context.Context, contender string) (present func(context.Context) (int, error), done func(), err error) {
	if contender == bareWatching {
		client, err := dialEtcd(a.service.addr)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (int, error) {
			found, err := client.Get(ctx, directory(contest.JobName(0), kinds[0]), clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil {
				return 0, err
			}
			return int(found.Count), nil
		}, func() { _ = client.Close() }, nil
	}
	reg, err := openRegistry(ctx, contest.Config{Registry: a.settings.registry, Server: a.service.addr})
	if err != nil {
		return nil, nil, err
	}
	ses, err := reg.Open(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, reg.Close())
	}
	return func(ctx context.Context) (int, error) {
			ids, err := ses.Children(ctx, fmt.Sprintf("/%s/%s/instances", namespace, contest.JobName(0)))
			return len(ids), err
		}, func() {
			_ = ses.Close(ctx)
			_ = reg.Close()
		}, nil
}

// expiry waits until a job has so many instances, and returns when that was.
func expiry(ctx context.Context, present func(context.Context) (int, error), instances int) (time.Time, error) {
	for ctx.Err() == nil {
		n, err := present(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if n == instances {
			break
		}
		if err := wait(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			return time.Time{}, err
		}
	}
	return time.Now(), context.Cause(ctx)
}
