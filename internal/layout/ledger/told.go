package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Note is what was decided against fires of an item, and must be told by whoever has
// the item when nobody else has: by the leader, that a fire was cut whose owner's life
// had ended; by the owner, that fires are skipped.
type Note struct {
	// Due is the fire, or the last of Count fires.
	Due time.Time `json:"due"`
	// Instance is the id of the instance that had begun a fire that is cut; "" when
	// fires are skipped.
	Instance string `json:"instance,omitempty"`
	// First is the first of the skipped fires, Count how many they are. Reason says why fires
	// are skipped, or why one that was begun is not run again; "" where nothing is.
	First  time.Time `json:"first,omitzero"`
	Count  int       `json:"count,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Into is the fire that runs for the skipped ones, zero when none does.
	Into time.Time `json:"into,omitzero"`
}

// Told holds notes in a value that can be compared. The zero value holds none.
type Told struct{ text string }

// With returns the notes and one more; a note of the same fire is replaced.
func (t Told) With(n Note) Told {
	var notes []Note
	for _, old := range t.Notes() {
		if !old.Due.Equal(n.Due) || old.Reason != n.Reason {
			notes = append(notes, old)
		}
	}
	n.Due, n.First, n.Into = instant(n.Due), instant(n.First), instant(n.Into)
	return toldOf(append(notes, n))
}

// toldOf writes by hand what json.Marshal would: an overloaded owner skips fires with each run.
func toldOf(notes []Note) Told {
	if len(notes) == 0 {
		return Told{}
	}
	const usual = 160 // bytes of a note
	b := append(make([]byte, 0, usual*len(notes)), '[')
	for i, n := range notes {
		if i > 0 {
			b = append(b, ',')
		}
		b = n.append(b)
	}
	return Told{string(append(b, ']'))}
}

func (n Note) append(b []byte) []byte {
	b = n.Due.AppendFormat(append(b, `{"due":"`...), time.RFC3339Nano)
	b = append(b, '"')
	if n.Instance != "" {
		b = appendText(append(b, `,"instance":`...), n.Instance)
	}
	b = appendInstant(b, "first", n.First)
	b = appendNumber(b, "count", int64(n.Count))
	if n.Reason != "" {
		b = appendText(append(b, `,"reason":`...), n.Reason)
	}
	return append(appendInstant(b, "into", n.Into), '}')
}

// Notes returns the notes, oldest first.
func (t Told) Notes() []Note {
	if t.text == "" {
		return nil
	}
	var notes []Note
	if err := json.Unmarshal([]byte(t.text), &notes); err != nil {
		panic("ledger: " + err.Error()) // only toldOf makes texts
	}
	return notes
}

func readTold(notes []Note) (Told, error) {
	for i, n := range notes {
		if year := n.Due.UTC().Year(); n.Due.IsZero() || year > 9999 || year < 0 {
			return Told{}, fmt.Errorf("told: note %d has no instant of a fire", i)
		}
		if year := n.First.UTC().Year(); year > 9999 || year < 0 {
			return Told{}, fmt.Errorf("told: note %d has no instant of a first fire", i)
		}
		if year := n.Into.UTC().Year(); year > 9999 || year < 0 {
			return Told{}, fmt.Errorf("told: note %d has no instant of the fire that runs for it", i)
		}
		if !counts(int64(n.Count)) {
			return Told{}, fmt.Errorf("told: note %d is of %d fires", i, n.Count)
		}
		notes[i].Due, notes[i].First, notes[i].Into = instant(n.Due), instant(n.First), instant(n.Into)
	}
	return toldOf(notes), nil
}
