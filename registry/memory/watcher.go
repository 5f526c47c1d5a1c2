package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A targetKey is what can be watched.
type targetKey struct {
	path  string
	scope registry.Scope
}

// targets finds who watches a node. Server.mu guards it, and all of watchers.
type targets map[targetKey][]*target

// A target is one target of one watcher.
type target struct {
	targetKey
	watcher *watcher
	index   int                 // in targets
	initial bool                // its present state is not delivered yet
	removed bool                // its entries in the queue are void
	queued  map[string]struct{} // nodes with an entry in the queue
}

// An entry says that something of a target is to be delivered. What is read
// when it is: that is how changes coalesce.
type entry struct {
	target  *target
	path    string // "" is the initial state
	existed bool   // when it was delivered last
}

type watcher struct {
	session *session
	wake    chan struct{} // has a token when the queue grew
	closed  chan struct{}

	targets map[targetKey]*target
	queue   []entry
	void    int // entries of removed targets, at most
}

func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &watcher{
		session: s, wake: make(chan struct{}, 1), closed: make(chan struct{}),
		targets: map[targetKey]*target{},
	}
	s.watchers[w] = struct{}{}
	return w, nil
}

func (w *watcher) Add(path string, scope registry.Scope) error {
	if err := registry.ValidatePath(path); err != nil {
		return err
	}
	if scope != registry.Self && scope != registry.Children {
		return fmt.Errorf("%w: unknown scope %d", registry.ErrInvalid, scope)
	}
	w.session.server.mu.Lock()
	defer w.session.server.mu.Unlock()
	if err := w.failure(); err != nil {
		return err
	}
	key := targetKey{path, scope}
	if _, twice := w.targets[key]; twice {
		return nil
	}
	t := &target{targetKey: key, watcher: w, initial: true}
	w.targets[key] = t
	w.session.server.targets.add(t)
	w.session.link.count(kindWatch)
	w.push(entry{target: t})
	return nil
}

func (w *watcher) Remove(path string, scope registry.Scope) {
	w.session.server.mu.Lock()
	defer w.session.server.mu.Unlock()
	t, ok := w.targets[targetKey{path, scope}]
	if !ok {
		return
	}
	w.remove(t)
}

// remove ends a target; what it has in the queue becomes void.
func (w *watcher) remove(t *target) {
	delete(w.targets, t.targetKey)
	w.session.server.targets.remove(t)
	t.removed = true
	w.void += len(t.queued)
	if t.initial {
		w.void++
	}
	if w.void > len(w.queue)/2 {
		w.compact()
	}
}

// compact drops the entries of removed targets.
func (w *watcher) compact() {
	var live []entry
	for _, e := range w.queue {
		if !e.target.removed {
			live = append(live, e)
		}
	}
	w.queue, w.void = live, 0
}

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		events, changed, err := w.take(ctx)
		if err == nil && len(events) > 0 {
			w.comeLate(ctx)
		}
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-w.wake:
		case <-changed:
		case <-w.closed:
		case <-w.session.done:
		case <-ctx.Done():
		}
	}
}

// comeLate holds events back for as long as a fault says.
func (w *watcher) comeLate(ctx context.Context) {
	link := w.session.link
	link.server.mu.Lock()
	late := link.faults.delay
	if late > 0 {
		link.hits++
	}
	link.server.mu.Unlock()
	if late == 0 {
		return
	}
	timer := time.NewTimer(late)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.closed:
	case <-w.session.done:
	case <-ctx.Done():
	}
}

func (w *watcher) Close() error {
	w.session.server.mu.Lock()
	defer w.session.server.mu.Unlock()
	select {
	case <-w.closed:
	default:
		close(w.closed)
		w.detach()
	}
	return nil
}

// detach frees everything. The caller holds mu, as for all that follows.
func (w *watcher) detach() {
	for _, t := range w.targets {
		w.session.server.targets.remove(t)
	}
	clear(w.targets)
	w.queue = nil
	delete(w.session.watchers, w)
}

func (w *watcher) failure() error {
	select {
	case <-w.closed:
		return fmt.Errorf("memory: watcher: %w", registry.ErrClosed)
	default:
		return w.session.err
	}
}

