package main

import (
	"bytes"
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
	// leastAsked are items that ran since somebody asked for it, leastHeard calls of listeners to rounds.
	leastAsked = 50
	leastHeard = 20
	// leastBound are runs that static sharding decides on, leastOff clocks that were found to be off.
	leastBound = 100
	leastOff   = 1
)

// rules are the bounds of a run on a machine that does other things too.
var rules = history.Rules{
	Timetable: timetable, Tail: 2 * time.Second,
	Settle: sessionTimeout + 2*time.Second,
	Owned:  2500 * time.Millisecond, Led: 2500 * time.Millisecond, Changed: 4 * time.Second,
	Late: 2 * time.Second, Again: 3 * time.Second, Cancel: 700 * time.Millisecond, Tell: 2 * time.Second,
	Off: 2500 * time.Millisecond, LeadOff: 70 * time.Second,
	Round: 6 * time.Second, Listen: listenTime, Kept: 9 * time.Minute,
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

// driveEach makes a run on each registry, at the same time.
func driveEach(ctx context.Context, s settings, out io.Writer) error {
	errs := make([]error, len(s.kinds))
	var runs sync.WaitGroup
	for i, kind := range s.kinds {
		one := s
		one.registry = kind
		if kind == onPostgres {
			one.sizes = []int{1}
		}
		if s.dir != "" && len(s.kinds) > 1 {
			one.dir = filepath.Join(s.dir, kind)
		}
		runs.Go(func() {
			if err := drive(ctx, one, out); err != nil {
				errs[i] = fmt.Errorf("%s: %w", kind, err)
			}
		})
	}
	runs.Wait()
	return errors.Join(errs...)
}

// drive runs all parts on one registry and judges them.
func drive(ctx context.Context, s settings, out io.Writer) error {
	// Whatever hangs, the run ends.
	ctx, cancel := context.WithTimeout(ctx, 2*s.duration+10*time.Minute)
	defer cancel()
	dir := s.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "elasticron-chaos-"); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "chaos: registry %s, seed %d, %v in %d parts\n", s.registry, s.seed, s.duration, len(s.sizes))
	var sum table
	for i := range s.sizes {
		one, err := drivePart(ctx, s, i, dir, out)
		if err != nil {
			return err
		}
		sum.add(one)
	}
	var text bytes.Buffer
	defer func() { _, _ = text.WriteTo(out) }() // in one piece: another run may be telling too
	fmt.Fprintf(&text, "\nthe whole run on %s, seed %d:\n", s.registry, s.seed)
	sum.write(&text)
	err := sum.verdict(wantedOf(s))
	if err == nil && s.dir == "" && sum.void == 0 {
		return os.RemoveAll(dir)
	}
	fmt.Fprintln(&text, "histories:", dir)
	return err
}

// wantedOf is what a run must have, to say anything.
func wantedOf(s settings) wanted {
	if s.strikes {
		w := wanted{fires: leastFires / 4, asked: leastAsked, heard: leastHeard, bound: leastBound}
		for _, b := range blows() {
			w.kinds = append(w.kinds, b.name())
		}
		return w
	}
	w := wanted{faults: leastFaults, fires: leastFires, asked: leastAsked, heard: leastHeard, bound: leastBound, off: leastOff}
	for _, k := range kinds() {
		if k.servers <= slices.Max(s.sizes) {
			w.kinds = append(w.kinds, k.name)
		}
	}
	return w
}

// partTries bounds how often a part is run whose servers lost what they had acknowledged.
const partTries = 3

// drivePart runs one part and judges it. Where the servers themselves break what they
// promise (ZooKeeper's lose what they acknowledged, etcd's end leases early), the part says
// nothing about Elasticron: it is told, and run again with other faults.
func drivePart(ctx context.Context, s settings, i int, dir string, out io.Writer) (table, error) {
	draws := uint64(i) //nolint:gosec // a few parts
	for try := range partTries {
		in := filepath.Join(dir, fmt.Sprintf("part%d.%d", i+1, try+1))
		if err := os.MkdirAll(in, 0o700); err != nil {
			return table{}, err
		}
		p := &part{
			settings: s, ctx: ctx, dir: in, size: s.sizes[i], length: s.duration / time.Duration(len(s.sizes)),
			rng:      rand.New(rand.NewPCG(s.seed, draws)),
			terminal: out, configs: map[string]history.Config{},
		}
		failed := p.run()
		if p.fleet == nil { // no servers, so nothing to judge
			return table{}, fmt.Errorf("%w (histories: %s)", failed, in)
		}
		one, err := p.told(in)
		if err != nil {
			return table{}, errors.Join(failed, err)
		}
		one.void = try
		switch {
		case one.LostWrites > 0 && s.registry == onZooKeeper:
			fmt.Fprintf(out, "chaos: %s lost acknowledged writes: the part is void (histories: %s)\n", s.registry, in)
		case one.upstream > 0:
			fmt.Fprintf(out, "chaos: %s ended %d lives before their Deadline as a paused server woke (etcd's issue 15247): "+
				"the part is void (histories: %s)\n", s.registry, one.upstream, in)
		case failed != nil:
			return table{}, fmt.Errorf("%w (histories: %s)", failed, in)
		default:
			return one, nil
		}
		draws += uint64(len(s.sizes))
	}
	return table{}, &voidError{[]string{fmt.Sprintf("in %d attempts the servers themselves broke what they promise", partTries)}}
}

