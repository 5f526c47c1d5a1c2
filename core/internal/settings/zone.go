package settings

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/internal/layout"
)

// zoneThatCounts is the name of the zone in which a job's cron is read.
func zoneThatCounts(c layout.Config) string {
	switch {
	case c.TimeZone != "":
		return c.TimeZone
	case c.Props[PropZone] != "":
		return c.Props[PropZone]
	}
	return LocalZone()
}

// readsClock reports whether the zone matters to the schedule.
func readsClock(c layout.Config) bool {
	s, err := schedule.Parse(schedule.Config{Expr: c.Cron, Zone: "UTC"})
	return err == nil && s.ReadsClock()
}

// ZoneWarning says that the job fires in another zone than that of this process, which
// nobody has chosen, or in one that has no name; "" when somebody has, or it makes no
// difference.
func (s Settings) ZoneWarning() string {
	return zoneWarning(s, LocalZone())
}

func zoneWarning(s Settings, local string) string {
	switch {
	case s.Stored.TimeZone != "" || !s.Schedule.ReadsClock() || s.Zone == local && local != "":
		return "" // as nearly always: the comparisons below take time
	case s.Zone == "" && !s.firesAsIn("UTC"):
		return "the name of this process's zone cannot be found, so each instance fires in its own; set TimeZone"
	case s.Zone == "" || s.firesAsIn(""):
		return ""
	}
	return fmt.Sprintf("this process's zone is %s, the job fires in %s (that of the first instance); set TimeZone",
		cmp.Or(local, "without a name"), s.Zone)
}

// firesAsIn reports whether the schedule has the same fires in another zone in the coming
// year, as one that fires every second has in any.
func (s Settings) firesAsIn(zone string) bool {
	other, err := ParseSchedule(s.Stored.Cron, zone, s.Gap, s.Overlap)
	if err != nil {
		return false
	}
	now := time.Now()
	for day := range 366 {
		t := now.AddDate(0, 0, day)
		here, _ := s.Schedule.Next(t)
		if there, _ := other.Next(t); !there.Equal(here) {
			return false
		}
	}
	return true
}

// LocalZone is the name of the process's zone as TimeZone takes it: its IANA name where
// it can be found, else its offset, such as GMT+5:30. It is "" when there is no name for
// it: the IANA name is unknown, as in a container with a copy of /etc/localtime, and the
// offset changes in the coming year.
var LocalZone = sync.OnceValue(func() string {
	return nameOf(time.Local, os.LookupEnv, os.Readlink, os.ReadFile, time.Now())
})

// nameOf looks for the name of a zone where the local one comes from: a Location's own
// name, TZ, the link that /etc/localtime is, Debian's note. One that is not alike is not
// believed.
func nameOf(
	local *time.Location, env func(string) (string, bool), link func(string) (string, error), read func(string) ([]byte, error), now time.Time,
) string {
	candidates := []string{local.String()}
	if tz, set := env("TZ"); set {
		candidates = append(candidates, underZoneinfo(strings.TrimPrefix(tz, ":")))
	} else {
		target, _ := link("/etc/localtime")
		note, _ := read("/etc/timezone")
		candidates = append(candidates, underZoneinfo(target), strings.TrimSpace(string(note)))
	}
	for _, name := range candidates {
		if name == "" || name == "Local" {
			continue
		}
		if loc, err := time.LoadLocation(name); err == nil && alike(loc, local, now) {
			return name
		}
	}
	_, seconds := now.In(local).Zone()
	if !alike(time.FixedZone("", seconds), local, now) {
		return ""
	}
	return offsetName(seconds)
}

// underZoneinfo is the name of a zone's file within the database.
func underZoneinfo(file string) string {
	if _, name, found := strings.Cut(file, "zoneinfo/"); found {
		return strings.TrimPrefix(strings.TrimPrefix(name, "posix/"), "right/")
	}
	if strings.HasPrefix(file, "/") {
		return ""
	}
	return file
}

func offsetName(seconds int) string {
	minutes := seconds / 60
	if minutes == 0 {
		return "UTC"
	}
	sign := '+'
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	if minutes%60 == 0 {
		return fmt.Sprintf("GMT%c%d", sign, minutes/60)
	}
	return fmt.Sprintf("GMT%c%d:%02d", sign, minutes/60, minutes%60)
}

// alike reports whether clocks in two zones show the same for the coming year.
func alike(a, b *time.Location, now time.Time) bool {
	if a == b {
		return true
	}
	for day := range 366 {
		t := now.AddDate(0, 0, day)
		_, x := t.In(a).Zone()
		if _, y := t.In(b).Zone(); x != y {
			return false
		}
	}
	return true
}
