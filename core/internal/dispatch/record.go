package dispatch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/event"
)

// levelOf decides by the type first, so that it costs nothing.
func levelOf[E event.Event](e E) slog.Level {
	switch e := any(e).(type) {
	case event.FireBegun:
		if e.Redo {
			return slog.LevelWarn
		}
		return slog.LevelDebug
	case event.FireEnded, event.ItemCalled, event.ItemReturned:
		return slog.LevelDebug
	case event.ItemEnded:
		if e.Err != nil {
			return slog.LevelError
		}
		return slog.LevelDebug
	case event.ItemsSkipped:
		if e.Reason == event.SkipDisabled {
			return slog.LevelInfo
		}
		return slog.LevelWarn
	case event.Stopped:
		return stoppedLevel(e.Reason, e.Err)
	case event.ConfigChanged:
		if e.Adopted || e.Overwrote {
			return slog.LevelWarn
		}
	case event.FireHeard:
		return heardLevel(e.Err)
	case event.RoundHeard:
		return heardLevel(e.Err)
	case event.RoundLost, event.RoundLate, event.ItemCut, event.ItemStuck, event.ItemsFolded, event.SessionLost,
		event.SessionRegained, event.Warning: // who has read that it was lost wants to know
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func heardLevel(err error) slog.Level {
	if err != nil {
		return slog.LevelError
	}
	return slog.LevelDebug
}

func stoppedLevel(why event.StopReason, err error) slog.Level {
	switch {
	case why == event.StopFailed || err != nil:
		return slog.LevelError
	case why == event.StopShutDown:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// record is how an event reads in a log, plain without values that the user has made.
func (d *Dispatcher) record(e event.Event, plain bool) (string, []slog.Attr) {
	switch e := e.(type) {
	case event.Started:
		return "job started", []slog.Attr{job(e.Job), slog.String("instance", e.Instance)}
	case event.Stopped:
		attrs := []slog.Attr{job(e.Job)}
		attrs = text(attrs, "instance", e.Instance)
		attrs = text(attrs, "reason", string(e.Reason))
		return "job stopped", failure(attrs, e.Err, plain)
	case event.LeaderChanged:
		return "leader changed", []slog.Attr{job(e.Job), slog.String("leader", e.Leader), slog.Bool("self", e.Self)}
	case event.Resharded:
		return "resharded", []slog.Attr{
			job(e.Job), slog.Int("epoch", e.Epoch), slog.Int("total", e.Total), slog.Int("moves", len(e.Moves)),
			slog.Int("commits", e.Commits), slog.Duration("took", e.Took),
		}
	case event.ItemsChanged:
		return "items changed", []slog.Attr{job(e.Job), slog.Any("items", e.Items), slog.Int("total", e.Total)}
	case event.SessionLost:
		return "session lost", failure(nil, e.Err, plain)
	case event.SessionRegained:
		return "session regained", []slog.Attr{slog.String("session", e.Session), slog.Duration("outage", e.Outage)}
	case event.Waiting:
		if e.For == "" {
			return "waits no more", text(nil, "job", e.Job)
		}
		return "waits", append(text(nil, "job", e.Job), slog.String("for", e.For))
	case event.ConfigChanged:
		return configText(e), []slog.Attr{job(e.Job)}
	case event.Warning:
		return e.Problem, failure(text(nil, "job", e.Job), e.Err, plain)
	}
	return d.fireRecord(e, plain)
}

const folded = "missed fires folded into one"

// fireRecord is record of what happens to fires and items.
func (d *Dispatcher) fireRecord(e event.Event, plain bool) (string, []slog.Attr) {
	switch e := e.(type) {
	case event.FireBegun:
		attrs := []slog.Attr{job(e.Job), due(e.Due), slog.Any("items", e.Items), slog.Duration("late", e.Late)}
		if e.Redo {
			return "fire begun again: its instance's life ended while it ran", attrs
		}
		return "fire begun", append(attrs, slog.Bool("made up", e.MadeUp))
	case event.FireEnded:
		return "fire ended", []slog.Attr{job(e.Job), due(e.Due), slog.Any("items", e.Items), slog.Int("failed", e.Failed), slog.Duration("took", e.Took)}
	case event.ItemCalled:
		return "item called", []slog.Attr{job(e.Job), slog.Int("item", e.Item), due(e.Due), slog.String("task", e.TaskID)}
	case event.ItemReturned:
		return "item returned", []slog.Attr{job(e.Job), slog.Int("item", e.Item), due(e.Due), slog.String("task", e.TaskID), slog.Duration("took", e.Ended.Sub(e.Began))}
	case event.ItemEnded:
		attrs := []slog.Attr{job(e.Job), slog.Int("item", e.Item), due(e.Due), slog.Duration("took", e.Took)}
		if e.Err == nil {
			return "item ended", attrs
		}
		if attrs = failure(attrs, e.Err, plain); !plain { // to find the stack, methods of the user's may be called
			attrs = text(attrs, "stack", string(d.stack(e.Err)))
		}
		return "item failed", attrs
	case event.ItemsSkipped:
		attrs := []slog.Attr{job(e.Job), slog.Any("items", e.Items), due(e.Due), slog.Int("count", e.Count), slog.String("reason", string(e.Reason))}
		return "items skipped", text(attrs, "detail", e.Detail)
	case event.ItemsFolded:
		return folded, []slog.Attr{
			job(e.Job), slog.Any("items", e.Items), slog.Time("first", e.First), slog.Time("last", e.Last), slog.Int("count", e.Count), slog.Time("into", e.Into),
		}
	case event.ItemCut:
		attrs := []slog.Attr{job(e.Job), slog.Int("item", e.Item), due(e.Due), slog.String("instance", e.Instance)}
		return "item cut: its instance's life ended while it ran", text(attrs, "reason", string(e.Reason))
	case event.FireHeard:
		attrs := []slog.Attr{job(e.Job), due(e.Due), slog.Any("items", e.Items), slog.String("listener", e.Listener), slog.Duration("took", e.Took)}
		if e.Err == nil {
			return "fire heard", attrs
		}
		return "a listener to a fire failed", failure(attrs, e.Err, plain)
	case event.RoundHeard:
		attrs := []slog.Attr{
			job(e.Job), due(e.Due), slog.String("phase", string(e.Phase)), slog.Int("merged", e.Merged), slog.Int("attempt", e.Attempt), slog.Duration("took", e.Took),
		}
		if e.Err == nil {
			return "round heard", attrs
		}
		return "a listener to rounds failed", failure(attrs, e.Err, plain)
	case event.RoundLost:
		return "an instance died that was called for a round", []slog.Attr{
			job(e.Job), due(e.Due), slog.String("phase", string(e.Phase)), slog.String("instance", e.Instance), slog.Int("attempt", e.Attempt),
		}
	case event.RoundLate:
		attrs := []slog.Attr{
			job(e.Job), due(e.Due), slog.Any("items", e.Items), slog.Duration("waited", e.Waited), slog.Bool("failed", e.Failed),
		}
		if e.Caller != "" {
			return "the listener before a round did not return in time", append(attrs, slog.String("caller", e.Caller))
		}
		return "a round did not start in time, since instances had not begun their items", append(attrs, slog.Any("missing", e.Missing))
	case event.ItemStuck:
		attrs := []slog.Attr{job(e.Job), slog.Int("item", e.Item), due(e.Due), slog.Duration("running", e.Running)}
		return "item stuck: its timeout is over, and its function has not returned", text(attrs, "stack", e.Stack)
	}
	return fmt.Sprintf("%T", e), nil
}

// configText says what took effect, and at start whose configuration won.
func configText(e event.ConfigChanged) string {
	list := make([]string, len(e.Changes))
	for i, c := range e.Changes {
		if c.Field == "Props" {
			list[i] = "Props with other values: " + strings.Trim(c.Old+" → "+c.New, " →")
			continue
		}
		list[i] = fmt.Sprintf("%s %q → %q", c.Field, c.Old, c.New)
		if e.Adopted {
			list[i] = fmt.Sprintf("%s %q → registry %q", c.Field, c.Old, c.New)
		}
	}
	changes := strings.Join(list, ", ")
	if e.Adopted {
		but := ""
		if slices.ContainsFunc(e.Changes, func(c event.Change) bool { return c.Field == "Disabled" && c.New == "true" }) {
			but = " (that leaves a job disabled that an operator has disabled)"
		}
		return "the registry's configuration differs from the one given to Add, and wins: " + changes +
			"; set Overwrite to write yours" + but + ", or change the registry's"
	}
	if e.Overwrote {
		return "the configuration given to Add has replaced the registry's, since Overwrite is set: " + changes
	}
	return "configuration changed: " + changes
}

func job(name string) slog.Attr { return slog.String("job", name) }

func due(t time.Time) slog.Attr { return slog.Time("due", t) }

// text adds a text that is not empty.
func text(attrs []slog.Attr, key, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(key, value))
}

// failure adds an error: as it is, since the log's handler may know what to do with it, or as a text where that, or its
// own Error, cannot be relied on.
func failure(attrs []slog.Attr, err error, plain bool) []slog.Attr {
	if err == nil {
		return attrs
	}
	if text, returned := said(err); plain || !returned {
		return append(attrs, slog.String("error", text))
	}
	return append(attrs, slog.Any("error", err))
}

// stack is that of an error that was a panic.
func (d *Dispatcher) stack(err error) (stack []byte) {
	defer func() {
		if recover() != nil {
			stack = nil
		}
	}()
	if d.cfg.Stack == nil {
		return nil
	}
	return d.cfg.Stack(err)
}
