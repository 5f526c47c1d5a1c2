package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/core/event"
)

// Config says who is told. The zero value tells the default logger of warnings and errors.
type Config struct {
	// Listeners are called in this order.
	Listeners []func(event.Event)
	// Log gets a record of every event, at its level. nil is slog.Default(), as it is
	// when something is told, which gets warnings and errors alone.
	Log *slog.Logger
	// Silent leaves the log out.
	Silent bool
	// Stack is the stack of an error that was a panic, or nil.
	Stack func(error) []byte
}

// A Dispatcher tells events. New makes it.
type Dispatcher struct {
	cfg  Config
	wake chan struct{} // holds one token when something is to do
	done chan struct{}

	mu     sync.Mutex
	queue  []event.Event
	closed bool
	aside  sync.WaitGroup // says that the queue grows

	// Of the goroutine: what it has taken from the queue, and how far it is.
	batch   []event.Event
	told    int    // of batch
	heard   int    // listeners that have heard of batch[told]
	tried   int    // attempts at writing it
	wrong   string // what the log did at the last one
	crowd   crowd
	leaving bool

	complained atomic.Bool // about the log
}

// New starts a Dispatcher, which Close ends.
func New(cfg Config) *Dispatcher {
	d := &Dispatcher{cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go d.run()
	return d
}

// Emit tells an event, later. After Close it is dropped.
func Emit[E event.Event](d *Dispatcher, e E) {
	if len(d.cfg.Listeners) == 0 && !d.logs(levelOf(e)) {
		return
	}
	d.put(e)
}

func (d *Dispatcher) put(e event.Event) {
	d.mu.Lock()
	if !d.closed {
		d.queue = append(d.queue, e)
	}
	waiting := len(d.queue)
	if waiting >= slow && waiting&(waiting-1) == 0 && !d.closed {
		d.aside.Go(func() { d.sayHowManyWait(waiting) }) // whoever emits may hold a lock, and the goroutine is held up
	}
	d.mu.Unlock()
	d.nudge()
}

func (d *Dispatcher) sayHowManyWait(n int) {
	if d.logs(slog.LevelWarn) {
		d.complain(d.out(slog.LevelWarn, "a listener is slower than what it is told of, which waits in memory", slog.Int("events", n)))
	}
}

// slow is how many events wait when it is said that they do, and again whenever they are twice as many: ten
// thousand jobs that fire at once give fewer.
const slow = 1 << 17

// Wants reports whether events of a level are told to anybody. The zero value of an
// event will do; of types whose level depends on the value, it is the lowest.
func Wants[E event.Event](d *Dispatcher, e E) bool {
	return len(d.cfg.Listeners) > 0 || d.logs(levelOf(e))
}

// logs reports whether the log takes records of a level.
func (d *Dispatcher) logs(level slog.Level) bool {
	return !d.cfg.Silent && (d.cfg.Log != nil || level >= slog.LevelWarn) && d.enabled(level)
}

// enabled asks the log's handler, which may be the user's. One that panics is found out when it is given a record.
func (d *Dispatcher) enabled(level slog.Level) (is bool) {
	defer func() {
		if recover() != nil {
			is = true
		}
	}()
	return d.log().Enabled(context.Background(), level)
}

func (d *Dispatcher) log() *slog.Logger {
	if d.cfg.Log != nil {
		return d.cfg.Log
	}
	return slog.Default() //nolint:forbidigo // it is for those who gave no logger
}

func (d *Dispatcher) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Close tells what was emitted before, and joins the goroutine. It may be called again.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.nudge()
	<-d.done
	d.aside.Wait()
}

func (d *Dispatcher) run() {
	defer func() {
		if d.leaving {
			close(d.done)
			return
		}
		// A listener ended this goroutine, as testing.T.FailNow does, or the log; another goes on.
		defer func() { go d.run() }()
		if d.told < len(d.batch) && d.tried == 0 {
			d.blame(ended, nil)
		}
	}()
	for {
		d.tell()
		d.mu.Lock()
		d.batch, d.queue = d.queue, nil
		d.leaving = d.closed && len(d.batch) == 0
		d.mu.Unlock()
		switch {
		case d.leaving:
			d.writeRest(true)
			return
		case len(d.batch) == 0:
			select {
			case <-d.wake:
			case <-d.crowd.over:
				d.writeRest(false)
			}
		}
	}
}

