package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

// errForeign: the ledger is not the one that this life made.
var errForeign = errors.New("ledger was replaced or deleted from outside")

// A batch is what one commit records.
type batch struct {
	begins []begin
	ends   []end
}

// next takes what the next commit holds, or nil when nothing is ready.
func (r *Recorder) next() *batch {
	r.mu.Lock()
	var refused []refusal
	defer func() {
		r.mu.Unlock()
		r.refuse(refused)
	}()
	if r.gone != nil {
		for _, b := range r.begins {
			refused = append(refused, refusal{b, Lost, r.gone.Error()})
		}
		r.begins, r.ends = nil, nil
		return nil
	}
	r.begins = slices.DeleteFunc(r.begins, func(b begin) bool {
		why := r.objection(b)
		if why != 0 {
			refused = append(refused, refusal{b, why, ""})
		}
		return why != 0
	})
	r.ends = slices.DeleteFunc(r.ends, func(e end) bool {
		it, owned := r.led.Items[e.item]
		return e.due.IsZero() && (!owned || !e.through.After(it.Through)) // a begin has said so since
	})
	fits := r.Session.Limits().MaxOps - fixedOps
	if len(r.begins) == 0 && (len(r.ends) == 0 || (len(r.ends) < fits && r.lingers())) {
		return nil
	}
	return r.take(fits)
}

// objection is why the ledger, as it is known, does not let b begin.
func (r *Recorder) objection(b begin) Refusal {
	it, owned := r.led.Items[b.item]
	switch {
	case !owned || it.Leaving:
		return NotOwned
	case !b.due.After(it.Through) || it.Running():
		return Behind
	}
	return 0
}

// lingers reports whether ends shall wait for those of items that still run.
func (r *Recorder) lingers() bool {
	if r.overdue {
		return false
	}
	running := 0
	for _, it := range r.led.Items {
		if it.Running() {
			running++
		}
	}
	if running <= len(r.ends) {
		return false
	}
	if r.timer == nil {
		r.timer = time.AfterFunc(linger, func() {
			r.mu.Lock()
			r.overdue, r.timer = true, nil
			r.mu.Unlock()
			r.task.Poke()
		})
	}
	return true
}

// take moves at most n requests into a batch, begins first: they are due, and
// taken together a fire of S items needs no more than twice the commits that S fit.
// One item occurs once.
func (r *Recorder) take(n int) *batch {
	b := &batch{}
	seen := map[int]bool{}
	r.begins = slices.DeleteFunc(r.begins, func(g begin) bool {
		if seen[g.item] || len(seen) == n {
			return false
		}
		seen[g.item] = true
		b.begins = append(b.begins, g)
		return true
	})
	r.ends = slices.DeleteFunc(r.ends, func(e end) bool {
		if seen[e.item] || len(seen) == n {
			return false
		}
		seen[e.item] = true
		b.ends = append(b.ends, e)
		return true
	})
	if len(r.ends) == 0 {
		r.overdue = false
		if r.timer != nil {
			r.timer.Stop()
			r.timer = nil
		}
	}
	return b
}

// settle commits b until its outcome is known.
func (r *Recorder) settle(b *batch) {
	pause := retryFirst
	for len(b.begins)+len(b.ends) > 0 {
		led, ops := r.compose(b)
		ctx, cancel := context.WithTimeout(r.Context, patience)
		rev, err := r.Session.Commit(ctx, ops...)
		cancel()
		if err == nil {
			r.applied(b, led, rev)
			return
		}
		var failed *registry.CommitError
		switch {
		case errors.As(err, &failed):
			r.amend(b, failed)
		case r.Context.Err() != nil || errors.Is(err, registry.ErrSessionLost):
			r.end(err)
			r.putBack(b)
			return
		case errors.Is(err, registry.ErrInvalid):
			r.end(fmt.Errorf("execution: %w", err))
			r.putBack(b)
			return
		default: // unavailable or uncertain: once more, the version decides
			r.sleep(pause)
			pause = min(2*pause, retryLast)
		}
	}
}

// compose returns the ledger after b and the operations that make it so.
func (r *Recorder) compose(b *batch) (*ledger.Ledger, []registry.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	led := r.led.Clone()
	ops := make([]registry.Op, fixedOps, fixedOps+len(b.begins)+len(b.ends))
	for _, e := range b.ends {
		it := led.Items[e.item]
		if e.through.After(it.Through) || !e.due.IsZero() {
			it.Through = e.through
		}
		if !e.due.IsZero() {
			it.Run = time.Time{}
			if !e.erased {
				ops = append(ops, registry.Delete(r.Running(e.item), registry.AnyVersion))
			}
		}
		led.Items[e.item] = it
	}
	for _, g := range b.begins {
		it := led.Items[g.item]
		it.Through, it.Run = g.due, g.due
		led.Items[g.item] = it
		ops = append(ops, registry.CreateEphemeral(r.Running(g.item), []byte(r.Instance)))
	}
	ops[0] = registry.Check(r.Life, registry.AnyVersion)
	ops[1] = registry.Set(r.Ledger, led.Encode(), r.version)
	return led, ops
}

func (r *Recorder) applied(b *batch, led *ledger.Ledger, rev registry.Revision) {
	r.mu.Lock()
	r.led = led
	r.version++
	r.mu.Unlock()
	r.tell(b.begins, b.ends, rev)
}

