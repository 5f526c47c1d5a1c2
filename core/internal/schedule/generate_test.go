package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func plainText(t *rapid.T, label string, least, most int, names []string) string {
	value := func() string {
		v := rapid.IntRange(least, most).Draw(t, label)
		if names != nil && rapid.Bool().Draw(t, "named") {
			return names[v-least]
		}
		return fmt.Sprint(v)
	}
	var parts []string
	for range rapid.IntRange(1, 2).Draw(t, "parts") {
		step := fmt.Sprintf("/%d", rapid.IntRange(0, most-least).Draw(t, "step"))
		nonzero := fmt.Sprintf("/%d", rapid.IntRange(1, most-least).Draw(t, "step"))
		switch rapid.IntRange(0, 7).Draw(t, "form") {
		case 0:
			parts = append(parts, "*")
		case 1:
			parts = append(parts, "*"+step)
		case 2:
			parts = append(parts, value()+step)
		case 3:
			parts = append(parts, value()+"-"+value())
		case 4:
			parts = append(parts, value()+"-"+value()+nonzero)
		default:
			parts = append(parts, value())
		}
	}
	return strings.Join(parts, ",")
}

func domText(t *rapid.T) string {
	n := rapid.IntRange(0, 30).Draw(t, "n")
	switch rapid.IntRange(0, 7).Draw(t, "dom") {
	case 0:
		return "L"
	case 1:
		return fmt.Sprintf("L-%d,%d", n, n/2+1)
	case 2:
		return "LW"
	case 3:
		return fmt.Sprintf("L-%dW", n)
	case 4:
		return fmt.Sprintf("%dW,15W", n+1)
	}
	return plainText(t, "day", 1, 31, nil)
}

func dowText(t *rapid.T) string {
	d := rapid.IntRange(1, 7).Draw(t, "d")
	n := rapid.IntRange(1, 5).Draw(t, "n")
	switch rapid.IntRange(0, 5).Draw(t, "dow") {
	case 0:
		return fmt.Sprintf("%dL", d)
	case 1:
		return fmt.Sprintf("%s#%d,%dL", weekdays[d-1], n, n)
	case 2:
		return fmt.Sprintf("%d#%d,%d", d, n, n)
	}
	return plainText(t, "weekday", 1, 7, weekdays)
}

// yearText keeps ranges in order: years do not wrap.
func yearText(t *rapid.T) string {
	from := rapid.IntRange(1970, 2099).Draw(t, "year")
	to := rapid.IntRange(from, 2099).Draw(t, "to")
	step := rapid.IntRange(1, 129).Draw(t, "step")
	return rapid.SampledFrom([]string{
		fmt.Sprint(from), fmt.Sprintf("%d,%d", to, from), fmt.Sprintf("%d-%d", from, to),
		fmt.Sprintf("%d-%d/%d", from, to, step), fmt.Sprintf("%d/%d", from, step), fmt.Sprintf("*/%d", step), "*",
	}).Draw(t, "years")
}

func dayText(t *rapid.T) string {
	month := "*"
	if rapid.Bool().Draw(t, "months") {
		month = plainText(t, "month", 1, 12, months)
	}
	if rapid.Bool().Draw(t, "byWeek") {
		return "? " + month + " " + dowText(t)
	}
	return domText(t) + " " + month + " ?"
}

// Every day from 1970 to 2099, or the first thousand.
func TestDaysAgreeWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := "30 20 10 " + dayText(t)
		if rapid.Bool().Draw(t, "withYear") {
			expr += " " + yearText(t)
		}
		s, err := Parse(Config{Expr: expr, Zone: "UTC"})
		require.NoError(t, err)
		o := newOracle(expr)
		start := time.Date(rapid.IntRange(1969, 2100).Draw(t, "from"), 3, 1, 0, 0, 0, 0, time.UTC)
		var got, want []string
		for date := start; date.Year() < 2101 && len(want) < 1000; date = date.AddDate(0, 0, 1) {
			if o.day(date) {
				want = append(want, date.Add(10*time.Hour+20*time.Minute+30*time.Second).Format(time.RFC3339))
			}
		}
		got = fires(s, start, len(want), time.UTC)
		require.Empty(t, cmp.Diff(want, got), expr)
		if len(want) < 1000 {
			last := start
			if len(want) > 0 {
				last, _ = time.Parse(time.RFC3339, want[len(want)-1])
			}
			_, ok := s.Next(last)
			require.False(t, ok, "%s fires after %s", expr, last)
		}
	})
}

// Changes of the clock, and one ordinary day.
var changes = []struct{ zone, at string }{
	{"America/New_York", "2026-03-08T07:00:00Z"},
	{"America/New_York", "2026-11-01T06:00:00Z"},
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2040-10-28T01:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
	{"America/Sao_Paulo", "2018-02-18T02:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z"},
	{"Asia/Shanghai", "1986-05-03T18:00:00Z"},
	{"Asia/Shanghai", "2026-06-01T00:00:00Z"},
	{"Asia/Kathmandu", "1985-12-31T18:30:00Z"},
	{"America/Caracas", "2016-05-01T07:00:00Z"},
	{"America/New_York", "2028-12-31T05:00:00Z"},
	{"GMT-03:30", "2028-02-29T03:30:00Z"},
}

// Every second around every change, under every policy.
func TestNextAgreesWithOracle(t *testing.T) {
	for _, change := range changes {
		t.Run(strings.ReplaceAll(change.zone, "/", "_")+"_"+change.at[:10], func(t *testing.T) {
			t.Parallel()
			at := instant(t, change.at)
			rapid.Check(t, func(t *rapid.T) { agree(t, change.zone, at) })
		})
	}
}

func agree(t *rapid.T, zone string, at time.Time) {
	days := "* * ?"
	if rapid.IntRange(0, 3).Draw(t, "days") == 0 {
		days = dayText(t)
	}
	expr := fmt.Sprintf("%s %s %s %s",
		rapid.SampledFrom([]string{"0", "30", "0/7", "*", "59-2"}).Draw(t, "second"),
		rapid.SampledFrom([]string{"0", "15", "30", "45", "0/10", "59-1", "*"}).Draw(t, "minute"),
		rapid.SampledFrom([]string{"0", "1", "2", "3", "23", "0-3", "22-2", "0/2", "1/2", "*", "0-22"}).Draw(t, "hour"), days)
	c := Config{
		Expr: expr, Zone: zone,
		Gap:     rapid.SampledFrom([]Gap{RunAfterGap, SkipGap}).Draw(t, "gap"),
		Overlap: rapid.SampledFrom([]Overlap{FirstOnly, Both}).Draw(t, "overlap"),
	}
	s, err := Parse(c)
	require.NoError(t, err)
	start := at.Add(-time.Duration(rapid.IntRange(-3600, 3*3600).Draw(t, "lead")) * time.Second)
	end := at.Add(4 * time.Hour)
	var got []time.Time
	for next, ok := s.Next(start); ok && !next.After(end); next, ok = s.Next(next) {
		got = append(got, next.UTC())
	}
	require.Empty(t, cmp.Diff(newOracle(expr).fires(c, s.Location(), start, end), got), "%+v after %s", c, start)
}
