package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// demandPause is the mean time between two runs that are asked for.
const demandPause = 700 * time.Millisecond

// demand asks for runs until ctx ends: of all items or some, queued or refused while they are
// busy, or of what an instance owns, as ElasticJob's tools ask; and for the end of what runs.
func (p *part) demand(ctx context.Context) {
	rng := rand.New(rand.NewPCG(p.seed, 1<<32)) // faults are drawn from others
	for n := 1; pause(ctx, time.Duration(rng.Int64N(int64(2*demandPause)))); n++ {
		switch spec := jobs[rng.IntN(len(jobs))]; rng.IntN(6) {
		case 0:
			p.trigger(ctx, spec, rng)
		case 1:
			p.endOne(ctx, spec, strconv.Itoa(n), rng)
		default:
			p.ask(ctx, spec, fmt.Sprint("r", n), rng)
		}
	}
}

// ask asks for a run once: of a request whose commit may have been applied nobody can say
// whether it was asked for, and a second attempt might be a second request.
func (p *part) ask(ctx context.Context, spec jobSpec, id string, rng *rand.Rand) {
	r := layout.Request{Refuse: rng.IntN(3) == 0, Parameter: id}
	if rng.IntN(2) == 0 {
		items := make([]int, 0, spec.totals[0])
		for n := range spec.totals[0] {
			if rng.IntN(2) == 0 {
				items = append(items, n)
			}
		}
		r.Items = ledger.FormatRange(items)
	}
	if rng.IntN(3) == 0 {
		r.Expires = time.Now().Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
	}
	at := history.Record{Kind: history.Requested, Job: spec.name, Of: id}
	err := p.client.attempt(ctx, func(ctx context.Context, ses registry.Session) error {
		_, err := ses.Commit(ctx, registry.Create(jobLayout(spec.name).Request(id), layout.MarshalRequest(r)))
		return err
	})
	if err != nil {
		at = history.Record{Kind: history.Note, Job: spec.name, Reason: "asked as " + id, Err: err.Error()}
	}
	p.out.Write(at)
}

// trigger asks an instance to run what it owns.
func (p *part) trigger(ctx context.Context, spec jobSpec, rng *rand.Rand) {
	j := jobLayout(spec.name)
	var id string
	err := p.client.attempt(ctx, func(ctx context.Context, ses registry.Session) error {
		ids, err := ses.Children(ctx, j.Instances())
		if err != nil || len(ids) == 0 {
			return errors.Join(err, registry.ErrNotFound)
		}
		id = ids[rng.IntN(len(ids))]
		_, err = ses.Commit(ctx, registry.Create(j.TriggerInstance(id), nil))
		return err
	})
	p.out.Write(history.Record{Kind: history.Note, Job: spec.name, Reason: "triggered " + id, Err: text(err)})
}

// endOne asks for the end of one run.
func (p *part) endOne(ctx context.Context, spec jobSpec, id string, rng *rand.Rand) {
	reading, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	s, _, err := p.client.snapshot(reading, spec.name)
	if err != nil {
		return
	}
	var running []history.Holding
	for _, l := range s.Ledgers {
		for _, h := range l.Items {
			if !h.Run.IsZero() {
				running = append(running, h)
			}
		}
	}
	if len(running) == 0 {
		return
	}
	h := running[rng.IntN(len(running))]
	value := layout.MarshalKill(layout.Kill{Item: h.Item, Due: h.Run, By: "chaos"})
	err = p.client.attempt(ctx, func(ctx context.Context, ses registry.Session) error {
		_, err := ses.Commit(ctx, registry.Create(jobLayout(spec.name).Kill(id), value))
		return err
	})
	p.out.Write(history.Record{Kind: history.Note, Job: spec.name, Item: h.Item, Due: h.Run, Reason: "asked for its end", Err: text(err)})
}
