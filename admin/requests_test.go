package admin_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/registry"
)

// hourly fires at no time that a test lives through.
var hourly = core.JobConfig{Name: "hello", Cron: "0 0 0 1 1 ? 2099", TimeZone: "UTC", Shards: 4, Concurrency: 4}

// trigger asks for a run, and awaits what became of it.
func (b *bed) trigger(r request.Request) request.Result {
	b.Helper()
	id, err := b.Trigger(b.Context(), "hello", r)
	require.NoError(b, err)
	return b.awaited(id)
}

func (b *bed) awaited(id string) request.Result {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	result, err := b.Await(ctx, "hello", id)
	require.NoError(b, err)
	return result
}

// outcomes are those of the items, in their order.
func outcomes(r request.Result) (words []request.Outcome) {
	for _, it := range r.Items {
		words = append(words, it.Outcome)
	}
	return words
}

func (in *instance) ranOf(number int64) (shards []core.Shard) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, s := range in.ran {
		if s.Request == number {
			shards = append(shards, s)
		}
	}
	slices.SortFunc(shards, func(a, b core.Shard) int { return a.Item - b.Item })
	return shards
}

// numbers are the runs of which an instance has run items.
func (in *instance) numbers() (numbers []int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, s := range in.ran {
		numbers = append(numbers, s.Request)
	}
	return numbers
}

// pull makes the node by which ElasticJob's tools ask an instance to run its items.
func (b *bed) pull(id string) {
	b.Helper()
	_, err := b.store.Store.Commit(b.Context(), registry.Create("/shop/hello/trigger/"+id, nil))
	require.NoError(b, err)
}

func TestATriggerRunsAllOrSomeItemsOnceAndIsAwaited(t *testing.T) {
	onEach(t, func(b *bed) {
		a, c := b.start("a", "127.0.0.1", hourly), b.start("c", "127.0.0.2", hourly)
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })

		result := b.trigger(request.Request{Param: "all"})
		require.NoError(b, result.Err())
		require.EqualValues(b, 1, result.Number)
		require.Len(b, result.Items, 4)
		for _, it := range result.Items {
			require.Contains(b, []string{a.id(), c.id()}, it.Instance)
		}
		require.Len(b, a.ranOf(1), 2)
		require.Len(b, c.ranOf(1), 2)
		s := a.ranOf(1)[0]
		require.Equal(b, core.SourceRequest, s.Source)
		require.Equal(b, "all", s.RequestParam)
		require.True(b, s.Due.Equal(result.At))
		require.NotZero(b, s.Fence)

		broken := func(_ context.Context, s core.Shard) error {
			if s.Item == 3 {
				return errors.New("no paper")
			}
			return nil
		}
		a.onRun(broken)
		c.onRun(broken)
		result = b.trigger(request.Request{Items: []int{3, 1, 3}, By: "ops"})
		require.EqualValues(b, 2, result.Number)
		require.Equal(b, []request.Outcome{request.Succeeded, request.Failed}, outcomes(result))
		require.Equal(b, "no paper", result.Items[1].Text)
		require.ErrorContains(b, result.Err(), "1 of 2 items did not succeed; item 3: failed: no paper")
		require.Len(b, slices.Concat(a.ranOf(2), c.ranOf(2)), 2)

		_, err := b.Await(b.Context(), "hello", "nobody")
		require.ErrorIs(b, err, admin.ErrNoRequest)
		_, err = b.Trigger(b.Context(), "nobody", request.Request{})
		require.ErrorIs(b, err, admin.ErrNoJob)
		_, err = b.Trigger(b.Context(), "hello", request.Request{Items: []int{-1}})
		require.ErrorIs(b, err, admin.ErrNoItem)
		_, err = b.Trigger(b.Context(), "hello", request.Request{Param: "\xff"})
		require.ErrorContains(b, err, "Param: is not UTF-8")
		require.Contains(b, b.trigger(request.Request{Items: []int{7}}).Problem, `items: "7" is not a range of the items 0 to 3`)
		ended, is := told(a, func(e event.ItemEnded) bool { return e.Request == 1 })
		require.True(b, is)
		require.True(b, ended.Due.Equal(s.Due))
	})
}

