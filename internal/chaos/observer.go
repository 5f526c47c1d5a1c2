package main

import (
	"context"
	"path"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/history/nodes"
	"github.com/elasticron/elasticron/registry"
)

// An observer writes down which lives come and go, and what is put in force.
type observer struct {
	reg   registry.Registry
	out   *history.Writer
	known map[string]map[string]bool // lives that stand, by job
	seen  map[string]bool            // lives that came in this session, before Synced
	force map[string]string          // values of nodes in force
}

func observe(ctx context.Context, reg registry.Registry, out *history.Writer) {
	o := &observer{reg: reg, out: out, known: map[string]map[string]bool{}, force: map[string]string{}}
	for _, spec := range jobs {
		o.known[spec.name] = map[string]bool{}
	}
	for ctx.Err() == nil {
		if err := o.follow(ctx); err != nil && ctx.Err() == nil {
			o.out.Write(history.Record{Kind: history.Note, Reason: "the observer looks again", Err: err.Error()})
		}
	}
}

// follow watches through one session.
func (o *observer) follow(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ses, err := o.reg.Open(opening)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = ses.Close(closing)
	}()
	w, err := ses.Watch(opening)
	if err != nil {
		return err
	}
	defer w.Close()
	targets := map[string]string{} // job of a directory
	for _, spec := range jobs {
		j := jobLayout(spec.name)
		for _, dir := range []string{j.Lives(), j.InForce()} {
			targets[dir] = spec.name
			if err := w.Add(dir, registry.Children); err != nil {
				return err
			}
		}
	}
	o.seen = map[string]bool{}
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			job := targets[e.Path]
			switch {
			case e.Path == jobLayout(job).InForce():
				o.inForce(job, e)
			case e.Synced:
				o.synced(job)
			default:
				o.life(job, path.Base(e.Node.Path), e.Node.Exists())
			}
		}
	}
}

// synced tells of the lives that went while nobody looked.
func (o *observer) synced(job string) {
	for id := range o.known[job] {
		if !o.seen[id] {
			o.life(job, id, false)
		}
	}
}

func (o *observer) life(job, id string, stands bool) {
	o.seen[id] = true
	if o.known[job][id] == stands {
		return
	}
	kind := history.Gone
	if stands {
		kind = history.Come
		o.known[job][id] = true
	} else {
		delete(o.known[job], id)
	}
	o.out.Write(history.Record{Kind: kind, Job: job, Instance: id, Node: history.Life})
}

func (o *observer) inForce(job string, e registry.Event) {
	if e.Synced || !e.Node.Exists() || o.force[e.Node.Path] == string(e.Node.Value) {
		return
	}
	o.force[e.Node.Path] = string(e.Node.Value)
	r := history.Record{Job: job}
	var err error
	switch e.Node.Path {
	case jobLayout(job).Schedule():
		r.Kind = history.SawSchedule
		r.Schedule, err = nodes.Schedule(e.Node.Value)
	case jobLayout(job).Base():
		r.Kind = history.SawBase
		r.Base, err = nodes.Base(e.Node.Value)
	default:
		return
	}
	if err != nil {
		r = history.Record{Kind: history.Note, Job: job, Reason: e.Node.Path, Err: err.Error()}
	}
	o.out.Write(r)
}
