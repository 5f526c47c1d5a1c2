package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/history/nodes"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// snapshot reads what stands of a job.
func (c *client) snapshot(ctx context.Context, job string) (s *history.Snapshot, schedule *history.Schedule, err error) {
	err = c.do(ctx, func(ctx context.Context, ses registry.Session) error {
		s, schedule, err = readSnapshot(ctx, ses, jobLayout(job))
		return err
	})
	return s, schedule, err
}

func readSnapshot(ctx context.Context, ses registry.Session, j layout.Job) (*history.Snapshot, *history.Schedule, error) {
	s := &history.Snapshot{Running: map[int]string{}}
	if err := ses.Sync(ctx); err != nil {
		return nil, nil, err
	}
	var items, ledgers, inForce []string
	for _, list := range []struct {
		path string
		into *[]string
	}{{j.Instances(), &s.Instances}, {j.Lives(), &s.Lives}, {j.Sharding(), &items}, {j.Ledgers(), &ledgers}, {j.InForce(), &inForce}} {
		names, err := ses.Children(ctx, list.path)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return nil, nil, err
		}
		*list.into = names
	}
	paths := []string{j.Leader(), j.Term(), j.Base(), j.Schedule(), j.Necessary(), j.Processing()}
	fixed := len(paths)
	for _, id := range ledgers {
		paths = append(paths, j.Ledger(id))
	}
	var numbers []int
	for _, name := range items {
		if n, ok := layout.ParseItem(name); ok {
			numbers = append(numbers, n)
			paths = append(paths, j.Running(n))
		}
	}
	stand, err := ses.Get(ctx, paths...)
	if err != nil {
		return nil, nil, err
	}
	schedule, err := fill(s, stand[:fixed])
	if err != nil {
		return nil, nil, err
	}
	read, broken, err := nodes.Ledgers(ctx, ses.Get, stand[fixed:fixed+len(ledgers)]...)
	if err = errors.Join(append(broken, err)...); err != nil {
		return nil, nil, err
	}
	s.Ledgers = read
	for i, n := range numbers {
		if node := stand[fixed+len(ledgers)+i]; node.Exists() {
			s.Running[n] = string(node.Value)
		}
	}
	return s, schedule, readAsked(ctx, ses, j, s, inForce)
}

// readAsked takes the requests that nobody has answered, and the runs that were asked for.
func readAsked(ctx context.Context, ses registry.Session, j layout.Job, s *history.Snapshot, inForce []string) error {
	for _, name := range inForce {
		if id, is := layout.RequestID(name); is {
			s.Requests = append(s.Requests, id)
		}
		n, is := layout.RunNumber(name)
		if !is {
			continue
		}
		ids, err := ses.Children(ctx, j.RunResults(n))
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
		paths := []string{j.Run(n)}
		for _, id := range ids {
			paths = append(paths, j.RunResult(n, id))
		}
		stand, err := ses.Get(ctx, paths...)
		if err != nil {
			return err
		}
		var results [][]byte
		for _, node := range stand[1:] {
			results = append(results, node.Value)
		}
		run, err := nodes.Asked(stand[0].Value, results)
		if err != nil {
			return fmt.Errorf("run %d: %w", n, err)
		}
		s.Asked = append(s.Asked, run)
	}
	return nil
}

// fill takes what the fixed nodes say, in the order in which readSnapshot asks.
func fill(s *history.Snapshot, fixed []registry.Node) (schedule *history.Schedule, err error) {
	s.Leader, s.Term = string(fixed[0].Value), layout.UnmarshalTerm(fixed[1].Value).Leader
	if fixed[2].Exists() {
		if s.Base, err = nodes.Base(fixed[2].Value); err != nil {
			return nil, err
		}
	}
	if fixed[3].Exists() {
		if schedule, err = nodes.Schedule(fixed[3].Value); err != nil {
			return nil, err
		}
	}
	for _, flag := range fixed[4:] {
		if flag.Exists() {
			s.Flags = append(s.Flags, flag.Path)
		}
	}
	return schedule, nil
}
