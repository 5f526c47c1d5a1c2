package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/strategy"
)

// A page is what a logger has written.
type page struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

func (p *page) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// defaultPage is what the default logger writes during the test.
func defaultPage(t *testing.T) *page {
	p, before := &page{}, slog.Default() //nolint:forbidigo // what is tested
	slog.SetDefault(p.logger())
	t.Cleanup(func() { slog.SetDefault(before) })
	return p
}

// Findings C 1, C 2 and C 4: without an option, what went wrong is in the default log.
func TestTheDefaultLogHasPanicsAndWhoseConfigurationWon(t *testing.T) {
	inBubble(t, func(b *bed) {
		log := defaultPage(b.T)
		work := core.JobFunc(func(context.Context, core.Shard) error { panic("oh no") })
		a := b.start("a", work, everySecond)
		b.until("it panics", func() bool { return len(of[event.ItemEnded](a)) > 0 })
		other := everySecond
		other.Cron = "0/5 * * * * ?"
		c := b.start("c", work, other)
		a.stop(b)
		c.stop(b)
		require.Contains(b, log.String(), `level=ERROR msg="item failed" job=hello item=`)
		require.Contains(b, log.String(), `error="panic: oh no" stack=`)
		require.Contains(b, log.String(), "option_test.go")
		require.Contains(b, log.String(), `level=WARN msg="the registry's configuration differs from the one given to Add, and wins: `+
			`Cron \"0/5 * * * * ?\" → registry \"* * * * * ?\"; set Overwrite to write yours, or change the registry's" job=hello`)
		require.NotContains(b, log.String(), "level=INFO")
		require.NotContains(b, log.String(), "level=DEBUG")
	})
}

func TestALoggerGetsAllAndNilIsSilence(t *testing.T) {
	inBubble(t, func(b *bed) {
		std, own := defaultPage(b.T), &page{}
		work := core.JobFunc(func(context.Context, core.Shard) error { panic("oh no") })
		a := b.start("a", work, everySecond, core.WithLogger(own.logger()))
		b.until("it panics", func() bool { return len(of[event.FireEnded](a)) > 0 })
		a.stop(b)
		for _, line := range []string{"level=INFO msg=\"job started\"", "level=DEBUG msg=\"fire begun\"", "level=ERROR msg=\"item failed\"", `reason="the scheduler was stopped"`} {
			require.Contains(b, own.String(), line)
		}
		c := b.start("c", work, everySecond, core.WithLogger(own.logger()), core.WithLogger(nil))
		before := own.String()
		b.until("it panics again", func() bool { return len(of[event.FireEnded](c)) > 0 })
		c.stop(b)
		require.Equal(b, before, own.String())
		require.Empty(b, std.String())
	})
}

// Finding C 20: a listener's panic ended the process.
func TestAListenersPanicEndsNothing(t *testing.T) {
	inBubble(t, func(b *bed) {
		log := &page{}
		w := newWitness()
		a := b.start("a", w, everySecond, core.WithLogger(log.logger()), core.WithListener(func(event.Event) { panic("not mine") }))
		b.until("two fires", func() bool { return w.count() >= 8 })
		a.stop(b)
		require.Contains(b, log.String(), `msg="a listener panicked: not mine" event=event.Started stack=`)
	})
}

// Finding C 17.
func TestRunsPatienceIsAnOption(t *testing.T) {
	for option, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second} {
		inBubble(t, func(b *bed) {
			ctx, cancel := context.WithCancel(b.Context())
			var cancelled time.Time
			work := core.JobFunc(func(ctx context.Context, _ core.Shard) error {
				cancelled = time.Now()
				cancel()
				<-ctx.Done()
				require.Equal(b, want, time.Since(cancelled))
				return nil
			})
			cfg := everySecond
			cfg.Shards = 1
			_ = core.Run(ctx, b.registry(), work, cfg, core.WithIP("127.0.0.1"), core.WithRunPatience(option))
			require.False(b, cancelled.IsZero())
		})
	}
}

