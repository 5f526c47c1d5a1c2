package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	wrong "github.com/elasticron/elasticron/internal/field"
)

// Whatever the text: no panic, an error of one line, or a schedule that moves
// forward and keeps to its fields.
func FuzzParse(f *testing.F) {
	for _, expr := range []string{
		"0/5 * * * * ?", "0 15 10 ? * 6#3 2026-2029", "0 0 22-2/2 L-3W NOV-FEB ?", "0 0 0 ? * FRI-MON,2#1,7L", "*/7 5/15 1,2 31W * ?",
		"0 0 0 30 2 ?", "TZ=UTC", "CRON_TZ=", "@every 90s", "@every 1ns", "@delay 5m", "@", "* * * * *", "0 9 1 * 5-7/2,1#2", "0 0 12 * * ？", "0 0 0 L-31 * ?", "0 0 0 #/- * ?",
	} {
		f.Add(expr, "America/New_York", int64(1772926200), uint8(0))
		f.Add(expr, "GMT-03:30", int64(4102444799), uint8(3))
	}
	f.Fuzz(func(t *testing.T, expr, zone string, start int64, policy uint8) {
		s, err := Parse(Config{Expr: expr, Zone: zone, Gap: Gap(policy & 1), Overlap: Overlap(policy >> 1 & 1)})
		if err != nil {
			checkError(t, err)
			return
		}
		after := time.Unix(start, 0)
		for range 5 {
			next, ok := s.Next(after)
			if !ok {
				return
			}
			if !next.After(after) {
				t.Fatalf("%q: %s is not after %s", expr, next, after)
			}
			if c, isCron := s.plan.(*cronPlan); isCron {
				checkFire(t, s, c, next)
			}
			after = next
		}
	})
}

func checkError(t *testing.T, err error) {
	var parseErr *wrong.Error
	if !errors.As(err, &parseErr) || parseErr.Field == "" || parseErr.Problem == "" {
		t.Fatalf("not a *field.Error with field and problem: %v", err)
	}
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) || len(err.Error()) > 1500 {
		t.Fatalf("not one short line: %q", err)
	}
}

func checkFire(t *testing.T, s *Schedule, c *cronPlan, next time.Time) {
	_, offset := next.Zone()
	_, before := next.Add(-time.Second).Zone()
	if offset > before && c.gap == RunAfterGap && !c.steady {
		return // right after a gap
	}
	hour, minute, second := next.Clock()
	spec := c.clock.time
	if spec.Second>>second&1 == 0 || spec.Minute>>minute&1 == 0 || spec.Hour>>hour&1 == 0 || next.Nanosecond() != 0 {
		t.Fatalf("%q: %s has another time of day", s, next)
	}
	if c.clock.month>>next.Month()&1 == 0 || !c.clock.hasYear(next.Year()) || c.clock.days.in(next.Year(), next.Month())>>next.Day()&1 == 0 {
		t.Fatalf("%q: %s is another day", s, next)
	}
}
