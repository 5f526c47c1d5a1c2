package schedule

import (
	"time"
)

const (
	// shortest keeps a typing error from turning a process into a busy loop.
	shortest = 10 * time.Millisecond
	// longest is ten years: beyond it a unit was mistaken.
	longest = 87600 * time.Hour
)

// Every schedule keeps to the years that Quartz knows.
var (
	firstInstant = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	lastInstant  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// rate fires at the multiples of its period since the Unix epoch.
type rate time.Duration

func (r rate) next(_ *zone, after time.Time) (time.Time, bool) {
	if after.Before(firstInstant) {
		return firstInstant, true
	}
	if !after.Before(lastInstant) {
		return time.Time{}, false
	}
	t := time.Unix(0, (after.UnixNano()/int64(r)+1)*int64(r))
	return t, t.Before(lastInstant)
}

// delay fires its pause after the end of a run, which the caller knows.
type delay time.Duration

func (d delay) next(_ *zone, after time.Time) (time.Time, bool) {
	if !after.Before(lastInstant) {
		return time.Time{}, false
	}
	t := after.Round(0).Add(time.Duration(d))
	return t, t.Before(lastInstant)
}

func parseDuration(word, text string) (time.Duration, error) {
	const fix = "write for example 500ms, 90s, 5m or 1h30m"
	if text == "" {
		return 0, fault(cronField, word+" needs a duration", fix)
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, faultf(cronField, fix+"; a day is 24h", "%s %s is not a duration", word, quote(text))
	case d < shortest || d > longest:
		return 0, faultf(cronField, fix, "%s %s is not in 10ms-87600h", word, clip(text))
	}
	return d, nil
}
