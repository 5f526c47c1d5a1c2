package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// What is kept of runs in little memory is what was told of them.
func TestWhatIsKeptOfRuns(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{0, 1, 2, 7, 64} {
		r := &runs{most: most}
		var want []event.Run
		under := map[int]int{} // indexes in want, by number
		for i := range 300 {
			s := Shard{
				Job: "orders", Item: rng.IntN(100_000), Total: 100_000, Epoch: 1 + i/100, Attempt: 1, Missed: rng.IntN(3),
				Instance: fmt.Sprint("instance-", i/150), Source: []Source{SourceSchedule, SourceMisfire, SourceRequest}[rng.IntN(3)],
				Due: time.Unix(int64(1_700_000_000+i), int64(rng.IntN(2))).In(zone), Fence: registry.Revision(rng.Int64()),
			}
			if rng.IntN(5) == 0 {
				s.Source, s.Lost, s.Attempt = SourceFailover, "another", 2+rng.IntN(2)
			}
			s.TaskID = taskID(&s)
			began := s.Due.Add(time.Duration(rng.IntN(1e9))).UTC()
			n := r.begin(&s, began)
			under[n] = len(want)
			want = append(want, runOf(&s, began))
			for n, at := range under { // some return, in any order
				if rng.IntN(3) > 0 {
					continue
				}
				var failed error
				if rng.IntN(2) == 0 {
					failed = errors.New("broken")
				}
				took := time.Duration(rng.IntN(3)) * time.Second
				want[at].Ended, want[at].Err = want[at].Began.Add(took), failed
				r.end(n, took, failed)
				delete(under, n)
			}
			kept := want[max(len(want)-most, 0):]
			if most == 0 {
				kept = nil
			}
			require.Equal(t, kept, append([]event.Run(nil), r.all("orders")...))
		}
	}
}

// A clock that was set back while a function ran does not make its run one that has not returned.
func TestARunThatTookLessThanNothing(t *testing.T) {
	r := newRuns(0)
	began := time.Unix(1_700_000_000, 0).UTC()
	r.end(r.begin(&Shard{Due: began}, began), -time.Minute, nil)
	require.Equal(t, began, r.all("orders")[0].Ended)
}
