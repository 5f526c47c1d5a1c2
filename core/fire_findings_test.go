package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// An odd error does something of its own when it is asked for its text, and for what it wraps.
type odd struct {
	text  func() string
	wraps func() error
}

func (e *odd) Error() string { return e.text() }

func (e *odd) Unwrap() error {
	if e.wraps == nil {
		return nil
	}
	return e.wraps()
}

// rude panics with itself when it is printed.
type rude struct{}

func (rude) Error() string { panic(rude{}) }

// oddErrors are what a function may return, or panic with, and how each reads.
func oddErrors(engine func()) (all []func() error, texts []string) {
	says := func(s string) func() string { return func() string { return s } }
	circle := &odd{text: says("circle")}
	circle.wraps = func() error { return circle }
	for _, x := range []struct {
		returns func() error
		text    string
	}{
		{func() error { return (*fs.PathError)(nil) }, "panic in Error: runtime error: invalid memory address or nil pointer dereference"},
		{func() error { return (*core.PanicError)(nil) }, "panic"},
		{func() error { return fmt.Errorf("oh: %w", (*core.PanicError)(nil)) }, "oh: panic"},
		{func() error { return circle }, "circle"},
		{func() error { return &odd{text: says("wraps"), wraps: func() error { return (*fs.PathError)(nil) }} }, "wraps"},
		{func() error { return &odd{text: func() string { panic("oh no") }} }, "panic in Error: oh no"},
		{func() error { return &odd{text: func() string { runtime.Goexit(); return "" }} }, "Error ended its goroutine"},
		{func() error { return &odd{text: func() string { engine(); return "asked" }} }, "asked"},
		{func() error { return rude{} }, "panic in Error: core_test.rude"},
		{func() error { panic(rude{}) }, "panic: core_test.rude"},
		{func() error { panic((*core.PanicError)(nil)) }, "panic: panic"},
	} {
		all, texts = append(all, x.returns), append(texts, x.text)
	}
	return all, texts
}

// lines returns those of a page that hold a text.
func (p *page) lines(text string) (n int) {
	for l := range bytes.SplitSeq([]byte(p.String()), []byte("\n")) {
		if bytes.Contains(l, []byte(text)) {
			n++
		}
	}
	return n
}

// What a function returns ended the process, from the goroutine that tells events: its methods are the user's, and
// were called with nothing around them.
func TestWhateverAFunctionReturnsIsTold(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprint("a logger of its own: ", own), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				var a *instance
				returns, texts := oddErrors(func() { a.State() })
				log := defaultPage(b.T)
				var opts []core.Option
				if own {
					log = &page{}
					opts = append(opts, core.WithLogger(log.logger()))
				}
				cfg := everySecond
				cfg.Shards, cfg.Concurrency = len(returns), len(returns)
				a = b.prepare("a", core.JobFunc(func(_ context.Context, s core.Shard) error { return returns[s.Item]() }), cfg, opts...)
				require.NoError(b, a.Start(b.Context()))
				b.until("three fires", func() bool { return len(of[event.FireEnded](a)) >= 3 })
				a.stop(b)
				ended := of[event.ItemEnded](a)
				require.GreaterOrEqual(b, len(ended), 3*len(returns))
				for _, e := range ended {
					require.True(b, e.Err != nil) //nolint:testifylint // to print it may panic
				}
				require.Equal(b, len(ended), log.lines(`msg="item failed"`))
				for n, text := range texts {
					require.GreaterOrEqual(b, log.lines(fmt.Sprintf("item=%d ", n)), 3)
					require.Contains(b, log.String(), text)
				}
			})
		})
	}
}

// A brokenHandler is a log of the program's that panics.
type brokenHandler struct {
	slog.Handler
	when string
}

func (h brokenHandler) Enabled(context.Context, slog.Level) bool {
	if h.when == "asked" {
		panic("not now")
	}
	return true
}

func (h brokenHandler) Handle(context.Context, slog.Record) error { panic("not now") }

func TestALoggerThatPanicsEndsNothing(t *testing.T) {
	for _, when := range []string{"asked", "given a record"} {
		t.Run(when, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				std, w := defaultPage(b.T), newWitness()
				a := b.start("a", w, everySecond, core.WithLogger(slog.New(brokenHandler{slog.DiscardHandler, when})))
				b.until("three fires", func() bool { return len(of[event.FireEnded](a)) >= 3 })
				a.stop(b)
				require.Empty(b, w.missing(4, time.Second))
				require.Equal(b, 1, std.lines("level=ERROR"))
				require.Contains(b, std.String(), "the logger given to WithLogger panicked: not now")
			})
		})
	}
}

