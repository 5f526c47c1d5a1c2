package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Note is what the leader decided against a fire of an item whose owner's life had
// ended: it had begun and is cut.
type Note struct {
	// Due is the fire.
	Due time.Time `json:"due"`
	// Instance is the id of the instance that had begun it.
	Instance string `json:"instance"`
}

// Told holds notes in a value that can be compared. The zero value holds none.
type Told struct{ text string }

// With returns the notes and one more; a note of the same fire is replaced.
func (t Told) With(n Note) Told {
	var notes []Note
	for _, old := range t.Notes() {
		if !old.Due.Equal(n.Due) {
			notes = append(notes, old)
		}
	}
	n.Due = instant(n.Due)
	return toldOf(append(notes, n))
}

func toldOf(notes []Note) Told {
	if len(notes) == 0 {
		return Told{}
	}
	text, err := json.Marshal(notes)
	if err != nil {
		panic("ledger: " + err.Error()) // instants are within Quartz's years
	}
	return Told{string(text)}
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
		notes[i].Due = instant(n.Due)
	}
	return toldOf(notes), nil
}
