package execution

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// errForeign: the ledger is not the one that this life made.
var errForeign = errors.New("the ledger was replaced or deleted from outside")

// errBack: ZooKeeper's servers do that now and then (ZOOKEEPER-4643, 4646). What the ledger says
// to run here may have ended long ago, and would never end again: the registration is given up.
var errBack = errors.New("the ledger is older than what the registry has acknowledged")

// errContrary: ZooKeeper's servers do that too. Whoever is connected to the one that lacks a change is refused what
// goes by it, and reads nothing else, until another server answers.
var errContrary = errors.New("the registry refuses a commit since the ledger has changed, and shows it unchanged")

type refusal struct {
	change Change
	why    Refusal
	rec    ledger.Item
	detail string
}

// commit commits entries, until it is known whether they are applied.
func (r *Recorder) commit(ctx context.Context, entries []*entry) {
	b, refused, strays := r.compose(entries)
	for _, x := range refused {
		r.owner.Refused(x.change, x.why, x.rec, x.detail)
	}
	for _, e := range strays {
		r.stray(e)
	}
	if b.write == nil {
		return
	}
	if !r.fits(b) {
		r.split(b, fmt.Errorf("execution: %w: the ledger would outgrow a value", registry.ErrInvalid))
		return
	}
	failpoint.Hit(failpoint.BeforeRecord)
	c := settle.Commit{
		Store: r.cfg.Session, Ops: b.ops, Marker: 1,
		Shows:   func(n registry.Node) bool { return r.shows(n, b.seq) },
		Neutral: func() []registry.Op { return r.neutral(b) },
	}
	out, err := c.Run(ctx, r.owner.Hindered)
	r.mu.Lock()
	r.took = out.Took
	r.mu.Unlock()
	failpoint.Hit(failpoint.AfterRecord)
	failed, isRefused := errors.AsType[*registry.CommitError](err)
	denied := errors.Is(err, registry.ErrDenied)
	switch {
	case err == nil:
		r.applied(b, out)
		return
	case isRefused && b.wanted(failed.Index) != nil:
		r.revert(b)
		r.overrule(b, b.wanted(failed.Index), failed)
	case isRefused && (!denied || b.hides(failed)):
		r.revert(b)
		r.mu.Lock()
		r.stale = r.stale || out.Uncertain || failed.Index == 1
		r.refused = failed.Index == 1 && errors.Is(failed, registry.ErrVersion)
		r.mu.Unlock()
		if out.Uncertain && failed.Index == 1 { // an attempt may have been applied, and somebody has written since
			for _, e := range b.entries {
				e.unknown = b.seq
			}
		}
		r.amend(ctx, b, failed)
	case denied:
		r.revert(b)
		r.putBack(b.entries)
		r.owner.Hindered(err)
		settle.Pause(ctx, again)
	case errors.Is(err, registry.ErrInvalid):
		r.split(b, err)
	default: // the registration or the session ends: Resume will know
		r.revert(b)
		for _, e := range b.entries {
			e.unknown = b.seq
		}
		r.putBack(b.entries)
		settle.Pause(ctx, again) // ctx ends with either; an adapter may say so before its session does
	}
}

func (r *Recorder) shows(n registry.Node, seq int64) bool {
	l, err := ledger.Open(n.Value)
	return err == nil && n.Created == r.created && l.Seq() == seq
}

func (r *Recorder) applied(b *batch, out settle.Outcome) {
	r.mu.Lock()
	r.version++
	r.led.Written()
	r.atMost, r.alone = 0, 0
	r.learn(0) // no attempt before, which went by the same version, has been applied
	r.stale = r.stale || out.Uncertain
	r.rounds = r.rounds || b.signal > 0
	if r.told != nil {
		*r.told = b.rounds
	}
	changes := make([]Change, len(b.entries))
	for i, e := range b.entries {
		changes[i] = e.Change
		r.note(e)
	}
	r.mu.Unlock()
	if len(changes) > 0 {
		r.owner.Applied(changes, out.Revision)
	}
}

// amend takes what made the commit fail out of it, and has the rest tried again.
func (r *Recorder) amend(ctx context.Context, b *batch, failed *registry.CommitError) {
	switch failed.Index {
	case 0:
		r.putBack(b.entries)
		r.end(fmt.Errorf("execution: the life was deleted: %w", failed))
		return
	case 1: // the ledger is read first
		r.putBack(b.entries)
		return
	}
	if page, is := b.page(failed.Index); is {
		r.lacks(ctx, page, failed)
		r.putBack(b.entries)
		return
	}
	if failed.Index == b.signal {
		r.mend(ctx, failed)
		r.putBack(b.entries)
		return
	}
	e := b.entries[b.owner[failed.Index]]
	switch {
	case b.hides(failed):
		r.unhidden(e.Item(), failed)
	case e.Step() == BeginsAgain && !e.plain && !r.strict(), e.Step() == BeginsAgain && failed.Op.Path == r.cfg.Nodes.Failover(e.Item()):
		e.plain = true
	case errors.Is(failed, registry.ErrNoParent) && r.repair(ctx, failed.Op.Path):
	case errors.Is(failed, registry.ErrExists) && r.leftover(ctx, failed.Op.Path):
	default:
		rest := make([]*entry, 0, len(b.entries))
		for _, x := range b.entries {
			if x != e {
				rest = append(rest, x)
			}
		}
		b.entries = rest
		r.mu.Lock()
		rec, _ := r.led.Get(e.Item())
		r.mu.Unlock()
		r.owner.Refused(e.Change, Obstructed, rec, failed.Err.Error())
	}
	r.putBack(b.entries)
}

