package schedule

import (
	"slices"
	"strings"
)

// maxFix bounds what a message suggests, in bytes.
const maxFix = 200

// suggest is the Quartz form of a five-field expression, where there is one that means the
// same in every crontab.
func suggest(words []string) string {
	dom, dow := words[2], words[4]
	plain := "put the seconds in front"
	if strings.ContainsAny(dow, "0123456789") {
		plain += " and name the weekdays: 1 is Sunday here, and Monday in crontab"
	}
	named, ok := fromCrontab(dow)
	if !ok {
		return plain
	}
	days := [][2]string{{dom, named}}
	switch {
	case dom == "?" || dow == "?":
	case dow == "*":
		days[0][1] = "?"
	case dom == "*":
		days[0][0] = "?"
	case dom[0] == '*' || dow[0] == '*': // some crontabs take both, others either
		return plain
	default: // crontab fires on both kinds of days
		days = [][2]string{{dom, "?"}, {"?", named}}
	}
	var exprs []string
	for _, d := range days {
		with := []string{"0", words[0], words[1], d[0], words[3], d[1]}
		if _, err := compile(with); err != nil {
			return plain
		}
		exprs = append(exprs, strings.Join(with, " "))
	}
	fix := "write " + strings.Join(exprs, " and ")
	switch {
	case len(fix) > maxFix:
		return plain
	case len(exprs) > 1:
		return fix + " as two jobs: crontab means all of these days"
	}
	return fix
}

// fromCrontab names the weekdays of a crontab field: there Sunday is 0 and 7, in Quartz it is
// 1. It is false for what not every crontab understands alike.
func fromCrontab(dow string) (string, bool) {
	if dow == "*" || dow == "?" {
		return dow, true
	}
	var days []string
	for part := range strings.SplitSeq(strings.ToUpper(dow), ",") {
		named, ok := namedDays(part)
		if !ok {
			return "", false
		}
		if !slices.Contains(days, named) {
			days = append(days, named)
		}
	}
	return strings.Join(days, ","), true
}

// namedDays names the weekdays of an entry of a crontab field.
func namedDays(part string) (string, bool) {
	base, stepText, stepped := strings.Cut(part, "/")
	if stepped {
		return steppedDays(base, stepText)
	}
	if s, last := strings.CutSuffix(part, "L"); last {
		day, ok := crontabDay(s)
		return dayName(day) + "L", ok
	}
	if s, n, nth := strings.Cut(part, "#"); nth {
		day, ok := crontabDay(s)
		return dayName(day) + "#" + n, ok
	}
	lowText, highText, ranged := strings.Cut(part, "-")
	low, ok := crontabDay(lowText)
	if !ranged || !ok {
		return dayName(low), ok
	}
	high, ok := crontabDay(highText)
	if high-low == len(weekdays) { // 0-7 is the week, and Sunday once
		high--
	}
	return dayName(low) + "-" + dayName(high), ok
}

// steppedDays lists the weekdays of */n and a-b/n, which crontab counts from its own first
// day. After a single day some crontabs end with Saturday, others with Sunday.
func steppedDays(base, stepText string) (string, bool) {
	step, ok := number(stepText)
	if !ok || step == 0 {
		return "", false
	}
	low, high := 0, len(weekdays)-1
	if base != "*" {
		lowText, highText, ranged := strings.Cut(base, "-")
		var fromOK, toOK bool
		low, fromOK = crontabDay(lowText)
		high, toOK = crontabDay(highText)
		if !ranged || !fromOK || !toOK || high < low {
			return "", false
		}
		high = min(high, low+len(weekdays)-1)
	}
	var days []string
	for day := low; day <= high; day += step {
		days = append(days, dayName(day))
	}
	return strings.Join(days, ","), true
}

// crontabDay reads 0-7 or a name. It is the number that a name has in crontab.
func crontabDay(s string) (int, bool) {
	if day := slices.Index(weekdays, s); day >= 0 {
		return day, true
	}
	day, ok := number(s)
	return day, ok && day <= len(weekdays)
}

func dayName(day int) string { return weekdays[day%len(weekdays)] }
