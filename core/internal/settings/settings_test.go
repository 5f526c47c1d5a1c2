package settings

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/strategy"
)

func good() layout.Config {
	return layout.Config{
		JobName: "hello", Cron: "0 0 2 * * ?", TimeZone: "Asia/Shanghai", ShardingTotalCount: 3, ShardingItemParameters: "0=a,2=c",
		Misfire: true, MonitorExecution: true, MaxTimeDiffSeconds: -1, ReconcileIntervalMinutes: 10,
	}
}

// What the registry holds of Elasticron's own is checked like the rest.
func TestBeginAhead(t *testing.T) {
	for text, want := range map[string][2]time.Duration{ // without failover, and with it
		"": {0, MaxBeginAhead}, "never": {0, 0}, "500ms": {500 * time.Millisecond, 500 * time.Millisecond}, "1s": {time.Second, time.Second},
	} {
		for i, failover := range []bool{false, true} {
			got, err := ParseBeginAhead(layout.Config{Failover: failover, Props: layout.Props{PropBeginAhead: text}})
			require.NoError(t, err, text)
			require.Equal(t, want[i], got, text)
		}
	}
	require.Empty(t, FormatDuration(0))
	require.Equal(t, "never", FormatDuration(-1))
	require.Equal(t, "250ms", FormatDuration(250*time.Millisecond))
	for _, text := range []string{"soon", "0s", "-1s", "2s", "1"} {
		c := layout.Config{Cron: "* * * * * ?", ShardingTotalCount: 1, Props: layout.Props{PropBeginAhead: text}}
		_, err := Parse("hello", c, nil)
		require.ErrorContains(t, err, `job "hello": BeginAhead: `)
	}
}

func TestShowRunningAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Second, "never": -1, "1m30s": 90 * time.Second, "1ms": time.Millisecond} {
		c := layout.Config{Cron: "* * * * * ?", ShardingTotalCount: 1, Props: layout.Props{PropShowRunning: text}}
		s, err := Parse("hello", c, nil)
		require.NoError(t, err)
		require.Equal(t, want, s.ShowAfter)
		if text != "" {
			require.Equal(t, text, FormatDuration(want))
		}
	}
	require.Empty(t, FormatDuration(0))
	for _, text := range []string{"0s", "-1s", "soon", "5"} {
		c := layout.Config{Cron: "* * * * * ?", ShardingTotalCount: 1, Props: layout.Props{PropShowRunning: text}}
		_, err := Parse("hello", c, nil)
		require.ErrorContains(t, err, `job "hello": ShowRunningAfter: `)
	}
}

func TestParse(t *testing.T) {
	s, err := Parse("hello", good(), nil)
	require.NoError(t, err)
	require.Equal(t, good(), s.Stored)
	require.Equal(t, map[int]string{0: "a", 2: "c"}, s.ItemParams)
	require.Equal(t, "AVG_ALLOCATION", s.Strategy.Name())
	require.Equal(t, 10*time.Minute, s.Reconcile)
	require.Equal(t, "Asia/Shanghai", s.Zone)
	require.True(t, s.Monitor)
	next, ok := s.Schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	require.True(t, ok)
	require.Equal(t, "2026-01-02T02:00:00+08:00", next.Format(time.RFC3339))

	c := good()
	c.ReconcileIntervalMinutes, c.MonitorExecution = -1, false
	s, err = Parse("hello", c, nil)
	require.NoError(t, err)
	require.Zero(t, s.Reconcile)
	require.False(t, s.Monitor)
}

