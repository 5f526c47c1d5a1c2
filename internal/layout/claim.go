package layout

import (
	"bytes"
	"slices"
	"strings"
	"time"
)

// Listens is what an instance says of its listeners to rounds.
type Listens struct {
	// Before and After: it is called before all items of a round start, and after all have
	// ended.
	Before bool `json:"before,omitempty"`
	After  bool `json:"after,omitempty"`
	// Again: somebody may be called for a round for which this instance was, and died.
	Again bool `json:"again,omitempty"`
	// Wait bounds how long begun items wait for the call before them.
	Wait time.Duration `json:"wait,omitempty"`
	// Fail: items for which that was too long fail this fire; else they go on.
	Fail bool `json:"fail,omitempty"`
}

// A Phase is one of the two cursors of a claim.
type Phase int

// The phases.
const (
	Started Phase = iota
	Completed
	Phases
)

// To reports whether there is a listener to a phase.
func (l Listens) To(p Phase) bool { return (p == Started && l.Before) || (p == Completed && l.After) }

// A Claim says which rounds somebody was called for. Each cursor only rises.
type Claim struct {
	Started   Cursor `json:"started,omitzero"`
	Completed Cursor `json:"completed,omitzero"`
}

// Of returns the cursor of a phase.
func (c *Claim) Of(p Phase) *Cursor {
	if p == Started {
		return &c.Started
	}
	return &c.Completed
}

// A Cursor is the latest round of one phase that is claimed.
type Cursor struct {
	// Due is the round: the instant of its fire.
	Due time.Time `json:"due"`
	// Since is the round that was claimed before, zero for the first: those between have no
	// call of their own.
	Since time.Time `json:"since,omitzero"`
	// At is when it was claimed, by the leader's clock.
	At time.Time `json:"at"`
	// Caller is the id of the instance whose listener is called; Attempt is 2 when the first
	// one died.
	Caller  string `json:"caller"`
	Attempt int    `json:"attempt"`
	// Again: there may be a second one. Fail: items fail this fire where the caller does not answer.
	Again bool `json:"again,omitempty"`
	Fail  bool `json:"fail,omitempty"`
	// Done: the listener has returned, or its instance has died for good. Lost: the latter.
	Done bool `json:"done,omitempty"`
	Lost bool `json:"lost,omitempty"`
	// Failed: the listener has refused the round: items that wait for it fail this fire.
	Failed bool `json:"failed,omitempty"`
	// Refused are the rounds before this one that were refused last. An item that waits for one of them
	// may not have heard of the refusal: a watch may leave out what stood in between.
	Refused Rounds `json:"refused,omitzero"`
}

// Rounds are those after an instant, up to another.
type Rounds struct {
	After time.Time `json:"after,omitzero"`
	UpTo  time.Time `json:"upTo"`
}

// Has reports whether a round is one of them.
func (r Rounds) Has(due time.Time) bool { return due.After(r.After) && !due.After(r.UpTo) }

// Refusals are the rounds that were refused last, this one included.
func (c Cursor) Refusals() Rounds {
	r := Rounds{After: c.Since, UpTo: c.Due}
	switch {
	case !c.Failed:
		return c.Refused
	case !c.Refused.UpTo.IsZero() && c.Refused.UpTo.Equal(c.Since):
		r.After = c.Refused.After
	}
	return r
}

// Open reports whether somebody is being called.
func (c Cursor) Open() bool { return !c.Due.IsZero() && !c.Done }

// Same reports whether two are the same attempt at one round.
func (c Cursor) Same(o Cursor) bool {
	return c.Due.Equal(o.Due) && c.Caller == o.Caller && c.Attempt == o.Attempt
}

// MarshalClaim writes the value of a claim's node.
func MarshalClaim(c Claim) []byte {
	for p := range Phases {
		x := c.Of(p)
		for _, t := range instants(x) {
			*t = t.UTC()
		}
	}
	return marshalOwn(c)
}

// UnmarshalClaim reads what MarshalClaim writes. The error is a *field.Error.
func UnmarshalClaim(value []byte) (Claim, error) {
	var c Claim
	if err := unmarshalOwn("claim", value, &c, slices.Concat(instants(&c.Started), instants(&c.Completed))...); err != nil {
		return c, err
	}
	if c == (Claim{}) && !bytes.Equal(value, MarshalClaim(c)) {
		return c, notOurs("claim", value, nil)
	}
	return c, nil
}

func instants(c *Cursor) []*time.Time {
	return []*time.Time{&c.Due, &c.Since, &c.At, &c.Refused.After, &c.Refused.UpTo}
}

// String names it.
func (p Phase) String() string {
	return strings.Fields("started completed")[p]
}
