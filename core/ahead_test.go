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
		require.GreaterOrEqual(b, e.Late, time.Duration(0), "%v: begun before it was due", e.Due)
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
		late     [2]time.Duration // at least, and at most
	}{
		"with failover":               {failover: true},
		"with failover, switched off": {failover: true, ahead: -1, late: [2]time.Duration{takes, takes}},
		"without":                     {late: [2]time.Duration{takes, takes}},
		"without, switched on":        {ahead: time.Second},
		"by less than it takes": { // in the second half of it
			failover: true, ahead: 100 * time.Millisecond, late: [2]time.Duration{takes - 100*time.Millisecond, takes - 50*time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				cfg := core.JobConfig{Name: "hello", Cron: "0/2 * * * * ?", Shards: 3, Misfire: core.MisfireAll, Failover: c.failover, BeginAhead: c.ahead}
				late := lateness(b, cfg, takes)
				require.GreaterOrEqual(b, late, c.late[0])
				require.LessOrEqual(b, late, c.late[1])
			})
		})
	}
}
