package etcd

import (
	"strings"
	"sync"
)

// maxIncarnations is how many incarnations are remembered in any case; at most
// twice as many are.
const maxIncarnations = 1024

// incarnations remembers the creation revisions of persistent nodes, by path. A
// node keeps its kind from its creation to its deletion, so what is remembered
// stays true; only the node may have been deleted, or made again, since.
//
// The zero value is empty. When it is full, what was not asked for lately goes.
type incarnations struct {
	mu          sync.Mutex
	young, aged map[string]int64
}

// of returns the revision that created the node, 0 when none is known. On nil
// nothing is known.
func (n *incarnations) of(path string) int64 {
	if n == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	created, known := n.young[path]
	if known {
		return created
	}
	if created, known = n.aged[path]; known {
		n.put(path, created)
	}
	return created
}

// learn takes in that the node was created at a revision and is persistent, or
// with 0 that there is none.
func (n *incarnations) learn(path string, created int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if created > 0 {
		n.put(strings.Clone(path), created) // and not what path is a part of
		return
	}
	delete(n.young, path)
	delete(n.aged, path)
}

func (n *incarnations) put(path string, created int64) {
	if n.young == nil || len(n.young) >= maxIncarnations {
		n.young, n.aged = map[string]int64{}, n.young
	}
	n.young[path] = created
}
