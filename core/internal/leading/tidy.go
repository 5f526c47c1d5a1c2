package leading

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// tidyUp removes the nodes of items that the total does not have any more, and those of
// ElasticJob's failovers once that is switched off, and mends those that say who owns an item.
// It runs on the tidy task, in commits that a former leader, or a leader of another epoch,
// cannot make: each checks the life, the term and the base.
func (l *Leader) tidyUp() {
	ctx := l.enter()
	defer l.leave()
	l.mu.Lock()
	leads := l.node.Owned && l.able && string(l.node.Value) == l.cfg.ID
	untidy := l.untidy && leads && l.base.Path != "" // else lead pokes once it knows what is left over
	if untidy {
		l.untidy = false
	}
	l.mu.Unlock()
	if !leads || ctx.Err() != nil {
		return
	}
	var err error
	if untidy {
		err = errors.Join(l.tidyItems(ctx), l.tidyFailover(ctx))
	}
	mended := l.mendOwners(ctx) // what it could not do is still noted
	if err := errors.Join(err, mended); err != nil && ctx.Err() == nil && !errors.Is(err, registry.ErrSessionLost) {
		l.mu.Lock()
		l.untidy = l.untidy || untidy
		l.mu.Unlock()
		if settle.Pause(ctx, tidyPause) {
			l.tidy.Poke()
		}
	}
}

// tidyPause is the pause after a failure: nobody waits for it.
const tidyPause = 2 * time.Second

func (l *Leader) tidyItems(ctx context.Context) error {
	job := l.cfg.Job
	l.mu.Lock()
	base := l.base
	l.mu.Unlock()
	total := settledTotal(base)
	if total == 0 {
		return nil // the end of the epoch's assignment asks again
	}
	names, err := l.cfg.Session.Names(ctx, job.Sharding())
	if err != nil {
		return err
	}
	fits := l.cfg.Session.Limits().MaxOps
	var ops []registry.Op
	for _, name := range names {
		n, ok := layout.ParseItem(name)
		if !ok || n < total {
			continue
		}
		of, err := l.item(ctx, n)
		if err != nil {
			return err
		}
		if tidyGuards+len(ops)+len(of) > fits {
			if err := l.sweep(ctx, base, ops); err != nil {
				return err
			}
			ops = nil
		}
		if tidyGuards+len(of) <= fits {
			ops = append(ops, of...)
		}
	}
	return l.sweep(ctx, base, ops)
}

// tidyFailover removes the queue of ElasticJob's failovers, and what says of items that they
// run again, but for what stands in a session: that goes with it.
func (l *Leader) tidyFailover(ctx context.Context) error {
	l.mu.Lock()
	off, base := l.off, l.base
	l.mu.Unlock()
	if !off || l.cfg.Host.Facts().Failover || !base.Exists() {
		return nil
	}
	ops, err := l.failoverNodes(ctx)
	for room := l.cfg.Session.Limits().MaxOps - tidyGuards; err == nil && len(ops) > 0; {
		some := ops[:min(room, len(ops))]
		ops, err = ops[len(some):], l.sweep(ctx, base, some)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.off = false // whoever leads in another epoch, or term, leaves them to a reconciliation
	l.mu.Unlock()
	return nil
}

// failoverNodes returns what deletes ElasticJob's nodes of failovers.
func (l *Leader) failoverNodes(ctx context.Context) (ops []registry.Op, err error) {
	job := l.cfg.Job
	var paths []string
	names, err := l.cfg.Session.Names(ctx, job.FailoverItems())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		paths = append(paths, job.FailoverItems()+"/"+name)
	}
	names, err = l.cfg.Session.Names(ctx, job.Sharding())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if n, ok := layout.ParseItem(name); ok {
			paths = append(paths, job.Failover(n), job.Failovering(n))
		}
	}
	nodes, err := l.cfg.Session.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if n.Exists() && !n.Ephemeral {
			ops = append(ops, registry.Delete(n.Path, n.Version))
		}
	}
	return ops, nil
}

// settledTotal is the total of an epoch of which every item is assigned, so that nothing
// of the one before is left; else 0.
func settledTotal(base registry.Node) int {
	b, err := layout.UnmarshalBase(base.Value)
	if !base.Exists() || err != nil || !b.Assigned {
		return 0
	}
	return b.To
}

// item returns what deletes an item's node and its children.
func (l *Leader) item(ctx context.Context, n int) ([]registry.Op, error) {
	path := l.cfg.Job.Item(n)
	names, err := l.cfg.Session.Children(ctx, path)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ops := make([]registry.Op, 0, len(names)+1)
	for _, name := range names {
		ops = append(ops, registry.Delete(path+"/"+name, registry.AnyVersion))
	}
	return append(ops, registry.Delete(path, registry.AnyVersion)), nil
}

// tidyGuards are the checks of every commit that deletes: life, term and base.
const tidyGuards = 3

