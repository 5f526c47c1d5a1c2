package leading

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

const (
	// guardOps are the operations of every commit of the leader: its life and its term.
	guardOps = 2
	// patience is how many refusals in a row it takes until owners are asked for
	// stillness.
	patience = 2
	// hearing is how long they are given at least to hear of it, mostHearing at most. In between it is as long as the
	// commit took that asks them: the news reaches them about when that is answered. A commit that takes longer may be one
	// whose answer was lost: they heard of it long before, and are still for a quarter of a second at least.
	hearing, mostHearing = 20 * time.Millisecond, 100 * time.Millisecond
)

// write commits the plan step by step and returns what it moved, also when a later step
// fails.
func (l *Leader) write(ctx context.Context, p *sharding.Plan, s *snapshot, nodes map[string]registry.Node) (done event.Resharded, err error) {
	base := p.Epoch()
	done = event.Resharded{Job: l.cfg.Job.Name(), Epoch: base.Epoch, Total: base.To}
	if err := l.itemNodes(ctx, p, nodes); err != nil {
		return done, err
	}
	if l.floor.IsZero() && l.javaAssigned(p, nodes) {
		return done, errJava
	}
	w := writing{leader: l, s: s, nodes: nodes, done: &done}
	var next *sharding.Step // the last one is known as such when there is no other
	for step := range p.Steps(l.room(nodes)) {
		if next != nil {
			if err := w.commit(ctx, *next, false); err != nil {
				return done, err
			}
		}
		next = &step
	}
	if next == nil || done.Commits == 0 && next.OnlyDrops() && l.putsOff() {
		return done, l.clear(ctx, p, *s, nodes)
	}
	if err := w.commit(ctx, *next, true); err != nil {
		return done, err
	}
	return done, l.nudge(ctx, p, *s, nil)
}

// putsOff leaves empty ledgers of the dead to a later look where the leader before has died: in other jobs of its
// process items may wait for an owner. It reports whether it did.
func (l *Leader) putsOff() bool {
	l.mu.Lock()
	bereft := l.bereft
	l.mu.Unlock()
	if bereft {
		l.LookLater()
	}
	return bereft
}

// javaAssigned reports whether ElasticJob has given away an item that moves: it has led since
// a leader of ours wrote last, whoever saw it.
func (l *Leader) javaAssigned(p *sharding.Plan, nodes map[string]registry.Node) bool {
	return slices.ContainsFunc(p.Moves, func(mv sharding.Move) bool {
		return layout.IsJava(string(nodes[l.cfg.Job.ItemInstance(mv.Item)].Value))
	})
}

// A writing is a plan that is being committed. Its snapshot follows what was.
type writing struct {
	leader *Leader
	s      *snapshot
	nodes  map[string]registry.Node
	done   *event.Resharded
}

// commit commits one step. The flags that say to Java members that items are being
// assigned stand from the first of several to the last.
func (w *writing) commit(ctx context.Context, step sharding.Step, last bool) error {
	l, first := w.leader, w.done.Commits == 0
	still := l.refused >= patience && !last
	ops := l.stepOps(step, *w.s, w.nodes, still)
	for j, f := range l.flagPaths() {
		switch {
		case first && !last && !w.nodes[f].Exists() && j == 0:
			ops = append(ops, registry.CreateEphemeral(f, nil))
		case first && !last && !w.nodes[f].Exists():
			ops = append(ops, registry.Create(f, nil))
		case last && (w.nodes[f].Exists() || !first):
			ops = append(ops, registry.Delete(f, registry.AnyVersion))
		}
	}
	ops = append(ops, w.s.first...)
	if err := l.commit(ctx, *w.s, ops); err != nil {
		l.contended = nil
		for _, x := range step.Ledgers {
			l.contended = append(l.contended, x.ID)
		}
		if failed, is := errors.AsType[*registry.CommitError](err); is && strings.HasPrefix(failed.Op.Path, l.cfg.Job.Sharding()+"/") {
			clear(w.nodes) // somebody else has written there
		}
		l.assess(err)
		return err
	}
	for _, x := range step.Ledgers {
		if still {
			lazymap.Set(&l.stilled, x.ID, true)
		} else {
			delete(l.stilled, x.ID)
		}
	}
	for _, op := range w.s.first {
		l.cfg.Memory.wrote(&l.cfg.Memory.schedule, op.Value)
	}
	w.s.first = nil
	w.s.term.Version++
	if step.Base != nil {
		l.cfg.Memory.wroteBase(*step.Base)
		w.s.base.Version++
		w.s.base.Created = max(w.s.base.Created, 1)
	}
	w.done.Commits++
	for _, mv := range step.Moves {
		w.done.Moves = append(w.done.Moves, event.Move(mv))
		item, owner := l.cfg.Job.Item(mv.Item), l.cfg.Job.ItemInstance(mv.Item)
		w.nodes[item] = registry.Node{Path: item, Created: 1} // that they stand is all that counts
		w.nodes[owner] = registry.Node{Path: owner, Created: 1, Value: []byte(mv.To)}
	}
	l.tellCut(step)
	return nil
}

