package schedule

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFixedRate(t *testing.T) {
	for _, c := range []struct {
		expr, start string
		want        []string
	}{
		{"@every 90s", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"}},
		{"@every 90s", "2026-01-01T00:01:29.999999999Z", []string{"2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"}},
		{"@every 10ms", "2026-01-01T00:00:00.015Z", []string{"2026-01-01T00:00:00.02Z", "2026-01-01T00:00:00.03Z"}},
		{"@EVERY 24h", "2026-01-01T00:00:00.1Z", []string{"2026-01-02T00:00:00Z"}},
		{"@every 7h", "1970-01-01T00:00:00Z", []string{"1970-01-01T07:00:00Z"}},
		{"@every 7h", "1960-01-01T00:00:00Z", []string{"1970-01-01T00:00:00Z", "1970-01-01T07:00:00Z"}},
		{"@every 87600h", "2069-01-01T00:00:00Z", []string{"2069-12-07T00:00:00Z", "2079-12-05T00:00:00Z", "2089-12-02T00:00:00Z", "2099-11-30T00:00:00Z", "end"}},
		{"@every 1s", "9999-01-01T00:00:00Z", []string{"end"}},
	} {
		s := parse(t, Config{Expr: c.expr, Zone: "America/New_York"})
		require.Empty(t, cmp.Diff(c.want, fires(s, instant(t, c.start), len(c.want), time.UTC)), "%+v", c)
		_, fixed := s.Delay()
		require.False(t, fixed)
	}
}

func TestFixedDelay(t *testing.T) {
	s := parse(t, Config{Expr: " @delay 1m30s ", Zone: "GMT+8"})
	d, fixed := s.Delay()
	require.True(t, fixed)
	require.Equal(t, 90*time.Second, d)
	require.Equal(t, "@delay 1m30s", s.String())
	end := time.Date(2026, 1, 1, 0, 0, 0, 123, time.UTC)
	next, ok := s.Next(end)
	require.True(t, ok)
	require.True(t, next.Equal(end.Add(d)))
	require.Equal(t, s.Location(), next.Location())
	_, ok = s.Next(time.Date(2099, 12, 31, 23, 59, 0, 0, time.UTC))
	require.False(t, ok)
	_, ok = s.Next(time.Unix(1<<60, 0))
	require.False(t, ok)
	_, ok = s.Prev(end.Add(time.Hour), end)
	require.False(t, ok)
}

func TestNeverAgain(t *testing.T) {
	for _, c := range []struct {
		expr, start string
		want        []string
	}{
		{"0 0 0 30 2 ?", "2026-01-01T00:00:00Z", []string{"end"}},
		{"0 0 0 31 4,6,9,11 ?", "2026-01-01T00:00:00Z", []string{"end"}},
		{"0 0 0 30W 2 ?", "2026-01-01T00:00:00Z", []string{"end"}},
		{"0 0 0 L-30 2,4 ?", "2026-01-01T00:00:00Z", []string{"end"}},
		{"0 0 0 29 2 ? 2027", "2026-01-01T00:00:00Z", []string{"end"}},
		{"0 0 0 1 1 ? 2000", "2026-01-01T00:00:00Z", []string{"end"}},
		{"0 0 0 1 1 ? 2000", "1999-01-01T00:00:00Z", []string{"2000-01-01T00:00:00Z", "end"}},
		{"0 0 0 29 2 ?", "2092-03-01T00:00:00Z", []string{"2096-02-29T00:00:00Z", "end"}},
		{"59 59 23 31 12 ? 2099", "2026-01-01T00:00:00Z", []string{"2099-12-31T23:59:59Z", "end"}},
		{"* * * * * ?", "0001-01-01T00:00:00Z", []string{"1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"}},
		{"* * * * * ?", "2099-12-31T23:59:58.5Z", []string{"2099-12-31T23:59:59Z", "end"}},
		{"* * * * * ?", "9999-12-31T23:59:59Z", []string{"end"}},
	} {
		s := parse(t, Config{Expr: c.expr, Zone: "UTC"})
		require.Empty(t, cmp.Diff(c.want, fires(s, instant(t, c.start), len(c.want), time.UTC)), "%+v", c)
	}
	next, ok := parse(t, Config{Expr: "0 0 0 30 2 ?"}).Next(time.Time{})
	require.False(t, ok)
	require.True(t, next.IsZero())
	for _, far := range []int64{-1 << 62, 1 << 62} {
		_, ok = parse(t, Config{Expr: "0 0 0 * * ?", Zone: "America/New_York"}).Next(time.Unix(far, 0))
		require.Equal(t, far < 0, ok, "far away is no trouble")
	}
	// The last reading of a clock far behind UTC is an instant of the next century.
	s := parse(t, Config{Expr: "59 59 23 31 12 ? 2099", Zone: "GMT-23:59"})
	require.Equal(t, []string{"2100-01-01T23:58:59Z", "end"}, fires(s, instant(t, "2100-01-01T23:58:58Z"), 2, time.UTC))
}

// Prev against walking all the way with Next.
func TestPrev(t *testing.T) {
	exprs := []string{"0/7 * * * * ?", "0 0/7 * * * ?", "0 30 1,2 * * ?", "0 0 0 LW * ?", "@every 250ms", "@every 10ms", "@every 7h", "0 0 0 30 2 ?"}
	base := instant(t, "2026-10-31T00:00:00Z")
	rapid.Check(t, func(t *rapid.T) {
		s := parse(t, Config{Expr: rapid.SampledFrom(exprs).Draw(t, "expr"), Zone: "America/New_York", Overlap: Both})
		floor := base.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "floor")))
		before := floor.Add(time.Duration(rapid.Int64Range(-1, int64(2*time.Minute)).Draw(t, "window")))
		if rapid.Bool().Draw(t, "whole") {
			floor, before = floor.Truncate(time.Second), before.Truncate(time.Second)
		}
		var want time.Time
		for next, ok := s.Next(floor.Add(-1)); ok && next.Before(before); next, ok = s.Next(next) {
			want = next
		}
		got, ok := s.Prev(before, floor)
		require.Equal(t, !want.IsZero(), ok, "%s in [%s, %s)", s, floor, before)
		require.True(t, got.Equal(want), "%s in [%s, %s): %s, want %s", s, floor, before, got, want)
	})
}

