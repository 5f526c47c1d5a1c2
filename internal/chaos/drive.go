package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// What a run must have, to say anything.
const (
	leastFaults = 40
	leastFires  = 20_000
)

// rules are the bounds of a run on a machine that does other things too.
var rules = history.Rules{
	Timetable: timetable, Untold: endsUntold, Tail: 2 * time.Second,
	Settle: sessionTimeout + 2*time.Second,
	Owned:  2500 * time.Millisecond, Led: 2500 * time.Millisecond, Changed: 8 * time.Second,
	Late: 2 * time.Second, Again: 3 * time.Second, Cancel: 700 * time.Millisecond,
}

const (
	progressEvery = 20 * time.Second
	// quietTime bounds the wait for quiescence.
	quietTime = 40 * time.Second
)

// A voidError says that a run proves nothing.
type voidError struct{ problems []string }

func (v *voidError) Error() string {
	return fmt.Sprintf("chaos: the run is void: %q", v.problems)
}

var errBroken = errors.New("chaos: invariants were broken")

// drive runs all parts and judges them.
func drive(ctx context.Context, s settings, out io.Writer) error {
	dir := s.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "elasticron-chaos-"); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "chaos: registry %s, seed %d, %v in %d parts\n", s.registry, s.seed, s.duration, len(s.sizes))
	var sum table
	for i, n := range s.sizes {
		in := filepath.Join(dir, fmt.Sprintf("part%d", i+1))
		if err := os.MkdirAll(in, 0o700); err != nil {
			return err
		}
		p := &part{
			settings: s, ctx: ctx, dir: in, size: n, length: s.duration / time.Duration(len(s.sizes)),
			rng: rand.New(rand.NewPCG(s.seed, uint64(i))), terminal: out, configs: map[string]history.Config{},
		}
		if err := p.run(); err != nil {
			return fmt.Errorf("%w (histories: %s)", err, in)
		}
		fmt.Fprintf(out, "\nservers: %d (%s), %v:\n", n, p.wayOf, p.length)
		one, err := judged(in, p.fleet.troubles, out)
		if err != nil {
			return err
		}
		sum.add(one)
	}
	fmt.Fprintf(out, "\nthe whole run, seed %d:\n", s.seed)
	sum.write(out)
	err := sum.verdict(s.sizes)
	if err == nil && s.dir == "" {
		return os.RemoveAll(dir)
	}
	fmt.Fprintln(out, "histories:", dir)
	return err
}

// judge judges histories that were kept.
func judge(dir string, out io.Writer) error {
	t, err := judged(dir, nil, out)
	if err == nil && len(t.broken) > 0 {
		return errBroken
	}
	return err
}

// shown is how many violations of each invariant are printed.
const shown = 3

func judged(dir string, troubles []string, out io.Writer) (table, error) {
	records, err := history.ReadDir(dir)
	if err != nil {
		return table{}, err
	}
	few := rules
	few.Show = shown
	report := history.Check(records, few)
	t := tableOf(report, troubles)
	t.write(out)
	for _, v := range report.Violations {
		fmt.Fprintln(out, v)
	}
	return t, nil
}

// A part is one cluster with its workers, and faults for a while.
type part struct {
	settings

	ctx      context.Context
	dir      string
	size     int
	length   time.Duration
	rng      *rand.Rand
	terminal io.Writer

	servers servers
	wayOf   string
	reg     registry.Registry
	client  *client
	fleet   *fleet
	out     *history.Writer

	atServers   sync.Mutex // one fault of servers at a time
	configuring sync.Mutex
	configs     map[string]history.Config

	mu     sync.Mutex
	faults int
}

func (p *part) run() (err error) {
	file, err := os.OpenFile(filepath.Join(p.dir, "driver.history"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	wall := func() (time.Duration, time.Time) { return common(), time.Now().Round(0).UTC() }
	p.out = history.NewWriter(file, "driver", wall)
	if p.servers, err = startServers(p.ctx, p.registry, p.dir, p.size); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.servers.Close()) }()
	p.wayOf = p.servers.Way()
	if p.reg, err = openRegistry(p.ctx, p.registry, p.servers.Addrs()); err != nil {
		return err
	}
	defer p.reg.Close()
	p.client = &client{reg: p.reg}
	for _, spec := range jobs {
		cfg := spec.config()
		p.configs[spec.name] = cfg
		p.out.Write(history.Record{Kind: history.Configured, Job: spec.name, Config: &cfg})
	}
	watching, stop := context.WithCancel(p.ctx)
	var work sync.WaitGroup
	work.Go(func() { observe(watching, p.reg, history.NewWriter(file, "observer", wall)) })
	defer work.Wait()
	defer stop()
	if p.fleet, err = newFleet(p.dir, p.registry, p.servers.Addrs(), p.workers, p.out); err != nil {
		return err
	}
	defer p.fleet.close()
	return p.play()
}

