package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/coretest"
	"github.com/elasticron/elasticron/tracing"
)

var errBroken = errors.New("broken")

// A table keeps what it gets. before may block or panic.
type table struct {
	mu         sync.Mutex
	executions []tracing.Execution
	statuses   []tracing.Status
	before     func(ctx context.Context) error
}

func (d *table) ready(ctx context.Context) error {
	if d.before == nil {
		return nil
	}
	return d.before(ctx)
}

func (d *table) Execution(ctx context.Context, e tracing.Execution) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.executions = append(d.executions, e)
	return nil
}

func (d *table) Status(ctx context.Context, s tracing.Status) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.statuses = append(d.statuses, s)
	return nil
}

// Every column of both tables is there, for a fire of which one item fails and one panics.
func TestBothTables(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		d := &table{}
		trace := tracing.New(d, tracing.Config{HostName: "web"})
		one := c.Start("one", core.JobFunc(func(_ context.Context, s core.Shard) error {
			<-time.After(time.Minute)
			switch s.Item {
			case 1:
				return errBroken
			case 2:
				panic("no")
			}
			return nil
		}), core.JobConfig{Name: "hello", Cron: "0 0 * * * ?", Shards: 3}, core.WithListener(trace.Listen))
		due := c.Next("hello")
		id := one.State().Jobs[0].Instance
		one.Stop()
		require.NoError(t, trace.Close(context.Background()))
		require.Equal(t, tracing.Stats{Delivered: 9}, trace.Stats())

		require.Len(t, d.executions, 6)
		begun := map[string]tracing.Execution{}
		for _, e := range d.executions[:3] {
			require.NoError(t, uuid.Validate(e.ID))
			require.Zero(t, e.Ended)
			require.False(t, e.Success)
			begun[e.ID] = e
		}
		require.Len(t, begun, 3)
		for _, e := range d.executions[3:] {
			require.Equal(t, begun[e.ID].TaskID, e.TaskID)
			require.Equal(t, begun[e.ID].Began, e.Began)
			require.Equal(t, fmt.Sprintf("hello@-@%d@-@READY@-@%s", e.Item, id), e.TaskID[:strings.LastIndex(e.TaskID, "-1-")])
			require.Equal(t, []any{"hello", "web", "127.0.0.1", "NORMAL_TRIGGER", time.Minute}, []any{e.Job, e.HostName, e.IP, e.Source, e.Ended.Sub(e.Began)})
			require.Equal(t, e.Item == 0, e.Success)
			require.True(t, e.Run.Due.Equal(due))
			require.Positive(t, e.Run.Fence)
			switch e.Item {
			case 0:
				require.Empty(t, e.FailureCause)
			case 1:
				require.Equal(t, "broken", e.FailureCause)
			case 2:
				require.True(t, strings.HasPrefix(e.FailureCause, "panic: no\n"), e.FailureCause)
				require.Contains(t, e.FailureCause, "TestBothTables", "its stack")
			}
		}

		require.Len(t, d.statuses, 3)
		for i, want := range []struct {
			state   tracing.State
			message string
		}{{tracing.TaskStaging, "Job 'hello' execute begin."}, {tracing.TaskRunning, ""}, {tracing.TaskError, "{1=broken, 2=panic: no\n"}} {
			s := d.statuses[i]
			require.NoError(t, uuid.Validate(s.ID))
			require.Equal(t, want.state, s.State)
			require.True(t, strings.HasPrefix(s.Message, want.message), s.Message)
			require.Equal(t, []int{0, 1, 2}, s.Items)
			require.True(t, strings.HasPrefix(s.TaskID, "hello@-@0,1,2@-@READY@-@"+id+"-1-"), s.TaskID)
			require.Len(t, strings.Split(s.TaskID, "@-@"), 5)
			require.Equal(t, d.statuses[0].TaskID, s.OriginalTaskID)
			require.Equal(t, []any{"127.0.0.1", "READY", "hello"}, []any{s.SlaveID, s.ExecutionType, s.Job})
			require.NotZero(t, s.At)
		}
		require.NotEqual(t, d.statuses[0].ID, d.statuses[1].ID)
	})
}