// All that is wrong is told, in the words of core.JobConfig, without a doubled prefix.
// Finding C 21.
func TestParseTellsAllFaults(t *testing.T) {
	c := good()
	c.Cron, c.TimeZone, c.ShardingTotalCount, c.JobShardingStrategyType = "0 2 * * *", "Mars", 0, "BEST"
	c.ShardingItemParameters = "x=a,1=,2"
	c.Props = layout.Props{PropGap: "jump", PropOverlap: "never", "password": "sesame"}
	_, err := Parse("hello", c, map[string]strategy.Strategy{"MINE": strategy.Sticky{}})
	require.ErrorIs(t, err, field.ErrWrong)
	require.Equal(t, []string{
		`job "hello": TimeZone: "Mars" is not a known time zone; write an IANA name such as Asia/Shanghai or Europe/Berlin, an offset such as GMT+8 or GMT-03:30, or UTC` +
			` (a machine without a zone database needs import _ "time/tzdata")`,
		`job "hello": Gap: "jump" is not a policy; use "run-after" or "skip"`,
		`job "hello": Overlap: "never" is not a policy; use "first" or "both"`,
		`job "hello": Cron: has 5 fields, Quartz has 6, seconds first, or 7 with the year; write 0 0 2 * * ?`,
		`job "hello": Shards: the sharding total count is 0; give at least 1`,
		`job "hello": Strategy: "BEST" is not a strategy; there are: AVG_ALLOCATION, ODEVITY, ROUND_ROBIN, STICKY, MINE (core.WithStrategy adds one of your own)`,
		`job "hello": ItemParams: has the item "x", want a whole number from 0`,
		`job "hello": ItemParams: gives item "1" an empty parameter; give one or leave the item out`,
		`job "hello": ItemParams: has "2", want item=parameter, for example "0=a,1=b" (a parameter can hold no comma)`,
	}, strings.Split(err.Error(), "\n"))
	for _, e := range field.All(err) {
		require.Equal(t, "hello", e.Job)
	}
}

func TestParseRefuses(t *testing.T) {
	for says, change := range map[string]func(*layout.Config){
		"Cron: is empty; write for example":                                       func(c *layout.Config) { c.Cron = "" },
		"Cron: seconds: 60 is not in 0-59":                                        func(c *layout.Config) { c.Cron = "60 * * * * ?" },
		"Shards: the sharding total count is 100001; at most 100000 are possible": func(c *layout.Config) { c.ShardingTotalCount = 100_001 },
		`Strategy: "SINGLE_SHARDING_BALANCE" depends on the clock`:                func(c *layout.Config) { c.JobShardingStrategyType = "SINGLE_SHARDING_BALANCE" },
		`Strategy: the strategy "NIL" that WithStrategy gives is nil`:             func(c *layout.Config) { c.JobShardingStrategyType = "NIL" },
	} {
		c := good()
		change(&c)
		_, err := Parse("hello", c, map[string]strategy.Strategy{"NIL": nil})
		require.ErrorContains(t, err, `job "hello": `+says)
		require.NotContains(t, err.Error(), "\n")
	}
	c := good()
	c.Cron, c.ShardingTotalCount = "@delay 5s", MaxItems // finding A 10: each item has a record of its own
	_, err := Parse("hello", c, nil)
	require.NoError(t, err)
}

type mine struct{ strategy.Sticky }

