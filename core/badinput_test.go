package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestBadConfigurationIsOneLineThatNamesTheField(t *testing.T) {
	good := core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 3}
	for _, c := range []struct {
		name, field, says string
		change            func(*core.JobConfig)
	}{
		{"five fields", "Cron", "seconds first", func(c *core.JobConfig) { c.Cron = "0/5 * * * *" }},
		{"no cron", "Cron", "is empty", func(c *core.JobConfig) { c.Cron = "" }},
		{"second 60", "Cron", "60", func(c *core.JobConfig) { c.Cron = "60 * * * * ?" }},
		{"two days", "Cron", "?", func(c *core.JobConfig) { c.Cron = "0 0 0 1 1 1" }},
		{"no question mark", "Cron", "?", func(c *core.JobConfig) { c.Cron = "0 0 0 1 * 2" }},
		{"month 13", "Cron", "13", func(c *core.JobConfig) { c.Cron = "0 0 0 1 13 ?" }},
		{"bad name of a day", "Cron", "FOO", func(c *core.JobConfig) { c.Cron = "0 0 0 ? * FOO" }},
		{"every nothing", "Cron", "@every", func(c *core.JobConfig) { c.Cron = "@every" }},
		{"every minus", "Cron", "-5s", func(c *core.JobConfig) { c.Cron = "@every -5s" }},
		{"unknown descriptor", "Cron", "@sometimes", func(c *core.JobConfig) { c.Cron = "@sometimes" }},
		{"zone prefix", "Cron", "no zone of its own", func(c *core.JobConfig) { c.Cron = "CRON_TZ=UTC" }},
		{"unknown zone", "TimeZone", "Mars", func(c *core.JobConfig) { c.TimeZone = "Mars/Olympus" }},
		{"zone too far", "TimeZone", "GMT+25", func(c *core.JobConfig) { c.TimeZone = "GMT+25" }},
		{"gap policy", "Gap", "run-after", func(c *core.JobConfig) { c.Gap = "sometimes" }},
		{"overlap policy", "Overlap", "first", func(c *core.JobConfig) { c.Overlap = "never" }},
		{"no shards", "Shards", "at least 1", func(c *core.JobConfig) { c.Shards = 0 }},
		{"negative shards", "Shards", "-4", func(c *core.JobConfig) { c.Shards = -4 }},
		{"absurd shards", "Shards", "100000", func(c *core.JobConfig) { c.Shards = 100_001 }},
		{"slash in name", "Name", "/", func(c *core.JobConfig) { c.Name = "a/b" }},
		{"empty name", "Name", "empty", func(c *core.JobConfig) { c.Name = "" }},
		{"long name", "Name", "255", func(c *core.JobConfig) { c.Name = strings.Repeat("x", 300) }},
		{"dotted name", "Name", "..", func(c *core.JobConfig) { c.Name = ".." }},
		{"task id in name", "Name", "@-@", func(c *core.JobConfig) { c.Name = "a@-@b" }},
		{"strategy", "Strategy", "AVG_ALLOCATION", func(c *core.JobConfig) { c.Strategy = "BEST" }},
		{"param with comma", "ItemParams", "1", func(c *core.JobConfig) { c.ItemParams = map[int]string{1: "a,b"} }},
		{"param of no item", "ItemParams", "3", func(c *core.JobConfig) { c.ItemParams = map[int]string{3: "x"} }},
		{"concurrency", "Concurrency", "-1", func(c *core.JobConfig) { c.Concurrency = -1 }},
		{"half seconds", "MaxTimeDiff", "whole seconds", func(c *core.JobConfig) { c.MaxTimeDiff = 1500 * time.Millisecond }},
		{"half minutes", "ReconcileInterval", "whole minutes", func(c *core.JobConfig) { c.ReconcileInterval = 90 * time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg := memory.NewServer(memory.Config{}).Registry("shop")
			defer reg.Close()
			s := core.New(reg)
			cfg := good
			c.change(&cfg)
			err := s.Add(newWitness(), cfg)
			var wrong *core.ConfigError
			require.ErrorAs(t, err, &wrong)
			require.ErrorIs(t, err, core.ErrConfig)
			require.Equal(t, c.field, wrong.Field, err.Error())
			require.Contains(t, err.Error(), c.says)
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 700)
			// Nothing is lost: the scheduler takes a good one afterwards.
			require.NoError(t, s.Add(newWitness(), good))
			require.NoError(t, s.Stop(t.Context()))
		})
	}
}

func TestOneNameTwiceIsRefused(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	s := core.New(reg)
	require.NoError(t, s.Add(newWitness(), everySecond))
	require.ErrorContains(t, s.Add(newWitness(), everySecond), "added already")
	require.ErrorContains(t, s.Add(nil, core.JobConfig{Name: "x", Cron: "* * * * * ?", Shards: 1}), "is nil")
	require.NoError(t, s.Stop(t.Context()))
}

