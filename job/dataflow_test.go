package job_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/offset"
	"github.com/elasticron/elasticron/coretest"
	"github.com/elasticron/elasticron/job"
	"github.com/elasticron/elasticron/job/link"
)

var errBad = errors.New("bad row")

// A table has rows 1 to n for each item; offsets are the last row that was processed.
type table struct {
	rows int

	mu      sync.Mutex
	fetched []string
	done    map[int][]int // by item
}

func (d *table) fetch(_ context.Context, _ core.Shard, from string, count int) ([]int, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fetched = append(d.fetched, from)
	last, _ := strconv.Atoi(from) // "" is 0
	var rows []int
	for len(rows) < count && last < d.rows {
		last++
		rows = append(rows, last)
	}
	if len(rows) == 0 {
		return nil, from, nil
	}
	return rows, strconv.Itoa(last), nil
}

func (d *table) process(_ context.Context, s core.Shard, rows []int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = map[int][]int{}
	}
	d.done[s.Item] = append(d.done[s.Item], rows...)
	return nil
}

func (d *table) flow() *job.Dataflow[int] {
	return &job.Dataflow[int]{Fetch: d.fetch, Process: d.process, FetchCount: 3}
}

var numbers = []int{1, 2, 3, 4, 5, 6, 7, 8}

func TestDataflowOnceAndStreaming(t *testing.T) {
	d := &table{rows: 8}
	flow := d.flow()
	require.NoError(t, flow.Run(t.Context(), core.Shard{Total: 1}))
	require.Equal(t, numbers[:3], d.done[0])
	require.Equal(t, []string{""}, d.fetched)

	d = &table{rows: 8}
	flow = d.flow()
	flow.Streaming = true
	require.NoError(t, flow.Run(t.Context(), core.Shard{Total: 1}))
	require.Equal(t, numbers, d.done[0])
	require.Equal(t, []string{"", "3", "6", "8"}, d.fetched)

	d = &table{}
	require.NoError(t, d.flow().Run(t.Context(), core.Shard{Total: 1}))
	require.Empty(t, d.done)
}

// Streaming ends behind the batch in hand when the item is wanted elsewhere, or the run's context ends.
func TestDataflowEnds(t *testing.T) {
	for name, end := range map[string]func(yield chan struct{}, cancel context.CancelFunc){
		"yield":  func(yield chan struct{}, _ context.CancelFunc) { close(yield) },
		"cancel": func(_ chan struct{}, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			d := &table{rows: 8}
			flow := d.flow()
			flow.Streaming = true
			yield := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			flow.Process = func(ctx context.Context, s core.Shard, rows []int) error {
				if rows[0] == 4 {
					end(yield, cancel)
				}
				return d.process(ctx, s, rows)
			}
			require.NoError(t, flow.Run(ctx, core.Shard{Total: 1, Yield: yield}))
			require.Equal(t, numbers[:6], d.done[0])
		})
	}
}

// Parts of a batch are processed at once, each in its order, and differ in size by one at most.
func TestDataflowConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &table{rows: 8}
		flow := d.flow()
		flow.FetchCount, flow.Concurrency = 0, 3
		var sizes []int
		flow.Process = func(ctx context.Context, s core.Shard, rows []int) error {
			<-time.After(time.Second)
			require.True(t, slices.IsSorted(rows))
			require.NoError(t, d.process(ctx, s, rows))
			d.mu.Lock()
			defer d.mu.Unlock()
			sizes = append(sizes, len(rows))
			return nil
		}
		begun := time.Now()
		require.NoError(t, flow.Run(t.Context(), core.Shard{Total: 1}))
		require.Equal(t, time.Second, time.Since(begun))
		slices.Sort(sizes)
		require.Equal(t, []int{2, 3, 3}, sizes)
		slices.Sort(d.done[0])
		require.Equal(t, numbers, d.done[0])

		flow.Concurrency = 99 // more than there are data
		require.NoError(t, flow.Run(t.Context(), core.Shard{Total: 1}))
	})
}

