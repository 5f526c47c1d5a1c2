package admin

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

// A view is what the nodes of one job say, read one after the other.
type view struct {
	job layout.Job
	now time.Time

	nodes map[string]registry.Node // by path; all that exist

	config    core.JobConfig
	stored    layout.Config
	configErr error // the configuration cannot be read; the two above are then zero

	servers   []string
	instances []string // those that are registered, of whatever kind
	lives     map[string]layout.Life
	paused    map[string]bool   // stable names
	clocks    map[string]string // why an instance begins nothing whose clock is off, by id
	base      *layout.Base
	schedule  *layout.Schedule
	ledgers   []record
	items     []int // that have a node
}

// A record is a ledger that could be read.
type record struct {
	id  string
	led *ledger.Ledger
}

// look reads a job, items included. It fails with ErrNoJob where there is no configuration.
func (a *Admin) look(ctx context.Context, j layout.Job) (*view, error) {
	v := &view{job: j, now: a.now(), nodes: map[string]registry.Node{}, lives: map[string]layout.Life{}, paused: map[string]bool{}}
	paths := []string{j.Config(), j.Leader(), j.Term(), j.Processing(), j.Necessary(), j.Root(), j.OwnRoot()}
	var sharding []string
	for _, dir := range []string{j.Servers(), j.Instances(), j.Lives(), j.Notices(), j.Ledgers(), j.InForce()} {
		names, err := children(ctx, a.store, dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			paths = append(paths, dir+"/"+name)
		}
	}
	sharding, err := children(ctx, a.store, j.Sharding())
	if err != nil {
		return nil, err
	}
	for _, name := range sharding {
		if n, ok := layout.ParseItem(name); ok {
			v.items = append(v.items, n)
			paths = append(paths, j.ItemInstance(n), j.Running(n), j.Disabled(n), j.Failover(n))
		}
	}
	slices.Sort(v.items)
	nodes, err := a.store.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if n.Exists() {
			v.nodes[n.Path] = n
		}
	}
	if err := v.read(); err != nil {
		return v, err
	}
	if err := a.readLedgers(ctx, v); err != nil {
		return v, err
	}
	return v, a.readClocks(ctx, v)
}

// readLedgers reads the ledgers, with their pages. Those that cannot be read are left out.
func (a *Admin) readLedgers(ctx context.Context, v *view) error {
	var roots []registry.Node
	for _, p := range slices.Sorted(maps.Keys(v.nodes)) {
		if path.Dir(p) == v.job.Ledgers() {
			roots = append(roots, v.nodes[p])
		}
	}
	found, err := pages.Read(ctx, a.store.Get, nil, roots...)
	if err != nil {
		return err
	}
	for _, f := range found {
		if errors.Is(f.Err, ledger.ErrTorn) {
			return f.Err
		}
		if f.Ledger != nil {
			v.nodes[f.Node.Path] = f.Node
			v.ledgers = append(v.ledgers, record{path.Base(f.Node.Path), f.Ledger})
		}
	}
	return nil
}

// readClocks reads whose clock is off, where the configuration bounds that.
func (a *Admin) readClocks(ctx context.Context, v *view) error {
	if v.stored.MaxTimeDiffSeconds <= 0 || len(v.instances) == 0 {
		return nil
	}
	paths := make([]string, len(v.instances))
	for i, id := range v.instances {
		paths[i] = v.job.Clock(id)
	}
	nodes, err := a.store.Get(ctx, paths...)
	if err != nil {
		return err
	}
	v.clocks = map[string]string{}
	for i, n := range nodes {
		if c, err := layout.UnmarshalClock(n.Value); n.Exists() && err == nil {
			v.clocks[v.instances[i]] = c.Off
		}
	}
	return nil
}

