package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// What the package documentation says about changes of the clock, spelled out.
func TestClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, zone, expr string
		gap              Gap
		overlap          Overlap
		start            string
		want             []string
	}{
		{
			name: "gap runs once right after", zone: "America/New_York", expr: "0 30 2 * * ?", start: "2026-03-07T12:00:00Z",
			want: []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		}, {
			name: "gap skipped", zone: "America/New_York", expr: "0 30 2 * * ?", gap: SkipGap, start: "2026-03-07T12:00:00Z",
			want: []string{"2026-03-09T02:30:00-04:00", "2026-03-10T02:30:00-04:00"},
		}, {
			name: "three fires in a gap are one", zone: "America/New_York", expr: "0 0/20 2 * * ?", start: "2026-03-08T06:00:00Z",
			want: []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"},
		}, {
			name: "gap meets the fire at its end", zone: "America/New_York", expr: "0 0 2,3 * * ?", start: "2026-03-08T06:00:00Z",
			want: []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"},
		}, {
			name: "a second after the gap is not in it", zone: "America/New_York", expr: "1 0 3 * * ?", start: "2026-03-08T06:00:00Z",
			want: []string{"2026-03-08T03:00:01-04:00", "2026-03-09T03:00:01-04:00"},
		}, {
			name: "asked within the last second before the gap", zone: "America/New_York", expr: "0 30 2 * * ?", start: "2026-03-08T06:59:59.999999999Z",
			want: []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		}, {
			name: "every hour keeps elapsed time over a gap", zone: "America/New_York", expr: "0 30 * * * ?", start: "2026-03-08T06:00:00Z",
			want: []string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00", "2026-03-08T04:30:00-04:00"},
		}, {
			name: "always in the gap and skipped: never", zone: "America/New_York", expr: "0 30 2 ? 3 1#2", gap: SkipGap, start: "2026-01-01T00:00:00Z",
			want: []string{"end"},
		}, {
			name: "overlap runs the first time", zone: "America/New_York", expr: "0 30 1 * * ?", start: "2026-10-31T12:00:00Z",
			want: []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		}, {
			name: "asked between the two readings", zone: "America/New_York", expr: "0 30 1 * * ?", start: "2026-11-01T06:00:00Z",
			want: []string{"2026-11-02T01:30:00-05:00"},
		}, {
			name: "overlap runs both times", zone: "America/New_York", expr: "0 30 1 * * ?", overlap: Both, start: "2026-10-31T12:00:00Z",
			want: []string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00"},
		}, {
			name: "the second reading is the very last fire", zone: "America/New_York", expr: "0 30 1 1 11 ? 2026", overlap: Both, start: "2026-11-01T05:30:00Z",
			want: []string{"2026-11-01T01:30:00-05:00", "end"},
		}, {
			name: "every hour keeps elapsed time over an overlap", zone: "America/New_York", expr: "0 30 * * * ?", start: "2026-11-01T05:00:00Z",
			want: []string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"},
		}, {
			name: "Berlin gap", zone: "Europe/Berlin", expr: "0 15 2 ? * SUN", start: "2026-03-26T00:00:00Z",
			want: []string{"2026-03-29T03:00:00+02:00", "2026-04-05T02:15:00+02:00"},
		}, {
			name: "half an hour gap", zone: "Australia/Lord_Howe", expr: "0 15 2 * * ?", start: "2026-10-03T00:00:00Z",
			want: []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		}, {
			name: "half an hour overlap", zone: "Australia/Lord_Howe", expr: "0 45 1 * * ?", start: "2026-04-04T00:00:00Z",
			want: []string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		}, {
			name: "every hour at a minute that half an hour gap swallows", zone: "Australia/Lord_Howe", expr: "0 15 * * * ?", start: "2026-10-03T14:00:00Z",
			want: []string{"2026-10-04T01:15:00+10:30", "2026-10-04T03:15:00+11:00"},
		}, {
			name: "no midnight", zone: "America/Sao_Paulo", expr: "0 0 0 * * ?", start: "2018-11-03T12:00:00Z",
			want: []string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		}, {
			name: "midnight comes twice a day early", zone: "America/Sao_Paulo", expr: "0 30 23 * * ?", start: "2018-02-17T12:00:00Z",
			want: []string{"2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"},
		}, {
			name: "a missing day", zone: "Pacific/Apia", expr: "0 0 12 * * ?", start: "2011-12-29T00:00:00Z",
			want: []string{"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"},
		}, {
			name: "a missing day skipped", zone: "Pacific/Apia", expr: "0 0 12 30 12 ?", gap: SkipGap, start: "2011-12-01T00:00:00Z",
			want: []string{"2012-12-30T12:00:00+14:00"},
		}, {
			name: "no changes", zone: "Asia/Shanghai", expr: "0 30 2 * * ?", start: "2026-03-07T00:00:00Z",
			want: []string{"2026-03-08T02:30:00+08:00", "2026-03-09T02:30:00+08:00"},
		}, {
			name: "the rule goes on after the table", zone: "Europe/Berlin", expr: "0 30 2 * * ?", start: "2090-03-25T12:00:00Z",
			want: []string{"2090-03-26T03:00:00+02:00", "2090-03-27T02:30:00+02:00"},
		}, {
			name: "the last day of a leap year", zone: "America/New_York", expr: "0 0 12 31 12 ?", start: "2028-12-31T16:59:59Z",
			want: []string{"2028-12-31T12:00:00-05:00", "2029-12-31T12:00:00-05:00"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, Config{Expr: c.expr, Zone: c.zone, Gap: c.gap, Overlap: c.overlap})
			require.Empty(t, cmp.Diff(c.want, fires(s, instant(t, c.start), len(c.want), s.Location())))
		})
	}
}

// Next rests on what the standard library says about the bounds of a period.
// Look every six hours through 130 years in zones of every kind, in a short run every five days.
func TestPeriods(t *testing.T) {
	step := int64(6 * 3600)
	if testing.Short() {
		step *= 20
	}
	for _, name := range []string{
		"UTC", "America/New_York", "Europe/Berlin", "Europe/Dublin", "Europe/Moscow", "Europe/Istanbul", "Australia/Lord_Howe", "America/Sao_Paulo",
		"Pacific/Apia", "Pacific/Kwajalein", "Asia/Shanghai", "Asia/Gaza", "Asia/Beirut", "Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia",
		"America/Nuuk", "America/Asuncion", "America/Santiago", "America/Havana", "Antarctica/Troll", "Asia/Pyongyang", "Asia/Tehran", "Pacific/Norfolk",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z, err := parseZone(name)
			require.NoError(t, err)
			first, last := firstInstant.Unix(), lastInstant.Unix()
			changed, previous := first-farthest, int64(0)
			for at := first; at < last; {
				p := z.at(at)
				require.True(t, p.start <= at && at < p.end, "%+v does not hold %d", *p, at)
				if at > first {
					require.Equal(t, previous, offsetAt(z, at-1), "offset changes within a period, before %s", time.Unix(at, 0).UTC())
				}
				if at > first && p.offset != previous {
					require.Equal(t, at, p.start, "a change is the start of a period")
					require.Equal(t, previous, p.before)
					require.Greater(t, at-changed, int64(farthest), "two changes within a day")
					changed = at
				}
				for ; at < min(p.end, last); at += step {
					require.Equal(t, p.offset, offsetAt(z, at), "%s", time.Unix(at, 0).UTC())
				}
				at, previous = p.end, p.offset
			}
		})
	}
}

func offsetAt(z *zone, at int64) int64 {
	_, offset := time.Unix(at, 0).In(z.loc).Zone()
	return int64(offset)
}
