package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

// A Life is the value of a life's node.
type Life struct {
	// Up is since when the job has had a live instance without a break, as far as
	// this instance knew when it registered.
	Up time.Time `json:"up"`
	// At is what the instance's clock said when it registered.
	At time.Time `json:"at"`
	// Zone is the zone by which its process would fire without a TimeZone.
	Zone string `json:"zone,omitempty"`
	// Host is the name of its host, for people.
	Host string `json:"host,omitempty"`
	// Listens is what its program listens to of the rounds.
	Listens Listens `json:"listens,omitzero"`
}

// MarshalLife writes the value of a life's node.
func MarshalLife(l Life) []byte {
	l.Up, l.At = l.Up.UTC(), l.At.UTC()
	return marshalOwn(l)
}

// UnmarshalLife reads what MarshalLife writes. The error is a *field.Error.
func UnmarshalLife(value []byte) (Life, error) {
	var l Life
	return l, unmarshalOwn("life", value, &l, &l.Up, &l.At)
}

// A Tombstone is the value of the own root of a job that was removed: nobody makes the
// job again until an operator allows it.
type Tombstone struct {
	// Removed is when, by the clock of who removed it. It is never zero.
	Removed time.Time `json:"removed"`
}

// MarshalTombstone writes the value of an own root.
func MarshalTombstone(t Tombstone) []byte {
	t.Removed = t.Removed.UTC()
	return marshalOwn(t)
}

// UnmarshalTombstone reads the value of an own root: any value. ok is false when the job
// was not removed.
func UnmarshalTombstone(value []byte) (t Tombstone, ok bool) {
	if unmarshalOwn("own root", value, &t, &t.Removed) != nil || t.Removed.IsZero() {
		return Tombstone{}, false
	}
	return t, true
}

// A Base is where an epoch starts: the time between two changes of the sharding
// total count.
type Base struct {
	// Epoch counts from 1.
	Epoch int `json:"epoch"`
	// From and To are the totals before and in this epoch; From is 0 in the first.
	From int `json:"from"`
	To   int `json:"to"`
	// Through: every fire due at or before it belongs to the epochs before.
	Through time.Time `json:"through"`
	// Assigned is set once every item of the epoch has stood in a ledger: one that
	// stands in none since then has lost its record.
	Assigned bool `json:"assigned,omitempty"`
}

// MarshalBase writes the value of the base's node.
func MarshalBase(b Base) []byte {
	b.Through = b.Through.UTC()
	return marshalOwn(b)
}

// UnmarshalBase reads what MarshalBase writes. The error is a *field.Error.
func UnmarshalBase(value []byte) (Base, error) {
	var b Base
	if err := unmarshalOwn("base", value, &b, &b.Through); err != nil {
		return b, err
	}
	if b.Epoch < 1 || b.To < 1 {
		return b, &field.Error{Field: "base", Problem: "holds no epoch and total; delete the node, and the leader makes it again"}
	}
	return b, nil
}

// A Rule says when a job fires, in the words of its configuration.
type Rule struct {
	Cron    string `json:"cron"`
	Zone    string `json:"zone,omitempty"`
	Gap     string `json:"gap,omitempty"`
	Overlap string `json:"overlap,omitempty"`
}

// A Past is a rule that was in force, for the fires due after Since.
type Past struct {
	Rule
	Since time.Time `json:"since"`
}

// A Schedule is the rule by which all members fire: since Since, and for the fires
// until then the ones before. Since is zero for the first.
type Schedule struct {
	// Number counts the schedules of the job from 1.
	Number int `json:"n"`
	Rule
	// Since: fires due at or before it belong to Before.
	Since time.Time `json:"since"`
	// Before are the rules until Since, the latest first, as far back as any item may owe
	// a fire.
	Before []Past `json:"before,omitempty"`
	// Floor is until when an instance of ElasticJob led, as far as is known: nothing due up
	// to it is made up.
	Floor time.Time `json:"floor,omitzero"`
}

// MarshalSchedule writes the value of the schedule's node.
func MarshalSchedule(s Schedule) []byte {
	s.Since, s.Floor = s.Since.UTC(), s.Floor.UTC()
	s.Before = slices.Clone(s.Before) // it is the caller's
	for i := range s.Before {
		s.Before[i].Since = s.Before[i].Since.UTC()
	}
	return marshalOwn(s)
}

// UnmarshalSchedule reads what MarshalSchedule writes. The error is a *field.Error.
func UnmarshalSchedule(value []byte) (Schedule, error) {
	var s Schedule
	if err := unmarshalOwn("schedule", value, &s, &s.Since, &s.Floor); err != nil {
		return s, err
	}
	for i := range s.Before {
		if err := normal("schedule", &s.Before[i].Since); err != nil {
			return s, err
		}
	}
	if s.Number < 1 || s.Cron == "" {
		return s, &field.Error{Field: "schedule", Problem: "holds no cron; delete the node, and the leader makes it again"}
	}
	return s, nil
}

