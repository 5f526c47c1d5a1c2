package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

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
	var ended, strays []end
	b.ends = slices.DeleteFunc(b.ends, func(e end) bool {
		it, owned := led.Items[e.item]
		done := !owned || (!e.due.IsZero() && !it.Run.Equal(e.due)) || (e.due.IsZero() && !e.through.After(it.Through))
		switch {
		case done && !owned:
			strays = append(strays, e)
		case done:
			ended = append(ended, e)
		}
		return done
	})
	r.mu.Lock()
	r.led, r.version = led, node[0].Version
	r.mu.Unlock()
	r.confirm(begun, ended)
	r.forget(strays)
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
		if err != nil || !r.ours(nodes[i]) {
			r.refuse([]refusal{{g, Lost, "its running node is gone"}})
			r.undo(g)
			continue
		}
		r.tell([]begin{g}, nil, nodes[i].Created)
	}
}

// undo takes back the begin of a fire that was refused, and is recorded.
func (r *Recorder) undo(g begin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, end{item: g.item, due: g.due, through: g.due, erased: true, unsaid: true})
	r.overdue = true
}

// forget ends runs of items that the ledger does not hold: they ended before they
// were assigned anew, or somebody else took them out of it.
func (r *Recorder) forget(strays []end) {
	var items []int
	for _, e := range strays {
		if !e.due.IsZero() {
			items = append(items, e.item)
		}
	}
	r.erase(items)
	r.tell(nil, strays, 0)
}

// ours reports whether a running node was made by this life.
func (r *Recorder) ours(node registry.Node) bool {
	return node.Owned && string(node.Value) == r.Instance
}

// erase deletes the running nodes of items whose runs no ledger records any more,
// where they are still ours: they would be in the way of the items' next owners.
func (r *Recorder) erase(items []int) {
	if len(items) == 0 || r.Context.Err() != nil || r.Session.Err() != nil {
		return // the session takes them along
	}
	paths := make([]string, len(items))
	for i, n := range items {
		paths[i] = r.Running(n)
	}
	nodes, err := r.get(paths...)
	if err != nil {
		return
	}
	for _, n := range nodes {
		pause := retryFirst
		for r.ours(n) {
			ctx, cancel := context.WithTimeout(r.Context, patience)
			_, err := r.Session.Commit(ctx, registry.Delete(n.Path, registry.AnyVersion))
			cancel()
			if err == nil || !passing(err) || r.Context.Err() != nil || r.Session.Err() != nil {
				break
			}
			pause = r.wait(pause, err)
		}
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
		pause = r.wait(pause, err)
	}
}

func (r *Recorder) read(node registry.Node) (*ledger.Ledger, error) {
	if !node.Exists() || node.Created != r.created {
		return nil, fmt.Errorf("execution: %s: %w", r.Ledger, errForeign)
	}
	return ledger.Decode(node.Value)
}
