package polled

import (
	"context"
	"time"
)

// A sighting is another session's counter, and since when it stands there for all
// that is known here. The clock is the own one, and monotonic.
type sighting struct {
	Session

	since time.Time
}

// sightings are by session.
type sightings map[string]sighting

// expire ends the sessions whose counter has stood still for their timeout. It
// returns what it has seen, for the next time.
func (s *session) expire(ctx context.Context, before sightings) sightings {
	rows, err := s.client.store.Sessions(ctx)
	if err != nil {
		return before
	}
	// Later than the counters were read: their owners sent them earlier still.
	now := sight(rows, before, time.Now())
	for id, seen := range now {
		if time.Since(seen.since) > seen.Timeout { // a heartbeat that came meanwhile saves it
			_ = s.client.store.End(ctx, id, seen.Beat)
			s.wakeAll()
		}
	}
	return now
}

// sight notes what was seen now. Counters that have not moved keep their time.
func sight(rows []Session, before sightings, now time.Time) sightings {
	all := make(sightings, len(rows))
	for _, row := range rows {
		seen := sighting{row, now}
		if last, known := before[row.ID]; known && last.Beat == row.Beat {
			seen.since = last.since
		}
		all[row.ID] = seen
	}
	return all
}
