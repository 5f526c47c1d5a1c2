package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
)

// A drawn fault is one that the seed decided on.
type drawn struct {
	kind   string
	gap    time.Duration // before it
	length time.Duration
	pick   int           // of a worker, a server, a job, an item, a value
	amount time.Duration // of a delay, of how far a clock is set
	back   bool
}

// A fault kind is something that can be done to a part of the run. do returns how often
// it hit; it may call begin once it knows its target.
type faultKind struct {
	name     string
	disturbs bool
	servers  int // the least number of servers
	calmly   bool
	do       func(p *part, d drawn) (target string, hits int)
}

// calm is how long nothing happens before and after a fault that waits until all others
// are over: then all bounds of time are judged.
const calm = 3 * time.Second

// kinds are all faults.
func kinds() []faultKind {
	return []faultKind{
		{name: "kill worker", do: (*part).killWorker},
		{name: "pause worker", disturbs: true, do: (*part).pauseWorker},
		{name: "stop worker", do: (*part).stopWorker},
		{name: "cut", disturbs: true, do: wayFault(func(p *testbed.Proxy, _ drawn) func() { p.Drop(); return func() {} })},
		{name: "refuse", disturbs: true, do: wayFault(func(p *testbed.Proxy, _ drawn) func() { return p.Refuse() })},
		{name: "hold", disturbs: true, do: wayFault(func(p *testbed.Proxy, _ drawn) func() { return p.Hold() })},
		{name: "swallow both", disturbs: true, do: wayFault(func(p *testbed.Proxy, _ drawn) func() { return p.Blackhole(testbed.Both) })},
		{name: "swallow requests", disturbs: true, do: wayFault(func(p *testbed.Proxy, _ drawn) func() { return p.Blackhole(testbed.Requests) })},
		{name: "swallow answers", disturbs: true, do: wayFault(func(p *testbed.Proxy, _ drawn) func() { return p.Blackhole(testbed.Answers) })},
		{name: "slow", disturbs: true, do: wayFault(func(p *testbed.Proxy, d drawn) func() { return p.Delay(d.amount / 10) })},
		{name: "kill server", disturbs: true, do: (*part).killServer},
		{name: history.PauseServer, disturbs: true, do: (*part).pauseServer},
		{name: "kill all servers", disturbs: true, do: (*part).killServers},
		{name: "lose leader", disturbs: true, servers: 3, do: (*part).loseLeader},
		{name: "change total", do: (*part).changeTotal},
		{name: "change cron", do: (*part).changeCron},
		{name: "disable server", disturbs: true, do: (*part).disableServer},
		{name: "disable item", disturbs: true, do: (*part).disableItem},
		{name: "delete what is in force", disturbs: true, do: (*part).deleteInForce},
		{name: history.SetClock, disturbs: true, do: (*part).setClock},
		{name: "change in calm", calmly: true, do: (*part).changeCalmly},
		{name: "kill in calm", calmly: true, do: (*part).killCalmly},
		{name: history.SetClock + " in calm", disturbs: true, calmly: true, do: (*part).setClockCalmly},
	}
}

// draw decides on faults for a while, by the seed alone: every kind once a round, in an
// order of its own, the calm ones last.
func draw(rng *rand.Rand, servers int, rounds int) []drawn {
	var all []drawn
	for range rounds {
		var round []drawn
		noisy := 0
		for _, k := range kinds() {
			if k.servers > servers {
				continue
			}
			if !k.calmly {
				noisy++
			}
			round = append(round, drawn{
				kind:   k.name,
				gap:    200*time.Millisecond + time.Duration(rng.Int64N(int64(1400*time.Millisecond))),
				length: 300*time.Millisecond + time.Duration(rng.Int64N(int64(2*sessionTimeout))),
				pick:   rng.IntN(1 << 20),
				amount: 50*time.Millisecond + time.Duration(rng.Int64N(int64(3*time.Second))),
				back:   rng.IntN(2) == 0,
			})
		}
		rng.Shuffle(noisy, func(i, j int) { round[i], round[j] = round[j], round[i] })
		all = append(all, round...)
	}
	return all
}

func kindOf(name string) faultKind {
	all := kinds()
	return all[slices.IndexFunc(all, func(k faultKind) bool { return k.name == name })]
}

// begin tells that a fault begins; end that it is over.
func (p *part) begin(k faultKind, target string) {
	p.out.Write(history.Record{Kind: history.FaultBegun, Fault: k.name, Of: target, Disturbs: k.disturbs})
}

func (p *part) end(k faultKind, target string, hits int) {
	p.out.Write(history.Record{Kind: history.FaultEnded, Fault: k.name, Of: target, Disturbs: k.disturbs, Count: hits})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults++
}

// rest waits, or until the run is given up.
func (p *part) rest(d time.Duration) { pause(p.ctx, d) }

// pause waits, and reports false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *part) killWorker(d drawn) (string, int) {
	s := p.fleet.take(d.pick, true)
	defer p.fleet.release(s, true)
	k := kindOf(d.kind)
	p.begin(k, s.name)
	s.kill()
	p.rest(d.length)
	p.restart(s)
	return s.name, 1
}

