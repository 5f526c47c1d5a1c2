package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// LeftoverKind says what was left behind.
type LeftoverKind string

const (
	// LeftServer: a server on which no instance is registered. A disabled one is none: that
	// is an operator's word; nor is one to whose instance items are bound
	// (JobConfig.StaticSharding).
	LeftServer LeftoverKind = "server"
	// LeftLedger: the empty record of an instance that is gone.
	LeftLedger LeftoverKind = "ledger"
	// LeftItem: the node of an item that the sharding total count does not have.
	LeftItem LeftoverKind = "item"
	// LeftRunning: an item is shown as running by an instance that is gone.
	LeftRunning LeftoverKind = "running"
	// LeftTrigger: a request to an instance that is gone.
	LeftTrigger LeftoverKind = "trigger"
	// LeftFailover: ElasticJob's nodes of a failover, in a job whose configuration has none.
	LeftFailover LeftoverKind = "failover"
	// LeftRecords: Elasticron's state of a job that somebody deleted without it.
	LeftRecords LeftoverKind = "records"
)

// A Leftover is something that nobody needs any more.
type Leftover struct {
	// Job is the name of the job.
	Job string
	// Kind says what it is, Path where.
	Kind LeftoverKind
	Path string
	// Proof says why nobody needs it.
	Proof string
	// Deleted: Reconcile has deleted it. Kept says why it has not.
	Deleted bool
	Kept    string

	created registry.Revision
	guard   []registry.Op // what the delete demands
	ops     []registry.Op
	server  registry.Node
}

// A Report is what was left behind at an instant.
type Report struct {
	// At is when it was looked for.
	At time.Time
	// Leftovers are by job, kind and path.
	Leftovers []Leftover
}

// Inspect looks for what was left behind in a job, "" for every job, and deletes nothing.
func (a *Admin) Inspect(ctx context.Context, job string) (Report, error) {
	r, err := a.inspect(ctx, job)
	return r, failed("look for leftovers", job, err)
}

// Reconcile looks again, deletes what stood in the report already and still can be proved,
// and returns what it did. Each delete is one commit, at the versions that the proof has
// read. A server goes only when the report is three intervals of reconciliation old: one
// that is restarting is none.
func (a *Admin) Reconcile(ctx context.Context, job string, before Report) (Report, error) {
	r, err := a.inspect(ctx, job)
	for i := 0; i < len(r.Leftovers) && err == nil; i++ {
		err = a.sweep(ctx, &r.Leftovers[i], r.At, before)
	}
	return r, failed("reconcile", job, err)
}

func (a *Admin) inspect(ctx context.Context, job string) (Report, error) {
	r := Report{At: a.now()}
	if err := a.store.Sync(ctx); err != nil {
		return r, err
	}
	names := []string{job}
	if job == "" {
		var err error
		if names, err = a.everything(ctx); err != nil {
			return r, err
		}
	}
	for _, name := range names {
		j, err := layout.New(a.namespace, name)
		if err != nil {
			return r, err
		}
		found, err := a.leftovers(ctx, j)
		if err != nil {
			return r, err
		}
		slices.SortStableFunc(found, func(x, y Leftover) int {
			return slices.Compare([]string{string(x.Kind), x.Path}, []string{string(y.Kind), y.Path})
		})
		r.Leftovers = append(r.Leftovers, found...)
	}
	return r, nil
}

