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

// settle commits b until its outcome is known.
func (r *Recorder) settle(b *batch) {
	pause := retryFirst
	inFlight := false // an attempt whose outcome is not known may still apply
	for what := b; len(b.begins)+len(b.ends) > 0; {
		led, ops := r.compose(what)
		ctx, cancel := context.WithTimeout(r.Context, patience)
		rev, err := r.Session.Commit(ctx, ops...)
		cancel()
		var failed *registry.CommitError
		switch {
		case err == nil:
			r.applied(what, led, rev)
			if what == b {
				return
			}
			what, inFlight = b, false
		case errors.Is(err, registry.ErrDenied): // says nothing about the life or the ledger
			pause = r.wait(pause, err)
		case errors.As(err, &failed) && failed.Index >= fixedOps && inFlight:
			what = &batch{} // moves the version: nothing is given up while it may still apply
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
			inFlight = true
			pause = r.wait(pause, err)
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
		if !e.due.IsZero() && !e.unsaid {
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
		if errors.Is(failed, registry.ErrNoParent) && r.repair(failed.Op.Path) {
			return
		}
		b.begins = slices.Delete(b.begins, i, i+1)
		r.refuse([]refusal{{g, Elsewhere, failed.Err.Error()}})
		return
	}
}

// repair makes the item's node again that somebody deleted. It reports false when
// that will never do.
func (r *Recorder) repair(running string) bool {
	ctx, cancel := context.WithTimeout(r.Context, patience)
	defer cancel()
	err := registry.EnsurePath(ctx, r.Session, parent(running))
	if err != nil && passing(err) {
		r.sleep(retryFirst)
		return true
	}
	return err == nil
}

// passing reports whether a call may succeed when it is made again, or fails the
// next call with the end of the life.
func passing(err error) bool {
	return errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrUncertain) ||
		errors.Is(err, registry.ErrSessionLost) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
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

// wait pauses before what failed is tried again, and returns the next pause.
func (r *Recorder) wait(pause time.Duration, err error) time.Duration {
	if pause == retryLast {
		r.owner.Hindered(err)
	}
	r.sleep(pause)
	return min(2*pause, retryLast)
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