// Fifty years of missed fires cost no more than a few.
func TestPrevFarBack(t *testing.T) {
	s := parse(t, Config{Expr: "* * * * * ?", Zone: "UTC"})
	prev, ok := s.Prev(instant(t, "2026-11-21T05:00:00.5Z"), time.Time{})
	require.True(t, ok)
	require.Equal(t, "2026-11-21T05:00:00Z", prev.Format(time.RFC3339Nano))
	fast := parse(t, Config{Expr: "@every 10ms", Zone: "UTC"})
	prev, ok = fast.Prev(instant(t, "2026-11-21T05:00:00.015Z"), instant(t, "2026-11-21T05:00:00Z"))
	require.True(t, ok)
	require.Equal(t, "2026-11-21T05:00:00.01Z", prev.Format(time.RFC3339Nano))
	_, ok = s.Prev(instant(t, "1970-01-01T00:00:00Z"), time.Time{})
	require.False(t, ok)
}

// One schedule, and one zone, asked from many goroutines in periods far apart.
func TestConcurrentUse(t *testing.T) {
	s := parse(t, Config{Expr: "0 30 1,2 * * ?", Zone: "Europe/Berlin"})
	start := instant(t, "2026-01-01T00:00:00Z")
	want := fires(s, start, 1000, time.UTC)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if diff := cmp.Diff(want, fires(s, start, 1000, time.UTC)); diff != "" {
				t.Error(diff)
			}
		})
	}
	wait.Wait()
}

func TestOnlyCronReadsTheClock(t *testing.T) {
	for expr, want := range map[string]bool{"0 0 2 * * ?": true, "@daily": true, "* * * * * ?": true, "@every 1h": false, "@delay 1h": false} {
		s, err := Parse(Config{Expr: expr, Zone: "UTC"})
		require.NoError(t, err)
		require.Equal(t, want, s.ReadsClock(), expr)
	}
}
