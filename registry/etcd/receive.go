package etcd

import (
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// receive reads the stream until it breaks.
func (w *watcher) receive(stream pb.Watch_WatchClient) (useful bool) {
	for {
		resp, err := stream.Recv()
		if err != nil {
			return useful
		}
		useful = true
		if !w.handle(resp) {
			return useful
		}
	}
}

// handle takes one message in; false asks for a new stream.
func (w *watcher) handle(resp *pb.WatchResponse) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := resp.WatchId
	w.pinged = false
	if resp.Created {
		if len(w.inOrder) == 0 {
			return false
		}
		// A refusal does not say which watch it is about, but answers come in order.
		id, w.inOrder = w.inOrder[0], w.inOrder[1:]
	}
	t := w.byID[id]
	switch {
	case t == nil: // removed meanwhile
	case resp.Canceled && strings.Contains(resp.CancelReason, rpctypes.ErrPermissionDenied.Error()):
		w.Refuse(t, fmt.Errorf("etcd: %w: %s", registry.ErrDenied, resp.CancelReason))
	case resp.Canceled && resp.CompactRevision > 0:
		w.reread(t)
	case resp.Canceled:
		return false
	default:
		w.takeEvents(t, resp)
	}
	return true
}

// reread reads a target's state again since its history is lost.
func (w *watcher) reread(t *target) {
	delete(w.byID, t.id)
	t.id, t.parts = 0, nil
	w.unread = append(w.unread, t)
	wait.Wake(w.feed)
}

// takeEvents queues the changes of whole revisions.
func (w *watcher) takeEvents(t *target, resp *pb.WatchResponse) {
	t.parts = append(t.parts, resp.Events...)
	if resp.Fragment {
		return
	}
	events := t.parts
	t.parts = nil
	last := t.rev
	for _, ev := range events {
		// What is not newer was taken in before: never go back.
		if ev.Kv.ModRevision <= t.rev {
			continue
		}
		last = max(last, ev.Kv.ModRevision)
		path, ok := nodePath(ev.Kv.Key)
		switch {
		case !ok:
		case ev.Type == mvccpb.Event_DELETE:
			w.Put(&t.Target, registry.Node{Path: path})
		default:
			w.Put(&t.Target, w.s.node(path, ev.Kv))
		}
	}
	t.rev = last
}
