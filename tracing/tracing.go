package tracing

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/core/event"
)

// A Sink takes what happens. Its methods are called on one goroutine, and end with ctx.
type Sink interface {
	// Execution takes a run of an item: when it begins, and again, with Ended, when it is over.
	Execution(ctx context.Context, e Execution) error
	// Status takes a step in the life of a fire's items on one instance.
	Status(ctx context.Context, s Status) error
}

// Config is how a Tracer works. The zero value of a field means its default.
type Config struct {
	// Queue is how many entries wait at most. 0 is 1,024.
	Queue int
	// HostName is that of Execution. "" is this host's.
	HostName string
	// Failed is told each error of the sink, on the sink's goroutine. nil is nobody; they are
	// counted.
	Failed func(error)
}

// Stats are numbers of entries.
type Stats struct {
	// Delivered: the sink has taken them.
	Delivered uint64
	// Dropped: the queue was full, or closed.
	Dropped uint64
	// Failed: the sink returned an error, or panicked.
	Failed uint64
}

// closeGrace is how long a sink has to return once its context has ended.
const closeGrace = time.Second

// A Tracer stands between schedulers and a sink. New makes it, Close ends it.
type Tracer struct {
	cfg    Config
	sink   Sink
	queue  chan entry
	ctx    context.Context
	cancel context.CancelFunc
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when the goroutine has ended
	once   sync.Once

	delivered, dropped, failed atomic.Uint64
}

// An entry is one call of the sink.
type entry func(ctx context.Context, sink Sink) error

// New starts a Tracer.
func New(sink Sink, cfg Config) *Tracer {
	cfg.Queue = cmp.Or(max(cfg.Queue, 0), 1024)
	if cfg.HostName == "" {
		cfg.HostName, _ = os.Hostname() // else it is not known
	}
	t := &Tracer{cfg: cfg, sink: sink, queue: make(chan entry, cfg.Queue), stop: make(chan struct{}), done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.run()
	return t
}

// Listen takes an event; it is a core.Listener. It never blocks.
func (t *Tracer) Listen(e event.Event) {
	switch e := e.(type) {
	case event.ItemCalled:
		t.execution(e.Run)
	case event.ItemReturned:
		t.execution(e.Run)
	default:
		for _, s := range statuses(e) {
			t.put(func(ctx context.Context, sink Sink) error { return sink.Status(ctx, s) })
		}
	}
}

func (t *Tracer) execution(r event.Run) {
	x := execution(r, t.cfg.HostName)
	t.put(func(ctx context.Context, sink Sink) error { return sink.Execution(ctx, x) })
}

func (t *Tracer) put(e entry) {
	select {
	case <-t.stop:
	default:
		select {
		case t.queue <- e:
			return
		default:
		}
	}
	t.dropped.Add(1)
}

// Stats says what became of entries so far.
func (t *Tracer) Stats() Stats {
	return Stats{Delivered: t.delivered.Load(), Dropped: t.dropped.Load(), Failed: t.failed.Load()}
}

// Close takes no more, hands over what is queued, and joins the goroutine. When ctx ends first, what is left is
// dropped, and the sink's context ends. It is idempotent.
func (t *Tracer) Close(ctx context.Context) error {
	t.once.Do(func() { close(t.stop) })
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
	}
	t.cancel()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-t.done:
		return fmt.Errorf("tracing: close: %d entries were dropped in all: %w", t.dropped.Load(), context.Cause(ctx))
	case <-timer.C:
		return fmt.Errorf("tracing: close: the sink does not return: %w", context.Cause(ctx))
	}
}

func (t *Tracer) run() {
	defer close(t.done)
	defer t.cancel()
	for {
		select {
		case e := <-t.queue:
			t.hand(e)
			continue
		default:
		}
		select {
		case e := <-t.queue:
			t.hand(e)
		case <-t.stop:
			t.drain()
			return
		}
	}
}

// drain hands over what is left.
func (t *Tracer) drain() {
	for {
		select {
		case e := <-t.queue:
			t.hand(e)
		default:
			return
		}
	}
}

func (t *Tracer) hand(e entry) {
	if t.ctx.Err() != nil {
		t.dropped.Add(1)
		return
	}
	err := t.call(e)
	if err == nil {
		t.delivered.Add(1)
		return
	}
	t.failed.Add(1)
	if t.cfg.Failed != nil {
		t.cfg.Failed(err)
	}
}

// call outlives a panic of the sink.
func (t *Tracer) call(e entry) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("tracing: the sink panicked: %v", v)
		}
	}()
	return e(t.ctx, t.sink)
}
