package main

import (
	"slices"
	"time"
)

// owners follows which worker owns which item, and how long an item had none.
type owners struct {
	items   int
	of      map[string][]int // by worker
	since   map[int]time.Time
	longest time.Duration
	started bool
}

func newOwners(items int) *owners {
	return &owners{items: items, of: map[string][]int{}, since: map[int]time.Time{}}
}

// set says that the worker owns exactly items now; gone says that it owns nothing.
func (o *owners) set(worker string, items []int, at time.Time) {
	o.of[worker] = slices.Clone(items)
	owned := map[int]bool{}
	for _, list := range o.of {
		for _, n := range list {
			owned[n] = true
		}
	}
	if len(owned) == o.items {
		o.started = true
	}
	if !o.started {
		return // the first assignment is no gap
	}
	for n := range o.items {
		since, without := o.since[n]
		switch {
		case owned[n] && without:
			o.longest = max(o.longest, at.Sub(since))
			delete(o.since, n)
		case !owned[n] && !without:
			o.since[n] = at
		}
	}
}

func (o *owners) gone(worker string, at time.Time) {
	o.set(worker, nil, at)
	delete(o.of, worker)
}

// whole reports whether every item has an owner, among at least n workers.
func (o *owners) whole(n int) bool {
	sharing := 0
	for _, list := range o.of {
		if len(list) > 0 {
			sharing++
		}
	}
	return o.started && len(o.since) == 0 && sharing >= min(n, o.items)
}
