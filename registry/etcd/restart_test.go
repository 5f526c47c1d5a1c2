package etcd

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
)

// A target whose watch is given up twice before anything is sent has one watch afterwards.
func TestATargetThatIsRestartedTwiceHasOneWatch(t *testing.T) {
	w := &watcher{feed: make(chan struct{}, 1), byID: map[int64]*target{}, early: map[*target][]*mvccpb.Event{}}
	x := &target{Target: pending.Target{Path: "/shop", Scope: registry.Self}}
	sent := func() (made, canceled []int64) {
		for _, r := range w.requests() {
			switch r := r.RequestUnion.(type) {
			case *pb.WatchRequest_CreateRequest:
				made = append(made, r.CreateRequest.WatchId)
			case *pb.WatchRequest_CancelRequest:
				canceled = append(canceled, r.CancelRequest.WatchId)
			}
		}
		return made, canceled
	}
	w.start(x)
	made, canceled := sent()
	require.Equal(t, []int64{1}, made)
	require.Empty(t, canceled)
	w.restart(x)
	w.restart(x)
	made, canceled = sent()
	require.Equal(t, []int64{2}, made)
	require.Equal(t, []int64{1}, canceled)
	require.Equal(t, map[int64]*target{2: x}, w.byID)
}