// take returns the events that can reach the client now, and the channel that
// tells when more might because a fault has ended.
func (w *watcher) take(ctx context.Context) ([]registry.Event, <-chan struct{}, error) {
	s := w.session.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := w.failure(); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	link := w.session.link
	if link.refuses() || link.losesAnswers() || len(s.paused) > 0 {
		return nil, s.changed, nil
	}
	if len(s.tree.denied) > 0 {
		if err := w.dropDenied(); err != nil {
			return nil, nil, err
		}
	}
	var events []registry.Event
	var later []entry
	for _, e := range w.queue {
		switch {
		case e.target.removed:
		case e.path == "" && link.losesRequests():
			later = append(later, e)
		case e.path == "":
			events = w.present(events, e.target)
		default:
			events = w.change(events, e)
		}
	}
	w.queue, w.void = later, 0
	return events, s.changed, nil
}

// dropDenied removes one target that is refused and has something to deliver.
func (w *watcher) dropDenied() error {
	for _, e := range w.queue {
		if t := e.target; !t.removed && w.session.server.tree.refuses(t.path) {
			w.remove(t)
			w.push(entry{target: t}) // void; it lets the next call look again
			w.void++
			return fmt.Errorf("memory: watch %s: %w", t.path, registry.ErrDenied)
		}
	}
	return nil
}

// present appends the present state of t and Synced.
func (w *watcher) present(events []registry.Event, t *target) []registry.Event {
	t.initial = false
	tree := &w.session.server.tree
	if t.scope == registry.Self {
		events = append(events, w.event(t, t.path))
	} else if names, ok := tree.list(t.path); ok {
		for _, name := range names {
			events = append(events, w.event(t, join(t.path, name)))
		}
	}
	return append(events, registry.Event{Path: t.path, Scope: t.scope, Synced: true})
}

// change appends the state of e's node, unless it came and went unseen.
func (w *watcher) change(events []registry.Event, e entry) []registry.Event {
	delete(e.target.queued, e.path)
	if len(e.target.queued) == 0 {
		e.target.queued = nil
	}
	ev := w.event(e.target, e.path)
	if !ev.Node.Exists() && !e.existed {
		return events
	}
	return append(events, ev)
}

func (w *watcher) event(t *target, path string) registry.Event {
	return registry.Event{Path: t.path, Scope: t.scope, Node: w.session.server.tree.read(path, w.session.life)}
}

func (w *watcher) push(e entry) {
	w.queue = append(w.queue, e)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (t *target) changed(path string, existed bool) {
	link := t.watcher.session.link
	if link.losesAnswers() {
		link.hits++
	}
	if _, twice := t.queued[path]; twice || t.initial {
		return
	}
	if t.queued == nil {
		t.queued = make(map[string]struct{}, 1)
	}
	t.queued[path] = struct{}{}
	t.watcher.push(entry{target: t, path: path, existed: existed})
}

// recheck lets the watchers of what is refused now find out.
func (ts targets) recheck(refused func(path string) bool) {
	for key, same := range ts {
		if refused(key.path) {
			for _, t := range same {
				t.changed(key.path, true)
			}
		}
	}
}

func (ts targets) add(t *target) {
	t.index = len(ts[t.targetKey])
	ts[t.targetKey] = append(ts[t.targetKey], t)
}

func (ts targets) remove(t *target) {
	same := ts[t.targetKey]
	last := len(same) - 1
	same[t.index] = same[last]
	same[t.index].index = t.index
	same[last] = nil
	if ts[t.targetKey] = same[:last]; last == 0 {
		delete(ts, t.targetKey)
	}
}

// notify tells who watches the changed nodes, in their order.
func (ts targets) notify(changes []change) {
	for _, c := range changes {
		path := c.node.path
		for _, t := range ts[targetKey{path, registry.Self}] {
			t.changed(path, c.existed())
		}
		dir, _ := split(path)
		for _, t := range ts[targetKey{dir, registry.Children}] {
			t.changed(path, c.existed())
		}
	}
}
