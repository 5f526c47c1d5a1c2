package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// crontab reads the day fields of a crontab as crontab(5) has it, and shares no code with
// the package: Sunday is 0 and 7, a step counts from the start of its range, and a day fires
// by either field unless one of them is *. L and # are as in the crontabs that have them.
type crontab struct{ dom, dow string }

func (c crontab) fires(date time.Time) bool {
	switch {
	case c.dow == "*" || c.dow == "?":
		return crontabValues(c.dom, 1, 31)[date.Day()]
	case c.dom == "*" || c.dom == "?":
		return c.weekday(date)
	}
	return crontabValues(c.dom, 1, 31)[date.Day()] || c.weekday(date)
}

func (c crontab) weekday(date time.Time) bool {
	for part := range strings.SplitSeq(c.dow, ",") {
		day, nth, numbered := strings.Cut(part, "#")
		day, last := strings.CutSuffix(day, "L")
		fires := crontabValues(day, 0, 7)
		switch {
		case !fires[int(date.Weekday())] && (date.Weekday() != time.Sunday || !fires[7]):
		case numbered && strconv.Itoa((date.Day()-1)/7+1) != nth:
		case last && date.AddDate(0, 0, 7).Month() == date.Month():
		default:
			return true
		}
	}
	return false
}

func crontabValues(field string, first, last int) map[int]bool {
	for i, name := range []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} {
		field = strings.ReplaceAll(strings.ToUpper(field), name, strconv.Itoa(i))
	}
	values := map[int]bool{}
	for part := range strings.SplitSeq(field, ",") {
		from, to, step := first, last, 1
		if base, text, stepped := strings.Cut(part, "/"); stepped {
			step, _ = strconv.Atoi(text)
			part = base
		}
		if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n == 1 {
			to = from
		}
		for v := from; v <= to; v += step {
			values[v] = true
		}
	}
	return values
}

// suggested is what the error of a five-field expression tells to write; none where it names nothing.
func suggested(t require.TestingT, expr string) []string {
	_, err := Parse(Config{Expr: expr})
	require.Error(t, err)
	_, fix, told := strings.Cut(err.Error(), "; write ")
	if !told {
		require.Contains(t, err.Error(), "; put the seconds in front")
		return nil
	}
	fix, _, _ = strings.Cut(fix, " as two jobs")
	return strings.Split(fix, " and ")
}

// agrees says of each day of 14 months that what is suggested fires as crontab does.
func agrees(t require.TestingT, dom, dow string, exprs []string) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := begin.AddDate(0, 14, 0)
	var want, got []string
	for date := begin; date.Before(end); date = date.AddDate(0, 0, 1) {
		if (crontab{dom, dow}).fires(date) {
			want = append(want, date.Format("2006-01-02 09:00"))
		}
	}
	for _, expr := range exprs {
		s, err := Parse(Config{Expr: expr, Zone: "UTC"})
		require.NoError(t, err, expr)
		for at, ok := s.Next(begin); ok && at.Before(end); at, ok = s.Next(at) {
			got = append(got, at.Format("2006-01-02 15:04"))
		}
	}
	slices.Sort(got)
	require.Equal(t, want, slices.Compact(got), "%s %s: %s", dom, dow, exprs)
}

// What is told to write instead of a crontab expression fires on the days that crontab means.
func TestCrontab(t *testing.T) {
	for _, c := range []struct {
		dom, dow string
		// jobs is how many expressions are told.
		jobs int
	}{
		{"*", "*", 1}, {"*", "1-5", 1}, {"*", "1-5/2", 1}, {"*", "MON-5", 1}, {"*", "1-FRI/3", 1}, {"*", "5L", 1}, {"*", "0L", 1}, {"*", "7L", 1},
		{"*", "5#2", 1}, {"*", "0#1,7#3", 1}, {"*", "fri#5", 1}, {"*", "*/2", 1}, {"*", "*/3", 1}, {"*", "*/7", 1}, {"*", "*/9", 1},
		{"*", "0", 1}, {"*", "7", 1}, {"*", "0,7", 1}, {"*", "0-7", 1}, {"*", "1-7", 1}, {"*", "5-7", 1}, {"*", "0-7/2", 1}, {"*", "0-7/7", 1}, {"*", "1-7/3", 1},
		{"*", "1,3-5,6-7/1", 1}, {"?", "2-4", 1}, {"1", "*", 1}, {"*/2", "*", 1}, {"10-20/5", "?", 1},
		{"1", "5", 2}, {"1,15", "1-5/2", 2}, {"13", "5#2", 2}, {"1-7", "*/1", 0},
		{"*/2", "5", 0}, {"1", "*/2", 0}, {"*", "1/2", 0}, {"*", "MON/3", 0}, {"*", "5-1/2", 0}, {"*", "L", 0}, {"*", "8", 0}, {"*", "x", 0}, {"*", "1-", 0}, {"*", "-1", 0}, {"*", "1#6", 0},
	} {
		exprs := suggested(t, "0 9 "+c.dom+" * "+c.dow)
		require.Len(t, exprs, c.jobs, "%s %s", c.dom, c.dow)
		if c.jobs > 0 {
			agrees(t, c.dom, c.dow, exprs)
		}
	}
}

func TestCrontabAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		day := func(label string, from int) (string, int) {
			v := rapid.IntRange(from, 7).Draw(t, label)
			if v < 7 && rapid.Bool().Draw(t, "named") {
				return oracleWeek[v], v
			}
			return strconv.Itoa(v), v
		}
		var parts []string
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			one, v := day("day", 0)
			other, _ := day("end", v)
			step := rapid.IntRange(1, 8).Draw(t, "step")
			parts = append(parts, rapid.SampledFrom([]string{
				one, one + "-" + other, fmt.Sprintf("%s-%s/%d", one, other, step), one + "L", fmt.Sprintf("%s#%d", one, step%5+1),
			}).Draw(t, "part"))
		}
		dow := strings.Join(parts, ",")
		dom := rapid.SampledFrom([]string{"*", "?", "1", "5-9/2,31"}).Draw(t, "dom")
		exprs := suggested(t, "0 9 "+dom+" * "+dow)
		require.NotEmpty(t, exprs, "%s %s", dom, dow)
		agrees(t, dom, dow, exprs)
	})
}