// Findings C 13 and C 20: beside a configuration that stands already, a first start tells
// once what differs, and what has no effect.
func TestAFirstStartBesideJavasDataTellsEachThingOnce(t *testing.T) {
	inBubble(t, func(b *bed) {
		seed := b.start("seed", newWitness(), core.JobConfig{Name: "other", Cron: "@daily", Shards: 1})
		b.create(seed, "/"+b.ns+"/hello", "")
		b.create(seed, "/"+b.ns+"/hello/config", "jobName: hello\ncron: '* * * * * ?'\nshardingTotalCount: 4\nmonitorExecution: true\n"+
			"misfire: false\nmaxTimeDiffSeconds: 5\nfailover: true\njobErrorHandlerType: LOG\n")
		a := b.start("a", newWitness(), everySecond)
		b.until("it runs", func() bool { return allOwned(4, a) })
		a.stop(b)
		require.Len(b, of[event.ConfigChanged](a), 1)
		var told []string
		for _, w := range of[event.Warning](a) {
			told = append(told, w.Problem)
		}
		require.Equal(b, []string{"settings of ElasticJob have no effect here and are kept as they are: jobErrorHandlerType"}, told)
	})
}

// Finding C 5: the first instance writes its zone, and later ones differ in nothing.
func TestTheZoneOfTheFirstInstanceIsKept(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := core.JobConfig{Name: "hello", Cron: "0 0 2 * * ?", Shards: 1}
		a := b.start("a", newWitness(), cfg)
		nodes, err := b.store(a).Get(b.Context(), b.path(a, "config"))
		require.NoError(b, err)
		if zone := settings.LocalZone(); zone != "" {
			require.Contains(b, string(nodes[0].Value), "props:\n  elasticron.zone: "+zone+"\n")
		}
		require.NotContains(b, string(nodes[0].Value), "timeZone")
		c := b.start("c", newWitness(), cfg)
		require.Empty(b, of[event.ConfigChanged](c))

		b.setConfig(a, string(nodes[0].Value), "jobName: hello\ncron: 0 0 2 * * ?\nshardingTotalCount: 1\nmonitorExecution: true\nmisfire: true\n"+
			"reconcileIntervalMinutes: 10\nprops:\n  elasticron.zone: Pacific/Chatham\n")
		b.until("the change is told", func() bool { return len(of[event.ConfigChanged](c)) == 1 && len(of[event.Warning](c)) >= 1 })
		require.Equal(b, "TimeZone", of[event.ConfigChanged](c)[0].Changes[0].Field)
		warnings := of[event.Warning](c)
		require.Contains(b, warnings[len(warnings)-1].Problem, "the job fires in Pacific/Chatham")
		b.until("its next fire is in that zone", func() bool { return c.job().Next.UTC().Format("15:04") == "12:15" })
	})
}

// northOnly gives every item to the smallest id.
type northOnly struct{}

func (northOnly) Name() string { return "NORTH" }

func (northOnly) Assign(in strategy.Input) strategy.Assignment {
	a := strategy.Assignment{slices.Min(in.Instances): nil}
	for n := range in.Total {
		id := slices.Min(in.Instances)
		a[id] = append(a[id], n)
	}
	return a
}

// Finding C 6.
func TestAStrategyOfOnesOwnAssigns(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Strategy = "NORTH"
		a := b.start("a", newWitness(), cfg, core.WithStrategy("NORTH", northOnly{}))
		c := b.start("c", newWitness(), cfg, core.WithStrategy("NORTH", northOnly{}))
		b.until("a has all", func() bool { return allOwned(4, a) && len(c.job().Instances) == 2 })
		require.Empty(b, c.job().Items)
		a.stop(b)
		b.until("c has all", func() bool { return allOwned(4, c) })
		// Who lacks the strategy cannot run the job, and says so.
		d := b.prepare("d", newWitness(), everySecond)
		require.ErrorContains(b, d.Start(b.Context()), `config: Strategy: "NORTH" is not a strategy; there are: AVG_ALLOCATION`)
	})
}

// What is nil is left out, and does not panic when the first event is told.
func TestNilOptionsAreNone(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond, core.WithListener(nil), core.WithClock(nil))
		b.until("it runs", func() bool { return w.count() >= 4 })
		a.stop(b)
		require.Panics(b, func() { core.New(nil) })
	})
}