// everything lists jobs, and what may have been one.
func (a *Admin) everything(ctx context.Context) ([]string, error) {
	var all []string
	for _, root := range []string{"/" + a.namespace, "/" + layout.OwnNamespace + "/" + a.namespace} {
		names, err := children(ctx, a.store, root)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, err := layout.New(a.namespace, name); err == nil {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (a *Admin) leftovers(ctx context.Context, j layout.Job) ([]Leftover, error) {
	v, err := a.look(ctx, j)
	if errors.Is(err, ErrNoJob) {
		return a.leftRecords(ctx, j)
	}
	if err != nil {
		return nil, err
	}
	found := slices.Concat(v.leftServers(), v.leftLedgers(), v.leftRunning())
	for _, look := range []func(context.Context, *view) ([]Leftover, error){a.leftItems, a.leftTriggers, a.leftFailover} {
		more, err := look(ctx, v)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (v *view) leftover(kind LeftoverKind, n registry.Node, format string, args ...any) Leftover {
	return Leftover{
		Job: v.job.Name(), Kind: kind, Path: n.Path, Proof: fmt.Sprintf(format, args...), created: n.Created,
		ops: []registry.Op{registry.Delete(n.Path, n.Version)},
	}
}

func (v *view) leftServers() []Leftover {
	var found []Leftover
	for _, ip := range v.servers {
		n := v.nodes[v.job.Server(ip)]
		on, err := layout.ServerEnabled(string(n.Value))
		if err != nil || !on || len(v.on(ip)) > 0 || v.binds(ip) {
			continue
		}
		l := v.leftover(LeftServer, n, "no instance is registered on %s, and nobody has disabled it", ip)
		l.server = n
		found = append(found, l)
	}
	return found
}

// binds reports whether items are bound to an instance that was on a server: it is to come back.
func (v *view) binds(ip string) bool {
	return v.stored.StaticSharding && slices.ContainsFunc(v.ledgers, func(r record) bool {
		id, err := layout.ParseInstanceID(r.id)
		return err == nil && id.IP == ip && r.led.Len() > 0
	})
}

// leftLedgers finds records of the dead that hold nothing. One that holds items is what
// the leader gives them away by.
func (v *view) leftLedgers() []Leftover {
	var found []Leftover
	for _, r := range v.ledgers {
		if r.led.Len() == 0 && !v.alive(r.id) && !v.has(v.job.Notice(r.id)) {
			found = append(found, v.leftover(LeftLedger, v.nodes[v.job.Ledger(r.id)],
				"life, notice and instance of %s are gone, and its ledger holds no item", r.id))
		}
	}
	return found
}

// leftRunning finds pictures of runs whose owner is gone. Nodes of ElasticJob's own members
// are its locks.
func (v *view) leftRunning() []Leftover {
	holdings := v.holdings()
	var found []Leftover
	for _, item := range v.items {
		n, shown := v.nodes[v.job.Running(item)]
		id, err := layout.ParseInstanceID(string(n.Value))
		owner := string(n.Value)
		if !shown || err != nil || id.Life == "" || v.alive(owner) || v.has(v.job.Notice(owner)) {
			continue
		}
		if h := holdings[item]; h.owner == owner && h.item.Running() {
			continue // nobody has taken it over yet
		}
		found = append(found, v.leftover(LeftRunning, n, "%s is gone, and no ledger says that it runs the item", owner))
	}
	return found
}

func (a *Admin) leftItems(ctx context.Context, v *view) ([]Leftover, error) {
	if v.base == nil || !v.base.Assigned {
		return nil, nil
	}
	for _, r := range v.ledgers {
		if r.led.Len() > 0 && r.led.Epoch != v.base.Epoch {
			return nil, nil // items of the epoch before are still owed
		}
	}
	base := v.nodes[v.job.Base()]
	var found []Leftover
	for _, item := range v.items {
		if item < v.base.To {
			continue
		}
		nodes, err := a.withChildren(ctx, v.job.Item(item))
		if err != nil {
			return nil, err
		}
		l := v.leftover(LeftItem, nodes[len(nodes)-1], "the sharding total count is %d, and every item of it is assigned", v.base.To)
		l.guard = []registry.Op{registry.Check(base.Path, base.Version)}
		if l.ops = deletes(nodes); len(l.ops) > 0 {
			found = append(found, l)
		}
	}
	return found, nil
}

// withChildren reads a node and those one level below, which come first.
func (a *Admin) withChildren(ctx context.Context, dir string) ([]registry.Node, error) {
	names, err := children(ctx, a.store, dir)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(names)+1)
	for _, name := range names {
		paths = append(paths, dir+"/"+name)
	}
	return a.store.Get(ctx, append(paths, dir)...)
}

func deletes(nodes []registry.Node) []registry.Op {
	var ops []registry.Op
	for _, n := range existing(nodes) {
		ops = append(ops, registry.Delete(n.Path, n.Version))
	}
	return ops
}

func (a *Admin) leftTriggers(ctx context.Context, v *view) ([]Leftover, error) {
	nodes, err := a.withChildren(ctx, v.job.Trigger())
	if err != nil {
		return nil, err
	}
	var found []Leftover
	for _, n := range existing(nodes[:len(nodes)-1]) {
		if id := path.Base(n.Path); !v.alive(id) {
			found = append(found, v.leftover(LeftTrigger, n, "%s is gone, and nobody else takes its request", id))
		}
	}
	return found, nil
}

// leftFailover finds nodes that only a failover removes, where the configuration has none.
func (a *Admin) leftFailover(ctx context.Context, v *view) ([]Leftover, error) {
	if readable := v.configErr == nil; !readable || v.stored.Failover || v.java() {
		return nil, nil
	}
	queue, err := a.withChildren(ctx, v.job.FailoverItems())
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(v.items))
	for _, item := range v.items {
		paths = append(paths, v.job.Failovering(item))
	}
	marks, err := a.store.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	config := v.nodes[v.job.Config()]
	var found []Leftover
	for _, n := range existing(append(marks, queue[:len(queue)-1]...)) {
		l := v.leftover(LeftFailover, n, "the configuration says failover: false, and no member of ElasticJob is registered")
		l.guard = []registry.Op{registry.Check(config.Path, config.Version)}
		found = append(found, l)
	}
	return found, nil
}

// java reports whether a member of ElasticJob itself is registered.
func (v *view) java() bool {
	return slices.ContainsFunc(v.instances, func(id string) bool {
		parsed, err := layout.ParseInstanceID(id)
		return err == nil && parsed.IsJava()
	})
}

// leftRecords finds the state of a job of which only that is left.
func (a *Admin) leftRecords(ctx context.Context, j layout.Job) ([]Leftover, error) {
	own, err := children(ctx, a.store, j.OwnRoot())
	if err != nil || len(own) == 0 {
		return nil, err
	}
	for _, name := range own {
		if !slices.Contains(ownNodes, name) {
			return nil, nil // the directory of another namespace
		}
	}
	ids, err := a.everybody(ctx, j)
	if err != nil || len(ids) > 0 {
		return nil, err
	}
	nodes, err := a.store.Get(ctx, j.OwnRoot(), j.InForce())
	if err != nil || !nodes[1].Exists() {
		return nil, err
	}
	return []Leftover{{
		Job: j.Name(), Kind: LeftRecords, Path: j.OwnRoot(), created: nodes[0].Created,
		Proof: "the job has no configuration, and nobody is registered",
	}}, nil
}

// ownNodes are the names below the own root of a job.
var ownNodes = []string{"lives", "ledgers", "notices", "rounds", "runs", "term", "inforce", "offsets", "clocks"}

// sweep deletes one leftover, if the report has it and its time has come.
func (a *Admin) sweep(ctx context.Context, l *Leftover, now time.Time, before Report) error {
	known := slices.ContainsFunc(before.Leftovers, func(b Leftover) bool {
		return b.Kind == l.Kind && b.Path == l.Path && b.created == l.created
	})
	if !known {
		l.Kept = "it does not stand in the report"
		return nil
	}
	j, err := layout.New(a.namespace, l.Job)
	if err != nil {
		return err
	}
	switch l.Kind {
	case LeftServer:
		wait, err := a.patience(ctx, j)
		if err != nil {
			return err
		}
		if age := now.Sub(before.At); age < wait {
			l.Kept = fmt.Sprintf("the report is %v old, and a server is given %v to come back", age.Round(time.Second), wait)
			return nil
		}
		err = a.removeServer(ctx, j, l.server)
		return l.outcome(err)
	case LeftRecords:
		return l.outcome(a.deleteRecords(ctx, j))
	}
	_, err = a.store.Commit(ctx, slices.Concat(l.guard, l.ops)...)
	return l.outcome(err)
}

// outcome notes what became of a delete. Whoever came first has his way.
func (l *Leftover) outcome(err error) error {
	switch {
	case err == nil:
		l.Deleted = true
	case overtaken(err) || errors.Is(err, ErrInUse) || errors.Is(err, ErrChanged):
		l.Kept = "it has changed meanwhile"
	case errors.Is(err, registry.ErrUncertain):
		l.Kept = "the registry did not say whether it is gone; look again"
	default:
		return err
	}
	return nil
}

// patience is three intervals of reconciliation.
func (a *Admin) patience(ctx context.Context, j layout.Job) (time.Duration, error) {
	const usual = 10 * time.Minute
	nodes, err := a.store.Get(ctx, j.Config())
	if err != nil {
		return 0, err
	}
	c, _ := j.UnmarshalConfig(nodes[0].Value) // of one that cannot be read it is zero
	return 3 * cmp.Or(c.ReconcileInterval(), usual), nil
}

// deleteRecords deletes the state of a job that is gone. The directory of lives goes
// first: it refuses while somebody is registered, and nobody registers without it. Names
// of ledgers are of one registration each. What has a fixed name goes at the end, in one
// commit, which refuses if somebody has made the directory again.
func (a *Admin) deleteRecords(ctx context.Context, j layout.Job) error {
	for _, dir := range []string{j.Lives(), j.Notices()} {
		_, err := a.store.Commit(ctx, registry.Delete(dir, registry.AnyVersion))
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	ledgers, err := children(ctx, a.store, j.Ledgers())
	if err != nil {
		return err
	}
	for _, id := range ledgers {
		all, err := a.withChildren(ctx, j.Ledger(id))
		if err != nil {
			return err
		}
		if err := a.commit(ctx, deletes(all[:len(all)-1])); err != nil {
			return err
		}
	}
	if err := a.clearBelow(ctx, j.Runs()); err != nil { // with what became of them
		return err
	}
	for _, dir := range []string{j.Ledgers(), j.Offsets()} { // which may be many
		all, err := a.withChildren(ctx, dir)
		if err != nil {
			return err
		}
		if err := a.commit(ctx, deletes(all[:len(all)-1])); err != nil {
			return err
		}
	}
	var nodes []registry.Node
	for _, dir := range []string{j.InForce(), j.Ledgers(), j.OwnRoot() + "/rounds", j.Runs(), j.Offsets(), j.Clocks()} {
		more, err := a.withChildren(ctx, dir)
		if err != nil {
			return err
		}
		nodes = append(nodes, more...)
	}
	own, err := a.store.Get(ctx, j.OwnRoot())
	if err != nil {
		return err
	}
	ops := deletes(append(nodes, own...))
	if len(ops) == 0 {
		return nil
	}
	_, err = a.store.Commit(ctx, ops...)
	return err
}