// An Offset says how far the data of one item are processed.
type Offset struct {
	// Offset is the user's own word for it.
	Offset string `json:"offset"`
	// Total is the sharding total count under which it was set.
	Total int `json:"total"`
	// Before is the last one that was set under another total.
	Before *Earlier `json:"before,omitempty"`
	// Seq counts the commits that have set it.
	Seq int64 `json:"seq"`
	// By is the instance that set it, in the run of the fire Due, at At.
	By  string    `json:"by"`
	Due time.Time `json:"due"`
	At  time.Time `json:"at"`
	// Success and Failure count the data of the item since it began.
	Success int64 `json:"success"`
	Failure int64 `json:"failure"`
	// Counts are those of instances and intervals, the latest first.
	Counts []Count `json:"counts,omitempty"`
}

// An Earlier is an offset that was set under another total.
type Earlier struct {
	Offset string `json:"offset"`
	Total  int    `json:"total"`
}

// A Count is what one instance has processed of an item in an interval.
type Count struct {
	Instance string    `json:"instance"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	Success  int64     `json:"success"`
	Failure  int64     `json:"failure"`
}

// MarshalOffset writes the value of an offset's node. The offset is UTF-8.
func MarshalOffset(o Offset) []byte {
	o.Due, o.At = o.Due.UTC(), o.At.UTC()
	o.Counts = slices.Clone(o.Counts) // they are the caller's
	for i := range o.Counts {
		o.Counts[i].Since, o.Counts[i].Until = o.Counts[i].Since.UTC(), o.Counts[i].Until.UTC()
	}
	return marshalOwn(o)
}

// UnmarshalOffset reads what MarshalOffset writes. The error is a *field.Error.
func UnmarshalOffset(value []byte) (Offset, error) {
	var o Offset
	if err := unmarshalOwn("offset", value, &o, &o.Due, &o.At); err != nil {
		return o, err
	}
	for i := range o.Counts {
		if err := normal("offset", &o.Counts[i].Since, &o.Counts[i].Until); err != nil {
			return o, err
		}
	}
	if o.Total < 1 || o.Seq < 1 {
		return o, &field.Error{Field: "offset", Problem: "was not set by a run; write what MarshalOffset does, or delete the node to begin anew"}
	}
	return o, nil
}

// A Notice is what the leader tells an instance: that its ledger was written.
type Notice struct {
	// Stamp is unique to the commit.
	Stamp string
	// Still asks the instance to commit nothing for a moment, so that the leader's
	// commit is not refused again and again.
	Still bool
	// Ledger is what was written, at which Version of its node, so that nobody has to read it. Without one it must
	// be read.
	Version registry.Version
	Ledger  string
}

const stillWord = " still"

// MarshalNotice writes the value of a notice.
func MarshalNotice(n Notice) []byte {
	value := n.Stamp
	if n.Still {
		value += stillWord
	}
	if n.Ledger != "" {
		value += "\n" + strconv.FormatInt(int64(n.Version), 10) + "\n" + n.Ledger
	}
	return []byte(value)
}

// UnmarshalNotice reads any value.
func UnmarshalNotice(value []byte) Notice {
	n := Notice{Stamp: string(value)}
	if parts := strings.SplitN(n.Stamp, "\n", 3); len(parts) == 3 && parts[2] != "" {
		if v, err := strconv.ParseInt(parts[1], 10, 64); err == nil && strconv.FormatInt(v, 10) == parts[1] {
			n = Notice{Stamp: parts[0], Version: registry.Version(v), Ledger: parts[2]}
		}
	}
	n.Stamp, n.Still = strings.CutSuffix(n.Stamp, stillWord)
	return n
}

// A Term is the value of the leader's term.
type Term struct {
	// Leader is the id of who leads.
	Leader string
	// Commits counts the commits of this term.
	Commits int
}

// MarshalTerm writes the value of a term.
func MarshalTerm(t Term) []byte { return []byte(t.Leader + " " + strconv.Itoa(t.Commits)) }

// UnmarshalTerm reads any value; what is not ours has no leader.
func UnmarshalTerm(value []byte) Term {
	leader, commits, _ := strings.Cut(string(value), " ")
	n, err := strconv.Atoi(commits)
	if err != nil {
		return Term{}
	}
	return Term{Leader: leader, Commits: n}
}

func marshalOwn(v any) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic("layout: " + err.Error()) // plain values within Quartz's years have JSON
	}
	return value
}

// unmarshalOwn reads into a value with some instants.
func unmarshalOwn(what string, value []byte, into any, instants ...*time.Time) error {
	err := json.Unmarshal(value, into)
	if err == nil && bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		err = errors.New("null says nothing")
	}
	if err != nil {
		return notOurs(what, value, err)
	}
	return normal(what, instants...)
}

// notOurs refuses a value that somebody else has written; err says more, or is nil.
func notOurs(what string, value []byte, err error) error {
	return &field.Error{Field: what, Problem: fmt.Sprintf("holds %s, which is not ours", clip(string(value))), Err: err}
}

// normal has instants in UTC, in which they can be written again.
func normal(what string, instants ...*time.Time) error {
	for _, t := range instants {
		if *t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
			return &field.Error{
				Field: what, Problem: fmt.Sprintf("holds an instant of the year %d, which is not ours", t.Year()),
			}
		}
	}
	return nil
}
