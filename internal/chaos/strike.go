package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
)

// This file strikes workers at failpoints, one by one: a worker is told to stop at a
// point, the driver brings about what leads there, and then does to it what it came for.

// The ways to strike.
const (
	strikeKill  = "killed"
	strikePause = "paused"
	strikeFail  = "answers lost"
)

// A blow is one strike at one failpoint.
type blow struct {
	point failpoint.Point
	how   string
}

func (b blow) name() string { return b.how + " " + string(b.point) }

// blows are all of them.
func blows() []blow {
	var all []blow
	for _, p := range failpoint.Points {
		for _, how := range []string{strikeKill, strikePause, strikeFail} {
			all = append(all, blow{p, how})
		}
	}
	return all
}

const (
	// blowsAtOnce bounds the workers that are struck at one time.
	blowsAtOnce = 2
	// comes bounds how long a worker takes to come to a point, once what leads there was done.
	comes = 6 * time.Second
	// attempts bounds how often what leads to a point is brought about.
	attempts = 5
)

// strikeAll strikes at every failpoint in every way, in an order that the seed decides.
func (p *part) strikeAll() {
	all := blows()
	p.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var under sync.WaitGroup
	defer under.Wait()
	room := make(chan struct{}, blowsAtOnce)
	for _, b := range all {
		d := draw(p.rng, p.size, 1)[0]
		room <- struct{}{}
		if p.ctx.Err() != nil {
			return
		}
		under.Go(func() {
			defer func() { <-room }()
			p.strike(b, d)
		})
	}
}

// strike tries a few times to have a worker come to the point, and strikes it there.
func (p *part) strike(b blow, d drawn) {
	for n := range attempts {
		d.pick += n
		if p.strikeOnce(b, d, n) > 0 || p.ctx.Err() != nil {
			return
		}
	}
}

func (p *part) strikeOnce(b blow, d drawn, attempt int) (hits int) {
	s, partner := p.victim(b, d, attempt)
	defer p.fleet.release(s, true)
	if partner != nil {
		defer p.fleet.release(partner, false)
	}
	k := faultKind{name: b.name(), disturbs: true}
	p.begin(k, s.name)
	struck := s.setTrap(b.point)
	restore := p.lead(b, s, partner, d)
	ctx, cancel := context.WithTimeout(p.ctx, comes)
	defer cancel()
	select {
	case <-struck:
		p.land(b, s, d)
		hits = 1
	case <-ctx.Done():
		s.goOn()
	}
	restore()
	p.end(k, s.name, hits)
	return hits
}

// victim takes the worker that is to be struck, and another one that is needed for it.
func (p *part) victim(b blow, d drawn, attempt int) (s, partner *slot) {
	switch b.point {
	case failpoint.BeforeLead, failpoint.AfterLead, failpoint.AfterAccept:
		return p.fleet.take(p.leading(jobs[0].name, d.pick), true), nil
	case failpoint.BeforeHear, failpoint.AfterHear: // whoever leads is called, if he listens
		return p.fleet.take(p.leading(listened().name, d.pick), true), nil
	case failpoint.BeforeElect, failpoint.AfterElect:
		partner = p.fleet.take(p.leading(jobs[0].name, d.pick), false)
		return p.fleet.take(p.next(jobs[0].name, d.pick, attempt%2), true), partner
	}
	return p.fleet.take(d.pick, true), nil
}

// leading is the worker that leads a job, or any when nobody does.
func (p *part) leading(job string, otherwise int) int {
	snapshot, _, err := p.client.snapshot(p.ctx, job)
	if err != nil {
		return otherwise
	}
	return p.slotOf(snapshot.Leader, otherwise)
}

// next is the worker that is elected once the leader of a job has gone, or, with after 1, the one who is next.
func (p *part) next(job string, otherwise, after int) int {
	snapshot, _, err := p.client.snapshot(p.ctx, job)
	if err != nil {
		return otherwise
	}
	order := jobLayout(job).ElectionOrder
	ids := slices.DeleteFunc(snapshot.Lives, func(id string) bool { return id == snapshot.Leader })
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	if len(ids) <= after {
		return otherwise
	}
	return p.slotOf(ids[after], otherwise)
}

// slotOf is the worker that an instance is of.
func (p *part) slotOf(id string, otherwise int) int {
	i := slices.IndexFunc(p.fleet.slots, func(s *slot) bool { return s.named(id) })
	if i < 0 {
		return otherwise
	}
	return i
}

// lead brings about what leads to a point. restore undoes it, after the blow.
func (p *part) lead(b blow, s, partner *slot, d drawn) (restore func()) {
	switch b.point {
	case failpoint.BeforeLead, failpoint.AfterLead:
		spec := jobs[0]
		p.configure(spec, func(c *history.Config) { c.Total = other(spec.totals, c.Total, d.pick) })
	case failpoint.AfterAccept:
		p.ask(p.ctx, jobs[0], fmt.Sprint("struck", d.pick), rand.New(rand.NewPCG(p.seed, uint64(d.pick)))) //nolint:gosec // not negative
	case failpoint.BeforeElect, failpoint.AfterElect:
		partner.stop()
		return func() { p.restart(partner) }
	case failpoint.BeforeRegister, failpoint.AfterRegister:
		s.stop()
		s.trapAtStart(b.point)
		p.restart(s)
	case failpoint.BeforeLeave:
		p.note("shut down an instance", p.shutDown(s, jobs[0]))
		return func() { // the others of its jobs go on; it takes part in this one again
			s.stop()
			p.restart(s)
		}
	case failpoint.SessionDone, failpoint.BeforeClose:
		s.pause()
		p.rest(sessionTimeout + time.Second)
		s.resume()
	}
	return func() {}
}

// shutDown shuts a worker's instance of a job down, as ElasticJob's console does.
func (p *part) shutDown(s *slot, spec jobSpec) error {
	j := jobLayout(spec.name)
	return p.client.do(p.ctx, func(ctx context.Context, ses registry.Session) error {
		ids, err := ses.Children(ctx, j.Instances())
		if err != nil {
			return err
		}
		for _, id := range ids {
			if s.named(id) {
				return p.client.put(ctx, j.Instance(id), nil)
			}
		}
		return errors.New(s.name + " has no instance")
	})
}

// land does to a worker that stands at a point what it was brought there for.
func (p *part) land(b blow, s *slot, d drawn) {
	switch b.how {
	case strikeKill:
		s.kill()
		p.rest(d.length / 4)
		p.restart(s)
	case strikePause:
		s.pause()
		p.rest(d.length * 5 / 4)
		s.resume()
		s.goOn()
	case strikeFail:
		heal := s.way.each(func(p *testbed.Proxy) func() { return p.Blackhole(testbed.Answers) })
		s.goOn()
		p.rest(d.length / 2)
		heal()
	}
}