// Whoever asked for a run is told how its error reads. The engine asked the error, with its locks held: one that panicked
// ended the process before the end was recorded, with failover that of the next owner too, and one that asked for the
// scheduler's state never returned.
func TestWhateverAFunctionReturnsIsAResult(t *testing.T) {
	inBubble(t, func(b *bed) {
		var a *instance
		returns, texts := oddErrors(func() { a.State() })
		cfg := core.JobConfig{Name: "hello", Cron: "@requests", Shards: len(returns), Concurrency: len(returns), Failover: true}
		a = b.prepare("a", core.JobFunc(func(_ context.Context, s core.Shard) error { return returns[s.Item]() }), cfg, core.WithLogger(nil))
		require.NoError(b, a.Start(b.Context()))
		b.until("owned", func() bool { return allOwned(len(returns), a) })
		job, err := layout.New(b.ns, cfg.Name)
		require.NoError(b, err)
		id := a.job().Instance
		b.create(a, job.Request("r"), string(layout.MarshalRequest(layout.Request{Expires: time.Now().Add(time.Hour)})))
		var run layout.Run
		b.until("the run is closed", func() bool {
			run, err = layout.UnmarshalRun([]byte(b.value(b.store(a), job.Run(1))))
			return err == nil && !run.Closed.IsZero()
		})
		results, err := layout.UnmarshalResults([]byte(b.value(b.store(a), job.RunResult(1, id))))
		require.NoError(b, err)
		require.Len(b, results.Results, len(texts))
		for n, r := range results.Results {
			require.Equal(b, layout.Answer{Items: fmt.Sprint(n), Outcome: string(request.Failed), Text: texts[n]}, r)
		}
		require.Equal(b, id, a.job().Instance)
		require.Len(b, of[event.ItemEnded](a), len(returns))
	})
}

// A heldFire is a listener before fires that is held in one call, until it is let go.
type heldFire struct {
	mu  sync.Mutex
	due time.Time
	let chan struct{}
}

func (h *heldFire) listen() core.Option {
	h.let = make(chan struct{})
	return core.WithFireListeners(everySecond.Name, core.FireListeners{Timeout: 30 * time.Second, Before: func(ctx context.Context, f core.Fire) error {
		h.mu.Lock()
		first := h.due.IsZero()
		if first {
			h.due = f.Due
		}
		h.mu.Unlock()
		if !first {
			return nil
		}
		select {
		case <-h.let:
		case <-ctx.Done():
		}
		return nil
	}})
}

func (h *heldFire) at() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.due
}

// calls counts the functions that are called, and those that are called when nothing is to be any more.
type overdueCalls struct {
	*witness
	over func() bool
	late atomic.Int64
}

func (c *overdueCalls) Run(ctx context.Context, s core.Shard) error {
	if ctx.Err() != nil || (c.over != nil && c.over()) {
		c.late.Add(1)
	}
	return c.witness.Run(ctx, s)
}

// A function was called after Stop's context had ended, since the listener before its fire had only then returned. It is
// owed now, as what waits for a place is.
func TestNoFunctionIsCalledPastTheContextOfStopSinceAListenerWasSlow(t *testing.T) {
	for _, failover := range []bool{false, true} {
		t.Run(fmt.Sprint("failover: ", failover), func(t *testing.T) {
			onEach(t, func(b *bed) {
				cfg := everySecond
				cfg.Failover = failover
				h, w := &heldFire{}, newWitness()
				mine, x := &overdueCalls{witness: w}, &fireCalls{}
				a := b.start("a", mine, cfg, h.listen())
				b.until("the listener is called", func() bool { return !h.at().IsZero() && len(a.job().Running) == 4 })
				d := b.start("d", w, cfg, x.listen(core.FireListeners{}))
				ctx, cancel := context.WithTimeout(b.Context(), 200*time.Millisecond)
				defer cancel()
				require.NoError(b, a.Stop(ctx))
				require.Zero(b, mine.late.Load())
				require.Empty(b, of[event.ItemCalled](a))
				require.Empty(b, of[event.ItemEnded](a), "what was not called has not ended")
				b.until("the next owner fires", func() bool { return allOwned(4, d) && w.count() >= 4*4 })
				end := w.last().Add(-time.Second)
				d.stop(b)
				hist := b.history(w, a, d)
				require.Empty(b, hist.open(1, 4, h.at().Add(-time.Second), end))
				require.Empty(b, hist.wrong())
				require.Empty(b, w.doubled())
				for n := range 4 {
					ran := w.times(func(s core.Shard) bool { return s.Item == n })
					require.True(b, ran[0].Equal(h.at()), "item %d: the fire that was given back ran at %v", n, ran[0])
				}
				require.Empty(b, w.again(), "nothing had run")
			})
		})
	}
}

// A Stop that is patient lets what was let in be called, as before.
func TestAPatientStopWaitsForTheListenerBeforeAFire(t *testing.T) {
	inBubble(t, func(b *bed) {
		h, w := &heldFire{}, newWitness()
		a := b.start("a", w, everySecond, h.listen())
		b.until("the listener is called", func() bool { return !h.at().IsZero() && len(a.job().Running) == 4 })
		stopped := make(chan error, 1)
		go func() { stopped <- a.Stop(b.Context()) }()
		b.until("it stops", func() bool { return a.State().Stopping })
		pause(time.Second)
		close(h.let)
		require.NoError(b, <-stopped)
		require.Equal(b, 4, w.ran(h.at()))
		require.Len(b, of[event.ItemEnded](a), 4)
	})
}

