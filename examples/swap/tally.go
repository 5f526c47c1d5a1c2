package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
)

// A tally is the job: it counts the runs of each item.
type tally struct {
	done chan struct{} // closed when all have run

	mu     sync.Mutex
	items  int
	runs   []share // sorted by item, then in the order of the first run
	fences map[int]registry.Revision
	wrong  []error
}

// A share is what one instance did for one item.
type share struct {
	item            int
	param, instance string
	fires           int
	fence           registry.Revision
}

func newTally(jobs []core.JobConfig) *tally {
	t := &tally{done: make(chan struct{}), fences: map[int]registry.Revision{}}
	for _, j := range jobs {
		t.items = j.Shards
	}
	return t
}

// Run counts a run, and that its fencing token is larger than those before.
func (t *tally) Run(_ context.Context, s core.Shard) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Fence <= t.fences[s.Item] {
		t.wrong = append(t.wrong, fmt.Errorf("swap: item %d ran with fencing token %d after %d", s.Item, s.Fence, t.fences[s.Item]))
	}
	t.fences[s.Item] = s.Fence
	i := slices.IndexFunc(t.runs, func(r share) bool { return r.item == s.Item && r.instance == s.Instance })
	if i < 0 {
		i = len(t.runs)
		t.runs = append(t.runs, share{item: s.Item, param: s.Param, instance: s.Instance})
	}
	t.runs[i].fires++
	t.runs[i].fence = s.Fence
	select {
	case <-t.done:
	default:
		if t.complete() {
			close(t.done)
		}
	}
	return nil
}

// complete reports whether every item ran twice, under at least two instances in all.
func (t *tally) complete() bool {
	fires, instances := map[int]int{}, map[string]bool{}
	for _, r := range t.runs {
		fires[r.item] += r.fires
		instances[r.instance] = true
	}
	for n := range t.items {
		if fires[n] < 2 {
			return false
		}
	}
	return len(instances) >= 2
}

// table says who ran what.
func (t *tally) table() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.runs, func(a, b share) int { return a.item - b.item })
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "item\tparameter\tinstance\tfires\tfence")
	for _, r := range t.runs {
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\n", r.item, r.param, r.instance, r.fires, r.fence)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

func (t *tally) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.wrong...)
}
