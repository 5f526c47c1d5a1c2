package polled

import (
	"path"
	"sync"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
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
func (c *client) audience() (all []*watcher) {
	if c.Data == "" {
		return c.watchers()
	}
	peers.Lock()
	defer peers.Unlock()
	for peer := range peers.of[c.Data] {
		all = append(all, peer.watchers()...)
	}
	return all
}

func (c *client) watchers() (all []*watcher) {
	for _, s := range c.sessions.All() {
		all = append(all, s.audience()...)
	}
	return all
}

// wake makes those look who follow what a commit wrote. That is only a hint: what
// they tell comes from reads.
func (c *client) wake(ops []registry.Op) {
	var paths []string
	for _, op := range ops {
		if op.Kind != registry.OpCheck {
			paths = append(paths, op.Path)
		}
	}
	recheck(c.audience(), paths)
}

// recheck has the watchers of what was written at paths look.
func recheck(watchers []*watcher, paths []string) {
	var touched []pending.Key
	for _, p := range paths {
		touched = append(touched, pending.Key{Path: p}, pending.Key{Path: path.Dir(p), Scope: registry.Children})
	}
	for _, w := range watchers {
		w.recheck(touched)
	}
}
