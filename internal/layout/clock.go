package layout

import "time"

// A Clock is the value of a clock's node: an instance asks, and the leader answers.
type Clock struct {
	// Number counts what the instance has asked.
	Number int64 `json:"n"`
	// Off says why the instance begins nothing: its clock is off, as it found before.
	Off string `json:"off,omitempty"`
	// Leader has answered: its clock said At.
	Leader string    `json:"leader,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// MarshalClock writes the value of a clock's node.
func MarshalClock(c Clock) []byte {
	c.At = c.At.UTC()
	return marshalOwn(c)
}

// UnmarshalClock reads what MarshalClock writes. The error is a *field.Error.
func UnmarshalClock(value []byte) (Clock, error) {
	var c Clock
	return c, unmarshalOwn("clock", value, &c, &c.At)
}
