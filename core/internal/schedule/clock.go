package schedule

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	firstYear = 1970
	lastYear  = 2099
	never     = -1
	day       = 24 * 60 * 60
	// anyDay makes robfig's engine look at the day of the month alone.
	anyDay = 1<<63 | 0x7f
)

// A clock finds matching readings of a wall clock that knows no zones: a reading
// is the Unix time at which a clock in UTC shows it. robfig's engine looks for
// the time of day; the day is ours, since L, W, # and years are unknown to it.
type clock struct {
	time  cron.SpecSchedule // Second, Minute and Hour
	days  days
	month uint16
	years [3]uint64 // bit y-1970
	// last matching reading, or never; filled by seal.
	last int64
	// spans bound the matches within a minute, an hour and a day; filled by seal.
	spans [3]span
}

// A span says where in every stretch of length seconds a match can be at all. Most
// expressions name one time of day; the spans alone find it.
type span struct{ length, first, last int64 }

// seal computes what next needs to give up at once.
func (c *clock) seal() {
	c.time.Location = time.UTC
	first := timeOfDay(bits.TrailingZeros64, c.time)
	last := timeOfDay(func(set uint64) int { return bits.Len64(set) - 1 }, c.time)
	for i, length := range [...]int64{60, 60 * 60, day} {
		c.spans[i] = span{length, first % length, last % length}
	}
	c.last = never
	for year := lastYear; year >= firstYear; year-- {
		for month := time.December; c.hasYear(year) && month >= time.January; month-- {
			if c.month>>month&1 == 0 {
				continue
			}
			if mask := c.days.in(year, month); mask != 0 {
				c.last = reading(year, month, bits.Len32(mask)-1) + last
				return
			}
		}
	}
}

// timeOfDay is the second of the day with the picked value of every field.
func timeOfDay(pick func(set uint64) int, s cron.SpecSchedule) int64 {
	return int64(pick(s.Hour)*3600 + pick(s.Minute)*60 + pick(s.Second))
}

// next returns the first matching reading that is not before from.
func (c *clock) next(from int64) (int64, bool) {
	if from > c.last {
		return 0, false
	}
	from = c.advance(max(from, 0))
	year, month, d := time.Unix(from, 0).UTC().Date()
	from = max(from, c.nextDay(year, month, d)+c.spans[2].first)
	at := time.Unix(from, 0).UTC()
	spec := c.time
	spec.Month, spec.Dom, spec.Dow = 1<<at.Month(), 1<<at.Day(), anyDay
	// robfig's Next is strictly after.
	return spec.Next(at.Add(-time.Second)).Unix(), true
}

// advance moves on to where a match can be, span by span, passing over none.
func (c *clock) advance(from int64) int64 {
	for _, s := range c.spans {
		switch rest := from % s.length; {
		case rest < s.first:
			from += s.first - rest
		case rest > s.last:
			from += s.length - rest + s.first
		}
	}
	return from
}

// nextDay returns the start of the first matching day that is not before the
// given one. There is one: from was not after last.
func (c *clock) nextDay(year int, month time.Month, d int) int64 {
	for ; ; year++ {
		for c.hasYear(year) && month <= time.December {
			if c.month>>month&1 != 0 {
				if mask := c.days.in(year, month) >> d << d; mask != 0 {
					return reading(year, month, bits.TrailingZeros32(mask))
				}
			}
			month, d = month+1, 1
		}
		month, d = time.January, 1
	}
}

func (c *clock) hasYear(year int) bool {
	i := year - firstYear
	return c.years[i/64]>>(i%64)&1 != 0
}

func reading(year int, month time.Month, d int) int64 {
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix()
}
