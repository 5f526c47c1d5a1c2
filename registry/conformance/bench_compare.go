package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A side is one of the two that are compared, below a directory of its own.
type side struct {
	BenchClient
	dir   string
	nodes *atomic.Int64
}

// paths are n that nobody has used.
func (s side) paths(n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = s.dir + "/n" + strconv.FormatInt(s.nodes.Add(1), 10)
	}
	return paths
}

// A comparison is an adapter and the client that it is built on.
type comparison struct {
	adapter, raw side
	limits       registry.Limits
}

func newComparison(ctx context.Context, tb testing.TB, h BenchHarness) *comparison {
	tb.Helper()
	s, err := h.Registry(ctx, tb).Open(ctx)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	name := "/bench-" + strings.ToLower(rand.Text()[:8])
	d := &comparison{
		// Names of one length: what 400 paths of a few bytes more cost can be measured.
		adapter: side{adapted{s}, name + "-a", new(atomic.Int64)},
		raw:     side{h.Raw(ctx, tb), name + "-r", new(atomic.Int64)},
		limits:  s.Limits(),
	}
	for _, s := range []side{d.adapter, d.raw} {
		if err := s.Create(ctx, []string{s.dir}, nil); err != nil {
			tb.Fatalf("create %s: %v", s.dir, err)
		}
	}
	return d
}

// warmUp lets the service compile and cache what it will: it is not what is compared.
func (d *comparison) warmUp() error {
	for _, c := range d.workloads() {
		if c.inFlight != benchWarmInFlight {
			continue
		}
		for start := time.Now(); time.Since(start) < benchWarmUp; {
			for _, s := range []side{d.adapter, d.raw} {
				if _, err := c.round(s); err != nil {
					return fmt.Errorf("warming up: %s in %s: %w", c.name(), s.dir, err)
				}
			}
		}
	}
	return nil
}

// A workload is one kind of work with so many in flight.
type workload struct {
	*comparison
	kind         string
	unit         string
	inFlight     int
	lessIsBetter bool
	round        func(s side) (float64, error)
}

func (c *workload) name() string {
	return strings.ReplaceAll(c.kind, " ", "-") + "/" + strconv.Itoa(c.inFlight)
}

func (d *comparison) workloads() []*workload {
	value := bytes.Repeat([]byte("v"), benchValue)
	portable := registry.PortableLimits().MaxOps
	room := len(d.adapter.dir) + len("/n1000000000") + benchValue
	large := min(d.limits.MaxOps, d.limits.MaxBytes/room, benchLargest)
	// Nodes that stand are set: nothing grows while it is compared. Each worker has its
	// own, as each job of an instance has its ledger.
	sets := func(n int) func(context.Context, side, int) error {
		type owner struct {
			dir    string
			worker int
		}
		var made sync.Map
		return func(ctx context.Context, s side, worker int) error {
			paths, known := made.Load(owner{s.dir, worker})
			if !known {
				paths = s.paths(n)
				if err := s.Create(ctx, paths.([]string), value); err != nil {
					return err
				}
				made.Store(owner{s.dir, worker}, paths)
			}
			return s.Set(ctx, paths.([]string), value)
		}
	}
	ephemeral := func(ctx context.Context, s side, _ int) error { return s.CreateEphemeral(ctx, s.paths(1)[0], value) }
	var all []*workload
	for _, k := range []struct {
		kind string
		work func(context.Context, side, int) error
	}{
		{"create ephemeral", ephemeral},
		{"set", sets(1)},
		{fmt.Sprintf("commit of %d sets", portable), sets(portable)},
		{fmt.Sprintf("commit of %d sets, large", large), sets(large)},
	} {
		for _, n := range inFlights() {
			all = append(all, &workload{comparison: d, kind: k.kind, unit: "op/s", inFlight: n, round: func(s side) (float64, error) {
				return throughput(n, benchRound, func(ctx context.Context, worker int) error { return k.work(ctx, s, worker) })
			}})
		}
	}
	return append(all, &workload{comparison: d, kind: "watch delivery, µs", unit: "µs", inFlight: 1, lessIsBetter: true, round: delivery})
}

