package coretest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/job/link"
	"github.com/elasticron/elasticron/registry/memory"
)

const (
	// patience bounds each wait, in fake time.
	patience = 48 * time.Hour
	// lookFirst and lookLast bound the pauses between two looks, in fake time.
	lookFirst, lookLast = time.Millisecond, 10 * time.Second
	// stopWait is how long the runs of an instance have until their contexts end, in fake time.
	stopWait = time.Minute
)

// Run runs a test in a bubble with a cluster that has no instance yet. When test returns, what
// is left of the cluster is stopped.
func Run(t *testing.T, test func(c *Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{t: t, server: memory.NewServer(memory.Config{}), outcomes: map[fire]map[int]bool{}}
		t.Cleanup(func() {
			for _, in := range c.instances {
				in.Stop()
			}
		})
		test(c)
	})
}

// A Cluster is a registry and the instances on it. Its methods are for the test's goroutine,
// and fail the test when something does not happen within two days of fake time.
type Cluster struct {
	t         *testing.T
	server    *memory.Server
	instances []*Instance

	mu       sync.Mutex
	runs     []*ItemRun
	outcomes map[fire]map[int]bool // the items of a fire that have their outcome
	spans    []span                // and those that have one of many fires at once
}

// A fire is one fire of a job.
type fire struct {
	job string
	due int64
}

// A span is an outcome of some items, of the fires from first to last.
type span struct {
	job         string
	items       []int
	first, last time.Time
}

// An Instance is one process of the cluster, as far as jobs see it.
type Instance struct {
	// Scheduler is for what the methods of Instance do not do.
	*core.Scheduler

	cluster *Cluster
	reg     *memory.Registry
	gone    bool
	heal    func()
}

// Start starts an instance with one job, and returns once it is registered and the cluster has
// shared the items out. Its warnings are not logged, unless opts have core.WithLogger.
func (c *Cluster) Start(name string, work core.Job, cfg core.JobConfig, opts ...core.Option) *Instance {
	c.t.Helper()
	in := &Instance{cluster: c, reg: c.server.Registry("coretest")}
	opts = append([]core.Option{
		core.WithInstanceName(name), core.WithIP("127.0.0.1"), core.WithLogger(nil), core.WithListener(c.note),
	}, opts...)
	in.Scheduler = core.New(in.reg, opts...)
	c.instances = append(c.instances, in)
	if err := in.Add(c.recorded(work), cfg); err != nil {
		c.t.Fatal(err)
	}
	if err := in.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.WaitOwned()
	return in
}

// WaitOwned waits until every item of every job has exactly one live owner.
func (c *Cluster) WaitOwned() {
	c.t.Helper()
	c.until("every item has an owner", func() bool {
		total, owned := map[string]int{}, map[string][]int{}
		for _, in := range c.instances {
			if in.gone {
				continue
			}
			for _, j := range in.State().Jobs {
				if j.Phase == core.PhaseRunning {
					total[j.Name] = max(total[j.Name], j.Total)
					owned[j.Name] = append(owned[j.Name], j.Items...)
				}
			}
		}
		for name, n := range total {
			slices.Sort(owned[name])
			if n == 0 || len(owned[name]) != n || len(slices.Compact(owned[name])) != n {
				return false
			}
		}
		return true
	})
}

// Advance lets time pass.
func (c *Cluster) Advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Next lets time pass to the next fire of a job, and waits until it is complete. It returns
// the instant of the fire.
func (c *Cluster) Next(job string) time.Time {
	c.t.Helper()
	due := c.next(job)
	c.Advance(time.Until(due))
	c.Complete(job, due)
	return due
}

// next is when a job fires next.
func (c *Cluster) next(job string) time.Time {
	c.t.Helper()
	var due time.Time
	for _, in := range c.instances {
		for _, j := range in.State().Jobs {
			if !in.gone && j.Name == job && !j.Next.IsZero() && (due.IsZero() || j.Next.Before(due)) {
				due = j.Next
			}
		}
	}
	if due.IsZero() {
		c.t.Fatalf("coretest: no live instance has a job %q that fires", job)
	}
	return due
}

