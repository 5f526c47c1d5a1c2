package settings

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout"
)

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

// Finding C 5: the zone of a process has a name that others can read.
func TestNameOfTheLocalZone(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	berlin := location(t, "Europe/Berlin")
	unnamed := func(offset int) *time.Location { return time.FixedZone("Local", offset) }
	for _, c := range []struct {
		name, tz, link string
		local          *time.Location
		want           string
	}{
		{"the program set it", "", "", berlin, "Europe/Berlin"},
		{"UTC", "", "", time.UTC, "UTC"},
		{"TZ", "Asia/Tokyo", "", unnamed(9 * 3600), "Asia/Tokyo"},
		{"TZ with a colon", ":Asia/Tokyo", "", unnamed(9 * 3600), "Asia/Tokyo"},
		{"TZ is a file", "/usr/share/zoneinfo/Asia/Tokyo", "", unnamed(9 * 3600), "Asia/Tokyo"},
		{"TZ goes before the link", "Asia/Tokyo", "/usr/share/zoneinfo/Asia/Seoul", unnamed(9 * 3600), "Asia/Tokyo"},
		{"the link", "", "/usr/share/zoneinfo/Asia/Tokyo", unnamed(9 * 3600), "Asia/Tokyo"},
		{"a relative link", "", "../usr/share/zoneinfo/posix/Asia/Tokyo", unnamed(9 * 3600), "Asia/Tokyo"},
		{"the link of another system", "", "/var/db/timezone/zoneinfo/Asia/Tokyo", unnamed(9 * 3600), "Asia/Tokyo"},
		{"the link says something else", "", "/usr/share/zoneinfo/Europe/Berlin", unnamed(9 * 3600), "GMT+9"},
		{"a file somewhere", "/etc/zone", "", unnamed(5*3600 + 1800), "GMT+5:30"},
		{"nothing known", "Nowhere/Land", "", unnamed(-(3*3600 + 30*60)), "GMT-3:30"},
		{"nothing known, in Greenwich", "Nowhere/Land", "", unnamed(0), "UTC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := func(string) (string, bool) { return c.tz, c.tz != "" }
			link := func(string) (string, error) {
				if c.link == "" {
					return "", os.ErrNotExist
				}
				return c.link, nil
			}
			got := nameOf(c.local, env, link, now)
			require.Equal(t, c.want, got)
			_, err := ParseSchedule("@daily", got, "", "")
			require.NoError(t, err, "it is a time zone")
		})
	}
}

func TestTheLocalZoneIsAlikeItsName(t *testing.T) {
	s, err := ParseSchedule("@daily", LocalZone(), "", "")
	require.NoError(t, err)
	require.True(t, alike(s.Location(), time.Local, time.Now()))
}

// Finding C 5: TimeZone counts, else the zone of who wrote the configuration, else ours.
func TestTheZoneThatCounts(t *testing.T) {
	c := good()
	c.Props = layout.Props{PropZone: "Asia/Tokyo"}
	s, err := Parse("hello", c, nil)
	require.NoError(t, err)
	require.Equal(t, "Asia/Shanghai", s.Zone)

	c.TimeZone = ""
	s, err = Parse("hello", c, nil)
	require.NoError(t, err)
	require.Equal(t, "Asia/Tokyo", s.Zone)
	next, _ := s.Schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Equal(t, "2026-01-02T02:00:00+09:00", next.Format(time.RFC3339))

	c.Props = nil
	s, err = Parse("hello", c, nil)
	require.NoError(t, err)
	require.Equal(t, LocalZone(), s.Zone)

	c.Props = layout.Props{PropZone: "Mars"}
	_, err = Parse("hello", c, nil)
	require.ErrorContains(t, err, `TimeZone: "Mars" is not a known time zone`)
}

// Finding C 5.
func TestAProcessInAnotherZoneIsWarned(t *testing.T) {
	far := "Pacific/Chatham" // 12:45 ahead: no test runs there
	c := good()
	c.TimeZone, c.Props = "", layout.Props{PropZone: far}
	s, err := Parse("hello", c, nil)
	require.NoError(t, err)
	require.Equal(t, "this process's zone is "+LocalZone()+", the job fires in Pacific/Chatham (that of the first instance); set TimeZone", s.ZoneWarning())

	for name, change := range map[string]func(*layout.Config){
		"somebody has chosen": func(c *layout.Config) { c.TimeZone = far },
		"a rate":              func(c *layout.Config) { c.Cron = "@every 1h" },
		"a delay":             func(c *layout.Config) { c.Cron = "@delay 1h" },
		"it is ours":          func(c *layout.Config) { c.Props = layout.Props{PropZone: LocalZone()} },
		"nobody wrote it":     func(c *layout.Config) { c.Props = nil },
	} {
		quiet := c
		change(&quiet)
		s, err := Parse("hello", quiet, nil)
		require.NoError(t, err)
		require.Empty(t, s.ZoneWarning(), name)
	}
}

// Finding C 5: what is written, and that it is no difference for those who come later.
func TestTheFirstInstanceWritesItsZone(t *testing.T) {
	c := good()
	require.Equal(t, c, ToWrite(c, nil), "a time zone is given")
	c.TimeZone = ""
	written := ToWrite(c, nil)
	require.Equal(t, layout.Props{PropZone: LocalZone()}, written.Props)
	require.Empty(t, written.TimeZone, "ElasticJob reads it")
	require.Empty(t, Differences(c, written))

	moved := ToWrite(c, nil)
	moved.Props[PropZone] = "Pacific/Chatham"
	require.Empty(t, Differences(c, moved), "at adoption")
	require.Equal(t, "TimeZone", Differences(written, moved)[0].Field, "when somebody changes it")
	require.True(t, Refires(Differences(written, moved)))

	c.Cron = "@every 1h"
	require.Empty(t, ToWrite(c, nil).Props, "a rate needs no zone")
}