// sweep commits deletes, under this leader's own term and the epoch by which they are
// due. Another leader, or another epoch, tidies itself.
func (l *Leader) sweep(ctx context.Context, base registry.Node, ops []registry.Op) error {
	for len(ops) > 0 {
		nodes, err := l.cfg.Session.Get(ctx, l.cfg.Job.Term())
		if err != nil {
			return err
		}
		term := nodes[0]
		if !term.Owned || layout.UnmarshalTerm(term.Value).Leader != l.cfg.ID {
			return nil
		}
		guard := []registry.Op{l.life(), registry.Check(term.Path, term.Version), registry.Check(base.Path, base.Version)}
		_, err = l.cfg.Session.Commit(ctx, append(guard, ops...)...)
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case refused && failed.Index == 1: // a commit of this leader came first, or its term is over
			continue
		case refused && failed.Index < tidyGuards:
			return nil
		}
		return err
	}
	return nil
}

// mendOwners makes the items' instance nodes say what the ledgers say: ElasticJob's tools
// read them, and somebody deleted or overwrote one, or an instance of ElasticJob led. It goes
// by the last view; a commit of this leader since makes it look again first.
func (l *Leader) mendOwners(ctx context.Context) error {
	l.mu.Lock()
	seen := l.seen
	due := l.mend && seen != nil && settledTotal(seen.base) > 0
	if due {
		l.mend = false
	}
	look := l.mend && seen == nil && l.follows && !l.look && !l.viewing
	l.mu.Unlock()
	if look {
		l.Look()
	}
	if !due {
		return nil // the next look asks again
	}
	ops, missed, err := l.wrongItems(ctx, seen)
	guard := []registry.Op{l.life(), registry.Check(seen.term.Path, seen.term.Version), registry.Check(seen.base.Path, seen.base.Version)}
	for most := l.cfg.Session.Limits().MaxOps - len(guard); err == nil && len(ops) > 0; {
		n := min(most, len(ops))
		_, err = l.cfg.Session.Commit(ctx, slices.Concat(guard, ops[:n])...)
		ops = ops[n:]
	}
	if err == nil {
		err = l.takeMisfires(ctx, guard, missed)
	}
	l.mu.Lock()
	switch {
	case err != nil:
		l.mend = true
	case l.seen == seen && !l.mend:
		l.seen = nil
	}
	l.mu.Unlock()
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*registry.CommitError](err); refused && !errors.Is(err, registry.ErrDenied) {
		l.Look()
		return nil
	}
	return err
}

// wrongItems returns what corrects the items' instance nodes, and the misfire nodes that ElasticJob,
// or somebody by hand, has made. One in a session is a picture.
func (l *Leader) wrongItems(ctx context.Context, seen *snapshot) (ops []registry.Op, missed []registry.Node, err error) {
	owners := seen.owners()
	items := make([]int, 0, len(owners))
	for n := range owners {
		items = append(items, n)
	}
	slices.Sort(items)
	misfires := paths(all(settledTotal(seen.base)), l.cfg.Job.Misfire)
	nodes, err := l.cfg.Session.Get(ctx, append(paths(items, l.cfg.Job.ItemInstance), misfires...)...)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes[len(items):] {
		if n.Exists() && !n.Ephemeral {
			missed = append(missed, n)
		}
	}
	var missing []int
	for i, n := range nodes[:len(items)] {
		switch owner := owners[items[i]]; {
		case !n.Exists():
			missing = append(missing, items[i])
		case string(n.Value) != owner:
			ops = append(ops, registry.Set(n.Path, []byte(owner), n.Version))
		}
	}
	if len(missing) == 0 {
		return ops, missed, nil
	}
	nodes, err = l.cfg.Session.Get(ctx, paths(missing, l.cfg.Job.Item)...)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range nodes {
		if !n.Exists() {
			ops = append(ops, registry.Create(n.Path, nil))
		}
		ops = append(ops, registry.Create(l.cfg.Job.ItemInstance(missing[i]), []byte(owners[missing[i]])))
	}
	return ops, missed, nil
}

func paths(items []int, of func(int) string) []string {
	all := make([]string, len(items))
	for i, n := range items {
		all[i] = of(n)
	}
	return all
}

// owners is who owns each item of the epoch in force, as far as one does alone that is not
// dead, or to which it is bound.
func (s *snapshot) owners() map[int]string {
	owners, twice := map[int]string{}, map[int]bool{}
	for _, m := range s.Members {
		if m.Ledger == nil || s.Base == nil || m.Ledger.Epoch != s.Base.Epoch {
			continue
		}
		for n := range m.Ledger.All() {
			_, known := owners[n]
			twice[n] = twice[n] || known || (m.State == sharding.Dead && !s.Static)
			owners[n] = m.ID
		}
	}
	for n, is := range twice {
		if is {
			delete(owners, n)
		}
	}
	return owners
}