// Complete waits until every item has its outcome of a fire: it has ended, was cut, was skipped, or a later run stands
// for it.
func (c *Cluster) Complete(job string, due time.Time) {
	c.t.Helper()
	c.until("the fire is complete", func() bool {
		total := 0
		for _, in := range c.instances {
			for _, j := range in.State().Jobs {
				if !in.gone && j.Name == job {
					total = max(total, j.Total)
				}
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return total > 0 && c.settled(job, due) >= total
	})
}

func (c *Cluster) until(what string, done func() bool) {
	c.t.Helper()
	pause := lookFirst
	for deadline := time.Now().Add(patience); ; <-time.After(pause) {
		pause = min(2*pause, lookLast)
		synctest.Wait()
		if done() {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("coretest: still not after %v: %s%s", patience, what, c.idle())
		}
	}
}

// idle says which jobs begin nothing, and why.
func (c *Cluster) idle() string {
	var said []string
	for _, in := range c.instances {
		for _, j := range in.State().Jobs {
			if why := fmt.Sprintf("; job %q begins nothing: %s", j.Name, j.Disabled); j.Disabled != "" && !slices.Contains(said, why) {
				said = append(said, why)
			}
		}
	}
	return strings.Join(said, "")
}

// note keeps the outcomes of fires.
func (c *Cluster) note(e event.Event) {
	switch e := e.(type) {
	case event.ItemEnded:
		c.outcome(e.Job, e.Due, e.Item)
	case event.ItemCut:
		c.outcome(e.Job, e.Due, e.Item)
	case event.ItemsSkipped:
		c.outcomeOfMany(span{e.Job, e.Items, e.First, e.Due})
	case event.ItemsFolded:
		c.outcomeOfMany(span{e.Job, e.Items, e.First, e.Last})
	}
}

func (c *Cluster) outcomeOfMany(s span) {
	if s.first.Equal(s.last) {
		c.outcome(s.job, s.last, s.items...)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, s)
}

func (c *Cluster) outcome(job string, due time.Time, items ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := fire{job, due.UnixNano()}
	if c.outcomes[f] == nil {
		c.outcomes[f] = map[int]bool{}
	}
	for _, n := range items {
		c.outcomes[f][n] = true
	}
}

// settled is how many items have their outcome of a fire. The caller holds mu.
func (c *Cluster) settled(job string, due time.Time) int {
	items := maps.Clone(c.outcomes[fire{job, due.UnixNano()}])
	if items == nil {
		items = map[int]bool{}
	}
	for _, s := range c.spans {
		if s.job == job && !due.Before(s.first) && !due.After(s.last) {
			for _, n := range s.items {
				items[n] = true
			}
		}
	}
	return len(items)
}

// recorded notes the runs of a job.
func (c *Cluster) recorded(work core.Job) core.Job {
	if work == nil {
		return nil // Add says so
	}
	return core.JobFunc(func(ctx context.Context, s core.Shard) error {
		r := &ItemRun{Shard: s, Begun: time.Now()}
		c.mu.Lock()
		c.runs = append(c.runs, r)
		c.mu.Unlock()
		err := core.ErrGoexit // unless it returns
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			r.Ended, r.Took, r.Err = true, time.Since(r.Begun), err
		}()
		err = link.Call(ctx, work, s)
		return err
	})
}

// Runs are the runs of a job so far, on all instances, in the order in which they began.
func (c *Cluster) Runs(job string) []ItemRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	var runs []ItemRun
	for _, r := range c.runs {
		if r.Shard.Job == job {
			runs = append(runs, *r)
		}
	}
	return runs
}

// Stop stops the instance as a program that ends does: what runs has a minute until its context ends.
func (in *Instance) Stop() {
	in.cluster.t.Helper()
	if in.heal != nil {
		in.heal()
	}
	in.gone = true
	err := in.stop(stopWait)
	if running := (*core.RunningError)(nil); errors.As(err, &running) {
		err = in.stop(patience) // their contexts have ended; what does not look at it may need longer
	}
	if err != nil {
		in.cluster.t.Error(err)
	}
	_ = in.reg.Close() // it never fails
}

func (in *Instance) stop(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return in.Scheduler.Stop(ctx)
}

// Crash cuts the instance off for good, and ends its session, as the end of its process does
// once the registry knows. The contexts of its runs end a little later, since the test
// cannot end its functions.
func (in *Instance) Crash() {
	in.gone = true
	in.heal = in.reg.LoseRequests()
	in.cluster.server.Expire(in.State().Session)
}

// Expire ends the instance's session at the registry. It learns that, cancels what runs, and
// comes back with another session.
func (in *Instance) Expire() {
	in.cluster.server.Expire(in.State().Session)
}
