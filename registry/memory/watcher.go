package memory

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
)

var errDenied = fmt.Errorf("memory: %w", registry.ErrDenied)

// targets finds who watches a node. Server.mu guards it, and all of watchers.
type targets map[pending.Key][]*target

// A target is one target of one watcher.
type target struct {
	pending.Target

	watcher *watcher
}

type watcher struct {
	*pending.Consumer[*target]

	session *session
	unasked []*target
}

func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.Alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{session: s}
	w.Consumer = pending.NewConsumer(s.Context(), "memory", &s.server.mu, pending.Hooks[*target]{
		New:   func(t pending.Target) *target { return &target{Target: t, watcher: w} },
		Start: w.start, Stop: s.server.targets.remove, Ready: w.ready,
	})
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.life.watchers[w] = struct{}{}
	return w, nil
}

// start asks for the target's state as soon as the server can be reached. The caller holds mu,
// as for all that follows but Next and Close.
func (w *watcher) start(t *target) {
	w.unasked = append(w.unasked, t)
	w.session.link.count(kindWatch)
	w.ready()
}

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	events, err := w.Consumer.Next(ctx)
	if err == nil {
		w.session.server.mu.Lock()
		defer w.session.server.mu.Unlock()
		_ = w.session.link.comeLate(ctx, w.Context.Done()) // they are here now
	}
	return events, err
}

func (w *watcher) Close() error {
	w.session.server.mu.Lock()
	delete(w.session.life.watchers, w)
	w.session.server.mu.Unlock()
	return w.Consumer.Close()
}

// detach frees what the server holds.
func (w *watcher) detach() {
	for _, targets := range w.Targets {
		for _, t := range targets {
			w.session.server.targets.remove(t)
		}
	}
	w.unasked = nil
}

// ready reports whether events can reach the client now, and the channel that tells when
// that may have changed because a fault has begun or ended.
func (w *watcher) ready() (ok bool, changed <-chan struct{}) {
	link, s := w.session.link, w.session.server
	if link.refuses() || link.losesAnswers() || *s.paused > 0 {
		return false, s.changed
	}
	if w.session.life.alive && !link.losesRequests() {
		asked := w.unasked
		w.unasked = nil
		for _, t := range asked {
			w.ask(t)
		}
	}
	return true, s.changed
}

// ask has the server tell the present state of a target, and what changes from now on.
func (w *watcher) ask(t *target) {
	tree := &w.session.server.tree
	switch {
	case t.Ended:
		return
	case tree.refuses(t.Path):
		w.Refuse(t, errDenied)
		return
	case t.Scope == registry.Self:
		w.put(t, t.Path)
	default:
		names, _ := tree.list(t.Path)
		for _, name := range names {
			w.put(t, path.Join(t.Path, name))
		}
	}
	targets := w.session.server.targets
	targets[t.Key()] = append(targets[t.Key()], t)
	w.Synced(&t.Target)
}

func (w *watcher) put(t *target, path string) {
	w.Put(&t.Target, w.session.server.tree.read(path, w.session.life))
}

func (t *target) changed(path string) {
	if link := t.watcher.session.link; link.losesAnswers() {
		link.hits++
	}
	t.watcher.put(t, path)
}

// recheck has the watchers of what is refused now find out.
func (ts targets) recheck(refused func(path string) bool) {
	for key, same := range ts {
		if refused(key.Path) {
			for _, t := range slices.Clone(same) {
				t.watcher.Refuse(t, errDenied)
			}
		}
	}
}

func (ts targets) remove(t *target) {
	key := t.Key()
	ts[key] = slices.DeleteFunc(ts[key], func(other *target) bool { return other == t })
	if len(ts[key]) == 0 {
		delete(ts, key)
	}
}

// notify tells who watches the changed nodes, in their order.
func (ts targets) notify(changes []change) {
	for _, c := range changes {
		for _, key := range []pending.Key{{Path: c.node.path}, {Path: path.Dir(c.node.path), Scope: registry.Children}} {
			for _, t := range ts[key] {
				t.changed(c.node.path)
			}
		}
	}
}