func (p *part) restart(s *slot) {
	if err := s.start(); err != nil {
		p.fleet.trouble("%s did not start: %v", s.name, err)
	}
}

func (p *part) stopWorker(d drawn) (string, int) {
	s := p.fleet.take(d.pick, true)
	defer p.fleet.release(s, true)
	p.begin(kindOf(d.kind), s.name)
	s.stop()
	p.rest(d.length / 4)
	p.restart(s)
	return s.name, 1
}

func (p *part) pauseWorker(d drawn) (string, int) {
	s := p.fleet.take(d.pick, true)
	defer p.fleet.release(s, true)
	p.begin(kindOf(d.kind), s.name)
	hits := 0
	if s.pause() {
		hits = 1
	}
	p.rest(d.length * 5 / 4)
	s.resume()
	return s.name, hits
}

// changeCalmly changes a total when nothing else is about.
func (p *part) changeCalmly(d drawn) (string, int) {
	p.rest(sessionTimeout + rules.Settle + calm) // what was killed before is long gone
	target, hits := p.changeTotal(d)
	p.rest(rules.Changed)
	return target, hits
}

// setClockCalmly sets a worker's clock further off than a job allows, when nothing else is about.
func (p *part) setClockCalmly(d drawn) (string, int) {
	p.rest(calm)
	s := p.fleet.take(p.leading(timed().name, d.pick)+1, false) // another one: the leader's clock is the one that counts
	defer p.fleet.release(s, false)
	p.begin(kindOf(d.kind), s.name)
	by := 4 * time.Second
	if d.back {
		by = -by
	}
	s.setAhead(by)
	p.rest(rules.Off + calm)
	s.setAhead(0)
	p.rest(rules.Off)
	return s.name, 1
}

// killCalmly kills a worker when nothing else is about, and waits until it is over.
func (p *part) killCalmly(d drawn) (string, int) {
	p.rest(calm)
	s := p.fleet.take(d.pick, true)
	defer p.fleet.release(s, true)
	p.begin(kindOf(d.kind), s.name)
	s.kill()
	p.rest(sessionTimeout + rules.Owned + calm)
	p.restart(s)
	return s.name, 1
}

// unmet is how long a fault of connections that nothing has met goes on at most: it outlasts a pause, and servers
// that are down.
const unmet = 3 * sessionTimeout

// wayFault is a fault of a worker's connections.
func wayFault(fault func(p *testbed.Proxy, d drawn) func()) func(*part, drawn) (string, int) {
	return func(p *part, d drawn) (string, int) {
		s := p.fleet.take(d.pick, false)
		defer p.fleet.release(s, false)
		p.begin(kindOf(d.kind), s.name)
		before := s.way.hits()
		do := func() (heal func()) { return s.way.each(func(p *testbed.Proxy) func() { return fault(p, d) }) }
		heal := do()
		if d.kind != "cut" {
			p.rest(d.length)
		}
		// Of a worker that is paused or begins, or whose servers are down, nothing has passed so far.
		for end := time.Now().Add(unmet); s.way.hits() == before && time.Now().Before(end); {
			if !pause(p.ctx, 50*time.Millisecond) {
				break
			}
			if d.kind == "cut" { // it lasts no longer than a moment
				heal = do()
			}
		}
		heal()
		return s.name, s.way.hits() - before
	}
}

// server is one that is drawn.
func (p *part) server(d drawn) (int, string) {
	n := d.pick % len(p.servers.Addrs())
	return n, fmt.Sprint("server ", n)
}

// note tells of a fault that did not work.
func (p *part) note(what string, err error) int {
	if err != nil {
		p.out.Write(history.Record{Kind: history.Note, Reason: what, Err: err.Error()})
		return 0
	}
	return 1
}

func (p *part) killServer(d drawn) (string, int) {
	p.atServers.Lock()
	defer p.atServers.Unlock()
	n, target := p.server(d)
	p.begin(kindOf(d.kind), target)
	hits := p.note("kill server", p.servers.Kill(n))
	p.rest(d.length / 2)
	p.back(n)
	return target, hits
}

// back restarts a server.
func (p *part) back(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), serverTime)
	defer cancel()
	if err := p.servers.Restart(ctx, n); err != nil {
		p.fleet.trouble("server %d did not come back: %v", n, err)
	}
}

func (p *part) pauseServer(d drawn) (string, int) {
	p.atServers.Lock()
	defer p.atServers.Unlock()
	n, target := p.server(d)
	p.begin(kindOf(d.kind), target)
	hits := p.note("pause server", p.servers.Pause(n))
	p.rest(d.length)
	p.note("resume server", p.servers.Resume(n))
	return target, hits
}

func (p *part) killServers(d drawn) (string, int) {
	p.atServers.Lock()
	defer p.atServers.Unlock()
	p.begin(kindOf(d.kind), "all servers")
	hits := 0
	for n := range p.servers.Addrs() {
		hits += p.note("kill server", p.servers.Kill(n))
	}
	p.rest(d.length / 2)
	ctx, cancel := context.WithTimeout(context.Background(), serverTime)
	defer cancel()
	if err := p.servers.RestartAll(ctx); err != nil {
		p.fleet.trouble("the servers did not come back: %v", err)
	}
	return "all servers", hits
}