// read makes sense of the nodes. What is not ours, or cannot be read, is left out.
func (v *view) read() error {
	config, exists := v.nodes[v.job.Config()]
	if !exists {
		return ErrNoJob
	}
	v.stored, v.configErr = v.job.UnmarshalConfig(config.Value)
	if v.configErr == nil {
		v.config, v.configErr = core.ReadConfig(config.Value)
	}
	for _, p := range slices.Sorted(maps.Keys(v.nodes)) {
		n, name := v.nodes[p], path.Base(p)
		switch path.Dir(p) {
		case v.job.Servers():
			v.servers = append(v.servers, name)
		case v.job.Instances():
			v.instances = append(v.instances, name)
		case v.job.Lives():
			v.lives[name], _ = layout.UnmarshalLife(n.Value) // it stands, whatever it says
		case v.job.InForce():
			v.readInForce(n, name)
		}
	}
	return nil
}

func (v *view) readInForce(n registry.Node, name string) {
	if stable, ok := layout.PausedName(name); ok {
		v.paused[stable] = true
		return
	}
	switch n.Path {
	case v.job.Base():
		if b, err := layout.UnmarshalBase(n.Value); err == nil {
			v.base = &b
		}
	case v.job.Schedule():
		if s, err := layout.UnmarshalSchedule(n.Value); err == nil {
			v.schedule = &s
		}
	}
}

func (v *view) has(path string) bool {
	_, exists := v.nodes[path]
	return exists
}

func (v *view) value(path string) string { return string(v.nodes[path].Value) }

// enabled reports whether a server's node lets its instances work.
func (v *view) enabled(ip string) bool {
	n, known := v.nodes[v.job.Server(ip)]
	on, err := layout.ServerEnabled(string(n.Value))
	return known && err == nil && on
}

// registered reports whether an instance is there and has not been shut down.
func (v *view) registered(id string) bool { return v.has(v.job.Instance(id)) }

// alive reports whether an instance is there at all. One that was shut down keeps its
// life until what it runs has ended.
func (v *view) alive(id string) bool { return v.registered(id) || v.has(v.job.Life(id)) }

// total is the sharding total count in force: that of the epoch, else the configured one.
func (v *view) total() int {
	if v.base != nil {
		return v.base.To
	}
	return v.stored.ShardingTotalCount
}

// A holding is who owns an item, by the record, or by ElasticJob's node where there is none.
type holding struct {
	owner string
	epoch int
	total int
	held  bool
	until time.Time
	item  ledger.Item
	known bool // a ledger holds it
}

// holdings returns who owns what. Where two ledgers hold an item, which happens only when
// somebody writes one from outside, that of an owner who lives counts.
func (v *view) holdings() map[int]holding {
	all := map[int]holding{}
	for _, n := range v.items {
		if owner := v.value(v.job.ItemInstance(n)); owner != "" {
			all[n] = holding{owner: owner}
		}
	}
	for _, r := range v.ledgers {
		for n, rec := range r.led.All() {
			has := all[n]
			if has.known && (r.led.Epoch < has.epoch || r.led.Epoch == has.epoch && v.alive(has.owner)) {
				continue
			}
			all[n] = holding{
				owner: r.id, epoch: r.led.Epoch, total: r.led.Total, held: r.led.Held, until: r.led.Until, item: rec, known: true,
			}
		}
	}
	return all
}

// rule is the schedule by which the job fires now: the one in force, else the configured one.
func (v *view) rule() (core.JobConfig, error) {
	switch {
	case v.schedule != nil:
		return ruleOf(v.schedule.Rule), nil
	case v.configErr != nil:
		return core.JobConfig{}, v.configErr
	}
	c := v.config
	if c.TimeZone == "" {
		c.TimeZone = v.stored.Props["elasticron.zone"]
	}
	return c, nil
}

func ruleOf(r layout.Rule) core.JobConfig {
	return core.JobConfig{Cron: r.Cron, TimeZone: r.Zone, Gap: r.Gap, Overlap: r.Overlap}
}

var errNoSchedule = errors.New("the job has no schedule that can be read")

// timing compiles the rule.
func (v *view) timing() (*core.Schedule, error) {
	c, err := v.rule()
	if err != nil {
		return nil, errors.Join(errNoSchedule, err)
	}
	s, err := c.Schedule()
	if err != nil {
		return nil, errors.Join(errNoSchedule, err)
	}
	return s, nil
}
