package main

import (
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// readLedger reads a ledger's node.
func readLedger(id string, value []byte) (history.Ledger, error) {
	read, err := ledger.Decode(value)
	if err != nil {
		return history.Ledger{}, err
	}
	l := history.Ledger{Instance: id, Epoch: read.Epoch, Total: read.Total, Held: read.Held}
	for n, it := range read.All() {
		l.Items = append(l.Items, history.Holding{Item: n, Through: it.Through, Run: it.Run, Redo: it.Redo.Due, Leaving: it.Leaving})
	}
	return l, nil
}

// readSchedule and readBase read the nodes of what is in force.
func readSchedule(value []byte) (*history.Schedule, error) {
	s, err := layout.UnmarshalSchedule(value)
	if err != nil {
		return nil, err
	}
	read := ruleOf(s.Rule)
	read.N, read.Since = s.Number, s.Since
	last := &read
	for i, past := range s.Before {
		before := ruleOf(past.Rule)
		before.N, before.Since = s.Number-1-i, past.Since
		last.Before = &before
		last = &before
	}
	return &read, nil
}

func ruleOf(r layout.Rule) history.Schedule {
	return history.Schedule{Cron: r.Cron, Zone: r.Zone, Gap: r.Gap, Overlap: r.Overlap}
}

func readBase(value []byte) (*history.Base, error) {
	b, err := layout.UnmarshalBase(value)
	if err != nil {
		return nil, err
	}
	return &history.Base{Epoch: b.Epoch, From: b.From, To: b.To, Through: b.Through, Assigned: b.Assigned}, nil
}