// play starts the workers, lets the faults come, heals, and stops all in order.
func (p *part) play() error {
	for _, s := range p.fleet.slots {
		if err := s.start(); err != nil {
			return err
		}
	}
	ready, cancel := context.WithTimeout(p.ctx, serverTime)
	defer cancel()
	if err := p.fleet.ready(ready); err != nil {
		return fmt.Errorf("chaos: the workers do not come up: %w: %v", err, p.fleet.troubles)
	}
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { p.progress(over) })
	p.disturb()
	healed, cancel := context.WithTimeout(p.ctx, serverTime)
	defer cancel()
	err := p.fleet.ready(healed)
	if err == nil {
		err = p.quiesce()
	}
	close(over)
	telling.Wait()
	if err != nil {
		return err
	}
	var stopping sync.WaitGroup
	for _, s := range p.fleet.slots {
		stopping.Go(s.stop)
	}
	stopping.Wait()
	return errors.Join(p.ctx.Err(), p.out.Err())
}

// disturb lets the drawn faults come until the time is over, and waits for their ends.
func (p *part) disturb() {
	end := time.Now().Add(p.length)
	var under sync.WaitGroup
	defer under.Wait()
	for round := 0; ; round++ {
		for _, d := range draw(p.rng, p.size, 1) {
			p.rest(d.gap)
			if time.Now().After(end) || p.ctx.Err() != nil {
				return
			}
			if d.kind == calmly {
				under.Wait()
				p.inflict(d)
				continue
			}
			under.Go(func() { p.inflict(d) })
		}
	}
}

func (p *part) inflict(d drawn) {
	k := kindOf(d.kind)
	target, hits := k.do(p, d)
	p.end(k, target, hits)
}

func (p *part) progress(over <-chan struct{}) {
	begun := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.mu.Lock()
			faults := p.faults
			p.mu.Unlock()
			fmt.Fprintf(p.terminal, "%4.0f s: %d faults, %d runs\n", time.Since(begun).Seconds(), faults, p.fleet.entered())
		case <-over:
			return
		}
	}
}

// quiesce lets no further fire come due, waits until nothing is under way, and writes
// down what stands then.
func (p *part) quiesce() error {
	for _, spec := range jobs {
		p.configure(spec, func(c *history.Config) { c.Cron = restCron })
	}
	ctx, cancel := context.WithTimeout(p.ctx, quietTime)
	defer cancel()
	for _, spec := range jobs {
		var last *history.Snapshot
		calm := 0
		err := poll(ctx, func() bool {
			s, schedule, err := p.client.snapshot(ctx, spec.name)
			if err != nil {
				return false
			}
			last = s
			if calm++; !p.settled(s, schedule, spec) {
				calm = 0
			}
			return calm >= 10
		})
		if last == nil {
			return fmt.Errorf("chaos: what stands of %s cannot be read: %w", spec.name, err)
		}
		p.note(spec.name+" does not come to rest", err)
		p.out.Write(history.Record{Kind: history.Quiet, Job: spec.name, Snapshot: last})
	}
	return p.ctx.Err()
}

// settled reports whether nothing of a job is under way.
func (p *part) settled(s *history.Snapshot, schedule *history.Schedule, spec jobSpec) bool {
	cfg := p.configs[spec.name]
	if len(s.Lives) != len(p.fleet.slots) || len(s.Flags)+len(s.Running) > 0 || !slices.Contains(s.Lives, s.Leader) || s.Term == "" {
		return false
	}
	if s.Base != nil && s.Base.To != cfg.Total || schedule != nil && schedule.Cron != cfg.Cron {
		return false
	}
	owned := map[int]bool{}
	for _, l := range s.Ledgers {
		if l.Total != cfg.Total && len(l.Items) > 0 || len(l.Items) > 0 && !slices.Contains(s.Lives, l.Instance) {
			return false
		}
		for _, h := range l.Items {
			if owned[h.Item] || h.Leaving || !h.Run.IsZero() {
				return false
			}
			owned[h.Item] = true
		}
	}
	return len(owned) == cfg.Total
}
