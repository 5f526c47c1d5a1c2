package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
)

// An instance that is cut off from a real server stops its items before anybody
// else runs them, and everything it owned is owned again in time.
func TestAnInstanceThatIsCutOffStopsBeforeOthersStart(t *testing.T) {
	onServices(t, func(t *testing.T, s service) {
		for _, d := range []testbed.Direction{testbed.Both, testbed.Requests, testbed.Answers} {
			cutOff(t, s, d)
		}
	})
}

// partitionTimeout is of sessions that are taken: the service hears some of them until they give up.
const partitionTimeout = 2 * time.Second

func cutOff(t *testing.T, s service, d testbed.Direction) {
	var latest way
	b := &bed{T: t, ns: freshNamespace()}
	b.client = func(t *testing.T, ns string) (reg registry.Registry) {
		reg, latest = s.client(t, ns, partitionTimeout)
		return reg
	}
	w := newWitness()
	release := make(chan struct{})
	w.hold = func(ctx context.Context, _ core.Shard) error {
		select { // an item that runs as long as it may
		case <-ctx.Done():
		case <-release:
		}
		return context.Cause(ctx)
	}
	a := b.start("a", w, everySecond)
	cut := latest
	b.until("a runs all", func() bool { return len(a.job().Running) == 4 })
	c := b.start("c", w, everySecond)
	b.until("c is there", func() bool { return len(c.job().Instances) == 2 })
	hits, lost := cut.Hits(), len(of[event.SessionLost](a)) // a busy machine may have cost it one before
	heal := cut.Blackhole(d)
	gone := time.Now()
	b.until("c runs all", func() bool { return len(c.job().Running) == 4 })
	// The session's timeout, the service's lateness, one second of ours, and the
	// fire that follows.
	require.Less(t, time.Since(gone), partitionTimeout+s.late+3*time.Second, d)
	require.Greater(t, cut.Hits(), hits, "the fault met nothing")
	require.Empty(t, w.doubled(), "direction %v", d)
	require.Len(t, of[event.SessionLost](a), lost+1)
	heal()
	close(release)
	a.stop(b)
	c.stop(b)
	require.Empty(t, w.overlap)
}
