package zookeeper

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// A fakeLink is a service and the way to it: a tree with watches that fire once,
// events in the order of the changes, and answers that are handled late and in any
// order, as those of a real connection are.
type fakeLink struct {
	*lifetime.Lifetime

	notify func(zk.Event)
	late   func(what string, served bool) time.Duration // before a read is served, and before its answer is handled
	fails  func(path string) error                      // what a read of path answers instead

	mu       sync.Mutex
	zxid     int64
	nodes    map[string]*fakeNode
	data     map[string]bool // watches of Get and Exists
	children map[string]bool
	reading  map[string]int // reads under way that arm, by kind and path
	overlap  string         // the first that were two
	disarmed []string
	reads    int
}

type fakeNode struct {
	value []byte
	stat  zk.Stat
}

func newFake() *fakeLink {
	return &fakeLink{
		zxid: 100, nodes: map[string]*fakeNode{"/": {}}, data: map[string]bool{}, children: map[string]bool{},
		reading: map[string]int{}, Lifetime: lifetime.New("fake"),
		late: func(string, bool) time.Duration { return 0 }, fails: func(string) error { return nil },
	}
}

// live makes a session on a fake.
func live(f *fakeLink, cfg Config) *session {
	s := newSession(newRegistry(cfg))
	f.notify = s.tracker.notify
	s.begin(f.Lifetime, f)
	return s
}

func (f *fakeLink) Number() int64 { return 7 }

func (f *fakeLink) Close(context.Context) error {
	f.Lose(lifetime.ErrClosed)
	f.Wait()
	return nil
}

func (f *fakeLink) Get(ctx context.Context, path string, watch bool) (value []byte, stat *zk.Stat, err error) {
	err = f.read(ctx, "data "+path, watch, func() error {
		n := f.nodes[path]
		if n == nil {
			return zk.ErrNoNode
		}
		f.data[path] = f.data[path] || watch
		copied := n.stat
		value, stat = slices.Clone(n.value), &copied
		return nil
	})
	return value, stat, err
}

// GetAll is that of a server before 3.6.
func (f *fakeLink) GetAll(context.Context, []string) ([]link.Found, error) { return nil, nil }

func (f *fakeLink) Exists(ctx context.Context, path string, watch bool) (stat *zk.Stat, err error) {
	err = f.read(ctx, "data "+path, watch, func() error {
		f.data[path] = f.data[path] || watch
		if n := f.nodes[path]; n != nil {
			copied := n.stat
			stat = &copied
		}
		return nil
	})
	return stat, err
}

func (f *fakeLink) Children(ctx context.Context, path string, watch bool) (names []string, err error) {
	err = f.read(ctx, "list "+path, watch, func() error {
		n := f.nodes[path]
		if n == nil {
			return zk.ErrNoNode
		}
		f.children[path] = f.children[path] || watch
		for p := range f.nodes {
			if name, below := strings.CutPrefix(p, strings.TrimSuffix(path, "/")+"/"); below && name != "" && !strings.Contains(name, "/") {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

// read lets time pass before the service sees the request, and after it.
func (f *fakeLink) read(ctx context.Context, what string, watch bool, serve func() error) error {
	if err := f.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	f.reads++
	if watch {
		if f.reading[what]++; f.reading[what] > 1 && f.overlap == "" {
			f.overlap = what
		}
	}
	f.mu.Unlock()
	f.wait(ctx, f.late(what, false))
	_, path, _ := strings.Cut(what, " ")
	f.mu.Lock()
	err := f.fails(path)
	if err == nil {
		err = serve()
	}
	f.mu.Unlock()
	f.wait(ctx, f.late(what, true))
	f.mu.Lock()
	defer f.mu.Unlock()
	if watch {
		f.reading[what]--
	}
	if lost := f.Err(); lost != nil {
		return lost
	}
	return err
}

func (f *fakeLink) wait(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (f *fakeLink) Disarm(path string, children bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := "data "
	if children {
		kind = "list "
	}
	if f.reading[kind+path] > 0 && f.overlap == "" {
		f.overlap = "disarm while reading " + kind + path
	}
	f.disarmed = append(f.disarmed, kind+path)
}

func (f *fakeLink) Multi(context.Context, ...any) (link.Written, error) {
	return link.Written{}, registry.ErrUnavailable
}

func (f *fakeLink) MultiAlone(context.Context, ...any) (link.Written, <-chan struct{}, error) {
	return link.Written{}, nil, registry.ErrUnavailable
}

// put creates or sets a node whose parent exists, and reports whether it could.
func (f *fakeLink) put(path, value string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := path[:max(strings.LastIndexByte(path, '/'), 1)]
	if f.nodes[dir] == nil {
		return false
	}
	f.zxid++
	n, event := f.nodes[path], zk.EventNodeDataChanged
	if n == nil {
		n, event = &fakeNode{stat: zk.Stat{Czxid: f.zxid, Version: -1}}, zk.EventNodeCreated
		f.nodes[path] = n
	}
	n.value, n.stat.Mzxid = []byte(value), f.zxid
	n.stat.Version++
	f.fire(f.data, event, path)
	if event == zk.EventNodeCreated {
		f.fire(f.children, zk.EventNodeChildrenChanged, dir)
	}
	return true
}

// remove deletes a node and what is below it.
func (f *fakeLink) remove(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for p := range f.nodes {
		if p == path || strings.HasPrefix(p, path+"/") {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, p := range all {
		f.zxid++
		delete(f.nodes, p)
		watched := f.data[p] || f.children[p]
		delete(f.data, p)
		delete(f.children, p)
		if watched {
			f.notify(zk.Event{Type: zk.EventNodeDeleted, Path: p})
		}
		f.fire(f.children, zk.EventNodeChildrenChanged, p[:max(strings.LastIndexByte(p, '/'), 1)])
	}
}

// fire uses a watch up. f.mu is held: no answer comes between.
func (f *fakeLink) fire(watches map[string]bool, event zk.EventType, path string) {
	if watches[path] {
		delete(watches, path)
		f.notify(zk.Event{Type: event, Path: path})
	}
}

// upTo returns random durations below d.
func upTo(random *rand.Rand, d time.Duration) func() time.Duration {
	var mu sync.Mutex
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(d)))
	}
}
