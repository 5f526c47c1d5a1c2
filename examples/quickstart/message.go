package main

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// A message is one line that a worker tells its parent.
type message struct {
	Kind     string    `json:"kind"`
	At       time.Time `json:"at"`
	Instance string    `json:"instance,omitempty"`
	Leader   string    `json:"leader,omitempty"`
	Items    []int     `json:"items,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	Next     time.Time `json:"next,omitzero"`
	Item     int       `json:"item"`
	Done     int       `json:"done,omitempty"`
	Sums     Sums      `json:"sums,omitzero"`
	Count    int       `json:"count,omitempty"`
	Moves    int       `json:"moves,omitempty"`
	Again    bool      `json:"again,omitempty"`
	Text     string    `json:"text,omitempty"`
}

const (
	kindStarted  = "started"  // Instance
	kindLeader   = "leader"   // Leader
	kindItems    = "items"    // Items
	kindBegun    = "begun"    // Due, Items, Again
	kindProgress = "progress" // Due, Item, Done files
	kindResult   = "result"   // Due, Item, Sums, Again
	kindFailed   = "failed"   // Due, Item, Text
	kindSkipped  = "skipped"  // Due, Items, Count, Text
	kindCut      = "cut"      // Due, Item, Text
	kindMoves    = "moves"    // Moves
	kindNote     = "note"     // Text
)

// A teller writes messages as JSON lines.
type teller struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newTeller(w io.Writer) *teller { return &teller{enc: json.NewEncoder(w)} }

func (t *teller) tell(m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.At = time.Now()
	_ = t.enc.Encode(m) //nolint:errchkjson // a parent that is gone ends this process by its input
}
