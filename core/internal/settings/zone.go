package settings

import (
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
// nobody has chosen; "" when somebody has, or it makes no difference.
func (s Settings) ZoneWarning() string {
	if s.Stored.TimeZone != "" || !s.Schedule.ReadsClock() || alike(s.Schedule.Location(), time.Local, time.Now()) {
		return ""
	}
	return fmt.Sprintf("this process's zone is %s, the job fires in %s (that of the first instance); set TimeZone", LocalZone(), s.Zone)
}

// LocalZone is the name of the process's zone as TimeZone takes it: its IANA name where
// it can be found, else its offset of now, such as GMT+5:30.
var LocalZone = sync.OnceValue(func() string {
	return nameOf(time.Local, os.LookupEnv, os.Readlink, time.Now())
})

// nameOf looks for the name of a zone where the local one comes from: a Location's own
// name, TZ, the link that /etc/localtime is. One that is not alike is not believed.
func nameOf(local *time.Location, env func(string) (string, bool), link func(string) (string, error), now time.Time) string {
	candidates := []string{local.String()}
	if tz, set := env("TZ"); set {
		candidates = append(candidates, underZoneinfo(strings.TrimPrefix(tz, ":")))
	} else if target, err := link("/etc/localtime"); err == nil {
		candidates = append(candidates, underZoneinfo(target))
	}
	for _, name := range candidates {
		if name == "" || name == "Local" {
			continue
		}
		// LoadLocation would take a name without a meaning to others, such as a path.
		if loc, err := time.LoadLocation(name); err == nil && alike(loc, local, now) {
			return name
		}
	}
	_, seconds := now.In(local).Zone()
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
