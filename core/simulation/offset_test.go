package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

var offsetSeeds = flag.Int("offsetseeds", usual/5+10, "how many seeds TestOffsets runs")

// offsets is what is known of the offsets that runs set: each sets its fencing token, so that one
// which goes back was set by a run that did not own its item any more.
type offsets struct {
	world *world

	mu    sync.Mutex
	items map[string]*tally
	sets  int
	none  int // refused for certain
	maybe int // not known
}

// A tally is one item's. latest is the highest token of a Set that has returned; unrecorded: a run without a token,
// of a job without monitoring, has set it too.
type tally struct {
	path        string
	latest      int64
	sure, maybe int64
	unrecorded  bool
}

// set has a run set its offset, whatever becomes of its context. It reports that the process has died.
func (o *offsets) set(ctx context.Context, s shard) (over bool) {
	key := s.job + "/" + strconv.Itoa(s.item)
	o.mu.Lock()
	x := o.items[key]
	if x == nil {
		x = &tally{}
		for _, j := range o.world.jobs {
			if j.name == s.job {
				x.path = j.layout.Offset(s.item)
			}
		}
		o.items[key] = x
	}
	before := x.latest
	x.unrecorded = x.unrecorded || s.fence == 0
	o.mu.Unlock()
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	none, err := s.set(lasting, strconv.FormatInt(int64(s.fence), 10))
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.sets++
		x.sure++
		if s.fence != 0 && int64(s.fence) < before {
			o.world.judging.Lock()
			o.world.violations = append(o.world.violations, violation{"offset",
				fmt.Sprintf("%s: a run with the fencing token %d has set the offset after one with %d", key, s.fence, before)})
			o.world.judging.Unlock()
		}
		x.latest = max(x.latest, int64(s.fence))
	case none:
		o.none++
	default:
		o.maybe++
		x.maybe++
	}
	return errors.Is(err, errDead)
}

// check compares what stands at the end with what the runs were told.
func (o *offsets) check(t *testing.T, seed uint64) {
	t.Helper()
	reg := o.world.server.Registry(namespace)
	defer reg.Close()
	store, err := reg.OpenStore(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for key, x := range o.items {
		if o.world.destroyed[x.path] {
			continue // what was set before is not there any more
		}
		nodes, err := store.Get(context.Background(), x.path)
		if err != nil {
			t.Fatal(err)
		}
		to, successes, ok := offsetOf(nodes[0].Value)
		switch {
		case !ok && x.sure == 0:
		case !ok || successes < x.sure || successes > x.sure+x.maybe:
			t.Errorf("seed %d: %s: %d successes stand there; %d were set, and of %d it is not known", seed, key, successes, x.sure, x.maybe)
		default:
			if at, _ := strconv.ParseInt(to, 10, 64); at < x.latest && !x.unrecorded {
				t.Errorf("seed %d: %s: the offset is %d, and %d was set", seed, key, at, x.latest)
			}
		}
	}
}

// Runs set offsets, whatever happens to their instances: none by a run that does not own its item any more,
// and each counts once.
func TestOffsets(t *testing.T) {
	sets, none, maybe := 0, 0, 0
	for s := *first; s < *first+uint64(*offsetSeeds); s++ {
		var o *offsets
		res := simulate(t, s, ^mask(0), func(w *world) func() {
			o = &offsets{world: w, items: map[string]*tally{}}
			w.offsets = o
			return func() { o.check(t, s) }
		})
		for _, v := range res.violations {
			if v.invariant == "offset" || len(simulate(t, s, ^mask(0)).violations) == 0 {
				t.Errorf("seed %d: %s", s, v.text)
			}
		}
		sets, none, maybe = sets+o.sets, none+o.none, maybe+o.maybe
	}
	fmt.Fprintf(os.Stdout, "%d offsets set, %d refused, %d not known\n", sets, none, maybe)
	if sets == 0 || none+maybe == 0 {
		t.Error("no fault has met an offset")
	}
}
