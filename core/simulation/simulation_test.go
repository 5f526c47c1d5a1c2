package simulation

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/history"
)

var (
	seeds  = flag.Int("seeds", usual, "how many seeds")
	first  = flag.Uint64("first", 1, "the first seed")
	seed   = flag.Uint64("seed", 0, "this seed alone")
	faults = flag.String("faults", "", "with -seed: the faults that happen, a mask in hexadecimal; all by default")
	short  = flag.Bool("unshrunk", false, "failing seeds are only named, with one violation")
	whole  = flag.Bool("history", false, "failing seeds are told with their whole history")
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

// simulate runs one seed with some of its faults, in a world that is prepared.
func simulate(t *testing.T, seed uint64, m mask, prepare ...func(w *world) (restore func())) (res result) {
	t.Helper()
	runtime.GC()
	cryptotest.SetGlobalRandom(t, seed)
	begun := time.Now()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed)
		plan := w.plan()
		for _, with := range prepare {
			defer with(w)()
		}
		w.live(plan, m)
		res = result{seed: seed, plan: plan, mask: m, records: w.log.records, turns: w.driver.turns}
		res.report, res.violations = w.judge()
		res.paged = w.paged
	})
	res.took = time.Since(begun)
	return res
}

func TestSimulation(t *testing.T) {
	sum := newSum()
	from, n := *first, *seeds
	if *seed != 0 {
		from, n = *seed, 1
	}
	m, err := parseMask(*faults)
	require.NoError(t, err, "-faults")
	for s := from; s < from+uint64(n); s++ {
		t.Run(strconv.FormatUint(s, 10), func(t *testing.T) {
			res := simulate(t, s, m)
			sum.add(res)
			if len(res.violations) > 0 {
				explain(t, res)
			}
		})
	}
	fmt.Fprintln(os.Stdout, sum) // make simulation shows it
}

// explain shows the shortest run that is found to fail as res does.
func explain(t *testing.T, res result) {
	t.Helper()
	what := res.violations[0].invariant
	if *short {
		t.Errorf("%s\n%s", command(res.seed, res.mask), res.violations[0].text)
		return
	}
	fails := func(r result) bool {
		return slices.ContainsFunc(r.violations, func(v violation) bool { return v.invariant == what })
	}
	m := shrink(res.mask&(1<<len(res.plan)-1), func(m mask) bool { return fails(simulate(t, res.seed, m)) })
	again := simulate(t, res.seed, m)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", command(res.seed, m))
	for i, f := range again.plan {
		if m.has(i) {
			fmt.Fprintf(&b, "fault %d: %v\n", i, f)
		}
	}
	if !fails(again) {
		b.WriteString("and this time it does not fail: the engine did not repeat itself\n")
	}
	for _, v := range again.violations {
		fmt.Fprintf(&b, "%s\n", v.text)
	}
	if *whole {
		fmt.Fprintf(&b, "the history:\n%s", lines(again.records))
	}
	t.Error(b.String())
}

func TestSeedsReproduce(t *testing.T) {
	if raced {
		t.Skip("the race detector shuffles goroutines on purpose")
	}
	parted := 0
	for s := *first; s < *first+uint64(*twice); s++ {
		t.Run(strconv.FormatUint(s, 10), func(t *testing.T) {
			// Go interrupts a goroutine after 10 ms of real time, even if another process had the processor meanwhile. That
			// is rare: what differs because of the engine differs in many seeds, and each time.
			var parts string
			for try := range 4 {
				a, b := simulate(t, s, ^mask(0)), simulate(t, s, ^mask(0))
				x, y := lines(a.records), lines(b.records)
				if bytes.Equal(x, y) {
					return
				}
				if parts = difference(x, y); try == 0 {
					parted++
				}
				t.Log(parts)
			}
			t.Error(parts)
		})
	}
	require.LessOrEqual(t, parted, max(1, *twice/20), "seeds that went another way the second time")
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
	broken       map[string]int // seeds, by invariant
	excused      map[string]int // seeds, by excuse
	asked        map[string]int // items, by what became of them
	judged       map[history.Invariant]int
	fires, again int
	violations   int
	paged, pages int // seeds, and operations
}

func newSum() *sum {
	return &sum{records: map[history.Kind]int{}, begun: map[string]int{}, hit: map[string]int{}, skips: map[string]int{}, asked: map[string]int{},
		judged: map[history.Invariant]int{}, broken: map[string]int{}, excused: map[string]int{}}
}

func (s *sum) add(r result) {
	s.seeds++
	s.turns += r.turns
	s.took += r.took
	s.violations += len(r.violations)
	if s.pages += r.paged; r.paged > 0 {
		s.paged++
	}
	broken := map[string]bool{}
	for _, v := range r.violations {
		broken[v.invariant] = true
	}
	for what := range broken {
		s.broken[what]++
	}
	for why := range r.report.Excused {
		s.excused[why]++
	}
	for what, n := range r.report.Tally.Judged {
		s.judged[what] += n
	}
	for what, n := range r.report.Tally.Asked {
		s.asked[what] += n
	}
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
			if rec.Redo {
				s.again++
			}
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
	fmt.Fprintf(&b, "%d item fires, %d runs, %d again, %d cancelled, %d cut, %d rounds heard\n", s.fires, s.records[history.Entered], s.again,
		s.records[history.Cancelled], s.records[history.Cut], s.records[history.Called])
	fmt.Fprintf(&b, "%8d seeds had ledgers with pages, which were written %d times\n", s.paged, s.pages)
	for _, why := range slices.Sorted(maps.Keys(s.skips)) {
		fmt.Fprintf(&b, "%8d skipped: %s\n", s.skips[why], why)
	}
	for _, what := range slices.Sorted(maps.Keys(s.asked)) {
		fmt.Fprintf(&b, "%8d asked for: %s\n", s.asked[what], what)
	}
	for _, what := range slices.Sorted(maps.Keys(s.judged)) {
		fmt.Fprintf(&b, "%8d judged: %s\n", s.judged[what], what)
	}
	for _, what := range slices.Sorted(maps.Keys(s.broken)) {
		fmt.Fprintf(&b, "%8d seeds broke: %s\n", s.broken[what], what)
	}
	for _, e := range excuses {
		fmt.Fprintf(&b, "%8d seeds needed an excuse: %s\n", s.excused[e.why], e.why)
	}
	for _, k := range kinds {
		fmt.Fprintf(&b, "%8d begun %8d hit: %s\n", s.begun[k.name], s.hit[k.name], k.name)
	}
	return b.String()
}
