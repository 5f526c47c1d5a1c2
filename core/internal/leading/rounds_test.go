package leading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// A round that has begun is remembered until it is claimed as completed, however far the
// beginnings of later ones are claimed meanwhile, and before the first has ever been completed.
func TestARoundIsRememberedUntilItIsCompleted(t *testing.T) {
	start := time.Unix(1_700_000_000, 0).UTC()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		name               string
		listens            layout.Listens
		started, completed time.Time
		kept               []time.Time
	}{
		{"none is completed", layout.Listens{Before: true, After: true}, at(3), time.Time{}, []time.Time{at(1), at(2), at(3)}},
		{"one is completed", layout.Listens{Before: true, After: true}, at(3), at(1), []time.Time{at(2), at(3)}},
		{"nobody listens to that", layout.Listens{Before: true}, at(2), time.Time{}, []time.Time{at(3)}},
		{"nobody does any more", layout.Listens{Before: true}, at(2), at(1), []time.Time{at(3)}},
		{"nobody listens to beginnings", layout.Listens{After: true}, time.Time{}, at(2), []time.Time{at(3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rounds{}
			for s := range 3 {
				r.begin(at(s + 1))
			}
			r.claim.Started.Due, r.claim.Completed.Due = c.started, c.completed
			r.forget(Facts{Listens: map[string]layout.Listens{"a": c.listens}})
			require.Equal(t, c.kept, r.begun)
		})
	}
}

// The rounds that a leader finds in ledgers are those of what runs and of what is to run again;
// what somebody asked for belongs to none.
func TestALeaderFindsRoundsInLedgers(t *testing.T) {
	due := time.Unix(1_700_000_000, 0).UTC()
	l := ledger.New(1, 4)
	l.Set(0, ledger.Item{Through: due.Add(5 * time.Second), Redo: ledger.Redo{Due: due, Lost: "b", Tries: 2}})
	l.Set(1, ledger.Item{Through: due.Add(2 * time.Second), Run: due.Add(2 * time.Second)})
	l.Set(2, ledger.Item{Through: due.Add(3 * time.Second), Run: due.Add(4 * time.Second), Request: 1})
	l.Set(3, ledger.Item{Through: due.Add(6 * time.Second)})
	r := rounds{}
	r.see(snapshot{View: sharding.View{Members: []sharding.Member{{ID: "a", Ledger: l}, {ID: "b"}}}})
	require.Equal(t, []time.Time{due, due.Add(2 * time.Second)}, r.begun)
}
