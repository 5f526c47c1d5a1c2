package latch_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
)

// A numbering makes a memory server look as if it numbered nodes when it
// makes them, as ZooKeeper does: what a form joins with is stored under a name
// of its own for each attempt, and shown under one that ends with the offset and its Created.
type numbering struct {
	settles  bool
	offset   registry.Revision // of the numbers
	attempts atomic.Int64

	mu            sync.Mutex
	shown, stored map[string]string // by stored, by shown path
}

var errRunOut = errors.New("the numbers have run out: delete the directory")

const attemptMark = "attempt" // in names as they are stored

func (n *numbering) show(node registry.Node) registry.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	prefix, _, found := strings.Cut(node.Path, attemptMark)
	if !found {
		return node
	}
	if node.Exists() {
		path := prefix + fmt.Sprintf("%010d", node.Created+n.offset)
		n.shown[node.Path], n.stored[path] = path, node.Path
	}
	if path, ok := n.shown[node.Path]; ok {
		node.Path = path
	}
	return node
}

func (n *numbering) store(path string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stored, ok := n.stored[path]; ok {
		return stored
	}
	return path
}

// A numbered session speaks to a server that numbers, and is the form of its
// locks as well.
type numbered struct {
	registry.Session
	numbers *numbering
	before  func(request string) // before each request that it is asked for; may be nil

	mu    sync.Mutex
	tasks sync.WaitGroup
	ended bool
	life  context.Context
	end   context.CancelFunc
}

func (n *numbering) session(ses registry.Session) *numbered {
	life, end := context.WithCancel(context.Background())
	s := &numbered{Session: ses, numbers: n, life: life, end: end}
	go func() {
		<-ses.Done()
		s.over()
	}()
	return s
}

func (s *numbered) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.end()
}

func (s *numbered) asked(request string) {
	if s.before != nil {
		s.before(request)
	}
}

func (s *numbered) spawn(fn func(context.Context)) {
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.tasks.Go(func() { fn(s.life) })
	}
	s.mu.Unlock()
	if ended {
		fn(s.life)
	}
}

func (s *numbered) Close(ctx context.Context) error {
	err := s.Session.Close(ctx)
	s.over()
	s.tasks.Wait()
	return err
}

func (s *numbered) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, false, s.spawn, latch.WithForm(s))
}

func (s *numbered) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, true, s.spawn, latch.WithForm(s))
}

func (s *numbered) Join(ctx context.Context, prefix string, value []byte) (string, error) {
	s.asked("join")
	path := prefix + attemptMark + strconv.FormatInt(s.numbers.attempts.Add(1), 10)
	rev, err := s.Session.Commit(ctx, registry.CreateEphemeral(path, value))
	if err != nil {
		return "", err
	}
	return s.numbers.show(registry.Node{Path: path, Created: rev}).Path, nil
}

func (s *numbered) Place(name string) (int64, bool, error) {
	i := strings.LastIndex(name, "latch-")
	n, err := strconv.ParseInt(name[i+len("latch-"):], 10, 64)
	isNumber := i >= 0 && err == nil
	switch {
	case !isNumber:
		return 0, false, nil
	case n < 0 || n >= math.MaxInt32:
		return 0, true, errRunOut
	}
	return n, true, nil
}

func (s *numbered) Settle(ctx context.Context) bool { return s.numbers.settles && ctx.Err() == nil }

func (s *numbered) Sync(ctx context.Context) error {
	s.asked("sync")
	return s.Session.Sync(ctx)
}

func (s *numbered) Children(ctx context.Context, path string) ([]string, error) {
	s.asked("children")
	names, err := s.Session.Children(ctx, s.numbers.store(path))
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = strings.TrimSuffix(path, "/") + "/" + name
	}
	nodes, err := s.Session.Get(ctx, paths...)
	names = nil
	for _, node := range nodes {
		if node.Exists() {
			path := s.numbers.show(node).Path
			names = append(names, path[strings.LastIndex(path, "/")+1:])
		}
	}
	return names, err
}

func (s *numbered) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	s.asked("get")
	stored := make([]string, len(paths))
	for i, path := range paths {
		stored[i] = s.numbers.store(path)
	}
	nodes, err := s.Session.Get(ctx, stored...)
	for i := range nodes {
		nodes[i].Path = paths[i]
	}
	return nodes, err
}

func (s *numbered) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	s.asked("commit")
	for i := range ops {
		ops[i].Path = s.numbers.store(ops[i].Path)
	}
	return s.Session.Commit(ctx, ops...)
}

func (s *numbered) Watch(ctx context.Context) (registry.Watcher, error) {
	w, err := s.Session.Watch(ctx)
	return &numberedWatcher{w, s}, err
}

var _ latch.EndWatcher = (*numberedWatcher)(nil)

type numberedWatcher struct {
	registry.Watcher
	session *numbered
}

func (w *numberedWatcher) Add(path string, scope registry.Scope) error {
	w.session.asked("watch " + scope.String())
	return w.Watcher.Add(w.session.numbers.store(path), scope)
}

func (w *numberedWatcher) AddUntilGone(path string) error {
	w.session.asked("watch until gone")
	return w.Watcher.Add(w.session.numbers.store(path), registry.Self)
}

func (w *numberedWatcher) Remove(path string, scope registry.Scope) {
	w.Watcher.Remove(w.session.numbers.store(path), scope)
}

func (w *numberedWatcher) Next(ctx context.Context) ([]registry.Event, error) {
	events, err := w.Watcher.Next(ctx)
	for i, ev := range events {
		events[i].Node = w.session.numbers.show(ev.Node)
		if ev.Scope == registry.Self {
			events[i].Path = w.session.numbers.show(registry.Node{Path: ev.Path}).Path
		}
	}
	return events, err
}