// told judges the part and prints what it did and saw.
func (p *part) told(in string) (table, error) {
	var text bytes.Buffer
	defer func() { _, _ = text.WriteTo(p.terminal) }()
	fmt.Fprintf(&text, "\n%s, servers: %d (%s), %v:\n", p.registry, p.size, p.wayOf, p.length)
	t, err := judged(in, p.registry, p.fleet.troubles, &text)
	t.acked = p.witness.counts()
	fmt.Fprintf(&text, "  the servers acknowledged %d counts of the witness, and lost %d writes, theirs and workers'\n", t.acked, t.LostWrites)
	return t, err
}

// judge judges histories that were kept.
func judge(dir, registry string, out io.Writer) error {
	t, err := judged(dir, registry, nil, out)
	if err == nil && len(t.broken) > 0 {
		return errBroken
	}
	return err
}

// woke is how long after a paused server of etcd goes on it may end leases early.
const woke = time.Second

// shown is how many violations of each invariant are printed.
const shown = 3

func judged(dir, registry string, troubles []string, out io.Writer) (table, error) {
	records, err := history.ReadDir(dir)
	if err != nil {
		return table{}, err
	}
	few := rules
	few.Show = shown
	if registry == onEtcd {
		few.Woke = woke
	}
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
	witness *witness
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
	p.witness = &witness{client: p.client, out: p.out}
	for _, spec := range jobs {
		cfg := spec.config()
		p.configs[spec.name] = cfg
		p.out.Write(history.Record{Kind: history.Configured, Job: spec.name, Config: &cfg})
	}
	watching, stop := context.WithCancel(p.ctx)
	var work sync.WaitGroup
	work.Go(func() { observe(watching, p.reg, history.NewWriter(file, "observer", wall)) })
	work.Go(func() { p.witness.count(watching) })
	if p.registry == onZooKeeper && p.size > 1 {
		c := &census{out: p.out, addrs: p.servers.Addrs(), told: map[lag]struct{}{}, open: func(ctx context.Context, addr string) (registry.Registry, error) {
			return openRegistry(ctx, p.registry, []string{addr})
		}}
		work.Go(func() { c.count(watching) })
	}
	defer work.Wait()
	defer stop()
	if p.fleet, err = newFleet(p.ctx, p.dir, p.registry, p.servers.Addrs(), p.workers, p.out); err != nil {
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
	p.spread()
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { p.progress(over) })
	asking, enough := context.WithCancel(p.ctx)
	var demanding sync.WaitGroup
	demanding.Go(func() { p.demand(asking) })
	if p.strikes {
		p.strikeAll()
	} else {
		p.disturb()
	}
	enough()
	demanding.Wait()
	healed, cancel := context.WithTimeout(p.ctx, serverTime)
	defer cancel()
	err := p.fleet.ready(healed)
	if err == nil {
		err = p.quiesce()
	}
	if err == nil {
		err = p.witness.look(p.ctx)
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

// spread gives the workers that are up what is bound to whoever came first.
func (p *part) spread() {
	for _, spec := range jobs {
		if spec.static {
			p.configure(spec, func(c *history.Config) { c.Total = spec.totals[1] })
		}
	}
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
			if kindOf(d.kind).calmly {
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
			fmt.Fprintf(p.terminal, "%s, %4.0f s: %d faults, %d runs\n", p.registry, time.Since(begun).Seconds(), faults, p.fleet.entered())
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
	end := time.Now().Add(quietTime)
	for _, spec := range jobs {
		ctx, cancel := context.WithTimeout(p.ctx, max(time.Until(end), quietTime/8)) // one that does not come to rest leaves some to others
		defer cancel()
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
	open := slices.ContainsFunc(s.Asked, func(a history.Asked) bool { return a.Open })
	if open || len(s.Requests) > 0 || len(s.Lives) != len(p.fleet.slots) || len(s.Flags)+len(s.Running) > 0 || !slices.Contains(s.Lives, s.Leader) || s.Term == "" {
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
			if owned[h.Item] || h.Leaving || h.Bound != "" || !h.Run.IsZero() {
				return false
			}
			owned[h.Item] = true
		}
	}
	return len(owned) == cfg.Total
}