// Finding C 6.
func TestAStrategyOfOnesOwn(t *testing.T) {
	c := good()
	c.JobShardingStrategyType = "MINE"
	s, err := Parse("hello", c, map[string]strategy.Strategy{"MINE": mine{}, "STICKY": mine{}})
	require.NoError(t, err)
	require.Equal(t, mine{}, s.Strategy)
	c.JobShardingStrategyType = "STICKY"
	s, err = Parse("hello", c, map[string]strategy.Strategy{"STICKY": mine{}})
	require.NoError(t, err)
	require.Equal(t, mine{}, s.Strategy, "one's own comes first")
	_, err = Parse("hello", c, nil)
	require.NoError(t, err)
	c.JobShardingStrategyType = "BEST"
	_, err = Parse("hello", c, nil)
	require.ErrorIs(t, err, strategy.ErrUnknown)
	c.JobShardingStrategyType = "SINGLE_SHARDING_BALANCE"
	_, err = Parse("hello", c, nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestParseScheduleIsForTheScheduleInForceToo(t *testing.T) {
	s, err := ParseSchedule("0 30 2 * * ?", "Europe/Berlin", "skip", "both")
	require.NoError(t, err)
	require.Equal(t, "Europe/Berlin", s.Location().String())
	next, _ := s.Next(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)) // the 29th has no 02:30
	require.Equal(t, "2026-03-30T02:30:00+02:00", next.Format(time.RFC3339))
	_, err = ParseSchedule("@every 1s", "", "", "")
	require.NoError(t, err)
	_, err = ParseSchedule("@every 1s", "", "x", "y")
	require.Len(t, field.All(err), 2)
}

// Finding C 1: names are those of core.JobConfig, with the old value and the new.
func TestDifferences(t *testing.T) {
	before, after := good(), good()
	require.Empty(t, Differences(before, after))
	after.Cron, after.ShardingTotalCount, after.MonitorExecution, after.Misfire = "0/5 * * * * ?", 5, false, false
	after.TimeZone, after.ReconcileIntervalMinutes, after.MaxTimeDiffSeconds = "", 0, 90
	after.ShardingItemParameters, after.JobParameter, after.JobShardingStrategyType = "0=a", "p", "STICKY"
	after.Description, after.Label, after.Failover, after.Disabled, after.StaticSharding = "d", "l\nl", true, true, true
	after.Props = layout.Props{PropGap: "skip", PropOverlap: "both", PropMisfireCap: "5", PropMisfireWindow: "0s", "uri": "http://sesame"}
	require.Equal(t, []event.Change{
		{Field: "Cron", Old: "0 0 2 * * ?", New: "0/5 * * * * ?"},
		{Field: "TimeZone", Old: "Asia/Shanghai", New: ""},
		{Field: "Gap", Old: "run-after", New: "skip"},
		{Field: "Overlap", Old: "first", New: "both"},
		{Field: "Shards", Old: "3", New: "5"},
		{Field: "ItemParams", Old: "0=a,2=c", New: "0=a"},
		{Field: "JobParam", Old: "", New: "p"},
		{Field: "Monitor", Old: "on", New: "off"},
		{Field: "BeginAhead", Old: "never", New: "1s"},
		{Field: "Misfire", Old: "once", New: "skip"},
		{Field: "MisfireCap", Old: "10", New: "5"},
		{Field: "MisfireWindow", Old: "1h0m0s", New: "0s"},
		{Field: "Failover", Old: "false", New: "true"},
		{Field: "MaxTimeDiff", Old: "any", New: "1m30s"},
		{Field: "ReconcileInterval", Old: "10m0s", New: "never"},
		{Field: "Strategy", Old: "AVG_ALLOCATION", New: "STICKY"},
		{Field: "Description", Old: "", New: "d"},
		{Field: "Label", Old: "", New: "l l"},
		{Field: "Disabled", Old: "false", New: "true"},
		{Field: "StaticSharding", Old: "false", New: "true"},
		{Field: "Props", Old: "", New: "uri"},
	}, Differences(before, after))
}

// Each field of the stored configuration either shows as a difference or means nothing here.
func TestEveryStoredFieldIsComparedOrKnownToMeanNothing(t *testing.T) {
	nothing := map[string]bool{
		"JobName": true, "Overwrite": true, "Props": true, // props have their own test
		"JobErrorHandlerType": true, "JobExecutorThreadPoolSizeProviderType": true, "OldThreadPoolKey": true, "JobExtraConfigurations": true, "JobListenerTypes": true,
	}
	v := reflect.TypeFor[layout.Config]()
	for i := range v.NumField() {
		changed := good()
		f := reflect.ValueOf(&changed).Elem().Field(i)
		switch f.Kind() { //nolint:exhaustive // others are in the table
		case reflect.String:
			f.SetString("0=z")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int:
			f.SetInt(77)
		}
		require.Equal(t, nothing[v.Field(i).Name], len(Differences(good(), changed)) == 0, v.Field(i).Name)
	}
}

func TestWhatMeansTheSameIsNoDifference(t *testing.T) {
	before, after := good(), good()
	before.Props = layout.Props{PropGap: "run-after", PropOverlap: "first", PropMisfireCap: "10", PropMisfireWindow: "60m"}
	before.JobShardingStrategyType, after.JobShardingStrategyType = "avg_allocation", ""
	before.Cron, before.ShardingItemParameters = "0  0 2 * * ? ", " 2=c , 0=a,"
	before.ReconcileIntervalMinutes, after.ReconcileIntervalMinutes = 0, -1
	before.MaxTimeDiffSeconds = 0
	after.JobListenerTypes, after.JobErrorHandlerType = []string{"x"}, "LOG"
	require.Empty(t, Differences(before, after))
}

// What stands in the registry, what it means, and how it reads.
func TestMisfire(t *testing.T) {
	for _, c := range []struct {
		all    bool
		cap    int
		window time.Duration
		on     bool
		props  layout.Props
		want   misfire.Rule
		shown  string
	}{
		{on: true, props: layout.Props{}, want: misfire.Rule{Policy: misfire.Once, Cap: 10, Window: time.Hour}, shown: "once"},
		{on: true, cap: 10, window: time.Hour, props: layout.Props{}, want: misfire.Rule{Policy: misfire.Once, Cap: 10, Window: time.Hour}, shown: "once"},
		{props: layout.Props{}, want: misfire.Rule{Policy: misfire.Skip, Cap: 10, Window: time.Hour}, shown: "skip"},
		{
			all: true, on: true, cap: 3, window: time.Minute, shown: "all",
			props: layout.Props{PropMisfirePolicy: "all", PropMisfireCap: "3", PropMisfireWindow: "1m0s"},
			want:  misfire.Rule{Policy: misfire.All, Cap: 3, Window: time.Minute},
		},
		{ // switched off in ElasticJob's console
			all: true, window: -1, props: layout.Props{PropMisfirePolicy: "all", PropMisfireWindow: "0s"},
			want: misfire.Rule{Policy: misfire.Skip, Cap: 10}, shown: "skip",
		},
	} {
		stored := good()
		stored.Misfire, stored.Props = c.on, layout.Props{}
		SetMisfire(stored.Props, c.all, c.cap, c.window)
		require.Equal(t, c.props, stored.Props)
		s, err := Parse("hello", stored, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, s.Misfire)
		require.Equal(t, c.shown, misfirePolicy(stored))
	}
	stored := good()
	stored.Props = layout.Props{PropMisfirePolicy: "some", PropMisfireCap: "1001", PropMisfireWindow: "soon"}
	_, err := Parse("hello", stored, nil)
	var fields []string
	for _, e := range field.All(err) {
		fields = append(fields, e.Field)
	}
	require.Equal(t, []string{"Misfire", "MisfireCap", "MisfireWindow"}, fields)
}

func TestDifferentPropsAreNamedAndNotShown(t *testing.T) {
	before, after := good(), good()
	before.Props = layout.Props{"same": "1", "changed": "sesame1", "gone": "sesame2"}
	after.Props = layout.Props{"same": "1", "changed": "sesame3", "new": "sesame4"}
	require.Equal(t, []event.Change{{Field: "Props", Old: "changed, gone", New: "changed (other value), new"}}, Differences(before, after))
}

func TestRefires(t *testing.T) {
	for _, c := range []struct {
		change func(*layout.Config)
		want   bool
	}{
		{func(c *layout.Config) { c.Cron = "@daily" }, true},
		{func(c *layout.Config) { c.TimeZone = "UTC" }, true},
		{func(c *layout.Config) { c.Props = layout.Props{PropGap: "skip"} }, true},
		{func(c *layout.Config) { c.Props = layout.Props{PropOverlap: "both"} }, true},
		{func(c *layout.Config) { c.ShardingTotalCount = 9 }, false},
	} {
		after := good()
		c.change(&after)
		require.Equal(t, c.want, Refires(Differences(good(), after)))
	}
}

// Finding C 20, and E 7: what a Java configuration asks for beyond that.
func TestInactive(t *testing.T) {
	require.Empty(t, Inactive(good(), nil))
	c := good()
	c.Misfire, c.MaxTimeDiffSeconds, c.Failover, c.StaticSharding = false, 5, true, true
	require.Empty(t, Inactive(c, nil))
	c.JobErrorHandlerType, c.JobListenerTypes = "LOG", []string{"x"}
	c.Props = layout.Props{"script.command.line": "a.sh", "dingtalk.webhook": "sesame", "mine": "1"}
	require.Equal(t, "settings of ElasticJob have no effect here and are kept as they are: jobErrorHandlerType, jobListenerTypes, props.dingtalk.webhook",
		Inactive(c, layout.Props{"script.command.line": "b.sh"}))
}

func TestOverwritingKeepsWhatOnlyElasticJobKnows(t *testing.T) {
	before := good()
	before.JobErrorHandlerType, before.JobListenerTypes = "LOG", []string{"x"}
	before.JobExecutorThreadPoolSizeProviderType, before.OldThreadPoolKey = "CPU", true
	before.Props = layout.Props{PropZone: "Asia/Tokyo", "old": "1"}
	local := good()
	local.Cron, local.TimeZone = "0 0 3 * * ?", ""
	out := ToWrite(local, &before)
	require.Equal(t, "LOG", out.JobErrorHandlerType)
	require.Equal(t, []string{"x"}, out.JobListenerTypes)
	require.Equal(t, "CPU", out.JobExecutorThreadPoolSizeProviderType)
	require.True(t, out.OldThreadPoolKey)
	require.Equal(t, layout.Props{PropZone: "Asia/Tokyo"}, out.Props)
	require.Empty(t, local.Props, "the argument stays as it is")
}