func (r *Recorder) tell(begins []begin, ends []end, fence registry.Revision) {
	var ended []int
	for _, e := range ends {
		if !e.due.IsZero() {
			ended = append(ended, e.item)
		}
	}
	if len(ended) > 0 {
		r.owner.Ended(ended)
	}
	for len(begins) > 0 {
		due := begins[0].due
		var items []int
		begins = slices.DeleteFunc(slices.Clone(begins), func(g begin) bool {
			if g.due.Equal(due) {
				items = append(items, g.item)
				return true
			}
			return false
		})
		r.owner.Begun(due, items, fence)
	}
}

// amend takes out of b what made the commit fail, or learns the state anew.
func (r *Recorder) amend(b *batch, failed *registry.CommitError) {
	switch failed.Index {
	case 0:
		r.end(fmt.Errorf("execution: life is gone: %w", registry.ErrSessionLost))
		r.putBack(b)
	case 1:
		r.relearn(b)
	default:
		r.drop(b, failed)
	}
}

// drop removes the item whose running node was in the way.
func (r *Recorder) drop(b *batch, failed *registry.CommitError) {
	for i, e := range b.ends {
		if r.Running(e.item) == failed.Op.Path {
			b.ends[i].erased = true // deleted from outside; the end still counts
			return
		}
	}
	for i, g := range b.begins {
		if r.Running(g.item) != failed.Op.Path {
			continue
		}
		if errors.Is(failed, registry.ErrNoParent) && r.repair(failed.Op.Path) == nil {
			return
		}
		b.begins = slices.Delete(b.begins, i, i+1)
		r.refuse([]refusal{{g, Elsewhere, failed.Err.Error()}})
		return
	}
}

// repair makes the item's node again that somebody deleted.
func (r *Recorder) repair(running string) error {
	ctx, cancel := context.WithTimeout(r.Context, patience)
	defer cancel()
	return registry.EnsurePath(ctx, r.Session, parent(running))
}

// relearn reads the ledger after the version has moved on: nothing of b that is
// in flight can apply any more, and what did apply stands in it.
func (r *Recorder) relearn(b *batch) {
	node, err := r.get(r.Ledger)
	if err != nil {
		r.putBack(b)
		return
	}
	led, err := r.read(node[0])
	if err != nil {
		r.replace(node[0])
		r.putBack(b)
		return
	}
	var begun []begin
	b.begins = slices.DeleteFunc(b.begins, func(g begin) bool {
		done := led.Items[g.item].Run.Equal(g.due)
		if done {
			begun = append(begun, g)
		}
		return done
	})
	var ended []end
	b.ends = slices.DeleteFunc(b.ends, func(e end) bool {
		it, owned := led.Items[e.item]
		done := !owned || (!e.due.IsZero() && !it.Run.Equal(e.due)) || (e.due.IsZero() && !e.through.After(it.Through))
		if done {
			ended = append(ended, e)
		}
		return done
	})
	r.mu.Lock()
	r.led, r.version = led, node[0].Version
	r.mu.Unlock()
	r.confirm(begun, ended)
	r.owner.Changed(led.Clone())
	r.putBack(b)
}

// confirm tells of what an uncertain commit did. The fence is read from the
// running nodes: it is the revision of the commit that made them.
func (r *Recorder) confirm(begun []begin, ended []end) {
	r.tell(nil, ended, 0)
	if len(begun) == 0 {
		return
	}
	paths := make([]string, len(begun))
	for i, g := range begun {
		paths[i] = r.Running(g.item)
	}
	nodes, err := r.get(paths...)
	for i, g := range begun {
		if err != nil || !nodes[i].Exists() {
			r.refuse([]refusal{{g, Lost, "its running node is gone"}})
			continue
		}
		r.tell([]begin{g}, nil, nodes[i].Created)
	}
}

// get reads through until the life ends.
func (r *Recorder) get(paths ...string) ([]registry.Node, error) {
	pause := retryFirst
	for {
		nodes, err := r.Session.Get(r.Context, paths...)
		if err == nil {
			return nodes, nil
		}
		if r.Context.Err() != nil || errors.Is(err, registry.ErrSessionLost) {
			r.end(err)
			return nil, err
		}
		r.sleep(pause)
		pause = min(2*pause, retryLast)
	}
}

func (r *Recorder) read(node registry.Node) (*ledger.Ledger, error) {
	if !node.Exists() || node.Created != r.created {
		return nil, fmt.Errorf("execution: %s: %w", r.Ledger, errForeign)
	}
	return ledger.Decode(node.Value)
}

// end marks the life as over.
func (r *Recorder) end(err error) {
	r.mu.Lock()
	first := r.gone == nil
	if first {
		r.gone = err
	}
	r.mu.Unlock()
	if first {
		r.owner.Gone(err)
	}
}

// putBack returns what is left of b to the front of the queues and empties it.
func (r *Recorder) putBack(b *batch) {
	r.mu.Lock()
	r.begins = append(b.begins, r.begins...)
	r.ends = append(b.ends, r.ends...)
	r.overdue = r.overdue || len(b.ends) > 0
	r.mu.Unlock()
	b.begins, b.ends = nil, nil
}

type refusal struct {
	begin
	why    Refusal
	detail string
}

func (r *Recorder) refuse(all []refusal) {
	for _, x := range all {
		r.owner.Refused(x.due, []int{x.item}, x.why, x.detail)
	}
}

func (r *Recorder) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context.Done():
	}
}

func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "/"
}
