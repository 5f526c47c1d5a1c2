package schedule

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	wrong "github.com/elasticron/elasticron/internal/field"
)

// maxExpr is more than any sensible expression needs.
const maxExpr = 1024

var descriptors = map[string]string{
	"@yearly":   "0 0 0 1 1 ?",
	"@annually": "0 0 0 1 1 ?",
	"@monthly":  "0 0 0 1 * ?",
	"@weekly":   "0 0 0 ? * SUN",
	"@daily":    "0 0 0 * * ?",
	"@midnight": "0 0 0 * * ?",
	"@hourly":   "0 0 * * * ?",
}

const descriptorFix = "write @every 90s, @delay 90s, @yearly, @monthly, @weekly, @daily, @hourly or @requests"

func parsePlan(text string, gap Gap, overlap Overlap) (plan, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	words := strings.Fields(text)
	if strings.HasPrefix(text, "@") {
		return parseDescriptor(words, gap, overlap)
	}
	return parseCron(words, gap, overlap)
}

// checkText refuses what cannot be split into fields.
func checkText(text string) error {
	switch {
	case text == "":
		return fault(cronField, "is empty", "write for example 0/5 * * * * ? or @every 90s")
	case len(text) > maxExpr:
		return faultf(cronField, "", "is %d bytes long, at most %d fit", len(text), maxExpr)
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		return fault(cronField, "an expression has no zone of its own", "give the zone as the time zone")
	}
	for _, r := range text {
		if plain, wide := wrong.Narrow(r); wide {
			return faultf(cronField, fmt.Sprintf("write %q", plain), "holds the full-width character %q", r)
		}
		if r == '"' || r == '\'' {
			return fault(cronField, "holds a quote", "remove it: the quotes of YAML, of Go and of a shell are no part of the expression")
		}
		if r >= utf8.RuneSelf {
			return faultf(cronField, "write plain ASCII", "holds the character %+q", r)
		}
	}
	return nil
}

func parseDescriptor(words []string, gap Gap, overlap Overlap) (plan, error) {
	word, rest := strings.ToLower(words[0]), strings.Join(words[1:], " ")
	switch word {
	case "@every":
		d, err := parseDuration(word, rest)
		return rate(d), err
	case "@delay":
		d, err := parseDuration(word, rest)
		return delay(d), err
	case "@requests":
		if rest != "" {
			return nil, faultf(cronField, descriptorFix, "nothing may follow %s", word)
		}
		return onRequest{}, nil
	}
	expanded, known := descriptors[word]
	switch {
	case !known:
		return nil, faultf(cronField, descriptorFix, "%s is not known", quote(words[0]))
	case rest != "":
		return nil, faultf(cronField, descriptorFix, "nothing may follow %s", word)
	}
	return parseCron(strings.Fields(expanded), gap, overlap)
}

func parseCron(words []string, gap Gap, overlap Overlap) (plan, error) {
	c, err := compile(words)
	if err != nil {
		return nil, err
	}
	const everyHour = 1<<24 - 1
	return &cronPlan{clock: c, steady: c.time.Hour == everyHour, gap: gap, overlap: overlap}, nil
}

// compile turns the fields of an expression into a clock.
func compile(words []string) (clock, error) {
	var c clock
	if err := checkCount(words); err != nil {
		return c, err
	}
	if err := checkDays(words); err != nil {
		return c, err
	}
	if len(words) == 6 {
		words = append(words[:6:6], "*")
	}
	add := []func(int){
		seconds:    func(v int) { c.time.Second |= 1 << v },
		minutes:    func(v int) { c.time.Minute |= 1 << v },
		hours:      func(v int) { c.time.Hour |= 1 << v },
		dayOfMonth: func(v int) { c.days.dom |= 1 << v },
		month:      func(v int) { c.month |= 1 << v },
		dayOfWeek:  func(v int) { c.days.dow |= 1 << (v - 1) },
		year:       func(v int) { c.years[(v-firstYear)/64] |= 1 << ((v - firstYear) % 64) },
	}
	for i := range fields {
		if err := fields[i].parse(words[i], &c.days, add[i]); err != nil {
			return c, err
		}
	}
	c.seal()
	return c, nil
}

func checkCount(words []string) error {
	const want = "Quartz has 6, seconds first, or 7 with the year"
	switch n := len(words); n {
	case 6, 7:
		return nil
	case 5:
		return faultf(cronField, suggest(words), "has 5 fields, %s", want)
	case 1:
		return faultf(cronField, "write for example 0/5 * * * * ?", "has 1 field, %s", want)
	default:
		return faultf(cronField, "no space belongs inside a field", "has %d fields, %s", n, want)
	}
}

// checkDays requires ? in exactly one of the day fields, as Quartz does.
func checkDays(words []string) error {
	dom, dow := words[dayOfMonth], words[dayOfWeek]
	const fix = "write ? in one of them"
	switch {
	case dom == "?" && dow == "?":
		return fault(cronField, "day of week: ? stands in day of month already", "write * in one of them")
	case dom == "?" || dow == "?":
		return nil
	case strings.Contains(dom, "?"):
		return fault(cronField, "day of month: ? must stand alone", "")
	case strings.Contains(dow, "?"):
		return fault(cronField, "day of week: ? must stand alone", "")
	case dom != "*" && dow != "*":
		return fault(cronField, "day of week: day of month and day of week cannot be combined", fix+"; if both are meant, make two jobs")
	}
	fixed := slices.Clone(words)
	if dow == "*" {
		fixed[dayOfWeek] = "?"
	} else {
		fixed[dayOfMonth] = "?"
	}
	const problem = "day of week: one of day of month and day of week must be ?"
	if _, err := compile(fixed); err != nil {
		return fault(cronField, problem, fix)
	}
	return fault(cronField, problem, "write "+strings.Join(fixed, " "))
}