func TestATriggerWaitsForWhatRunsOrIsRefused(t *testing.T) {
	onEach(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", hourly)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		var once sync.Once
		free := make(chan struct{})
		defer once.Do(func() { close(free) })
		a.onRun(func(context.Context, core.Shard) error { <-free; return nil })
		first, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{0, 1}})
		require.NoError(b, err)
		b.until("it runs", func() bool { return a.count() == 2 })
		result, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{0, 1, 2}, Refuse: true})
		require.NoError(b, err)
		b.until("the item that is free runs", func() bool { return len(a.ranOf(2)) == 1 })
		queued, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{0}})
		require.NoError(b, err)
		once.Do(func() { close(free) })
		require.NoError(b, b.awaited(first).Err())
		require.Equal(b, []request.Outcome{request.Busy, request.Busy, request.Succeeded}, outcomes(b.awaited(result)))
		require.NoError(b, b.awaited(queued).Err())
		require.Len(b, a.ranOf(3), 1)
	})
}

func TestWhoCannotRunAnswers(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx := b.Context()
		a := b.start("a", "127.0.0.1", hourly)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		require.NoError(b, b.DisableItem(ctx, "hello", 2))
		b.until("it is seen", func() bool { return len(a.job().DisabledItems) == 1 })
		require.Equal(b, []request.Outcome{request.Disabled, request.Succeeded}, outcomes(b.trigger(request.Request{Items: []int{2, 3}})))
		require.Equal(b, []request.Outcome{request.Disabled}, outcomes(b.trigger(request.Request{Items: []int{2}})))
		require.NoError(b, b.DisableJob(ctx, "hello"))
		b.until("it is seen", func() bool { return a.job().Disabled != "" })
		require.Equal(b, "the job is disabled", b.trigger(request.Request{}).Problem)
		require.NoError(b, b.EnableJob(ctx, "hello"))
		b.until("it is seen", func() bool { return a.job().Disabled == "" })
		require.NoError(b, b.EnableItem(ctx, "hello", 2))
		cfg, err := b.Config(ctx, "hello")
		require.NoError(b, err)
		cfg.Monitor = core.MonitorOff
		require.NoError(b, b.SetConfig(ctx, cfg))
		b.until("it is seen", func() bool {
			_, seen := told(a, func(event.ConfigChanged) bool { return true })
			return seen
		})
		pause(100 * time.Millisecond)
		require.Contains(b, b.trigger(request.Request{}).Problem, "not monitored")
	})
}

func TestARequestExpiresWhileNobodyLeads(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", hourly)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		a.stop(b)
		early, err := b.Trigger(b.Context(), "hello", request.Request{})
		require.NoError(b, err)
		late, err := b.Trigger(b.Context(), "hello", request.Request{Within: time.Hour})
		require.NoError(b, err)
		pause(2 * time.Minute)
		c := b.start("c", "127.0.0.1", hourly)
		require.ErrorIs(b, b.awaited(early).Err(), request.ErrExpired)
		require.NoError(b, b.awaited(late).Err())
		require.Len(b, c.ranOf(2), 4)
	})
}

// A request whose answer was lost is made again, and runs once.
func TestARequestIsMadeOnce(t *testing.T) {
	for name, lose := range map[string]func(u *unsure, f func([]registry.Op) bool){
		"answer lost":  func(u *unsure, f func([]registry.Op) bool) { u.lose = f },
		"request lost": func(u *unsure, f func([]registry.Op) bool) { u.drop = f },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				a := b.start("a", "127.0.0.1", hourly)
				b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
				lose(b.store, once())
				require.NoError(b, b.trigger(request.Request{}).Err())
				pause(time.Minute)
				require.Equal(b, 4, a.count())
			})
		})
	}
}

// What became of a request is kept for ten minutes, and then nothing is left of it.
func TestRunsAreForgotten(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", hourly)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		id, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{1}})
		require.NoError(b, err)
		require.NoError(b, b.awaited(id).Err())
		pause(9 * time.Minute)
		require.NoError(b, b.awaited(id).Err())
		pause(2 * time.Minute)
		_, err = b.Await(b.Context(), "hello", id)
		require.ErrorIs(b, err, admin.ErrNoRequest)
		names, err := b.store.Children(b.Context(), "/elasticron/shop/hello/inforce")
		require.NoError(b, err)
		require.Equal(b, []string{"base", "schedule"}, names)
		names, err = b.store.Children(b.Context(), "/elasticron/shop/hello/runs")
		require.NoError(b, err)
		require.Empty(b, names)
		report, err := b.Reconcile(b.Context(), "hello", admin.Report{})
		require.NoError(b, err)
		require.Empty(b, report.Leftovers)
		require.EqualValues(b, 2, b.trigger(request.Request{}).Number)
	})
}

