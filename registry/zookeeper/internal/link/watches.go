package link

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// watches knows, in the order of the wire, which watches the service holds for this session.
type watches struct {
	mu       sync.Mutex
	wanted   map[watchKey]int // reads under way that shall arm
	nodes    map[string]bool  // armed on a node; whether it existed
	children map[string]struct{}
}

type watchKey struct {
	op   int32
	path string
}

func newWatches() *watches {
	return &watches{wanted: map[watchKey]int{}, nodes: map[string]bool{}, children: map[string]struct{}{}}
}

// want makes reads of path arm a watch until release is called.
func (w *watches) want(op int32, path string) (release func()) {
	key := watchKey{op, path}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted[key]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.wanted[key]--; w.wanted[key] == 0 {
			delete(w.wanted, key)
		}
	}
}

// arms returns the path of a request that shall arm a watch, and sets its flag.
func (w *watches) arms(op int32, body []byte) string {
	if op != opGetData && op != opExists && op != opChildren {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wanted) == 0 {
		return ""
	}
	path, err := text(body, 0)
	if err != nil || w.wanted[watchKey{op, path}] == 0 {
		return ""
	}
	body[len(body)-1] = 1
	return path
}

// armed takes the answer to such a request into account.
func (w *watches) armed(op int32, path string, code int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case op == opChildren && code == 0:
		w.children[path] = struct{}{}
	case (op == opGetData || op == opExists) && code == 0:
		w.nodes[path] = true
	case op == opExists && code == errNoNode:
		w.nodes[path] = false
	}
}

// used forgets what an event has used up.
func (w *watches) used(kind zk.EventType, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case zk.EventNodeCreated, zk.EventNodeDataChanged:
		delete(w.nodes, path)
	case zk.EventNodeDeleted:
		delete(w.nodes, path)
		delete(w.children, path)
	case zk.EventNodeChildrenChanged:
		delete(w.children, path)
	}
}

func (w *watches) disarm(path string, children bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if children {
		delete(w.children, path)
	} else {
		delete(w.nodes, path)
	}
}

// renewalBytes bounds one frame of renewals, as the Java client does.
const renewalBytes = 128 << 10

// renewals are the frames that arm everything again on a new connection. The
// service answers with the events of what has changed since zxid.
func (w *watches) renewals(zxid int64) [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	var frames [][]byte
	var lists [3][]string // data, exist, child
	size := 0
	flush := func() {
		if size == 0 {
			return
		}
		f := newFrame(xidWatches, opWatches)
		f.int64(zxid)
		for _, list := range lists {
			f.texts(list)
		}
		frames = append(frames, f.frame())
		lists, size = [3][]string{}, 0
	}
	add := func(kind int, path string) {
		lists[kind] = append(lists[kind], path)
		if size += 4 + len(path); size >= renewalBytes {
			flush()
		}
	}
	for path, existed := range w.nodes {
		if existed {
			add(0, path)
		} else {
			add(1, path)
		}
	}
	for path := range w.children {
		add(2, path)
	}
	flush()
	return frames
}