// keep runs one item of a flow over several fires in a cluster, and returns where it stands after each.
func keep(t *testing.T, flow core.Job, fires int) (stands []offset.Position, errs []error) {
	t.Helper()
	coretest.Run(t, func(c *coretest.Cluster) {
		looked := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			err := link.Call(ctx, flow, s)
			at, openErr := offset.Open(ctx, s, offset.Config{})
			require.NoError(t, openErr)
			stands = append(stands, at.Position())
			return err
		})
		c.Start("one", looked, core.JobConfig{Name: "flow", Cron: "0 0 * * * ?", Shards: 1})
		for range fires {
			c.Next("flow")
		}
		for _, r := range c.Runs("flow") {
			errs = append(errs, r.Err)
		}
	})
	return stands, errs
}

// What fails is not passed, and counts as a failure; the next run has it once more.
func TestDataflowFailures(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":  func() error { return errBad },
		"panic":  func() error { panic(errBad.Error()) },
		"goexit": func() error { (&testing.T{}).SkipNow(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := &table{rows: 8}
			flow := d.flow()
			flow.Concurrency = 2
			var failed atomic.Bool
			flow.Process = func(ctx context.Context, s core.Shard, rows []int) error {
				if slices.Contains(rows, 2) && failed.CompareAndSwap(false, true) {
					return fail()
				}
				return d.process(ctx, s, rows)
			}
			stands, errs := keep(t, flow, 2)
			require.Error(t, errs[0])
			require.NoError(t, errs[1])
			require.Equal(t, []string{"", ""}, d.fetched)
			require.Empty(t, stands[0].Offset)
			require.EqualValues(t, 0, stands[0].Success, "what will be processed again has not succeeded yet")
			require.EqualValues(t, 2, stands[0].Failure, "the part with the bad row")
			require.Equal(t, "3", stands[1].Offset)
			require.EqualValues(t, 3, stands[1].Success)
			require.EqualValues(t, 2, stands[1].Failure)
		})
	}
}

// What Failed deals with is passed, and counts as a failure.
func TestDataflowFailed(t *testing.T) {
	d := &table{rows: 8}
	flow := d.flow()
	flow.FetchCount, flow.Concurrency, flow.Streaming = 4, 4, true
	flow.Process = func(_ context.Context, _ core.Shard, rows []int) error {
		if rows[0]%2 == 0 {
			return errBad
		}
		return nil
	}
	var dead []int
	flow.Failed = func(_ context.Context, _ core.Shard, rows []int, err error) error {
		if err != errBad || rows[0] == 8 { //nolint:errorlint // it is given as it was returned
			return err
		}
		dead = append(dead, rows...)
		return nil
	}
	stands, errs := keep(t, flow, 1)
	require.ErrorIs(t, errs[0], errBad)
	require.Equal(t, []int{2, 4, 6}, dead)
	require.Equal(t, "4", stands[0].Offset, "8 was not dealt with")
	require.EqualValues(t, 2, stands[0].Success)
	require.EqualValues(t, 4, stands[0].Failure)
}

func TestDataflowFetchFails(t *testing.T) {
	flow := &job.Dataflow[int]{
		Fetch:   func(context.Context, core.Shard, string, int) ([]int, string, error) { return nil, "", errBad },
		Process: func(context.Context, core.Shard, []int) error { return nil },
	}
	require.EqualError(t, flow.Run(t.Context(), core.Shard{Total: 1}), "dataflow: fetch: bad row")
}

// An offset may go on without data.
func TestDataflowSkipsGaps(t *testing.T) {
	flow := &job.Dataflow[int]{
		Fetch: func(_ context.Context, _ core.Shard, from string, _ int) ([]int, string, error) {
			return nil, from + "x", nil
		},
		Process:   func(context.Context, core.Shard, []int) error { return errBad },
		Streaming: true,
	}
	stands, errs := keep(t, flow, 2)
	require.Equal(t, []error{nil, nil}, errs)
	require.Equal(t, "xx", stands[1].Offset)
	require.Zero(t, stands[1].Success)
	require.Empty(t, stands[1].Counts)
}

