package polled

import (
	"iter"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// peers are the registries of this process by Config.Data, where that is given.
var peers = struct {
	sync.Mutex
	of map[string]map[*client]struct{}
}{of: map[string]map[*client]struct{}{}}

func join(c *client) {
	if c.Data == "" {
		return
	}
	peers.Lock()
	defer peers.Unlock()
	if peers.of[c.Data] == nil {
		peers.of[c.Data] = map[*client]struct{}{}
	}
	peers.of[c.Data][c] = struct{}{}
}

func part(c *client) {
	peers.Lock()
	defer peers.Unlock()
	delete(peers.of[c.Data], c)
	if len(peers.of[c.Data]) == 0 {
		delete(peers.of, c.Data)
	}
}

// audience returns the watchers of the client and its peers.
func (c *client) audience() iter.Seq[*watcher] {
	all := []*client{c}
	if c.Data != "" {
		peers.Lock()
		all = slices.Collect(maps.Keys(peers.of[c.Data]))
		peers.Unlock()
	}
	return func(yield func(*watcher) bool) {
		for _, c := range all {
			for _, s := range c.sessions.All() {
				for _, w := range s.audience() {
					if !yield(w) {
						return
					}
				}
			}
		}
	}
}

// targets returns what a write of these paths touches.
func targets(paths iter.Seq[string]) (touched []target) {
	for p := range paths {
		touched = append(touched, target{p, registry.Self}, target{path.Dir(p), registry.Children})
	}
	return touched
}

// wake makes those look who follow what a commit wrote. That is only a hint: what
// they tell comes from reads.
func (c *client) wake(ops []registry.Op) {
	touched := targets(func(yield func(string) bool) {
		for _, op := range ops {
			if op.Kind != registry.OpCheck && !yield(op.Path) {
				return
			}
		}
	})
	for w := range c.audience() {
		w.recheck(touched...)
	}
}