// A damage is what somebody did to pages of a ledger: true is one that stands.
type damage map[int]bool

// assess notes what a refused commit says of the pages of a ledger, so that the next plan mends them:
// somebody has made one, or deleted it.
func (l *Leader) assess(err error) {
	failed, refused := errors.AsType[*registry.CommitError](err)
	if !refused {
		return
	}
	root, page, is := ledger.ParsePath(failed.Op.Path)
	exists, missing := errors.Is(err, registry.ErrExists), errors.Is(err, registry.ErrNotFound)
	if is && path.Dir(root) == l.cfg.Job.Ledgers() && (exists || missing) {
		l.note(root, page, exists)
	}
}

func (l *Leader) note(root string, page int, stands bool) {
	if l.damaged == nil {
		l.damaged = map[string]damage{}
	}
	if l.damaged[root] == nil {
		l.damaged[root] = damage{}
	}
	l.damaged[root][page] = stands
}

// tellCut tells the notes that the ledgers of a step have no room for: no owner will.
func (l *Leader) tellCut(step sharding.Step) {
	for _, w := range step.Ledgers {
		for _, c := range w.Cut {
			l.tellNote(c)
		}
	}
}

func (l *Leader) tellNote(c sharding.Cut) {
	if c.Note.Instance == "" {
		l.cfg.Host.Emit(skipped(l.cfg.Job.Name(), c))
		return
	}
	l.cfg.Host.Emit(event.ItemCut{
		Job: l.cfg.Job.Name(), Epoch: c.Epoch, Item: c.Item, Due: c.Note.Due, Instance: c.Note.Instance,
		Reason: event.CutReason(c.Note.Reason),
	})
}

// tellNotes tells what stands in the ledgers of the dead, and goes with the plan's steps. What
// was told before a step was refused is not told again.
func (l *Leader) tellNotes(p *sharding.Plan) {
	for _, c := range p.Tell {
		if l.told[c] {
			continue
		}
		if l.told == nil {
			l.told = map[sharding.Cut]bool{}
		}
		l.told[c] = true
		l.tellNote(c)
	}
}

// skipped is what the note of an owner tells that has recorded skips, and may not have told
// them.
func skipped(job string, c sharding.Cut) event.Event {
	n := c.Note
	if !n.Into.IsZero() {
		return event.ItemsFolded{Job: job, Epoch: c.Epoch, Items: []int{c.Item}, First: n.First, Last: n.Due, Count: n.Count, Into: n.Into}
	}
	return event.ItemsSkipped{
		Job: job, Epoch: c.Epoch, Items: []int{c.Item}, First: n.First, Due: n.Due, Count: n.Count, Reason: event.SkipReason(n.Reason),
	}
}

