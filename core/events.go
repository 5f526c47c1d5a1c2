package core

import (
	"time"

	"github.com/elasticron/elasticron/core/event"
)

// Reasons that the engine has beside those of package event.
const (
	// skipClock: the fire is not later than one that was recorded before: a clock is behind.
	skipClock event.SkipReason = "a fire at or after this one is recorded already"
	// skipLost: the session was lost before the item began.
	skipLost event.SkipReason = "session lost before the item began"
)

// skipped is the event for items of one due time.
func skipped(job string, items []int, due time.Time, why event.SkipReason, detail string) event.ItemsSkipped {
	return event.ItemsSkipped{Job: job, Items: items, First: due, Due: due, Count: 1, Reason: why, Detail: detail}
}
