package conformance

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// benchedMemory has the memory adapter on both sides: nothing to compare, but
// all that Bench asks of a harness.
type benchedMemory struct{ srv *memory.Server }

func newBenchedMemory(testing.TB) BenchHarness {
	return benchedMemory{memory.NewServer(memory.Config{Limits: registry.Limits{MaxOps: 50}})}
}

func (h benchedMemory) Close() {}

func (h benchedMemory) Registry(_ context.Context, tb testing.TB) registry.Registry {
	reg := h.srv.Registry("bench")
	tb.Cleanup(func() { _ = reg.Close() })
	return reg
}

func (h benchedMemory) Raw(ctx context.Context, tb testing.TB) BenchClient {
	s, err := h.Registry(ctx, tb).Open(ctx)
	require.NoError(tb, err)
	return adapted{s}
}

func TestBouts(t *testing.T) {
	d := newComparison(t.Context(), t, newBenchedMemory(t))
	all := d.workloads()
	require.Len(t, all, 13)
	require.Equal(t, "commit-of-50-sets,-large/128", all[11].name())
	for _, c := range all {
		adapter, err := c.round(c.adapter)
		require.NoError(t, err, c.name())
		require.Positive(t, adapter, c.name())
	}
	nodes, err := d.adapter.BenchClient.(adapted).s.Children(t.Context(), d.adapter.dir)
	require.NoError(t, err)
	require.Len(t, nodes, int(d.adapter.nodes.Load()), "paths were handed out and not made")
}

func TestThroughputStopsAtAnError(t *testing.T) {
	_, err := throughput(4, time.Hour, func(context.Context, int) error { return errors.New("oops") })
	require.ErrorContains(t, err, "oops")
}

func TestTableOfResults(t *testing.T) {
	c := &workload{kind: "creates", inFlight: 16}
	late := &workload{kind: "delivery", inFlight: 1, lessIsBetter: true}
	// The second round was on a machine that stood still: it hit both alike.
	text := table([]result{c.result([]float64{90, 9, 90}, []float64{100, 10, 100}), late.result([]float64{100}, []float64{80})})
	require.Regexp(t, `adapter / raw  ratio +1 in flight +16 in flight +\ncreates +90 / 100  0.90 \(0.90–0.90\) +\ndelivery +100 / 80  0.80 \(0.80–0.80\) +$`, text)
	require.InDelta(t, 3, median([]float64{9, 1, 3}), 0)
}

// The interval has the median of what the values are drawn from in about 95 of 100 cases.
func TestIntervalOfTheMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const of = 4000
	for _, n := range []int{31, 200} {
		holds := 0
		for range of {
			values := make([]float64, n)
			for i := range values {
				values[i] = rng.ExpFloat64()
			}
			if low, high := interval(values); low <= math.Ln2 && math.Ln2 <= high {
				holds++
			}
		}
		require.InDelta(t, 0.96, float64(holds)/of, 0.025, "%d values", n)
	}
	low, high := interval([]float64{2, 1})
	require.Equal(t, []float64{1, 2}, []float64{low, high})
	require.False(t, (&result{low: 0.9, ratio: 1, high: 0.94}).sure())
	require.True(t, (&result{low: 0.9, ratio: 1, high: 0.92}).sure())
	require.True(t, (&result{low: 1.2, ratio: 2, high: 3}).sure())
}