// A function was called under a session that was over: others had the item by then.
func TestNoFunctionIsCalledAfterTheSessionSinceAListenerWasSlow(t *testing.T) {
	for name, c := range map[string]struct {
		failover, silent bool // the client does not say that the session is over
	}{
		"the session is lost": {}, "the session is lost, with failover": {failover: true},
		"the Deadline has passed": {silent: true}, "the Deadline has passed, with failover": {failover: true, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				cfg := everySecond
				cfg.Failover, cfg.BeginAhead = c.failover, -1
				h, w := &heldFire{}, newWitness()
				mine := &overdueCalls{witness: w}
				a := b.prepare("a", mine, cfg, h.listen())
				var deadline atomic.Int64
				mine.over = func() bool { at := deadline.Load(); return at != 0 && !time.Now().Before(time.Unix(0, at)) }
				require.NoError(b, a.Start(b.Context()))
				b.until("the listener is called", func() bool { return !h.at().IsZero() && len(a.job().Running) == 4 })
				d := b.start("d", w, cfg)
				a.gate.frozen.Store(c.silent)
				b.crash(a)
				deadline.Store(a.State().Deadline.UnixNano())
				if c.silent {
					b.until("the Deadline has passed", func() bool { return time.Now().UnixNano() > deadline.Load() })
					close(h.let)
				}
				b.until("nothing of it runs", func() bool { return len(a.job().Running) == 0 })
				require.Zero(b, mine.late.Load())
				require.Empty(b, of[event.ItemCalled](a))
				require.Empty(b, of[event.ItemEnded](a))
				a.gate.frozen.Store(false)
				a.gate.cut.Store(false)
				b.until("others have the items", func() bool { return w.count() >= 5*4 })
				a.stop(b)
				end := w.last().Add(-time.Second)
				d.stop(b)
				hist := b.history(w, a, d)
				require.Empty(b, hist.open(1, 4, h.at().Add(-time.Second), end))
				require.Empty(b, hist.wrong())
				if c.failover {
					require.Len(b, w.again(), 4)
				} else {
					require.Zero(b, w.ran(h.at()), "it is told as cut")
				}
			})
		})
	}
}

// An item that is killed before its function was called has failed, and the others run.
func TestAnItemIsKilledWhileTheListenerBeforeItsFireIsCalled(t *testing.T) {
	inBubble(t, func(b *bed) {
		h, w := &heldFire{}, newWitness()
		a := b.start("a", w, everySecond, h.listen())
		b.until("the listener is called", func() bool { return !h.at().IsZero() && len(a.job().Running) == 4 })
		job, err := layout.New(b.ns, everySecond.Name)
		require.NoError(b, err)
		b.create(a, job.Kill("k"), string(layout.MarshalKill(layout.Kill{Item: 2, Due: h.at(), By: "the test"})))
		pause(100 * time.Millisecond)
		close(h.let)
		ended := func() []event.ItemEnded {
			return slices.DeleteFunc(of[event.ItemEnded](a), func(e event.ItemEnded) bool { return !e.Due.Equal(h.at()) })
		}
		b.until("the fire has ended", func() bool { return len(ended()) == 4 })
		for _, e := range ended() {
			var killed *request.KilledError
			require.Equal(b, e.Item == 2, errors.As(e.Err, &killed), "%+v", e)
		}
		require.Equal(b, 3, w.ran(h.at()))
	})
}

// Somebody puts a node of his own, with a child, in the place of the picture of what runs. The end was refused for it,
// and lost: the item never fired again, and Stop came to no end.
func TestARunEndsThoughItsPictureCannotBeRemoved(t *testing.T) {
	onEach(t, func(b *bed) {
		release, w := make(chan struct{}), newWitness()
		w.holds(func(ctx context.Context, s core.Shard) error {
			if s.Item == 2 {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return nil
		})
		a := b.start("a", w, everySecond)
		shown := b.path(a, "sharding/2/running")
		b.until("it is shown", func() bool { return b.value(b.store(a), shown) == a.job().Instance })
		_, err := b.store(a).Commit(b.Context(), registry.Delete(shown, registry.AnyVersion))
		require.NoError(b, err)
		_, err = b.store(a).Commit(b.Context(), registry.Create(shown, []byte("x")), registry.Create(shown+"/y", nil))
		require.NoError(b, err)
		close(release)
		runs := func() int { return len(w.times(func(s core.Shard) bool { return s.Item == 2 })) }
		had := runs()
		b.until("the item fires again", func() bool { return runs() >= had+3 })
		a.stop(b)
		require.Empty(b, w.doubled())
		require.Contains(b, b.value(b.store(a), shown), "x", "what is not ours stays")
	})
}
