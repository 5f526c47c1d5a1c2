package core

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A dispatcher hands events to listeners on one goroutine, in order, and turns
// them into log records. What emits never waits for a listener.
type dispatcher struct {
	listeners []Listener
	mu        sync.Mutex
	queue     []Event
	closed    bool
	wake      chan struct{}
	done      chan struct{}
}

func newDispatcher(o options) *dispatcher {
	d := &dispatcher{listeners: o.listen, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if o.log != nil {
		d.listeners = append(d.listeners, func(e Event) { logEvent(o.log, e) })
	}
	go d.run()
	return d
}

func (d *dispatcher) emit(e Event) {
	if len(d.listeners) == 0 {
		return
	}
	d.mu.Lock()
	if !d.closed {
		d.queue = append(d.queue, e)
	}
	d.mu.Unlock()
	d.nudge()
}

func (d *dispatcher) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// close delivers what is queued and joins the goroutine.
func (d *dispatcher) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.nudge()
	<-d.done
}

func (d *dispatcher) run() {
	defer close(d.done)
	for range d.wake {
		d.mu.Lock()
		batch, closed := d.queue, d.closed
		d.queue = nil
		d.mu.Unlock()
		for _, e := range batch {
			for _, l := range d.listeners {
				l(e)
			}
		}
		if closed {
			return
		}
	}
}

// logEvent is the only place that decides how an event reads in a log.
func logEvent(log *slog.Logger, e Event) {
	level, msg, attrs := slog.LevelInfo, "", []slog.Attr(nil)
	switch e := e.(type) {
	case Started:
		msg, attrs = "job started", []slog.Attr{slog.String("job", e.Job), slog.String("instance", e.Instance)}
	case Stopped:
		msg, attrs = "job stopped", []slog.Attr{slog.String("job", e.Job), slog.String("instance", e.Instance)}
		if e.Err != nil {
			level, attrs = slog.LevelError, append(attrs, slog.Any("error", e.Err))
		}
	case LeaderChanged:
		msg, attrs = "leader changed", []slog.Attr{slog.String("job", e.Job), slog.String("leader", e.Leader), slog.Bool("self", e.Self)}
	case Resharded:
		msg, attrs = "resharded", []slog.Attr{slog.String("job", e.Job), slog.Int("total", e.Total), slog.Int("moves", len(e.Moves)), slog.Int("commits", e.Commits), slog.Duration("took", e.Took)}
	case ItemsChanged:
		msg, attrs = "items changed", []slog.Attr{slog.String("job", e.Job), slog.Any("items", e.Items), slog.Int("total", e.Total)}
	case FireBegun:
		level, msg, attrs = slog.LevelDebug, "fire begun", []slog.Attr{slog.String("job", e.Job), slog.Time("due", e.Due), slog.Any("items", e.Items), slog.Duration("late", e.Late)}
	case FireEnded:
		level, msg, attrs = slog.LevelDebug, "fire ended", []slog.Attr{slog.String("job", e.Job), slog.Time("due", e.Due), slog.Any("items", e.Items), slog.Int("failed", e.Failed), slog.Duration("took", e.Took)}
	case ItemFailed:
		level, msg, attrs = slog.LevelError, "item failed", []slog.Attr{slog.String("job", e.Job), slog.Int("item", e.Item), slog.Time("due", e.Due), slog.Any("error", e.Err)}
	case ItemsSkipped:
		level, msg, attrs = slog.LevelWarn, "items skipped", []slog.Attr{slog.String("job", e.Job), slog.Any("items", e.Items), slog.Time("due", e.Due), slog.Int("count", e.Count), slog.String("reason", string(e.Reason)), slog.String("detail", e.Detail)}
	case SessionLost:
		level, msg, attrs = slog.LevelWarn, "session lost", []slog.Attr{slog.Any("error", e.Err)}
	case SessionRegained:
		msg, attrs = "session regained", []slog.Attr{slog.String("session", e.Session), slog.Duration("outage", e.Outage)}
	case Waiting:
		msg, attrs = "waiting", []slog.Attr{slog.String("job", e.Job), slog.String("for", e.For)}
	case ConfigChanged:
		msg, attrs = "configuration in force", []slog.Attr{slog.String("job", e.Job), slog.Any("fields", e.Fields), slog.Bool("adopted", e.Adopted)}
	case Warning:
		level, msg, attrs = slog.LevelWarn, e.Problem, []slog.Attr{slog.String("job", e.Job)}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("error", e.Err))
		}
	}
	log.LogAttrs(context.Background(), level, msg, attrs...)
}

// skipped is the event for items of one due time.
func skipped(job string, items []int, due time.Time, why SkipReason, detail string) ItemsSkipped {
	return ItemsSkipped{Job: job, Items: items, Due: due, Count: 1, Reason: why, Detail: detail}
}