func TestAJobOfAnotherClassIsRefused(t *testing.T) {
	onEach(t, func(b *bed) {
		seed := b.start("seed", newWitness(), core.JobConfig{Name: "java", Cron: "0 0 0 1 1 ? 2099", Shards: 1})
		b.set(seed, "/"+b.ns+"/java", "com.acme.Report")
		seed.stop(b)
		cfg := core.JobConfig{Name: "java", Cron: "* * * * * ?", Shards: 1}
		err := core.Run(b.Context(), b.registry(), newWitness(), cfg, core.WithIP("127.0.0.1"))
		require.ErrorIs(b, err, core.ErrConfig)
		require.ErrorContains(b, err, `Class: the registry holds this job for class "com.acme.Report"`)
		cfg.Class = "com.acme.Report"
		a := b.start("a", newWitness(), cfg)
		b.until("it joins with the class", func() bool { return allOwned(1, a) })
	})
}

func TestAnUnreadableConfigurationIsNamedAndMayBeOverwritten(t *testing.T) {
	for name, text := range map[string]string{
		"not YAML":      "\t{{{",
		"another job":   "jobName: other\nshardingTotalCount: 1\ncron: '* * * * * ?'\n",
		"unknown key":   "jobName: hello\nshardingTotalCount: 1\ncron: '* * * * * ?'\nfuture: true\n",
		"no total":      "jobName: hello\ncron: '* * * * * ?'\n",
		"a wrong type":  "jobName: hello\nshardingTotalCount: many\ncron: '* * * * * ?'\n",
		"binary":        "\x00\x01\x02",
		"nothing":       "",
		"a bad cron":    "jobName: hello\nshardingTotalCount: 1\ncron: whenever\n",
		"another world": "<xml/>",
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bed) {
				seed := b.start("seed", newWitness(), everySecond)
				b.set(seed, b.path(seed, "config"), text)
				seed.stop(b)
				err := core.Run(b.Context(), b.registry(), newWitness(), everySecond, core.WithIP("127.0.0.1"))
				require.ErrorIs(b, err, core.ErrConfig)
				require.NotContains(b, err.Error(), "\n")
				cfg := everySecond
				cfg.Overwrite = true
				w := newWitness()
				a := b.start("a", w, cfg)
				b.until("it runs once overwritten", func() bool { return allOwned(4, a) && w.count() >= 4 })
			})
		})
	}
}

func TestAnUnreachableRegistryIsABoundedWait(t *testing.T) {
	onEach(t, func(b *bed) {
		g := b.registry()
		g.cut.Store(true)
		s := core.New(g)
		require.NoError(b, s.Add(newWitness(), everySecond))
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
		defer cancel()
		begun := time.Now()
		err := s.Start(ctx)
		require.ErrorContains(b, err, "no session with the registry")
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.Less(b, time.Since(begun), 10*time.Second)
		require.NoError(b, s.Stop(b.Context()))
	})
}

// Of many jobs that are late the first are named, and the others counted.
func TestJobsThatAreLateAreNamedBriefly(t *testing.T) {
	inBubble(t, func(b *bed) {
		g := b.registry()
		g.decide(func([]registry.Op) fate { return requestLost })
		s := core.New(g)
		for i := range 30 {
			cfg := everySecond
			cfg.Name = fmt.Sprintf("job-%02d", i)
			require.NoError(b, s.Add(newWitness(), cfg))
		}
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
		defer cancel()
		err := s.Start(ctx)
		require.ErrorContains(b, err, "30 of 30 jobs not registered in time: job-00, job-01, ")
		require.ErrorContains(b, err, "job-09 and 20 more: ")
		require.ErrorIs(b, err, context.DeadlineExceeded)
	})
}

func TestAValueOverTheLimitIsRefusedBeforeItIsSent(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := everySecond
		cfg.JobParam = strings.Repeat("x", 300<<10)
		err := core.Run(b.Context(), b.registry(), newWitness(), cfg, core.WithIP("127.0.0.1"))
		require.ErrorIs(b, err, registry.ErrInvalid)
		require.NotContains(b, err.Error(), "xxxxxxxx")
		a := b.start("a", newWitness(), everySecond)
		b.until("nothing of it is left", func() bool { return allOwned(4, a) })
	})
}

// The namespace is a node of somebody else's that cannot have children.
func TestANamespaceThatSomebodyElseOccupies(t *testing.T) {
	onEach(t, func(b *bed) {
		g := b.registry()
		other, err := g.Registry.Open(b.Context())
		require.NoError(b, err)
		_, err = other.Commit(b.Context(), registry.CreateEphemeral("/"+b.ns, []byte("a lock of somebody's")))
		require.NoError(b, err)
		err = core.Run(b.Context(), b.registry(), newWitness(), everySecond, core.WithIP("127.0.0.1"))
		require.ErrorIs(b, err, core.ErrConfig)
		require.ErrorContains(b, err, "/"+b.ns+": is an ephemeral node of somebody else; delete it or choose another namespace")
		require.NoError(b, other.Close(b.Context()))
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it runs", func() bool { return allOwned(4, a) && w.count() >= 4 })
	})
}
