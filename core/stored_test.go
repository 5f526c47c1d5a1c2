package core_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
)

// filled is a configuration none of whose fields has its zero value, but for those that
// stand in no registry.
func filled(t *testing.T) core.JobConfig {
	t.Helper()
	c := core.JobConfig{
		Name: "hello", Cron: "0 0 2 * * ?", TimeZone: "Asia/Shanghai", Gap: "skip", Overlap: "both", Shards: 3,
		ItemParams: map[int]string{0: "north"}, JobParam: "daily", Monitor: core.MonitorOff, ShowRunningAfter: 500 * time.Millisecond,
		BeginAhead: 250 * time.Millisecond,
		Misfire:    core.MisfireAll, MisfireCap: 7, MisfireWindow: 20 * time.Minute, Failover: true, MaxTimeDiff: 5 * time.Second, ReconcileInterval: 7 * time.Minute, Strategy: "ODEVITY",
		Description: "text", Label: "red", Props: map[string]string{"a": "1"}, Disabled: true, Overwrite: true, StaticSharding: true,
	}
	for field, v := range reflect.ValueOf(c).Fields() {
		if field.Name != "Class" && field.Name != "Concurrency" {
			require.False(t, v.IsZero(), "give %s a value here, and read it in ReadConfig", field.Name)
		}
	}
	return c
}

const minimal = "jobName: hello\ncron: '* * * * * ?'\nshardingTotalCount: 1\n"

func TestStoredConfigIsReadAgain(t *testing.T) {
	for name, want := range map[string]core.JobConfig{
		"all":   filled(t),
		"least": {Name: "hello", Cron: "@every 1s", Shards: 1, ReconcileInterval: 10 * time.Minute},
		"skip":  {Name: "hello", Cron: "@every 1s", Shards: 1, ReconcileInterval: -1, Misfire: core.MisfireSkip, MisfireWindow: -1},
		"never": {Name: "hello", Cron: "@every 1s", Shards: 1, ReconcileInterval: -1, ShowRunningAfter: -1, BeginAhead: -1},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := want.Rewrite([]byte(minimal))
			require.NoError(t, err)
			got, err := core.ReadConfig(text)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
			again, err := got.Rewrite(text)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		})
	}
}

func TestRewriteKeepsWhatItDoesNotKnow(t *testing.T) {
	text := minimal + "jobErrorHandlerType: LOG\njobExtraConfigurations:\n- !!x.Y\n  password: secret\n" +
		"props:\n  elasticron.zone: Asia/Tokyo\n  elasticron.later: '1'\n  elasticron.dst.gap: skip\n  mine: a\n"
	c, err := core.ReadConfig([]byte(text))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"mine": "a"}, c.Props)
	c.Gap, c.Shards = "", 4
	out, err := c.Rewrite([]byte(text))
	require.NoError(t, err)
	for _, kept := range []string{"shardingTotalCount: 4", "jobErrorHandlerType: LOG", "password: secret", "elasticron.zone: Asia/Tokyo", "elasticron.later: '1'"} {
		require.Contains(t, string(out), kept)
	}
	require.NotContains(t, string(out), "dst.gap")
	// Who rewrites a configuration without a zone does not give it his own.
	bare, err := core.ReadConfig([]byte(minimal))
	require.NoError(t, err)
	out, err = bare.Rewrite([]byte(minimal))
	require.NoError(t, err)
	require.NotContains(t, string(out), "zone")
}

func TestReadConfigNamesTheField(t *testing.T) {
	for field, text := range map[string]string{
		"ItemParams":       minimal + "shardingItemParameters: '0'\n",
		"ShowRunningAfter": minimal + "props:\n  elasticron.showRunningAfter: soon\n",
		"Shards":           strings.Replace(minimal, "Count: 1", "Count: x", 1),
	} {
		_, err := core.ReadConfig([]byte(text))
		require.ErrorIs(t, err, core.ErrConfig)
		require.ErrorContains(t, err, field)
		_, err = core.JobConfig{Name: "hello"}.Rewrite([]byte("a: b"))
		require.ErrorIs(t, err, core.ErrConfig)
	}
}

func TestJobConfigSchedule(t *testing.T) {
	s, err := core.JobConfig{Name: "hello", Cron: "0 0 10 * * ?", TimeZone: "UTC"}.Schedule()
	require.NoError(t, err)
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	next, ok := s.Next(at)
	require.True(t, ok)
	require.Equal(t, at.AddDate(0, 0, 1), next)
	_, err = core.JobConfig{Name: "hello", Cron: "x"}.Schedule()
	require.ErrorContains(t, err, `job "hello": Cron: `)
}

// An interval of thousands of years, as who wants none may write it, is no short one, and stays one that can be changed.
func TestAnIntervalThatNobodyWaitsFor(t *testing.T) {
	for _, minutes := range []int{math.MaxInt32, 307_445_735, 153_722_868, 60_000_000} {
		c, err := core.ReadConfig(fmt.Appendf(nil, "jobName: a\ncron: 0 0 3 * * ?\nshardingTotalCount: 1\nreconcileIntervalMinutes: %d\n", minutes))
		require.NoError(t, err)
		require.Greater(t, c.ReconcileInterval, 10*365*24*time.Hour, "%d", minutes)
		require.NoError(t, c.Validate())
	}
}