// room is what a commit of the leader may take.
func (l *Leader) room(nodes map[string]registry.Node) sharding.Room {
	limits := l.cfg.Session.Limits()
	longest := 256 + 2*len(l.cfg.Job.Ledger(l.cfg.ID))
	const flags = 2
	return sharding.Room{
		Ops: limits.MaxOps - guardOps - flags - 1, Bytes: limits.MaxBytes - 8*longest, MaxValue: limits.MaxValue,
		LedgerOps: 2, LedgerBytes: 2*longest + mostTold, MoveBytes: 2 * longest, Single: l.refused > 0,
		MoveOps: func(n int) int {
			if nodes[l.cfg.Job.Item(n)].Exists() {
				return 1
			}
			return 2
		},
	}
}

// flagPaths are those of the nodes that say to Java members that items are being assigned.
func (l *Leader) flagPaths() []string { return []string{l.cfg.Job.Processing(), l.cfg.Job.Necessary()} }

// itemNodes adds to nodes what stands of the items that move, and the flags, unless that is known.
func (l *Leader) itemNodes(ctx context.Context, p *sharding.Plan, nodes map[string]registry.Node) error {
	l.mu.Lock()
	flagged := len(l.flags) > 0
	l.mu.Unlock()
	if len(p.Moves) == 0 && !flagged {
		return nil
	}
	paths := slices.DeleteFunc(l.flagPaths(), func(f string) bool { return nodes[f].Path != "" })
	for _, mv := range p.Moves {
		if item := l.cfg.Job.Item(mv.Item); nodes[item].Path == "" {
			paths = append(paths, item, l.cfg.Job.ItemInstance(mv.Item))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	found, err := l.cfg.Session.Get(ctx, paths...)
	if err != nil {
		return fmt.Errorf("core: items: %w", err)
	}
	for _, n := range found {
		nodes[n.Path] = n
	}
	return nil
}

// clear removes the flags that a leader before left behind, and tells the live whose
// ledgers are missing.
func (l *Leader) clear(ctx context.Context, p *sharding.Plan, s snapshot, nodes map[string]registry.Node) error {
	var ops []registry.Op
	for _, f := range l.flagPaths() {
		if nodes[f].Exists() && !l.isLeft(f) {
			ops = append(ops, registry.Delete(f, registry.AnyVersion))
		}
	}
	return l.nudge(ctx, p, s, ops)
}

// nudge tells the live whose ledgers are missing, those of which another node is, and those that were asked for stillness
// and not told since that it is over, in a commit with ops.
func (l *Leader) nudge(ctx context.Context, p *sharding.Plan, s snapshot, ops []registry.Op) error {
	ids := slices.AppendSeq(slices.Concat(p.Nudge, p.Astray), maps.Keys(l.stilled))
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if s.notified[id] && len(ops) < l.cfg.Session.Limits().MaxOps-guardOps {
			ops = append(ops, l.notice(id, layout.Notice{}))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return l.commit(ctx, s, ops)
}

// notice tells an instance that its ledger was written. It stamps the notice with the next commit.
func (l *Leader) notice(id string, n layout.Notice) registry.Op {
	n.Stamp = fmt.Sprintf("%s %d", l.cfg.ID, l.stamp+1)
	return registry.Set(l.cfg.Job.Notice(id), layout.MarshalNotice(n), registry.AnyVersion)
}

// mostTold is how long a ledger may be, in bytes, that is written to the notice too.
const mostTold = 512

// tell is the notice of a write. It holds the ledger where that is short, so that its owner has no need to read it.
func (l *Leader) tell(w sharding.Write, still bool) registry.Op {
	n := layout.Notice{Still: still}
	if len(w.Pages) == 0 && len(w.Value) <= mostTold {
		n.Version, n.Ledger = w.Version+1, string(w.Value)
	}
	return l.notice(w.ID, n)
}

func (l *Leader) stepOps(step sharding.Step, s snapshot, nodes map[string]registry.Node, still bool) []registry.Op {
	var ops []registry.Op
	if step.Base != nil {
		op := registry.Create(l.cfg.Job.Base(), layout.MarshalBase(*step.Base))
		if s.base.Exists() {
			op = registry.Set(op.Path, op.Value, s.base.Version)
		}
		ops = append(ops, op)
	}
	for _, w := range step.Ledgers {
		ops = append(ops, registry.Set(l.cfg.Job.Ledger(w.ID), w.Value, w.Version))
		if s.notified[w.ID] { // else it is dead, or will register anew
			ops = append(ops, l.tell(w, still))
		}
		for _, p := range w.Pages {
			ops = append(ops, pages.Op(l.cfg.Job.Ledger(w.ID), p))
		}
	}
	for _, w := range step.Drop {
		for _, p := range w.Pages {
			ops = append(ops, pages.Op(l.cfg.Job.Ledger(w.ID), p))
		}
		ops = append(ops, registry.Delete(l.cfg.Job.Ledger(w.ID), w.Version))
	}
	for _, mv := range step.Moves {
		item, owner := l.cfg.Job.Item(mv.Item), l.cfg.Job.ItemInstance(mv.Item)
		switch {
		case nodes[owner].Exists():
			ops = append(ops, registry.Set(owner, []byte(mv.To), registry.AnyVersion))
		case nodes[item].Exists():
			ops = append(ops, registry.Create(owner, []byte(mv.To)))
		default:
			ops = append(ops, registry.Create(item, nil), registry.Create(owner, []byte(mv.To)))
		}
	}
	return ops
}

// commit commits ops under this leader's term, until the outcome is known.
func (l *Leader) commit(ctx context.Context, s snapshot, ops []registry.Op) error {
	failpoint.Hit(failpoint.BeforeLead)
	l.stamp++
	term := layout.Term{Leader: l.cfg.ID, Commits: l.stamp}
	set := func(t layout.Term) registry.Op {
		return registry.Set(l.cfg.Job.Term(), layout.MarshalTerm(t), s.term.Version)
	}
	_, err := settle.Commit{
		Store: l.cfg.Session, Ops: append([]registry.Op{l.life(), set(term)}, l.possible(ops)...), Marker: 1,
		Shows: func(n registry.Node) bool { return n.Owned && layout.UnmarshalTerm(n.Value) == term },
		Neutral: func() []registry.Op {
			l.stamp++
			return []registry.Op{l.life(), set(layout.Term{Leader: l.cfg.ID, Commits: l.stamp})}
		},
	}.Run(ctx, l.hindered)
	failpoint.Hit(failpoint.AfterLead)
	failed, refused := errors.AsType[*registry.CommitError](err)
	guard := []registry.Op{l.life(), registry.Check(l.cfg.Job.Term(), s.term.Version)}
	switch {
	case refused && failed.Op.Kind == registry.OpDelete && (errors.Is(err, registry.ErrNotEmpty) || errors.Is(err, registry.ErrDenied)):
		if failed := l.clearAway(ctx, guard, failed.Op.Path, err); failed != nil {
			return errors.Join(err, failed)
		}
		return fmt.Errorf("%w: %w", errStale, err)
	case refused && errors.Is(err, registry.ErrDenied):
		return err
	case refused && errors.Is(err, registry.ErrEphemeralParent) && l.draws(failed.Op): // an item's node, made by a stranger
		if erased := l.erase(ctx, guard, []string{path.Dir(failed.Op.Path)}); erased != nil {
			l.hinders(failed.Op.Path, erased, errors.Is(erased, registry.ErrDenied))
		}
		return fmt.Errorf("%w: %w", errStale, err)
	case refused && failed.Index == 0:
		return fmt.Errorf("%w: %w", errNotLeader, err)
	case refused && errors.Is(err, registry.ErrNoParent): // a directory was deleted from outside
		if made := registry.EnsurePath(ctx, l.cfg.Session, path.Dir(failed.Op.Path)); made != nil {
			return errors.Join(err, made)
		}
		return fmt.Errorf("%w: %w", errStale, err)
	case refused:
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return err
}
