package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	wrong "github.com/elasticron/elasticron/internal/field"
)

func TestParseErrors(t *testing.T) {
	const (
		sixty  = "may hold 0-59 and , - * /"
		dom    = "may hold 1-31, L, L-3, LW, 15W and , - * / ?"
		dow    = "may hold 1-7 (1=SUN) or SUN-SAT, 6L, 6#3 and , - * / ?"
		month  = "may hold 1-12 or JAN-DEC and , - * /"
		count  = "Quartz has 6, seconds first, or 7 with the year; "
		both   = " as two jobs: crontab means all of these days"
		named5 = "put the seconds in front and name the weekdays: 1 is Sunday here, and Monday in crontab"
		oneQ   = "cron: day of week: one of day of month and day of week must be ?; "
		units  = "write for example 500ms, 90s, 5m or 1h30m"
		named  = "write @every 90s, @delay 90s, @yearly, @monthly, @weekly, @daily, @hourly or @requests"
		zones  = `write an IANA name such as Asia/Shanghai or Europe/Berlin, an offset such as GMT+8 or GMT-03:30, or UTC` +
			` (a machine without a zone database needs import _ "time/tzdata")`
		offset = "write GMT+8, GMT-03:30 or GMT+0530, up to 23:59, or an IANA name such as Asia/Shanghai"
	)
	for _, c := range []struct{ expr, want string }{
		{"", "cron: is empty; write for example 0/5 * * * * ? or @every 90s"},
		{"x", "cron: has 1 field, " + count + "write for example 0/5 * * * * ?"},
		{"*/5 * * * *", "cron: has 5 fields, " + count + "write 0 */5 * * * ?"},
		{"0 9 * * 1-5", "cron: has 5 fields, " + count + "write 0 0 9 ? * MON-FRI"},
		{"0 9 1 * *", "cron: has 5 fields, " + count + "write 0 0 9 1 * ?"},
		{"0 9 * * 1-5/2", "cron: has 5 fields, " + count + "write 0 0 9 ? * MON,WED,FRI"},
		{"0 9 * * mon-5", "cron: has 5 fields, " + count + "write 0 0 9 ? * MON-FRI"},
		{"0 9 * * 5L", "cron: has 5 fields, " + count + "write 0 0 9 ? * FRIL"},
		{"0 9 * * 5#2", "cron: has 5 fields, " + count + "write 0 0 9 ? * FRI#2"},
		{"0 9 * * */2", "cron: has 5 fields, " + count + "write 0 0 9 ? * SUN,TUE,THU,SAT"},
		{"0 9 * * 0-7", "cron: has 5 fields, " + count + "write 0 0 9 ? * SUN-SAT"},
		{"0 9 ? * 5", "cron: has 5 fields, " + count + "write 0 0 9 ? * FRI"},
		{"0 9 1 * 5", "cron: has 5 fields, " + count + "write 0 0 9 1 * ? and 0 0 9 ? * FRI" + both},
		{"0 9 1 * 0,7", "cron: has 5 fields, " + count + "write 0 0 9 1 * ? and 0 0 9 ? * SUN" + both},
		{"0 9 */2 * 5", "cron: has 5 fields, " + count + named5},
		{"0 9 1 * */2", "cron: has 5 fields, " + count + named5},
		{"0 9 * * 1/2", "cron: has 5 fields, " + count + named5},
		{"0 9 * * 5-1/2", "cron: has 5 fields, " + count + named5},
		{"0 9 * * 1-5/0", "cron: has 5 fields, " + count + named5},
		{"0 9 * * 8", "cron: has 5 fields, " + count + named5},
		{"0 9 * * *,1", "cron: has 5 fields, " + count + named5},
		{"0 9 * * MON/2", "cron: has 5 fields, " + count + named5},
		{strings.Repeat("0,", 100) + "0 9 * * MON", "cron: has 5 fields, " + count + "put the seconds in front"},
		{"0 9 L * ?", "cron: has 5 fields, " + count + "write 0 0 9 L * ?"},
		{"a b c d e", "cron: has 5 fields, " + count + "put the seconds in front"},
		{"0 0 12 ? * MON, WED, FRI", "cron: has 8 fields, " + count + "no space belongs inside a field"},
		{strings.Repeat("1", 1025), "cron: is 1025 bytes long, at most 1024 fit"},
		{"TZ=UTC", "cron: an expression has no zone of its own; give the zone as the time zone"},
		{"CRON_TZ=Asia/Tokyo 0 0 0 * * ?", "cron: an expression has no zone of its own; give the zone as the time zone"},
		{"0 0 12 * * ？", `cron: holds the full-width character '？'; write '?'`},
		{`"0 0 12 * * ?"`, `cron: holds a quote; remove it: the quotes of YAML, of Go and of a shell are no part of the expression`},
		{"0，5 0 12 * * ?", `cron: holds the full-width character '，'; write ','`},
		{"0 0 12 * * ?—", `cron: holds the character '\u2014'; write plain ASCII`},
		{"60 * * * * ?", "cron: seconds: 60 is not in 0-59; " + sixty},
		{"0,61 * * * * ?", "cron: seconds: 61 is not in 0-59; " + sixty},
		{"0 99999 * * * ?", "cron: minutes: 99999 is not in 0-59; " + sixty},
		{"0 1,,2 * * * ?", "cron: minutes: an entry of the list is empty; " + sixty},
		{"0 - * * * ?", `cron: minutes: "" is not in 0-59; ` + sixty},
		{"0 0 24 * * ?", "cron: hours: 24 is not in 0-23; may hold 0-23 and , - * /"},
		{"0 0 0/24 * * ?", "cron: hours: step 24 is not in 1-23; may hold 0-23 and , - * /"},
		{"0/ 0 0 * * ?", `cron: seconds: step "" is not in 1-59; ` + sixty},
		{"? 0 0 * * ?", `cron: seconds: "?" is not in 0-59; ` + sixty},
		{"1-5/0 0 0 * * ?", "cron: seconds: step 0 of a range means nothing; " + sixty},
		{"0 0 0 32 * ?", "cron: day of month: 32 is not in 1-31; " + dom},
		{"0 0 0 L-31 * ?", "cron: day of month: L-31 is not L, LW, or L-n with n in 0-30; " + dom},
		{"0 0 0 LL * ?", "cron: day of month: LL is not L, LW, or L-n with n in 0-30; " + dom},
		{"0 0 0 1-5W * ?", "cron: day of month: 1-5 before W is not one day of 1-31; " + dom},
		{"0 0 0 0W * ?", "cron: day of month: 0 before W is not one day of 1-31; " + dom},
		{"0 0 0 1 13 ?", "cron: month: 13 is not in 1-12; " + month},
		{"0 0 0 1 JANUARY ?", "cron: month: JANUARY is not in 1-12; " + month},
		{"0 0 0 ? * 0", "cron: day of week: 0 is not in 1-7; " + dow},
		{"0 0 0 ? * 8L", "cron: day of week: 8 is not in 1-7; " + dow},
		{"0 0 0 ? * 6#6", "cron: day of week: 6 after # is not in 1-5; " + dow},
		{"0 0 0 ? * #2", `cron: day of week: "" is not in 1-7; ` + dow},
		{"0 0 0 1 1 ? 2100", "cron: year: 2100 is not in 1970-2099; may hold 1970-2099 and , - * /"},
		{"0 0 0 1 1 ? 2030-2027", "cron: year: 2030-2027 ends before it starts; may hold 1970-2099 and , - * /"},
		{"0 0 12 * * *", oneQ + "write 0 0 12 * * ?"},
		{"0 0 12 * * MON", oneQ + "write 0 0 12 ? * MON"},
		{"0 0 12 1 * *", oneQ + "write 0 0 12 1 * ?"},
		{"0 0 99 1 * *", oneQ + "write ? in one of them"},
		{"0 0 12 1 * MON", "cron: day of week: day of month and day of week cannot be combined; write ? in one of them; if both are meant, make two jobs"},
		{"0 0 12 ? * ?", "cron: day of week: ? stands in day of month already; write * in one of them"},
		{"0 0 12 ?,5 * MON", "cron: day of month: ? must stand alone"},
		{"0 0 12 1 * ?,MON", "cron: day of week: ? must stand alone"},
		{"@every", "cron: @every needs a duration; " + units},
		{"@every 5", `cron: @every "5" is not a duration; ` + units + "; a day is 24h"},
		{"@every 1d", `cron: @every "1d" is not a duration; ` + units + "; a day is 24h"},
		{"@every 0s", "cron: @every 0s is not in 10ms-87600h; " + units},
		{"@every -5s", "cron: @every -5s is not in 10ms-87600h; " + units},
		{"@every 9ms", "cron: @every 9ms is not in 10ms-87600h; " + units},
		{"@delay 87601h", "cron: @delay 87601h is not in 10ms-87600h; " + units},
		{"@dayly", `cron: "@dayly" is not known; ` + named},
		{"@daily 5", "cron: nothing may follow @daily; " + named},
		{"@", `cron: "@" is not known; ` + named},
	} {
		t.Run(c.expr, func(t *testing.T) { refused(t, Config{Expr: c.expr}, c.want) })
	}
	for _, c := range []struct{ zone, want string }{
		{"Mars/Olympus", `timeZone: "Mars/Olympus" is not a known time zone; ` + zones},
		{"../etc/passwd", `timeZone: "../etc/passwd" is not a known time zone; ` + zones},
		{"UTC+8", `timeZone: "UTC+8" is not a known time zone; ` + zones},
		{"a\nb", `timeZone: "a\nb" is not a known time zone; ` + zones},
		{"GMT+25", `timeZone: "GMT+25" is not an offset; ` + offset},
		{"GMT+24", `timeZone: "GMT+24" is not an offset; ` + offset},
		{"GMT+8:60", `timeZone: "GMT+8:60" is not an offset; ` + offset},
		{"GMT+8:3", `timeZone: "GMT+8:3" is not an offset; ` + offset},
		{"GMT+", `timeZone: "GMT+" is not an offset; ` + offset},
		{"GMT+:30", `timeZone: "GMT+:30" is not an offset; ` + offset},
		{"GMT+00800", `timeZone: "GMT+00800" is not an offset; ` + offset},
	} {
		t.Run(c.zone, func(t *testing.T) { refused(t, Config{Expr: "@daily", Zone: c.zone}, c.want) })
	}
	refused(t, Config{Expr: "@daily", Gap: 7}, "gap: 7 is neither RunAfterGap nor SkipGap")
	refused(t, Config{Expr: "@daily", Overlap: 7}, "overlap: 7 is neither FirstOnly nor Both")
}

