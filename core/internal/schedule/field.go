package schedule

import (
	"fmt"
	"strings"
)

// Positions of the fields in an expression.
const (
	seconds = iota
	minutes
	hours
	dayOfMonth
	month
	dayOfWeek
	year
)

// A field describes one position: its bounds and what else it may hold.
type field struct {
	index    int
	name     string
	min, max int
	// step is the largest that Quartz takes.
	step int
	// names stand for min, min+1 and so on.
	names []string
	// holds completes "may hold ...".
	holds string
}

var (
	weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
	months   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
)

var fields = [...]field{
	{seconds, "seconds", 0, 59, 59, nil, "0-59 and , - * /"},
	{minutes, "minutes", 0, 59, 59, nil, "0-59 and , - * /"},
	{hours, "hours", 0, 23, 23, nil, "0-23 and , - * /"},
	{dayOfMonth, "day of month", 1, 31, 31, nil, "1-31, L, L-3, LW, 15W and , - * / ?"},
	{month, "month", 1, 12, 12, months, "1-12 or JAN-DEC and , - * /"},
	{dayOfWeek, "day of week", 1, 7, 7, weekdays, "1-7 (1=SUN) or SUN-SAT, 6L, 6#3 and , - * / ?"},
	{year, "year", firstYear, lastYear, lastYear - firstYear, nil, "1970-2099 and , - * /"},
}

// parse hands every plain value of text to add and the rest to d.
func (f *field) parse(text string, d *days, add func(int)) error {
	if text == "?" && (f.index == dayOfMonth || f.index == dayOfWeek) {
		return nil
	}
	for part := range strings.SplitSeq(strings.ToUpper(text), ",") {
		if part == "" {
			return f.fault("an entry of the list is empty")
		}
		done, err := f.parseSpecial(part, d)
		if err == nil && !done {
			err = f.parsePlain(part, add)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fault says what is wrong with this field of an expression.
func (f *field) fault(format string, args ...any) error {
	return faultf(cronField, "may hold "+f.holds, "%s: %s", f.name, fmt.Sprintf(format, args...))
}

// parsePlain reads [*|a|a-b][/step].
func (f *field) parsePlain(part string, add func(int)) error {
	base, stepText, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText); !ok || step > f.step {
			return f.fault("step %s is not in 1-%d", shown(stepText), f.step)
		}
	}
	lowText, highText, ranged := strings.Cut(base, "-")
	low, high := f.min, f.max
	if base != "*" && (base != "" || !stepped) {
		var err error
		if low, err = f.value(lowText); err != nil {
			return err
		}
		switch {
		case ranged:
			if high, err = f.value(highText); err != nil {
				return err
			}
		case !stepped || step == 0:
			high = low
		}
	}
	if step == 0 {
		if ranged {
			return f.fault("step 0 of a range means nothing")
		}
		step = 1
	}
	return f.addRange(low, high, step, add)
}

// addRange wraps around where the end lies before the start: 22-2 is 22, 23, 0, 1, 2.
func (f *field) addRange(low, high, step int, add func(int)) error {
	if high < low {
		if f.index == year {
			return f.fault("%d-%d ends before it starts", low, high)
		}
		high += f.max - f.min + 1
	}
	for v := low; v <= high; v += step {
		add(f.min + (v-f.min)%(f.max-f.min+1))
	}
	return nil
}

// value reads a number within bounds or a name.
func (f *field) value(s string) (int, error) {
	for i, name := range f.names {
		if s == name {
			return f.min + i, nil
		}
	}
	v, ok := number(s)
	if !ok || v < f.min || v > f.max {
		return 0, f.fault("%s is not in %d-%d", shown(s), f.min, f.max)
	}
	return v, nil
}

// parseSpecial reads L, L-n, LW, L-nW and nW of the month, L, dL and d#n of the
// week. done is false for anything else.
func (f *field) parseSpecial(part string, d *days) (done bool, err error) {
	switch f.index {
	case dayOfMonth:
		return f.parseMonthDay(part, d)
	case dayOfWeek:
		return f.parseWeekDay(part, d)
	}
	return false, nil
}

func (f *field) parseMonthDay(part string, d *days) (bool, error) {
	if rest, last := strings.CutPrefix(part, "L"); last {
		rest, weekday := strings.CutSuffix(rest, "W")
		before := 0
		if rest != "" {
			var ok bool
			if before, ok = number(strings.TrimPrefix(rest, "-")); !ok || rest[0] != '-' || before > 30 {
				return false, f.fault("%s is not L, LW, or L-n with n in 0-30", shown(part))
			}
		}
		if weekday {
			d.lastNearest |= 1 << before
		} else {
			d.last |= 1 << before
		}
		return true, nil
	}
	s, weekday := strings.CutSuffix(part, "W")
	if !weekday {
		return false, nil
	}
	v, ok := number(s)
	if !ok || v < f.min || v > f.max {
		return false, f.fault("%s before W is not one day of 1-31", shown(s))
	}
	d.nearest |= 1 << v
	return true, nil
}

func (f *field) parseWeekDay(part string, d *days) (bool, error) {
	if part == "L" {
		d.dow |= 1 << 6 // Quartz: a lone L is 7, every Saturday
		return true, nil
	}
	if s, last := strings.CutSuffix(part, "L"); last {
		v, err := f.value(s)
		if err == nil {
			d.lastDow |= 1 << (v - 1)
		}
		return true, err
	}
	s, nthText, nth := strings.Cut(part, "#")
	if !nth {
		return false, nil
	}
	n, ok := number(nthText)
	if !ok || n < 1 || n > 5 {
		return true, f.fault("%s after # is not in 1-5", shown(nthText))
	}
	v, err := f.value(s)
	if err == nil {
		d.nth[n-1] |= 1 << (v - 1)
	}
	return true, err
}

// number reads up to four digits.
func number(s string) (int, bool) {
	if s == "" || len(s) > 4 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// shown leaves plain words bare and quotes the rest, so that an empty or odd
// piece can be seen.
func shown(s string) string {
	if s == "" || strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ#-*/") != "" {
		return quote(s)
	}
	return clip(s)
}