// The other states, and sources, as events tell them.
func TestStatesAndSources(t *testing.T) {
	d := &table{}
	trace := tracing.New(d, tracing.Config{})
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for _, e := range []event.Event{
		event.FireEnded{Job: "j", Items: []int{0}},
		event.ItemsFolded{Job: "j", Items: []int{0}, First: at, Last: at.Add(time.Hour), Count: 2, Into: at.Add(2 * time.Hour)},
		event.ItemsSkipped{Job: "j", Items: []int{0}, First: at, Due: at, Count: 1, Reason: event.SkipRunning},
		event.ItemCut{Job: "j", Item: 4, Instance: "10.0.0.9@-@gone-aaaaaaaaaa"},
		event.Warning{}, event.Started{}, // nothing of the tables
		event.FireEnded{Job: "j", Items: []int{0}, Failed: 1, Errs: map[int]error{0: errors.New(strings.Repeat("é", 5000))}},
		event.ItemCalled{Run: event.Run{Source: "misfire"}}, event.ItemCalled{Run: event.Run{Source: "failover"}}, event.ItemCalled{Run: event.Run{Source: "request"}},
	} {
		trace.Listen(e)
	}
	require.NoError(t, trace.Close(t.Context()))
	var got []string
	for _, s := range d.statuses[:4] {
		got = append(got, fmt.Sprintf("%s %v %s%s", s.State, s.Items, s.SlaveID, s.Message))
	}
	require.Equal(t, []string{
		"TASK_FINISHED [0] ",
		"TASK_FINISHED [0] 2 missed fires since 2026-11-22T09:00:00Z; the one of 2026-11-22T11:00:00Z runs for them",
		"TASK_DROPPED [0] 1 fires since 2026-11-22T09:00:00Z: the item still ran",
		"TASK_LOST [4] 10.0.0.9the instance died while it ran",
	}, got)
	require.Len(t, []rune(d.statuses[4].Message), 4000)
	for i, want := range []string{"MISFIRE", "FAILOVER", "NORMAL_TRIGGER"} {
		require.Equal(t, want, d.executions[i].Source)
	}
}

// A sink that stands still delays nothing: runs go on, and what it misses is counted.
func TestASinkThatStandsStill(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		open := make(chan struct{})
		d := &table{before: func(context.Context) error { <-open; return nil }}
		trace := tracing.New(d, tracing.Config{Queue: 4})
		one := c.Start("one", core.JobFunc(func(context.Context, core.Shard) error { return nil }),
			core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 1}, core.WithListener(trace.Listen))
		for range 10 {
			c.Next("hello")
		}
		require.Len(t, c.Runs("hello"), 10)
		one.Stop()
		s := trace.Stats()
		require.Zero(t, s.Delivered)
		require.Equal(t, uint64(50-5), s.Dropped, "5 entries a run, 4 wait and 1 is in the sink's hands")
		close(open)
		require.NoError(t, trace.Close(context.Background()))
		require.Equal(t, tracing.Stats{Delivered: 5, Dropped: 45}, trace.Stats())
		trace.Listen(event.FireEnded{})
		require.Equal(t, uint64(46), trace.Stats().Dropped, "after Close")
	})
}

// One that fails or panics is told and counted, and gets what comes next.
func TestASinkThatFails(t *testing.T) {
	var calls int
	d := &table{before: func(context.Context) error {
		calls++
		switch calls {
		case 1:
			return errBroken
		case 2:
			panic("no")
		}
		return nil
	}}
	var told []string
	trace := tracing.New(d, tracing.Config{Failed: func(err error) { told = append(told, err.Error()) }})
	for range 3 {
		trace.Listen(event.FireEnded{})
	}
	require.NoError(t, trace.Close(t.Context()))
	require.NoError(t, trace.Close(t.Context()))
	require.Equal(t, []string{"broken", "tracing: the sink panicked: no"}, told)
	require.Equal(t, tracing.Stats{Delivered: 1, Failed: 2}, trace.Stats())
}

// Close waits no longer than its context, ends the sink's, and tells what is lost.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &table{before: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		trace := tracing.New(d, tracing.Config{})
		for range 3 {
			trace.Listen(event.FireEnded{})
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begun := time.Now()
		require.EqualError(t, trace.Close(ctx), "tracing: close: 2 entries were dropped in all: context deadline exceeded")
		require.Equal(t, time.Second, time.Since(begun))
		require.Equal(t, tracing.Stats{Dropped: 2, Failed: 1}, trace.Stats())

		release := make(chan struct{})
		trace = tracing.New(&table{before: func(context.Context) error { <-release; return nil }}, tracing.Config{})
		trace.Listen(event.FireEnded{})
		synctest.Wait()
		require.EqualError(t, trace.Close(ctx), "tracing: close: the sink does not return: context deadline exceeded")
		close(release)
		require.NoError(t, trace.Close(context.Background()))
	})
}
