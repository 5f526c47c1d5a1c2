package simulation

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/history"
)

var (
	seeds  = flag.Int("seeds", 200, "how many seeds")
	first  = flag.Uint64("first", 1, "the first seed")
	seed   = flag.Uint64("seed", 0, "this seed alone")
	faults = flag.String("faults", "", "with -seed: the faults that happen, a mask in hexadecimal; all by default")
	twice  = flag.Int("twice", 100, "how many seeds TestSeedsReproduce runs twice")
)

func TestMain(m *testing.M) {
	flag.Parse()
	// One processor and no collection while a seed runs: the order of goroutines is
	// then theirs alone.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	goleak.VerifyTestMain(m)
}

// simulate runs one seed with some of its faults.
func simulate(t *testing.T, seed uint64, active func(i int) bool) (res result) {
	t.Helper()
	runtime.GC()
	cryptotest.SetGlobalRandom(t, seed)
	begun := time.Now()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		plan := w.plan()
		w.live(plan, active)
		res = result{seed: seed, plan: plan, records: w.log.records, text: w.log.text(), turns: w.driver.turns, violations: w.violations}
	})
	res.took = time.Since(begun)
	return res
}

func all(int) bool { return true }

func TestSimulation(t *testing.T) {
	sum := newSum()
	from, n := *first, *seeds
	if *seed != 0 {
		from, n = *seed, 1
	}
	for s := from; s < from+uint64(n); s++ {
		t.Run(strconv.FormatUint(s, 10), func(t *testing.T) {
			sum.add(simulate(t, s, all))
		})
	}
	t.Log(sum)
}

func TestSeedsReproduce(t *testing.T) {
	for s := *first; s < *first+uint64(*twice); s++ {
		t.Run(strconv.FormatUint(s, 10), func(t *testing.T) {
			a, b := simulate(t, s, all), simulate(t, s, all)
			if !bytes.Equal(a.text, b.text) {
				t.Error(difference(a.text, b.text))
			}
		})
	}
}

// difference shows where two histories part.
func difference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d of %d and %d:\n%s\nonce:  %s\nagain: %s", i+1, len(x), len(y),
				strings.Join(x[max(0, i-6):i], "\n"), x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// A sum counts what runs did.
type sum struct {
	seeds, turns int
	took         time.Duration
	records      map[history.Kind]int
	begun, hit   map[string]int
	skips        map[string]int
	fires        int
	violations   int
}

func newSum() *sum {
	return &sum{records: map[history.Kind]int{}, begun: map[string]int{}, hit: map[string]int{}, skips: map[string]int{}}
}

func (s *sum) add(r result) {
	s.seeds++
	s.turns += r.turns
	s.took += r.took
	s.violations += len(r.violations)
	type fire struct {
		job         string
		epoch, item int
		due         int64
	}
	fires := map[fire]bool{}
	for _, rec := range r.records {
		s.records[rec.Kind]++
		switch rec.Kind {
		case history.Entered:
			fires[fire{rec.Job, rec.Epoch, rec.Item, rec.Due.UnixNano()}] = true
		case history.Skipped:
			s.skips[rec.Reason] += rec.Count * len(rec.Items)
		}
	}
	s.fires += len(fires)
	for _, f := range r.plan {
		if f.struck {
			s.begun[f.kind]++
			if f.hit() > 0 {
				s.hit[f.kind]++
			}
		}
	}
}

// String is the table at the end of a run.
func (s *sum) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %d turns, %v a seed, %d violations\n", s.seeds, s.turns, s.took/time.Duration(max(1, s.seeds)), s.violations)
	fmt.Fprintf(&b, "%d item fires, %d runs, %d cancelled, %d cut\n", s.fires, s.records[history.Entered],
		s.records[history.Cancelled], s.records[history.Cut])
	for _, why := range slices.Sorted(maps.Keys(s.skips)) {
		fmt.Fprintf(&b, "%8d skipped: %s\n", s.skips[why], why)
	}
	for _, k := range kinds {
		fmt.Fprintf(&b, "%8d begun %8d hit: %s\n", s.begun[k.name], s.hit[k.name], k.name)
	}
	return b.String()
}
