package leading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/core/internal/workqueue"
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
	err = errors.Join(err, mended)
	if ctx.Err() != nil || errors.Is(err, registry.ErrSessionLost) {
		return
	}
	l.mu.Lock()
	tell := false
	if err == nil {
		l.retidy = nil
	} else {
		l.untidy = l.untidy || untidy
		if l.retidy == nil {
			l.retidy = &workqueue.Retry{}
		}
		tell = l.retidy.Failed(l.tidy, err)
	}
	l.mu.Unlock()
	if tell {
		l.warn("the leader cannot remove what is left over, or set the nodes of items right; trying again", err)
	}
}

// tidyPause is the pause before it tidies again where others were first, more than once in a row: nobody waits for it.
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
	var hindered error // by one of them, while the others went
	for _, name := range names {
		n, ok := layout.ParseItem(name)
		if !ok || n < total || l.isLeft(job.Item(n)) {
			continue
		}
		of, err := l.item(ctx, n)
		if err != nil {
			return err
		}
		if tidyGuards+len(ops)+len(of) > fits {
			hinders, err := l.sweep(ctx, base, ops, l.itemOf)
			if err != nil {
				return err
			}
			ops, hindered = nil, cmp.Or(hindered, hinders)
		}
		ops = append(ops, of...)
	}
	hinders, err := l.sweep(ctx, base, ops, l.itemOf)
	return cmp.Or(err, hindered, hinders)
}

// itemOf is the node of the item at or below which a path is.
func (l *Leader) itemOf(path string) string {
	dir := l.cfg.Job.Sharding() + "/"
	name, _, _ := strings.Cut(strings.TrimPrefix(path, dir), "/")
	return dir + name
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
	if err != nil {
		return err
	}
	hinders, err := l.sweep(ctx, base, ops, func(path string) string { return path })
	if err = cmp.Or(err, hinders); err != nil {
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
		if n.Exists() && !n.Ephemeral && !l.isLeft(n.Path) {
			ops = append(ops, registry.Delete(n.Path, n.Version))
		}
	}
	return ops, nil
}

// settledTotal is the total of an epoch of which every item is assigned, so that nothing
// of the one before is left; else 0.
func settledTotal(base registry.Node) int {
	b, err := baseOf(base.Value)
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

// sweep commits deletes, in commits that fit, under this leader's own term and the epoch by which they are
// due. Another leader, or another epoch, tidies itself. What hangs below one of them goes first, with all that is below
// what of says: it is to be looked at again then, as hinders says. What cannot be deleted is left.
func (l *Leader) sweep(ctx context.Context, base registry.Node, ops []registry.Op, of func(path string) string) (hinders, err error) {
	refusedAt, pause := registry.Version(-1), firstPause
	for len(ops) > 0 {
		nodes, err := l.cfg.Session.Get(ctx, l.cfg.Job.Term())
		if err != nil {
			return hinders, err
		}
		term := nodes[0]
		if !term.Owned || layout.UnmarshalTerm(term.Value).Leader != l.cfg.ID {
			return hinders, nil
		}
		if term.Version == refusedAt { // it is shown as it was: whoever is connected to such a server can but wait
			if !settle.Pause(ctx, pause) {
				return hinders, ctx.Err()
			}
			pause = min(2*pause, tidyPause)
		}
		guard := []registry.Op{l.life(), registry.Check(term.Path, term.Version), registry.Check(base.Path, base.Version)}
		some := ops[:min(len(ops), l.cfg.Session.Limits().MaxOps-len(guard))]
		_, err = l.cfg.Session.Commit(ctx, slices.Concat(guard, some)...)
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case err == nil:
			ops = ops[len(some):]
		case refused && failed.Index == 1: // a commit of this leader came first, or its term is over
			refusedAt = term.Version
		case refused && failed.Index < len(guard):
			return hinders, nil
		case errors.Is(err, registry.ErrNotEmpty), refused && errors.Is(err, registry.ErrDenied):
			at := of(failed.Op.Path)
			if err := l.clearAway(ctx, guard, at, err); err != nil {
				return hinders, err
			}
			if !l.isLeft(at) {
				hinders = err
			}
			ops = slices.DeleteFunc(slices.Clone(ops), func(op registry.Op) bool { return of(op.Path) == at })
		default:
			return hinders, err
		}
	}
	return hinders, nil
}

// firstPause is the pause before a request is made again that was refused by what is shown as it was before.
const firstPause = 10 * time.Millisecond

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
		err = l.mendSome(ctx, guard, ops[:n]...)
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
	if !errors.Is(err, errOvertaken) {
		l.overtaken = false
		return err
	}
	if l.overtaken && !settle.Pause(ctx, tidyPause) {
		return nil
	}
	l.overtaken = true
	l.Look()
	return nil
}

// errOvertaken: a commit of this leader came first, or its term, or its epoch, is over.
var errOvertaken = errors.New("the leader has written meanwhile")

// mendSome commits operations on items' nodes, and on what is made of them. What was deleted above them is made again.
// A node that goes on being in the way is left.
func (l *Leader) mendSome(ctx context.Context, guard []registry.Op, ops ...registry.Op) error {
	ensured := false
	for {
		_, err := l.cfg.Session.Commit(ctx, slices.Concat(guard, ops)...)
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case !refused:
			return err
		case failed.Index < len(guard) && !errors.Is(err, registry.ErrDenied):
			return fmt.Errorf("%w: %w", errOvertaken, err)
		case failed.Index < len(guard):
			return err
		case errors.Is(err, registry.ErrNoParent) && !ensured:
			if made := registry.EnsurePath(ctx, l.cfg.Session, path.Dir(failed.Op.Path)); made != nil {
				return errors.Join(err, made)
			}
			ensured = true
			continue
		case errors.Is(err, registry.ErrNotEmpty):
			return errors.Join(err, l.clearAway(ctx, guard, failed.Op.Path, err))
		case errors.Is(err, registry.ErrEphemeralParent):
			err = errors.Join(err, l.erase(ctx, guard, []string{path.Dir(failed.Op.Path)}))
		}
		l.hinders(failed.Op.Path, err, false)
		return err
	}
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
		if n.Exists() && !n.Ephemeral && !l.isLeft(n.Path) {
			missed = append(missed, n)
		}
	}
	var missing []int
	for i, n := range nodes[:len(items)] {
		switch owner := owners[items[i]]; {
		case l.isLeft(n.Path):
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
