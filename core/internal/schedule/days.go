package schedule

import (
	"math/bits"
	"time"
)

// days is what the two day fields allow, as sets of bits: a day matches when it
// is in any of them. The field that holds ? adds nothing.
type days struct {
	dom         uint32   // bit d: day d, 1-31
	nearest     uint32   // bit d: the weekday nearest to day d (dW)
	last        uint32   // bit n: n days before the last (L, L-n)
	lastNearest uint32   // bit n: the weekday nearest to L-n (LW, L-nW)
	dow         uint8    // bit w: weekday w, 0=Sunday
	lastDow     uint8    // bit w: the last weekday w of the month (wL)
	nth         [5]uint8 // [n-1] bit w: the nth weekday w of the month (w#n)
}

// in returns the days of one month that match, bit d for day d.
func (s *days) in(year int, month time.Month) uint32 {
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	weekday := int(first.Weekday())
	length := daysIn(year, month)
	mask := uint64(s.dom) | spread(s.dow, weekday)
	if s.lastDow != 0 {
		mask |= spread(s.lastDow, weekday) & week(length-6)
	}
	for n, set := range s.nth {
		mask |= spread(set, weekday) & week(7*n+1)
	}
	for set := s.last; set != 0; set &= set - 1 {
		mask |= dayBit(length - bits.TrailingZeros32(set))
	}
	for set := s.nearest; set != 0; set &= set - 1 {
		mask |= nearest(bits.TrailingZeros32(set), weekday, length)
	}
	for set := s.lastNearest; set != 0; set &= set - 1 {
		mask |= nearest(length-bits.TrailingZeros32(set), weekday, length)
	}
	return uint32(mask & (1<<(length+1) - 2)) //nolint:gosec // days 1 to 31 are 32 bits
}

// spread turns a set of weekdays into the days of a month that starts on first.
func spread(set uint8, first int) uint64 {
	const everyWeek = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35
	return uint64(set) * everyWeek >> first << 1
}

// week is the seven days from the given one.
func week(from int) uint64 { return 0x7f << from }

// dayBit is empty for a day before the month.
func dayBit(day int) uint64 {
	if day < 1 {
		return 0
	}
	return 1 << day
}

// nearest is the weekday nearest to a day, within its month; empty when the month
// has no such day.
func nearest(day, first, length int) uint64 {
	if day < 1 || day > length {
		return 0
	}
	switch time.Weekday((first + day - 1) % 7) {
	case time.Saturday:
		if day == 1 {
			return dayBit(3)
		}
		return dayBit(day - 1)
	case time.Sunday:
		if day == length {
			return dayBit(day - 2)
		}
		return dayBit(day + 1)
	}
	return dayBit(day)
}

func daysIn(year int, month time.Month) int {
	switch month {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	}
	return 31
}
