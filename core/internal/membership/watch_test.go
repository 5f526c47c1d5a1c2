package membership

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/leading"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/core/internal/workqueue"
)

// hears is a Host of which only Changed is called.
type hears struct {
	Host
	changed int
}

func (h *hears) Changed() { h.changed++ }

// What was seen earlier could be told later: an instance that may lead then took itself for one that may not, until
// the next change.
func TestWhoTellsTheLeaderIsAlone(t *testing.T) {
	pool := workqueue.NewPool(1)
	defer pool.Close()
	host := &hears{}
	m := &Member{
		cfg: Config{Process: &Process{}, Host: host, Memory: &Memory{}}, set: &settings.Settings{},
		leader: leading.New(leading.Config{Pool: pool, Memory: &Memory{}}),
	}
	told := 0
	m.tellLeader(func(l *leading.Leader) {
		require.Same(t, m.leader, l)
		require.False(t, m.looking.TryLock(), "another one could see, and tell, between what this one saw and told")
		require.True(t, m.mu.TryLock(), "a leader that asks the member waits for nobody")
		m.mu.Unlock()
		told++
	})
	require.Equal(t, 1, told)
	require.Equal(t, 1, host.changed)
	require.True(t, m.looking.TryLock(), "the next one can tell")
}