func refused(t *testing.T, c Config, want string) {
	t.Helper()
	_, err := Parse(c)
	var parseErr *wrong.Error
	require.ErrorAs(t, err, &parseErr)
	require.Equal(t, want, err.Error())
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, want, parseErr.Field+": "+parseErr.Problem)
}

// Two spellings of one schedule.
func TestSpellings(t *testing.T) {
	start := instant(t, "2026-01-01T00:00:00Z")
	for _, c := range [][2]string{
		{"@yearly", "0 0 0 1 1 ?"},
		{"@annually", "0 0 0 1 1 ?"},
		{"@monthly", "0 0 0 1 * ?"},
		{"@weekly", "0 0 0 ? * 1"},
		{"@DAILY", "0 0 0 * * ?"},
		{"@midnight", "0 0 0 ? * *"},
		{"@hourly", "0 0 * * * ? *"},
		{" \t0 0\n12  * * ?\r\n", "0 0 12 * * ?"},
		{"0 0 12 ? jan mon", "0 0 12 ? 1 2"},
		{"0 0 12 lw * ?", "0 0 12 LW * ?"},
		{"0 0 12 ? * fri#3", "0 0 12 ? * 6#3"},
		{"0 0 12 ? * FRI-MON", "0 0 12 ? * 6,7,1,2"},
		{"0 0 12 1 NOV-FEB ?", "0 0 12 1 11,12,1,2 ?"},
		{"0 0 22-2 * * ?", "0 0 22,23,0,1,2 * * ?"},
		{"0 0 22-2/3 * * ?", "0 0 22,1 * * ?"},
		{"0 0/0 0 * * ?", "0 0 0 * * ?"},
		{"5/15 0 0 * * ?", "5,20,35,50 0 0 * * ?"},
		{"/20 0 0 * * ?", "0,20,40 0 0 * * ?"},
		{"0 0 12 ? * L", "0 0 12 ? * 7"},
		{"0 0 12 L-0 * ?", "0 0 12 L * ?"},
	} {
		one, other := parse(t, Config{Expr: c[0], Zone: "UTC"}), parse(t, Config{Expr: c[1], Zone: "UTC"})
		require.Empty(t, cmp.Diff(fires(other, start, 100, time.UTC), fires(one, start, 100, time.UTC)), "%q", c)
	}
}