func (p *part) loseLeader(d drawn) (string, int) {
	p.atServers.Lock()
	defer p.atServers.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), serverTime)
	defer cancel()
	n, err := p.servers.Leader(ctx)
	target := fmt.Sprint("server ", n)
	p.begin(kindOf(d.kind), target)
	if p.note("who leads", err) == 0 {
		return target, 0
	}
	hits := p.note("kill leader", p.servers.Kill(n))
	p.rest(d.length)
	p.back(n)
	return target, hits
}

// jobWith draws a job that has a choice.
func (p *part) jobWith(d drawn, choices func(jobSpec) int) jobSpec {
	var some []jobSpec
	for _, s := range jobs {
		if choices(s) > 1 {
			some = append(some, s)
		}
	}
	return some[d.pick%len(some)]
}

func (p *part) changeTotal(d drawn) (string, int) {
	spec := p.jobWith(d, func(s jobSpec) int { return len(s.totals) })
	p.begin(kindOf(d.kind), spec.name)
	return spec.name, p.configure(spec, func(c *history.Config) { c.Total = other(spec.totals, c.Total, d.pick) })
}

func (p *part) changeCron(d drawn) (string, int) {
	spec := p.jobWith(d, func(s jobSpec) int { return len(s.crons) })
	p.begin(kindOf(d.kind), spec.name)
	return spec.name, p.configure(spec, func(c *history.Config) { c.Cron = other(spec.crons, c.Cron, d.pick) })
}

// other is a value that is not the present one.
func other[V comparable](values []V, now V, pick int) V {
	i := max(0, slices.Index(values, now))
	return values[(i+1+pick%(len(values)-1))%len(values)]
}

// configure edits a job's configuration and tells so.
func (p *part) configure(spec jobSpec, edit func(*history.Config)) int {
	p.configuring.Lock()
	defer p.configuring.Unlock()
	cfg := p.configs[spec.name]
	edit(&cfg)
	err := p.client.configure(p.ctx, spec.name, func(c *layout.Config) {
		c.Cron, c.ShardingTotalCount = cfg.Cron, cfg.Total
	})
	if err != nil {
		p.fleet.trouble("%s was not configured: %v", spec.name, err)
		return 0
	}
	p.configs[spec.name] = cfg
	p.out.Write(history.Record{Kind: history.Configured, Job: spec.name, Config: &cfg})
	return 1
}

func (p *part) disableServer(d drawn) (string, int) {
	spec := jobs[d.pick%len(jobs)]
	s := p.fleet.slots[d.pick/len(jobs)%len(p.fleet.slots)]
	node := jobLayout(spec.name).Server(s.ip)
	target := spec.name + " at " + s.name
	return target, p.disable(d, target, node, []byte(layout.ServerStatus(false)), []byte(layout.ServerStatus(true)))
}

func (p *part) disableItem(d drawn) (string, int) {
	spec := jobs[d.pick%len(jobs)]
	item := d.pick / len(jobs) % slices.Min(spec.totals)
	target := fmt.Sprintf("%s/%d", spec.name, item)
	return target, p.disable(d, target, jobLayout(spec.name).Disabled(item), []byte{}, nil)
}

// disable gives a node one value for a while, and then another.
func (p *part) disable(d drawn, target, node string, off, on []byte) int {
	p.begin(kindOf(d.kind), target)
	hits := p.note("disable "+node, p.client.put(p.ctx, node, off))
	p.rest(d.length)
	if err := p.client.put(p.ctx, node, on); err != nil {
		p.fleet.trouble("%s was not enabled: %v", strings.TrimPrefix(target, "/"), err)
	}
	return hits
}

// deleteInForce deletes nodes by which all members of a job go, as somebody does by mistake: the leader, or whose they
// are, makes them again.
func (p *part) deleteInForce(d drawn) (string, int) {
	spec := jobs[d.pick%len(jobs)]
	j := jobLayout(spec.name)
	targets := [][]string{{j.Base()}, {j.Schedule()}, {j.Base(), j.Schedule(), j.Claim()}, {j.Servers()}}
	paths := targets[d.pick/len(jobs)%len(targets)]
	target := strings.Join(paths, " ")
	p.begin(kindOf(d.kind), target)
	hits := 0
	for _, path := range paths {
		err := p.client.do(p.ctx, func(ctx context.Context, ses registry.Session) error {
			return registry.DeleteTree(ctx, ses, path)
		})
		hits += p.note("delete "+path, err)
	}
	p.rest(d.length)
	return target, hits
}

func (p *part) setClock(d drawn) (string, int) {
	s := p.fleet.take(d.pick, false)
	defer p.fleet.release(s, false)
	p.begin(kindOf(d.kind), s.name)
	if d.back {
		d.amount = -d.amount
	}
	s.setAhead(d.amount)
	p.rest(d.length)
	s.setAhead(0)
	return s.name, 1
}
