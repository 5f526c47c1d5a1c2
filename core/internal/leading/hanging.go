package leading

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// mostTries is how often one node may be in the way until it is left: somebody may put something there again and again.
const mostTries = 5

// An obstacle is a node of ours that was in the way of the leader, by what a stranger has done to it.
type obstacle struct {
	tries int  // how often it was
	left  bool // it stays as it is
	told  bool
}

// Below lists what stands below a node, children before parents.
func Below(ctx context.Context, s interface {
	Names(ctx context.Context, path string) ([]string, error)
}, at string,
) (paths []string, err error) {
	names, err := s.Names(ctx, at)
	for _, name := range names {
		child := at + "/" + name
		below, err := Below(ctx, s, child)
		if err != nil {
			return nil, err
		}
		paths = append(append(paths, below...), child)
	}
	return paths, err
}

// isLeft reports whether a node stays as it is, since it cannot be removed, or set right. Everything goes on without.
func (l *Leader) isLeft(at string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.obstacles[at].left
}

// hinders notes that a node is in the way, and leaves it once it was too often, or at once.
func (l *Leader) hinders(at string, err error, atOnce bool) {
	l.mu.Lock()
	o := l.obstacles[at]
	o.tries++
	o.left = o.left || atOnce || o.tries > mostTries
	tell := o.left && !o.told
	for below, is := range l.obstacles {
		told := is.left && strings.HasPrefix(below, at+"/") // and so is this one, with it
		tell = tell && !told
	}
	o.told = o.told || o.left
	if l.obstacles == nil {
		l.obstacles = map[string]obstacle{}
	}
	l.obstacles[at] = o
	l.mu.Unlock()
	if tell {
		l.warn("the node "+at+" cannot be removed, or set right: it is left as it is, and everything else goes on", err)
	}
}

// forgive has what is left tried again. The caller holds mu.
func (l *Leader) forgive() {
	for at, o := range l.obstacles {
		if o.told {
			l.obstacles[at] = obstacle{told: true}
		} else {
			delete(l.obstacles, at)
		}
	}
}

// clearAway is called where a commit was refused since a node cannot be deleted. What somebody has made below it goes,
// in commits with guard: it is ours to clean. Where that is not to be done the node is left. The caller looks again.
func (l *Leader) clearAway(ctx context.Context, guard []registry.Op, at string, refusal error) error {
	denied := errors.Is(refusal, registry.ErrDenied)
	if l.hinders(at, refusal, denied); l.isLeft(at) {
		return nil
	}
	paths, whole, err := l.hanging(ctx, at)
	if err == nil {
		err = l.erase(ctx, slices.Concat(guard, whole), paths)
	}
	_, refused := errors.AsType[*registry.CommitError](err)
	switch {
	case errors.Is(err, registry.ErrDenied):
		l.hinders(at, err, true)
	case err != nil && !refused:
		return fmt.Errorf("core: what hangs below %s: %w", at, err)
	}
	return nil
}

// hanging lists what is to go from below a node, and what checks that it still is. Of a ledger the pages that it lists
// stay: they are its own.
func (l *Leader) hanging(ctx context.Context, at string) (paths []string, whole []registry.Op, err error) {
	if path.Dir(at) != l.cfg.Job.Ledgers() {
		paths, err = Below(ctx, l.cfg.Session, at)
		return paths, nil, err
	}
	nodes, err := l.cfg.Session.Get(ctx, at)
	if err != nil || !nodes[0].Exists() {
		return nil, nil, err
	}
	led, err := ledger.Open(nodes[0].Value)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // it has changed: no ledger is dropped that cannot be read
	}
	own := led.Wants()
	paths, err = Below(ctx, l.cfg.Session, at)
	paths = slices.DeleteFunc(paths, func(p string) bool {
		root, page, is := ledger.ParsePath(p)
		return is && root == at && slices.Contains(own, page)
	})
	return paths, []registry.Op{registry.Check(at, nodes[0].Version)}, err
}

// erase deletes nodes in the order given, in commits with guard.
func (l *Leader) erase(ctx context.Context, guard []registry.Op, paths []string) error {
	for some := range slices.Chunk(paths, l.cfg.Session.Limits().MaxOps-len(guard)) {
		ops := slices.Clone(guard)
		for _, p := range some {
			ops = append(ops, registry.Delete(p, registry.AnyVersion))
		}
		if _, err := l.cfg.Session.Commit(ctx, ops...); err != nil {
			return err
		}
	}
	return nil
}

// possible are the operations without those on nodes that are left: nothing is deleted that cannot be, and no picture is
// drawn that cannot be.
func (l *Leader) possible(ops []registry.Op) []registry.Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.obstacles) == 0 {
		return ops
	}
	return slices.DeleteFunc(slices.Clone(ops), func(op registry.Op) bool {
		return l.obstacles[op.Path].left && (op.Kind == registry.OpDelete || l.draws(op))
	})
}

// draws reports whether an operation is about a picture: nobody goes by what items' nodes say.
func (l *Leader) draws(op registry.Op) bool {
	return strings.HasPrefix(op.Path, l.cfg.Job.Sharding()+"/")
}