func TestZones(t *testing.T) {
	at := instant(t, "2026-06-01T00:00:00Z")
	for name, want := range map[string]string{
		"GMT+8": "+08:00", "GMT+08": "+08:00", "GMT+8:00": "+08:00", "GMT+08:00": "+08:00", "GMT+0800": "+08:00", "GMT+800": "+08:00",
		"GMT-03:30": "-03:30", "GMT+23:59": "+23:59", "GMT-0": "+00:00", "UTC": "+00:00", "GMT": "+00:00", "Etc/GMT+8": "-08:00",
		"Asia/Shanghai": "+08:00", "Asia/Kathmandu": "+05:45", "America/New_York": "-04:00",
	} {
		s := parse(t, Config{Expr: "0 0 0 * * ?", Zone: name})
		next, ok := s.Next(at)
		require.True(t, ok)
		require.Equal(t, "00:00:00"+want, next.Format("15:04:05-07:00"), name)
	}
	require.Same(t, time.Local, parse(t, Config{Expr: "@daily"}).Location())
	require.Same(t, parse(t, Config{Expr: "@daily", Zone: "Asia/Tokyo"}).Location(), parse(t, Config{Expr: "@hourly", Zone: "Asia/Tokyo"}).Location(),
		"a location is loaded once")
}
