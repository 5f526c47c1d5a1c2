package schedule

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A zone answers how far the wall clock is ahead of UTC, period by period. It
// remembers the period asked for last, which is nearly always the one asked for
// next, and is shared by all schedules of that zone.
type zone struct {
	loc    *time.Location
	cached atomic.Pointer[period]
}

// A period is a stretch of instants, in Unix seconds, with one offset.
type period struct {
	start, end int64 // [start, end); start may be before the last change
	offset     int64 // wall clock minus UTC, in seconds
	before     int64 // offset just before start
}

// at returns the period that holds the instant.
func (z *zone) at(instant int64) *period {
	if p := z.cached.Load(); p != nil && p.start <= instant && instant < p.end {
		return p
	}
	p := z.find(instant)
	z.cached.Store(p)
	return p
}

func (z *zone) find(instant int64) *period {
	t := time.Unix(instant, 0).In(z.loc)
	_, offset := t.Zone()
	p := &period{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset), before: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
		_, before := time.Unix(p.start-1, 0).In(z.loc).Zone()
		p.before = int64(before)
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if p.end <= instant {
		// Where a zone follows a rule without end, ZoneBounds counts 365 days in
		// every year and is short by the last day of a leap year.
		p.end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return p
}

// zones shares what LoadLocation returns: it reads a file and allocates some
// kilobytes, and a process may have 100,000 jobs. Only valid names get in.
var zones sync.Map // string to *zone

func parseZone(name string) (*zone, error) {
	switch {
	case name == "":
		return &zone{loc: time.Local}, nil
	case strings.EqualFold(name, "local"): // LoadLocation knows it
		return nil, faultf(zoneField, "write an IANA name such as Europe/Berlin, or leave it out: the zone of the first instance counts then, for all",
			"%s is another zone on each host", quote(name))
	case strings.HasPrefix(name, "GMT+"), strings.HasPrefix(name, "GMT-"):
		return parseOffset(name)
	}
	if known, ok := zones.Load(name); ok {
		z, _ := known.(*zone) // nothing else is stored
		return z, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, faultf(zoneField, zoneFix, "%s is not a known time zone", quote(name))
	}
	known, _ := zones.LoadOrStore(name, &zone{loc: loc})
	z, _ := known.(*zone)
	return z, nil
}

const zoneFix = `write an IANA name such as Asia/Shanghai or Europe/Berlin, an offset such as GMT+8 or GMT-03:30, or UTC` +
	` (a machine without a zone database needs import _ "time/tzdata")`

// parseOffset reads Java's custom zones: GMT+h, GMT+hh, GMT+hmm, GMT+hhmm,
// GMT+h:mm, GMT+hh:mm.
func parseOffset(name string) (*zone, error) {
	hours, minutes, colon := strings.Cut(name[4:], ":")
	if n := len(hours); !colon && n > 2 {
		hours, minutes = hours[:n-2], hours[n-2:]
		colon = true
	}
	h, okH := number(hours)
	m, okM := 0, true
	if colon {
		m, okM = number(minutes)
		okM = okM && len(minutes) == 2
	}
	if !okH || !okM || len(hours) > 2 || h > 23 || m > 59 {
		return nil, faultf(zoneField, "write GMT+8, GMT-03:30 or GMT+0530, up to 23:59, or an IANA name such as Asia/Shanghai",
			"%s is not an offset", quote(name))
	}
	seconds := h*3600 + m*60
	if name[3] == '-' {
		seconds = -seconds
	}
	return &zone{loc: time.FixedZone(name, seconds)}, nil
}
