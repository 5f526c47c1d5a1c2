package etcd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// run keeps a stream open until the watcher ends.
func (w *watcher) run() {
	defer close(w.ended)
	for n := 0; w.ctx.Err() == nil; n++ {
		w.begin()
		if w.serve() {
			n = 0
		}
		if !pause(w.ctx, n) {
			return
		}
	}
}

// serve uses one stream until it breaks; it reports whether anything came but refusals.
func (w *watcher) serve() (useful bool) {
	if !w.waitForTargets() {
		return true
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	token, err := w.s.reg.login.get(ctx)
	if err != nil {
		w.denyAll(err)
		return false
	}
	stream, err := w.s.reg.watch.Watch(show(ctx, token), callOptions...)
	if err != nil {
		return false
	}
	received := make(chan bool, 1)
	go func() {
		defer cancel()
		received <- w.receive(stream, token)
	}()
	ping := time.NewTicker(w.s.timeout() / 4)
	defer ping.Stop()
	if len(w.s.reg.cfg.Endpoints) == 1 {
		ping.Stop()
	}
	for w.send(ctx, stream) {
		select {
		case <-w.feed:
		case <-ping.C:
			if !w.ping() {
				cancel()
			}
		case <-ctx.Done():
		}
	}
	cancel()
	return <-received
}

// ping asks for a sign of life, and reports whether there was one since the last time. A member that hangs
// breaks no connection for many seconds; with others to turn to that is too long. With one the session ends first.
func (w *watcher) ping() (alive bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pinged {
		return false
	}
	w.pinged, w.pingDue = true, true
	return true
}

// waitForTargets puts the stream off until somebody needs it.
func (w *watcher) waitForTargets() bool {
	for {
		w.mu.Lock()
		needed := len(w.unread)+len(w.unsent) > 0
		w.mu.Unlock()
		if needed {
			return true
		}
		select {
		case <-w.feed:
		case <-w.ctx.Done():
			return false
		}
	}
}

// send works off what is to be read, asked for and canceled. False: the stream is over.
func (w *watcher) send(ctx context.Context, stream pb.Watch_WatchClient) bool {
	for ctx.Err() == nil {
		requests := w.requests()
		for _, r := range requests {
			if stream.Send(r) != nil {
				return false
			}
		}
		idle := len(requests) == 0
		var wg sync.WaitGroup
		for range parallel {
			if batch := w.nextUnread(); len(batch) > 0 {
				idle = false
				wg.Go(func() { w.snapshot(ctx, batch) })
			}
		}
		wg.Wait()
		if idle {
			return true
		}
	}
	return false
}

// maxRequests bounds how many requests are made at once, parallel those that read.
const maxRequests, parallel = 512, 4

// requests takes the next requests for the stream.
func (w *watcher) requests() []*pb.WatchRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	var requests []*pb.WatchRequest
	if w.pingDue {
		w.pingDue = false
		w.asked++
		requests = append(requests, create(&pb.WatchCreateRequest{Key: []byte(root), WatchId: w.asked}))
		w.canceled = append(w.canceled, w.asked)
	}
	for _, id := range w.canceled {
		requests = append(requests, &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
			CancelRequest: &pb.WatchCancelRequest{WatchId: id},
		}})
	}
	w.canceled = nil
	n := min(len(w.unsent), maxRequests)
	for _, t := range w.unsent[:n] {
		if t.Ended || t.id != 0 { // or restarted twice
			continue
		}
		w.asked++
		t.id = w.asked
		w.byID[t.id] = t
		requests = append(requests, create(t.request()))
	}
	w.unsent = w.unsent[n:]
	return requests
}

func create(r *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}
}

func (t *target) keys() (from, to []byte) {
	if t.Scope == registry.Self {
		return nodeKey(t.Path), nil
	}
	return childRange(t.Path)
}

// nodePath is the path of a node whose key is one of keys.
func (t *target) nodePath(key []byte) (string, bool) {
	if t.Scope == registry.Self {
		return t.Path, true
	}
	return nodePath(key)
}

// request asks for what comes after the state that is known, or else from now on, and the state is read after that.
func (t *target) request() *pb.WatchCreateRequest {
	from, to := t.keys()
	r := &pb.WatchCreateRequest{Key: from, RangeEnd: to, WatchId: t.id}
	if t.rev > 0 {
		r.StartRevision = t.rev + 1
	}
	return r
}

// nextUnread takes targets whose state fits one request.
func (w *watcher) nextUnread() (batch []*target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, t := range w.unread {
		if len(batch) == maxReads {
			w.unread = w.unread[n:]
			return batch
		}
		if !t.Ended {
			batch = append(batch, t)
		}
	}
	w.unread = nil
	return batch
}

