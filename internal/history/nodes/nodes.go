package nodes

import (
	"context"
	"fmt"
	"path"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

// Ledgers reads the ledgers of instances, as far as they can be read, with the error of each other.
func Ledgers(ctx context.Context, get pages.Get, roots ...registry.Node) (ledgers []history.Ledger, broken []error, err error) {
	found, err := pages.Read(ctx, get, nil, roots...)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range found {
		switch id := path.Base(f.Node.Path); {
		case f.Err != nil:
			broken = append(broken, fmt.Errorf("ledger of %s: %w", id, f.Err))
		case f.Ledger != nil:
			ledgers = append(ledgers, Ledger(id, f.Ledger))
		}
	}
	return ledgers, broken, nil
}

// Ledger takes over the ledger of an instance.
func Ledger(id string, read *ledger.Ledger) history.Ledger {
	l := history.Ledger{Instance: id, Epoch: read.Epoch, Total: read.Total, Held: read.Held}
	for n, it := range read.All() {
		l.Items = append(l.Items, history.Holding{Item: n, Through: it.Through, Run: it.Run, Redo: it.Redo.Due, Tries: it.Redo.Tries, Leaving: it.Leaving, Bound: it.Bound})
	}
	return l
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
