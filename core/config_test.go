package core_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry/memory"
	"github.com/elasticron/elasticron/strategy"
)

// Findings D 5 and C 21: one call tells all that is wrong, a line for each.
func TestValidateTellsAllFaults(t *testing.T) {
	err := core.JobConfig{
		Name: " a ", Cron: "0 2 * * *", TimeZone: "Mars", Gap: "jump", Overlap: "never", Shards: 2,
		ItemParams: map[int]string{0: "a,b", 1: "", 2: "c", 3: "d"}, Monitor: 7, Misfire: 7, MaxTimeDiff: 1500 * time.Millisecond,
		ReconcileInterval: 90 * time.Second, Strategy: "BEST", Concurrency: -1, Props: map[string]string{"elasticron.zone": "sesame"},
	}.Validate()
	require.ErrorIs(t, err, core.ErrConfig)
	require.NotContains(t, err.Error(), "sesame")
	var got []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		field, found := strings.CutPrefix(line, `job " a ": `)
		require.True(t, found, line)
		name, problem, _ := strings.Cut(field, ": ")
		require.NotEmpty(t, problem)
		require.NotContains(t, strings.ToLower(problem), strings.ToLower(name)+":", "a prefix twice")
		got = append(got, name)
	}
	require.Equal(t, []string{
		"Name", "Props", "Monitor", "Misfire", "Concurrency", "ItemParams", "ItemParams", "ItemParams", "ItemParams",
		"MaxTimeDiff", "ReconcileInterval", "TimeZone", "Gap", "Overlap", "Cron", "Strategy",
	}, got)
	require.NoError(t, everySecond.Validate())
}

// Finding C 21.
func TestValidateRefusesACronThatWillNotFire(t *testing.T) {
	cfg := everySecond
	cfg.Cron = "0 0 0 30 2 ?"
	require.EqualError(t, cfg.Validate(), `job "hello": Cron: "0 0 0 30 2 ?" never fires: there is no such time in 1970 to 2099`)
	cfg.Cron, cfg.TimeZone = "0 0 9 1 5 ? 2024", "UTC"
	clock := core.WithClock(func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) })
	require.EqualError(t, cfg.Validate(clock),
		`job "hello": Cron: "0 0 9 1 5 ? 2024" never fires again: its last time was 2024-05-01T09:00:00Z; give a time to come`)
	before := core.WithClock(func() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) })
	require.NoError(t, cfg.Validate(before))
	cfg.Cron = "@delay 1h"
	require.NoError(t, cfg.Validate(clock))
}

// Finding C 21.
func TestValidateFindsWhatTheRegistryCannotHold(t *testing.T) {
	cfg := everySecond
	cfg.Label, cfg.Props = "a\x00", map[string]string{"uri": "sesame\ufeff"}
	err := cfg.Validate()
	require.ErrorContains(t, err, `job "hello": Label: holds the character U+0000`)
	require.ErrorContains(t, err, `job "hello": Props.uri: holds the character U+FEFF`)
	require.NotContains(t, err.Error(), "sesame")
}

// Finding C 6.
func TestAddKnowsTheStrategiesOfItsScheduler(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	cfg := everySecond
	cfg.Strategy = "MINE"
	require.ErrorContains(t, cfg.Validate(), `Strategy: "MINE" is not a strategy`)
	own := core.WithStrategy("MINE", strategy.Sticky{})
	require.NoError(t, cfg.Validate(own))

	s := core.New(reg)
	require.ErrorIs(t, s.Add(newWitness(), cfg), core.ErrConfig)
	require.NoError(t, s.Stop(t.Context()))
	s = core.New(reg, own)
	require.NoError(t, s.Add(newWitness(), cfg))
	require.NoError(t, s.Stop(t.Context()))
}

func TestAddJoinsAllFaults(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	s := core.New(reg)
	err := s.Add(nil, core.JobConfig{Name: "x"})
	var wrong *core.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Len(t, strings.Split(err.Error(), "\n"), 3, err.Error())
	require.NoError(t, s.Stop(t.Context()))
}

// "Local" is a zone to time.LoadLocation, and another one on each host.
func TestALocalZoneIsRefused(t *testing.T) {
	for _, name := range []string{"Local", "local"} {
		cfg := core.JobConfig{Name: "hello", Cron: "0 0 2 * * ?", Shards: 1, TimeZone: name}
		err := cfg.Validate()
		require.ErrorIs(t, err, core.ErrConfig)
		require.ErrorContains(t, err, "TimeZone: "+strconv.Quote(name)+" is another zone on each host; write an IANA name")
	}
}