// hold lets both sides take turns, each first in every second round, after one
// round that does not count, until their ratio is known well enough.
func (c *workload) hold() (r result, err error) {
	var adapter, raw []float64
	start := time.Now()
	for i := 0; i <= benchFew || !r.sure() && time.Since(start) < benchTime; i++ {
		turns := []struct {
			side
			took *[]float64
		}{{c.adapter, &adapter}, {c.raw, &raw}}
		if i%2 == 1 {
			turns[0], turns[1] = turns[1], turns[0]
		}
		for _, turn := range turns {
			figure, err := c.round(turn.side)
			if err != nil {
				return result{}, fmt.Errorf("%s in %s: %w", c.name(), turn.dir, err)
			}
			if i > 0 {
				*turn.took = append(*turn.took, figure)
			}
		}
		if i > 0 {
			r = c.result(adapter, raw)
		}
	}
	return r, nil
}

// throughput is how often work is done a second by so many workers.
func throughput(workers int, d time.Duration, work func(ctx context.Context, worker int) error) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), benchSetup)
	defer cancel()
	var done atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range workers {
		wg.Go(func() {
			for errs[i] == nil && (time.Since(start) < d || done.Load() == 0) {
				errs[i] = work(ctx, i)
				done.Add(1)
			}
		})
	}
	wg.Wait()
	rate := float64(done.Load()) / time.Since(start).Seconds()
	for _, err := range errs {
		if err != nil {
			return 0, err // the others say the same
		}
	}
	return rate, nil
}

// delivery is the median time, in microseconds, from the call of Set until the
// watch has delivered the change.
func delivery(s side) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), benchSetup)
	defer cancel()
	path := s.paths(1)[0]
	if err := s.Create(ctx, []string{path}, nil); err != nil {
		return 0, err
	}
	next, err := s.Watch(ctx, path)
	if err != nil {
		return 0, err
	}
	took := make([]float64, benchChanges)
	for i := range took {
		set := make(chan error, 1)
		start := time.Now()
		go func() { set <- s.Set(ctx, []string{path}, strconv.AppendInt(nil, int64(i), 10)) }()
		err := next(ctx)
		took[i] = float64(time.Since(start).Nanoseconds()) / 1000
		if err := errors.Join(err, <-set); err != nil {
			return 0, err
		}
	}
	return median(took), nil
}

// adapted is an adapter's session as a BenchClient.
type adapted struct{ s registry.Session }

func (a adapted) CreateEphemeral(ctx context.Context, path string, value []byte) error {
	_, err := a.s.Commit(ctx, registry.CreateEphemeral(path, value))
	return err
}

func (a adapted) Create(ctx context.Context, paths []string, value []byte) error {
	ops := make([]registry.Op, len(paths))
	for i, path := range paths {
		ops[i] = registry.Create(path, value)
	}
	_, err := a.s.Commit(ctx, ops...)
	return err
}

func (a adapted) Set(ctx context.Context, paths []string, value []byte) error {
	ops := make([]registry.Op, len(paths))
	for i, path := range paths {
		ops[i] = registry.Set(path, value, registry.AnyVersion)
	}
	_, err := a.s.Commit(ctx, ops...)
	return err
}

func (a adapted) Watch(ctx context.Context, path string) (func(context.Context) error, error) {
	w, err := a.s.Watch(ctx)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = w.Close() })
	if err := w.Add(path, registry.Self); err != nil {
		return nil, err
	}
	next := func(ctx context.Context) error {
		_, err := w.Next(ctx)
		return err
	}
	for {
		events, err := w.Next(ctx)
		if err != nil || events[len(events)-1].Synced {
			return next, err
		}
	}
}