// tell tells what is left of the batch.
func (d *Dispatcher) tell() {
	for ; d.told < len(d.batch); d.told++ {
		e := d.batch[d.told]
		for d.heard < len(d.cfg.Listeners) {
			d.heard++
			d.call(d.cfg.Listeners[d.heard-1], e)
		}
		for d.tried < attempts {
			d.tried++
			d.wrong = ended // unless it returns
			if d.wrong = d.write(e, d.tried > 1); d.wrong == "" {
				break
			}
		}
		d.complain(d.wrong)
		d.heard, d.tried, d.wrong = 0, 0, ""
	}
	d.batch, d.told = nil, 0
}

const (
	// attempts at writing an event: as it is, and with nothing of the user's in it.
	attempts = 2
	// ended is what a listener, or the log, did that ended the goroutine.
	ended = "ended its goroutine"
)

// call calls a listener and outlives its panic.
func (d *Dispatcher) call(listener func(event.Event), e event.Event) {
	defer func() {
		if v := recover(); v != nil {
			d.blame("panicked: "+panicText(v), debug.Stack())
		}
	}()
	listener(e)
}

// blame logs what a listener did with the event in hand.
func (d *Dispatcher) blame(what string, stack []byte) {
	if !d.logs(slog.LevelError) {
		return
	}
	attrs := []slog.Attr{slog.String("event", fmt.Sprintf("%T", d.batch[d.told]))}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	d.complain(d.out(slog.LevelError, "a listener "+what, attrs...))
}

// write logs one event, plain with nothing of the user's in it. It reports what the log did instead, "" for nothing.
func (d *Dispatcher) write(e event.Event, plain bool) (wrong string) {
	level := levelOf(e)
	if !d.logs(level) {
		return ""
	}
	if !plain {
		d.writeRest(false)
		if problem := d.crowded(e); problem != "" && !d.crowd.admits(time.Now(), problem) {
			return ""
		}
	}
	text, attrs := d.record(e, plain)
	return d.out(level, text, attrs...)
}

// out hands a record to the log, and outlives a panic of it. It reports what the log did instead, "" for nothing.
func (d *Dispatcher) out(level slog.Level, text string, attrs ...slog.Attr) (wrong string) {
	defer func() {
		if v := recover(); v != nil {
			wrong = "panicked: " + panicText(v)
		}
	}()
	d.log().LogAttrs(context.Background(), level, text, attrs...)
	return ""
}

// complain says in the default log that the program's own has done something wrong, once: it may with each record.
func (d *Dispatcher) complain(wrong string) {
	if wrong == "" || d.cfg.Log == nil || d.complained.Swap(true) {
		return
	}
	defer func() { _ = recover() }() // it may be the same
	std := slog.Default()            //nolint:forbidigo // the other one is broken
	std.LogAttrs(context.Background(), slog.LevelError, "the logger given to WithLogger "+wrong+"; what it is given may be lost, and this is said once")
}

// crowded is the problem of an event that may come in crowds, and of which some are enough; "" for any other. Who gave
// a logger gets every outcome of a fire.
func (d *Dispatcher) crowded(e event.Event) string {
	switch e := e.(type) {
	case event.Warning:
		if e.Job != "" {
			return e.Problem
		}
	case event.ItemsFolded:
		if d.cfg.Log == nil {
			return folded
		}
	}
	return ""
}

// writeRest logs how many warnings were left out.
func (d *Dispatcher) writeRest(over bool) {
	for _, u := range d.crowd.rest(time.Now(), over) {
		d.complain(d.out(slog.LevelWarn, u.problem, u.attrs()...))
	}
}