// Who needs no offsets makes no request for them.
func TestDataflowUnrecorded(t *testing.T) {
	d := &table{rows: 8}
	flow := d.flow()
	flow.Unrecorded = true
	stands, errs := keep(t, flow, 2)
	require.Equal(t, []error{nil, nil}, errs)
	require.Equal(t, []string{"", ""}, d.fetched)
	require.Equal(t, offset.Position{}, stands[1])
}

// A run that is stopped hard has still its last batch recorded.
func TestDataflowRecordsWhatIsDone(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		d := &table{rows: 8}
		flow := d.flow()
		flow.Streaming = true
		in := make(chan struct{})
		flow.Process = func(ctx context.Context, s core.Shard, rows []int) error {
			if rows[0] == 4 {
				close(in)
				<-ctx.Done()
			}
			return d.process(ctx, s, rows)
		}
		cfg := core.JobConfig{Name: "flow", Cron: "0 0 * * * ?", Shards: 1}
		one := c.Start("one", flow, cfg)
		<-in
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, one.Scheduler.Stop(ctx))
		two := &table{rows: 8}
		c.Start("two", two.flow(), cfg)
		c.Next("flow")
		require.Equal(t, "6", two.fetched[0])
	})
}

// With another total the job says where its items start, or fails.
func TestDataflowRebase(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		d := &table{rows: 8}
		cfg := core.JobConfig{Name: "flow", Cron: "0 0 * * * ?", Shards: 2}
		one := c.Start("one", d.flow(), cfg)
		c.Next("flow")
		one.Stop()

		cfg.Shards, cfg.Overwrite = 1, true
		two := c.Start("two", d.flow(), cfg)
		c.Next("flow")
		runs := c.Runs("flow")
		require.EqualError(t, runs[len(runs)-1].Err, "dataflow: Rebase: is nil, and offsets were set under a sharding total count of 2, which is 1 now; "+
			"give the function that says where items start")
		two.Stop()

		flow := d.flow()
		var seen []offset.Position
		flow.Rebase = func(_ context.Context, _ core.Shard, before []offset.Position) (string, error) {
			seen = before
			return "5", nil
		}
		c.Start("three", flow, cfg)
		c.Next("flow")
		require.Len(t, seen, 2)
		require.Equal(t, "5", d.fetched[len(d.fetched)-1])
		seen = nil
		c.Next("flow")
		require.Empty(t, seen)
		require.Equal(t, "8", d.fetched[len(d.fetched)-1])
	})
}

func TestDataflowValidate(t *testing.T) {
	d := &table{}
	require.NoError(t, d.flow().Validate())
	bad := &job.Dataflow[int]{FetchCount: -1, Concurrency: -1, CountInterval: -1}
	for _, err := range []error{bad.Validate(), bad.Run(t.Context(), core.Shard{})} {
		require.ErrorIs(t, err, core.ErrConfig)
		for _, name := range []string{"Fetch:", "Process:", "FetchCount:", "Concurrency:", "CountInterval:"} {
			require.ErrorContains(t, err, name)
		}
	}
}

func TestDataflowConfigured(t *testing.T) {
	flow := (&table{}).flow()
	got, err := flow.Configured(core.JobConfig{Props: map[string]string{
		"streaming.process": "true", "dataflow.fetch.count": "7", "dataflow.concurrency": "2", "dataflow.count.interval.seconds": "300",
	}})
	require.NoError(t, err)
	made, _ := got.(*job.Dataflow[int])
	require.True(t, made.Streaming)
	require.Equal(t, []any{7, 2, 5 * time.Minute}, []any{made.FetchCount, made.Concurrency, made.CountInterval})
	got, err = flow.Configured(core.JobConfig{})
	require.NoError(t, err)
	made, _ = got.(*job.Dataflow[int])
	require.Equal(t, 3, made.FetchCount)
	for _, key := range []string{"streaming.process", "dataflow.fetch.count", "dataflow.concurrency", "dataflow.count.interval.seconds"} {
		_, err = flow.Configured(core.JobConfig{Props: map[string]string{key: "hunter2"}})
		require.ErrorContains(t, err, "Props."+key)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err = (&job.Dataflow[int]{}).Configured(core.JobConfig{})
	require.ErrorIs(t, err, core.ErrConfig)
}