// A job without a schedule runs when somebody asks, and that it never fires is no news.
func TestAOneOffJobRunsOnRequestAlone(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := hourly
		cfg.Cron = "@requests"
		a := b.start("a", "127.0.0.1", cfg)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		for n := range 3 {
			require.NoError(b, b.trigger(request.Request{}).Err())
			require.Len(b, a.ranOf(int64(n+1)), 4)
		}
		require.Equal(b, 12, a.count())
		_, warned := told(a, func(event.Warning) bool { return true })
		require.False(b, warned)
		job, err := b.Job(b.Context(), "hello")
		require.NoError(b, err)
		require.Equal(b, admin.JobOK, job.State)
		require.True(b, job.Next.IsZero())
		cfg.Monitor = core.MonitorOff
		require.ErrorContains(b, cfg.Validate(), "@requests needs it")
	})
}

// ElasticJob's own tools ask an instance to run its items by a node, those of version 2 by a
// word in the instance's.
func TestElasticJobsTriggersAreObeyed(t *testing.T) {
	onEach(t, func(b *bed) {
		a, c := b.start("a", "127.0.0.1", hourly), b.start("c", "127.0.0.2", hourly)
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
		b.pull(a.id())
		b.until("it runs", func() bool { return a.count() == 2 })
		require.Equal(b, core.SourceRequest, a.ranOf(1)[0].Source)
		b.until("the node is gone", func() bool { return !b.get("/shop/hello/trigger/" + a.id()).Exists() })
		b.pull(a.id()) // once more, within the time for which runs are kept
		b.until("it runs", func() bool { return a.count() == 4 })
		was := string(b.get("/shop/hello/instances/" + c.id()).Value)
		b.put("/shop/hello/instances/"+c.id(), "TRIGGER")
		b.until("it runs", func() bool { return c.count() == 2 })
		require.Equal(b, was, string(b.get("/shop/hello/instances/"+c.id()).Value))
		require.Equal(b, []int64{1, 1, 2, 2}, a.numbers())
		b.pull("10.9.9.9@-@77")
		require.NoError(b, b.trigger(request.Request{}).Err())
		require.True(b, b.get("/shop/hello/trigger/10.9.9.9@-@77").Exists(), "it is another's")
	})
}

// What has not begun when monitoring is switched off never will: nothing would be recorded.
func TestMonitoringSwitchedOffEndsWhatHasNotBegun(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", hourly)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		free := make(chan struct{})
		a.onRun(func(context.Context, core.Shard) error { <-free; return nil })
		begun, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{0}})
		require.NoError(b, err)
		b.until("it runs", func() bool { return a.count() == 1 })
		waits, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{0}})
		require.NoError(b, err)
		pause(time.Second)
		stored, err := b.Config(b.Context(), "hello")
		require.NoError(b, err)
		stored.Monitor = core.MonitorOff
		require.NoError(b, b.SetConfig(b.Context(), stored))
		require.Equal(b, []request.Outcome{request.Unmonitored}, outcomes(b.awaited(waits)))
		close(free)
		require.NoError(b, b.awaited(begun).Err())
		pause(time.Minute)
		require.Equal(b, 1, a.count())
	})
}

// Of a changed total nothing runs for a request of before.
func TestAChangedTotalSupersedesWhatHasNotBegun(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := hourly
		cfg.Concurrency = 1
		a := b.start("a", "127.0.0.1", cfg)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		free := make(chan struct{})
		a.onRun(func(context.Context, core.Shard) error { <-free; return nil })
		begun, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{0}})
		require.NoError(b, err)
		b.until("it runs", func() bool { return a.count() == 1 })
		waits, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{0}})
		require.NoError(b, err)
		pause(time.Second)
		stored, err := b.Config(b.Context(), "hello")
		require.NoError(b, err)
		stored.Shards = 2
		require.NoError(b, b.SetConfig(b.Context(), stored))
		pause(time.Second)
		close(free)
		require.NoError(b, b.awaited(begun).Err())
		require.Equal(b, []request.Outcome{request.Superseded}, outcomes(b.awaited(waits)))
		require.NoError(b, b.trigger(request.Request{}).Err())
		require.Len(b, a.ranOf(3), 2)
	})
}
