package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// lateness of fires of a job while each commit takes so long.
func lateness(b *bed, cfg core.JobConfig, takes time.Duration) (most time.Duration) {
	b.Helper()
	w := newWitness()
	in := b.start("a", w, cfg)
	b.until("it runs", func() bool { return w.count() >= cfg.Shards })
	in.gate.hold(func([]registry.Op) { pause(takes) })
	from := len(of[event.FireBegun](in))
	b.until("six more fires", func() bool { return len(of[event.FireBegun](in)) >= from+6 })
	in.gate.hold(nil)
	in.stop(b)
	require.Empty(b, w.doubled())
	require.Empty(b, w.missing(cfg.Shards, 2*time.Second))
	for _, e := range of[event.FireBegun](in)[from+1:] {
		require.False(b, e.Late < 0, "%v: begun %v before it was due", e.Due, -e.Late)
		most = max(most, e.Late)
	}
	return most
}

// What a commit takes makes nothing late that is begun ahead, and everything else.
func TestWhatACommitTakesMakesNothingLate(t *testing.T) {
	const takes = 250 * time.Millisecond
	for name, c := range map[string]struct {
		failover bool
		ahead    time.Duration
		late     time.Duration
	}{
		"with failover":               {failover: true},
		"with failover, switched off": {failover: true, ahead: -1, late: takes},
		"without":                     {late: takes},
		"without, switched on":        {ahead: time.Second},
		"by less than it takes":       {failover: true, ahead: 100 * time.Millisecond, late: takes - 100*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				cfg := core.JobConfig{Name: "hello", Cron: "0/2 * * * * ?", Shards: 3, Misfire: core.MisfireAll, Failover: c.failover, BeginAhead: c.ahead}
				late := lateness(b, cfg, takes)
				if c.ahead == 100*time.Millisecond { // jobs begin in the second half of it
					require.GreaterOrEqual(b, late, c.late)
					require.Less(b, late, takes)
					return
				}
				require.Equal(b, c.late, late)
			})
		})
	}
}
