package simulation

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// A dice draws what the seed decides. Each name has a stream of its own, so that a
// fault that is left out changes no draw that has nothing to do with it.
type dice struct {
	seed uint64

	mu    sync.Mutex
	count map[string]uint64
}

func newDice(seed uint64) *dice { return &dice{seed: seed, count: map[string]uint64{}} }

// of returns the next source of a name.
func (d *dice) of(name string) *rand.Rand {
	d.mu.Lock()
	d.count[name]++
	n := d.count[name]
	d.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(d.seed*0x9e3779b97f4a7c15+n, h.Sum64()))
}

// between draws a time of at least low and less than high.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(r.Int64N(int64(high-low)))
}

// chance is true in one of n cases.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// one draws one of some.
func one[T any](r *rand.Rand, some []T) T { return some[r.IntN(len(some))] }
