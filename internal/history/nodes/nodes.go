package nodes

import (
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// Ledger reads the ledger of an instance.
func Ledger(id string, value []byte) (history.Ledger, error) {
	read, err := ledger.Decode(value)
	if err != nil {
		return history.Ledger{}, err
	}
	l := history.Ledger{Instance: id, Epoch: read.Epoch, Total: read.Total, Held: read.Held}
	for n, it := range read.All() {
		l.Items = append(l.Items, history.Holding{Item: n, Through: it.Through, Run: it.Run, Redo: it.Redo.Due, Leaving: it.Leaving, Bound: it.Bound})
	}
	return l, nil
}

// Schedule reads the schedule in force, with those before it.
func Schedule(value []byte) (*history.Schedule, error) {
	s, err := layout.UnmarshalSchedule(value)
	if err != nil {
		return nil, err
	}
	read := rule(s.Rule)
	read.N, read.Since = s.Number, s.Since
	last := &read
	for i, past := range s.Before {
		before := rule(past.Rule)
		before.N, before.Since = s.Number-1-i, past.Since
		last.Before = &before
		last = &before
	}
	return &read, nil
}

func rule(r layout.Rule) history.Schedule {
	return history.Schedule{Cron: r.Cron, Zone: r.Zone, Gap: r.Gap, Overlap: r.Overlap}
}

// Base reads the epoch in force.
func Base(value []byte) (*history.Base, error) {
	b, err := layout.UnmarshalBase(value)
	if err != nil {
		return nil, err
	}
	return &history.Base{Epoch: b.Epoch, From: b.From, To: b.To, Through: b.Through, Assigned: b.Assigned}, nil
}

// Asked reads a run that was asked for, with the results that instances told. Results that cannot
// be read are none.
func Asked(value []byte, results [][]byte) (history.Asked, error) {
	r, err := layout.UnmarshalRun(value)
	if err != nil {
		return history.Asked{}, err
	}
	a := history.Asked{Number: r.Number, Request: r.Request, Epoch: r.Epoch, At: r.At, Open: r.Closed.IsZero(), Problem: r.Problem}
	a.Items, _ = ledger.ParseRange(r.Items, r.Total) // none where nothing was accepted
	answers := r.Answers
	for _, value := range results {
		if told, err := layout.UnmarshalResults(value); err == nil {
			answers = append(answers, told.Results...)
		}
	}
	for _, x := range answers {
		of, _ := ledger.ParseRange(x.Items, r.Total)
		a.Outcomes = append(a.Outcomes, history.Outcomes{Items: of, Outcome: x.Outcome})
	}
	return a, nil
}
