package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// Always is later than every fire: what nothing holds up has come so far.
var Always = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Rounds say how far the items of a ledger are with the rounds: the fires of all items. It is
// comparable.
type Rounds struct {
	// Seq is that of the ledger.
	Seq int64 `json:"n"`
	// Started: every item has begun its fires due at or before it, those aside that run an
	// older one. Always where no item is idle.
	Started time.Time `json:"s,omitzero"`
	// Completed: and no fire due at or before it runs, or is to run again. Always where there
	// is no item.
	Completed time.Time `json:"c,omitzero"`
	// Begun is the latest fire that has begun under the registration which wrote this; zero
	// when none has.
	Begun time.Time `json:"b,omitzero"`
}

// Rounds returns how far the items are. Of one that is lent only what runs again counts: its
// other fires wait for the instance that it belongs to, and no round does.
func (l *Ledger) Rounds() Rounds {
	r := Rounds{Seq: l.Seq, Started: Always, Completed: Always}
	for it := range l.records {
		if !it.Lent() {
			r.Completed = earlier(r.Completed, it.Through)
		}
		if !it.Lent() && !it.Running() && !it.Redo.Owed() {
			r.Started = earlier(r.Started, it.Through)
		}
		if it.Request != 0 {
			continue // what somebody asked for belongs to no round
		}
		if it.Running() {
			r.Completed = earlier(r.Completed, it.Run.Add(-1))
		}
		if it.Redo.Owed() {
			r.Completed = earlier(r.Completed, it.Redo.Due.Add(-1))
		}
	}
	return r
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Encode returns a node's value.
func (r Rounds) Encode() []byte {
	r.Started, r.Completed, r.Begun = instant(r.Started), instant(r.Completed), instant(r.Begun)
	value, err := json.Marshal(r)
	if err != nil {
		panic("ledger: " + err.Error()) // instants within Quartz's years have JSON
	}
	return value
}

// DecodeRounds reads what Encode writes.
func DecodeRounds(value []byte) (r Rounds, err error) {
	if err := json.Unmarshal(value, &r); err != nil {
		return Rounds{}, fmt.Errorf("ledger: rounds: %w", err)
	}
	r.Started, r.Completed, r.Begun = instant(r.Started), instant(r.Completed), instant(r.Begun)
	return r, nil
}
