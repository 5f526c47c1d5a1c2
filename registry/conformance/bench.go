package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A BenchHarness is one running service for Bench. Nothing that slows down stands
// between it and its clients: no proxy, no race detector.
type BenchHarness interface {
	// Registry returns a registry on a client of its own, with as large Limits as the
	// service takes. The harness closes it when t ends.
	Registry(ctx context.Context, t testing.TB) registry.Registry

	// Raw returns the service's own client, connected as the registry's is, used as a
	// careful user would without Elasticron. The harness closes it when t ends.
	Raw(ctx context.Context, t testing.TB) BenchClient

	// Close stops the service.
	Close()
}

// A BenchClient does with a service's own client what Bench measures: the cheapest
// that is correct. Create-if-absent is a condition, not a blind write (etcd: a
// transaction that compares CreateRevision with 0 for each key; ZooKeeper: create
// and multi, which refuse by themselves). What the adapter does on top, it does
// not: it checks no parents and reads nothing to explain a refusal. All methods
// but the next of Watch are called from many goroutines.
type BenchClient interface {
	// CreateEphemeral makes a node bound to the client's one session or lease. It fails when path exists.
	CreateEphemeral(ctx context.Context, path string, value []byte) error
	// Create makes all of paths, or none when one exists. Their parent exists.
	Create(ctx context.Context, paths []string, value []byte) error
	// Set replaces the values of all of paths, whatever their versions, or of none when
	// one does not exist. What is bound to a session or lease stays so.
	Set(ctx context.Context, paths []string, value []byte) error
	// Watch watches a node that exists. next waits until one change has arrived, with
	// its value, and the following one can be missed by nobody. The watch ends with ctx.
	Watch(ctx context.Context, path string) (next func(context.Context) error, err error)
}

// What Bench spends. Short rounds of the adapter and of the raw client take turns,
// so that noise hits both.
const (
	benchFew      = 31                     // rounds that there are in any case
	benchTime     = time.Minute            // after which there are no more
	benchWidth    = 0.03                   // no more rounds once the ratio's interval is as narrow, in parts of the ratio
	benchMuch     = 1.1                    // no more rounds once all of the interval is above this
	benchRound    = 150 * time.Millisecond // at least; what is in flight then is waited for
	benchChanges  = 100                    // of a watch, in one round
	benchValue    = 64                     // bytes
	benchLargest  = 400                    // operations of the large commit: more fill the server and tell no more
	benchInFlight = 128                    // at most
	benchSetup    = 30 * time.Second
	benchWarmUp   = 3 * time.Second // for each kind of work, before all of it

	benchWarmInFlight = 16
)

// Bench compares an adapter with the client that it is built on, in one process
// and on one service: ephemeral creates, single sets, commits of
// PortableLimits().MaxOps sets, commits as large as the adapter's Limits (at most 400
// sets), each with 1, 16 and 128 in flight on one session, and how long a change takes
// to its watch. Whoever sets has nodes of its own.
//
//	func BenchmarkRegistry(b *testing.B) { conformance.Bench(b, newBenchHarness) }
//
// Each is a sub-benchmark whose unit ratio is adapter/raw by throughput, or
// raw/adapter by delivery time: 1 is as good as raw, more is better. It is the median
// over rounds, in each of which one side runs right after the other. There are rounds
// until the ratio's interval of 95 % is narrow or well above 1, for a minute at most. The
// sub-benchmark Table logs all ratios with their intervals: a wide one says that the
// machine was busy with something else. All of it takes up to a quarter of an hour, and
// nothing that it writes is compacted meanwhile: the service needs room for some
// gigabytes. Before all of them each kind of work is done for a while: a service that
// compiles as it runs is compared as it is after that.
func Bench(b *testing.B, newHarness func(testing.TB) BenchHarness) {
	b.Helper()
	h := newHarness(b)
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), benchSetup)
	defer cancel()
	d := newComparison(ctx, b, h)
	if err := d.warmUp(); err != nil {
		b.Fatal(err)
	}
	var results []result
	for _, c := range d.workloads() {
		b.Run(c.name(), func(b *testing.B) {
			var r result
			for b.Loop() {
				var err error
				if r, err = c.hold(); err != nil {
					b.Fatal(err)
				}
			}
			results = append(results, r)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(r.adapter, c.unit+"-adapter")
			b.ReportMetric(r.raw, c.unit+"-raw")
			b.ReportMetric(r.ratio, "ratio")
		})
	}
	b.Run("Table", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(0, "ns/op")
		}
		b.Log(table(results))
	})
}

// A result is what came of one workload: the median of each side, and the median of the rounds' ratios with its interval
// of 95 %. A ratio above 1 says that the adapter is better.
type result struct {
	*workload
	adapter, raw     float64
	low, ratio, high float64
}

// result is made of the figures of both sides, round by round.
func (c *workload) result(adapter, raw []float64) result {
	ratios := make([]float64, len(raw))
	for i := range raw {
		ratios[i] = adapter[i] / raw[i]
		if c.lessIsBetter {
			ratios[i] = raw[i] / adapter[i]
		}
	}
	r := result{workload: c, adapter: median(adapter), raw: median(raw), ratio: median(ratios)}
	r.low, r.high = interval(ratios)
	return r
}

// sure reports whether further rounds would tell nothing that matters.
func (r *result) sure() bool { return r.high-r.low <= benchWidth*r.ratio || r.low >= benchMuch }

// table has a line for each kind of work and a column for each number in flight.
func table(results []result) string {
	kinds := []string{"adapter / raw  ratio"}
	cells := map[string]string{}
	for _, r := range results {
		head := fmt.Sprintf("%d in flight", r.inFlight)
		cells[kinds[0]+head] = head
		cells[r.kind+head] = fmt.Sprintf("%.0f / %.0f  %.2f (%.2f–%.2f)", r.adapter, r.raw, r.ratio, r.low, r.high)
		if !slices.Contains(kinds, r.kind) {
			kinds = append(kinds, r.kind)
		}
	}
	var b strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n%-30s", kind)
		for _, n := range inFlights() {
			fmt.Fprintf(&b, "%34s", cells[kind+fmt.Sprintf("%d in flight", n)])
		}
	}
	return b.String()
}

func inFlights() []int { return []int{1, 16, benchInFlight} }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

// interval is where the median of what the values are drawn from lies, at 95 %: between those of them whose ranks are
// 1.96 standard deviations of a binomial distribution from the middle.
func interval(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := float64(len(sorted))
	off := 0.98 * math.Sqrt(n)
	return sorted[max(0, int(math.Floor(n/2-off)))], sorted[min(len(sorted)-1, int(math.Ceil(n/2+off)))]
}
