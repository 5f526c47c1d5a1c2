package schedule

import "time"

// farthest is more than any zone is away from UTC, in seconds. All that happens
// to one wall-clock reading happens within it on either side.
const farthest = 25 * 60 * 60

// cronPlan maps the readings of a clock to instants of a zone.
type cronPlan struct {
	clock clock
	// steady expressions name every hour and follow the running clock: what is
	// shown fires, as often as it is shown.
	steady  bool
	gap     Gap
	overlap Overlap
}

func (c *cronPlan) next(z *zone, after time.Time) (time.Time, bool) {
	if c.clock.last == never || !after.Before(lastInstant.Add(farthest*time.Second)) {
		return time.Time{}, false
	}
	from := int64(-farthest)
	if after.After(firstInstant.Add(-farthest * time.Second)) {
		from = after.Unix() + 1
	}
	instant, ok := c.nextInstant(z, from)
	return time.Unix(instant, 0), ok
}

// nextInstant walks the zone period by period. Within one, wall clock and instant
// run alike.
func (c *cronPlan) nextInstant(z *zone, from int64) (int64, bool) {
	var (
		asked, reading int64
		more           bool
	)
	for first := true; ; first = false {
		p := z.at(from)
		if c.firesAfterGap(p, from) {
			return p.start, true
		}
		shown := c.firstReading(p, from)
		if known := !first && asked <= shown && (!more || shown <= reading); !known {
			asked = shown
			reading, more = c.clock.next(shown)
		}
		if more && reading-p.offset < p.end {
			return reading - p.offset, true
		}
		// Every clock shows later readings from here on, none shows a matching
		// one until shortly before the one found: pass over the years between.
		if p.end >= from+2*farthest {
			if !more {
				return 0, false
			}
			from = max(p.end, reading-farthest)
			continue
		}
		from = p.end
	}
}

// firesAfterGap tells whether the instant from ends a gap with a fire in it.
func (c *cronPlan) firesAfterGap(p *period, from int64) bool {
	if from != p.start || p.before >= p.offset || c.steady || c.gap == SkipGap {
		return false
	}
	reading, ok := c.clock.next(p.start + p.before)
	return ok && reading < p.start+p.offset
}

// firstReading is what the wall clock shows at the instant from, or, if that is
// shown for the second time and must not count, the first reading after it.
func (c *cronPlan) firstReading(p *period, from int64) int64 {
	shown := from + p.offset
	if c.steady || c.overlap == Both || p.before <= p.offset {
		return shown
	}
	return max(shown, p.start+p.before)
}