// overrule takes out of a batch what a further operation does not let happen.
func (r *Recorder) overrule(b *batch, f Further, failed error) {
	r.mu.Lock()
	again := f.Refused(failed)
	r.mu.Unlock()
	rest := make([]*entry, 0, len(b.entries))
	for _, e := range b.entries {
		if again || e.Further() != f {
			rest = append(rest, e)
			continue
		}
		r.mu.Lock()
		rec, _ := r.led.Get(e.Item())
		r.mu.Unlock()
		r.owner.Refused(e.Change, Overruled, rec, failed.Error())
	}
	r.putBack(rest)
}

// hides reports whether a refusal is of the removal of a picture.
func (b *batch) hides(failed *registry.CommitError) bool {
	return failed.Op.Kind == registry.OpDelete && failed.Index < b.pages && b.owner[failed.Index] >= 0
}

// unhidden takes into account that a node of an item which has ended cannot be removed: it was deleted from outside,
// something else stands there, or the registry does not let it go now, so that it is looked for later. The change counts
// all the same, and another node of the item may stand.
func (r *Recorder) unhidden(n int, failed *registry.CommitError) {
	if !errors.Is(failed, registry.ErrNotFound) {
		r.unshown(failed)
	}
	is, missed := hidden, failed.Op.Path == r.cfg.Nodes.Misfire(n)
	r.mu.Lock()
	if errors.Is(failed, registry.ErrDenied) || (!missed && r.show.runs[n].again) {
		is = maybe
	}
	r.mu.Unlock()
	r.mark(is, picture{n, missed})
}

// mend takes into account what a refusal says of the node that tells of ends.
func (r *Recorder) mend(ctx context.Context, failed *registry.CommitError) {
	exists, parentless := errors.Is(failed, registry.ErrExists), errors.Is(failed, registry.ErrNoParent)
	switch {
	case exists, errors.Is(failed, registry.ErrNotFound):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.rounds = exists
	case parentless && r.repair(ctx, failed.Op.Path):
	default: // nothing can stand there
		r.owner.Hindered(failed)
		settle.Pause(ctx, again)
	}
}

// leftover removes a running node that is in the way of a begin and no lock: one that
// this session has made itself, or a picture. It reports false when it is a lock, or cannot be removed.
func (r *Recorder) leftover(ctx context.Context, path string) bool {
	nodes, err := settle.Get(ctx, r.cfg.Session, r.owner.Hindered, path)
	if err != nil || !nodes[0].Exists() {
		return true
	}
	if !nodes[0].Owned && r.cfg.Locks(nodes[0].Value) {
		return false
	}
	_, err = r.remove(ctx, nodes[0])
	switch {
	case errors.Is(err, registry.ErrDenied):
		r.owner.Hindered(err)
		settle.Pause(ctx, again)
	case err != nil:
		return false
	}
	return true
}

// repair makes the parents of a node again that somebody deleted. It reports false when
// that will never do.
func (r *Recorder) repair(ctx context.Context, node string) bool {
	err := registry.EnsurePath(ctx, r.cfg.Session, path.Dir(node))
	if err == nil {
		return true
	}
	if errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrUncertain) ||
		errors.Is(err, registry.ErrDenied) {
		return settle.Pause(ctx, again)
	}
	return ctx.Err() != nil || errors.Is(err, registry.ErrSessionLost)
}

// fits reports whether the registry takes a commit of that size.
func (r *Recorder) fits(b *batch) bool {
	limits := r.cfg.Session.Limits()
	size := 0
	for _, op := range b.ops {
		size += len(op.Path) + len(op.Value)
	}
	return b.write.Longest() <= limits.MaxValue && size <= limits.MaxBytes && len(b.ops) <= limits.MaxOps
}

// split tries half of a batch that is too large. A single change that is waits until
// others have made the ledger smaller, and so do those of its item that follow it.
func (r *Recorder) split(b *batch, err error) {
	r.revert(b)
	if half := len(b.entries) / 2; half > 0 {
		r.putBack(b.entries)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.atMost = half
		return
	}
	if len(b.entries) == 0 { // it only mends
		r.owner.Hindered(err)
		settle.Pause(r.cfg.Context, again)
		return
	}
	r.mu.Lock()
	if f := b.entries[0].Further(); f != nil && b.entries[0].Step().over() {
		f.Refused(err) // what it writes is not to hinder an end
	}
	n := b.entries[0].Item()
	b.entries[0].large = true
	r.queue = append(b.entries, r.queue...)
	slices.SortStableFunc(r.queue, func(a, b *entry) int { return boolInt(a.Item() == n) - boolInt(b.Item() == n) })
	r.atMost = 0
	if r.alone++; r.alone >= len(r.queue) { // none fits
		r.alone, r.still = 0, time.Now().Add(again)
	}
	r.mu.Unlock()
	r.owner.Hindered(err)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
