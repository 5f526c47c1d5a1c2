package schedule

import (
	"strconv"
	"strings"
	"time"
)

// The oracle shares no code with the package: it asks of every value of every
// field, and of every day of the calendar, whether the text allows it, and then
// looks at every second of a stretch of time.
type oracle struct {
	second, minute, hour [60]bool
	month                [13]bool
	dom, dow, year       string
}

func newOracle(expr string) *oracle {
	f := strings.Fields(strings.ToUpper(expr))
	if len(f) == 6 {
		f = append(f, "*")
	}
	o := &oracle{dom: f[3], dow: f[5], year: f[6]}
	for v := range 60 {
		o.second[v] = allows(f[0], v, 0, 59, nil)
		o.minute[v] = allows(f[1], v, 0, 59, nil)
		o.hour[v] = v < 24 && allows(f[2], v, 0, 23, nil)
	}
	for v := 1; v <= 12; v++ {
		o.month[v] = allows(f[4], v, 1, 12, strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"))
	}
	return o
}

var oracleWeek = strings.Fields("SUN MON TUE WED THU FRI SAT")

// allows asks whether value v is in a plain list.
func allows(text string, v, least, most int, names []string) bool {
	for part := range strings.SplitSeq(text, ",") {
		base, step, hasStep := strings.Cut(part, "/")
		if base == "*" || base == "" {
			base = strconv.Itoa(least) + "-" + strconv.Itoa(most)
		} else if hasStep && step != "0" && !strings.Contains(base, "-") {
			base += "-" + strconv.Itoa(most)
		}
		low, high, isRange := strings.Cut(base, "-")
		if !isRange {
			high = low
		}
		every := 1
		if n, _ := strconv.Atoi(step); n > 0 {
			every = n
		}
		// Walk the range as one would on a dial.
		for at, gone := numeral(low, least, names), 0; ; gone++ {
			if at == v && gone%every == 0 {
				return true
			}
			if at == numeral(high, least, names) {
				break
			}
			if at++; at > most {
				at = least
			}
		}
	}
	return false
}

func numeral(s string, least int, names []string) int {
	for i, name := range names {
		if s == name {
			return least + i
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// day asks whether the date, a midnight in UTC, matches.
func (o *oracle) day(date time.Time) bool {
	year := date.Year()
	if year < 1970 || year > 2099 || !o.month[date.Month()] || !allows(o.year, year, 1970, 2099, nil) {
		return false
	}
	if o.dom != "?" {
		for part := range strings.SplitSeq(o.dom, ",") {
			if o.monthDay(part, date) {
				return true
			}
		}
		return false
	}
	for part := range strings.SplitSeq(o.dow, ",") {
		if o.weekDay(part, date) {
			return true
		}
	}
	return false
}

func (o *oracle) monthDay(part string, date time.Time) bool {
	lastDay := date.AddDate(0, 0, 1-date.Day()).AddDate(0, 1, -1)
	var target time.Time
	switch rest, nearest := strings.CutSuffix(part, "W"); {
	case strings.HasPrefix(part, "L"):
		back, _ := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(rest, "L"), "-"))
		target = lastDay.AddDate(0, 0, -back)
	case nearest:
		n, _ := strconv.Atoi(rest)
		target = date.AddDate(0, 0, n-date.Day())
	default:
		return allows(part, date.Day(), 1, 31, nil)
	}
	if target.Month() != date.Month() {
		return false
	}
	if strings.HasSuffix(part, "W") {
		target = nearestWeekday(target)
	}
	return target.Equal(date)
}

// nearestWeekday tries the day itself, then ever farther ones in the same month.
func nearestWeekday(target time.Time) time.Time {
	for _, off := range []int{0, -1, 1, -2, 2} {
		at := target.AddDate(0, 0, off)
		if at.Month() == target.Month() && at.Weekday() != time.Saturday && at.Weekday() != time.Sunday {
			return at
		}
	}
	panic("no weekday")
}

func (o *oracle) weekDay(part string, date time.Time) bool {
	number := int(date.Weekday()) + 1
	if part == "L" {
		return number == 7
	}
	if d, last := strings.CutSuffix(part, "L"); last {
		return number == numeral(d, 1, oracleWeek) && date.AddDate(0, 0, 7).Month() != date.Month()
	}
	if d, nth, ok := strings.Cut(part, "#"); ok {
		n, _ := strconv.Atoi(nth)
		return number == numeral(d, 1, oracleWeek) && (date.Day()+6)/7 == n
	}
	return allows(part, number, 1, 7, oracleWeek)
}

// dial answers whether a reading of the wall clock matches, remembering the day.
type dial struct {
	*oracle
	date    time.Time
	matches bool
}

func (d *dial) reading(at time.Time) bool {
	hour, minute, second := at.Clock()
	if !d.second[second] || !d.minute[minute] || !d.hour[hour] {
		return false
	}
	date := at.Truncate(24 * time.Hour)
	if !date.Equal(d.date) {
		d.date, d.matches = date, d.day(date)
	}
	return d.matches
}

// fires looks at every second in (start, end]. The policies are taken from what
// the clock on the wall has shown since four hours before start.
func (o *oracle) fires(c Config, loc *time.Location, start, end time.Time) []time.Time {
	steady := true
	for h := range 24 {
		steady = steady && o.hour[h]
	}
	wall := func(at time.Time) time.Time {
		_, offset := at.In(loc).Zone()
		return at.UTC().Add(time.Duration(offset) * time.Second)
	}
	var out []time.Time
	d := &dial{oracle: o}
	before := start.Add(-4 * time.Hour)
	latest, shown := wall(before), wall(before)
	for at := before.Add(time.Second); !at.After(end); at = at.Add(time.Second) {
		now := wall(at)
		due := d.reading(now) && (steady || c.Overlap == Both || now.After(latest))
		if !steady && c.Gap == RunAfterGap {
			for missing := shown.Add(time.Second); missing.Before(now) && !due; missing = missing.Add(time.Second) {
				due = d.reading(missing)
			}
		}
		if due && at.After(start) {
			out = append(out, at)
		}
		if shown = now; now.After(latest) {
			latest = now
		}
	}
	return out
}