// snapshot reads the present state of targets, all at one revision. Their watches began before it.
func (w *watcher) snapshot(ctx context.Context, batch []*target) {
	reads := make([]*pb.RequestOp, len(batch))
	for i, t := range batch {
		from, to := t.keys()
		reads[i] = readOp(&pb.RangeRequest{Key: from, RangeEnd: to})
	}
	resp, err := w.s.readAlone(ctx, reads)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		for i, t := range batch {
			if !t.Ended {
				w.takeState(t, resp.Header.GetRevision(), resp.Responses[i].GetResponseRange().GetKvs())
			}
		}
	case errors.Is(err, registry.ErrDenied): // the watches of those that are denied say so
		for _, t := range batch {
			w.restart(t)
		}
	default:
		w.unread = append(w.unread, batch...)
	}
}

// takeState replaces what is known of a target: the difference becomes events.
func (w *watcher) takeState(t *target, rev int64, kvs []*mvccpb.KeyValue) {
	present := make([]registry.Node, 0, len(kvs))
	for _, kv := range kvs {
		if path, ok := t.nodePath(kv.Key); ok {
			present = append(present, w.s.node(path, kv))
		}
	}
	w.Show(&t.Target, present)
	t.rev = rev
	w.put(t, w.early[t])
	delete(w.early, t)
}

// begin prepares every target for the next stream. A few go on without a read, which may meet a member that hangs.
func (w *watcher) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID, w.early = map[int64]*target{}, map[*target][]*mvccpb.Event{}
	w.confirmed, w.canceled, w.unread, w.unsent = w.asked, nil, nil, nil
	w.pinged, w.pingDue = false, false
	for _, targets := range w.Targets {
		w.unsent = slices.AppendSeq(w.unsent, maps.Values(targets))
	}
	for _, t := range w.unsent {
		t.id = 0
		if len(w.unsent) > maxRequests {
			t.rev = 0
		}
	}
}

// receive reads the stream until it breaks.
func (w *watcher) receive(stream pb.Watch_WatchClient, token *string) (useful bool) {
	for {
		resp, err := stream.Recv()
		if err != nil {
			return useful
		}
		denial := denialOf(resp)
		useful = useful || denial == nil
		if w.s.reg.login.refused(token, denial) {
			denial = nil // another stream shows another
		}
		if !w.handle(resp, denial) {
			return useful
		}
	}
}

// denialOf is why a watch was refused, where the reason is who asks.
func denialOf(resp *pb.WatchResponse) error {
	if resp.CancelReason == "" {
		return nil
	}
	for err, v := range verdicts {
		if errors.Is(v.is, registry.ErrDenied) && strings.Contains(resp.CancelReason, err.Error()) {
			return err
		}
	}
	return nil
}

// denyAll gives all targets up, where err refuses the user.
func (w *watcher) denyAll(err error) {
	if judge(err) != denied {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, targets := range w.Targets {
		for _, t := range targets {
			w.Refuse(t, fail("log in", registry.ErrDenied, err))
		}
	}
}

// handle takes one message in, which denies what it is about unless denial is nil; false asks for a new stream.
func (w *watcher) handle(resp *pb.WatchResponse, denial error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := resp.WatchId
	w.pinged = false
	if resp.Created {
		if w.confirmed == w.asked {
			return false
		}
		// A refusal does not say which watch it is about, but answers come in order.
		w.confirmed++
		id = w.confirmed
	}
	t := w.byID[id]
	switch {
	case t == nil: // removed meanwhile, or a sign of life
	case denial != nil:
		w.Refuse(t, fail("watch", registry.ErrDenied, denial))
	case resp.Canceled && resp.CompactRevision > 0: // it was slow
		w.restart(t)
	case resp.Canceled:
		return false
	case resp.Created && t.rev == 0:
		w.unread = append(w.unread, t)
	default:
		w.put(t, resp.Events)
	}
	if n := len(w.unread); n >= maxReads || n > 0 && w.confirmed == w.asked { // those that come soon are read together
		wait.Wake(w.feed)
	}
	return true
}

// restart watches a target anew, and reads its state again: after that, and not with those that are to be read now.
func (w *watcher) restart(t *target) {
	if !t.Ended {
		w.stop(t)
		t.rev = 0
		w.unread = slices.DeleteFunc(w.unread, func(u *target) bool { return u == t })
		w.start(t)
	}
}

// put queues the changes that a target's state does not have. Before that is known they wait.
func (w *watcher) put(t *target, events []*mvccpb.Event) {
	if t.rev == 0 {
		w.early[t] = append(w.early[t], events...)
		return
	}
	last := t.rev
	for _, ev := range events {
		// What is not newer was taken in before: never go back.
		if ev.Kv.ModRevision <= t.rev {
			continue
		}
		last = max(last, ev.Kv.ModRevision)
		path, ok := t.nodePath(ev.Kv.Key)
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
