package main

import (
	"fmt"
	"time"
)

// periods are how often rounds may come. Each divides a minute, so that rounds come at round
// seconds whatever "@every" counts from.
var periods = []time.Duration{
	2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second, 10 * time.Second, 12 * time.Second,
	15 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute,
}

// periodOf is how often rounds come where one process takes so long for one: half of the time is
// left for what else there is to do. words says what that means, in words for people.
func periodOf(pass time.Duration) (period time.Duration, words string) {
	usual, last := periods[0], periods[len(periods)-1]
	for _, period := range periods {
		switch {
		case 2*pass > period:
		case period == usual:
			return period, fmt.Sprintf("a round every %v", period)
		default:
			return period, fmt.Sprintf("a round every %v instead of every %v, since a round takes one process %v here: the play lasts longer",
				period, usual, pass.Round(100*time.Millisecond))
		}
	}
	return last, fmt.Sprintf("this machine is too slow, or too busy, to finish a round in %v: rounds come every %v, items are made up late, and the play may not come to its end",
		last/2, last)
}
