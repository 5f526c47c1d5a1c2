package dispatch_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
)

// A says error does something when it is asked for its text.
type says func() string

func (f says) Error() string { return f() }

// A wraps error does something when it is asked what it wraps.
type wraps func() error

func (wraps) Error() string   { return "wraps" }
func (f wraps) Unwrap() error { return f() }

// A circle wraps itself.
type circle struct{}

func (*circle) Error() string   { return "circle" }
func (c *circle) Unwrap() error { return c }

// A rude error panics with itself when it is asked for its text, and so whoever prints what it has panicked with.
type rude struct{}

func (rude) Error() string { panic(rude{}) }

func ends() string { runtime.Goexit(); return "" }

// broken are errors of users whose methods do what they should not, with how each reads.
var broken = map[string]struct {
	err  error
	text string
}{
	"a nil pointer":                 {(*fs.PathError)(nil), `error="panic in Error: runtime error: invalid memory address or nil pointer dereference"`},
	"one that panics":               {says(func() string { panic("oh no") }), `error="panic in Error: oh no"`},
	"one that panics with an error": {says(func() string { panic(errors.New("oh no")) }), `error="panic in Error: oh no"`},
	"one that panics with itself":   {rude{}, `error="panic in Error: dispatch_test.rude"`},
	"one that ends its goroutine":   {says(ends), `error="Error ended its goroutine"`},
	"one that wraps itself":         {&circle{}, `error=circle`},
	"one that wraps a nil pointer":  {wraps(func() error { return (*fs.PathError)(nil) }), `error=wraps`},
	"one that panics as it unwraps": {wraps(func() error { panic("oh no") }), `error=wraps`},
	"one that ends as it unwraps":   {wraps(func() error { ends(); return nil }), `error=wraps`},
}

// What a function returns is told whatever its methods do: that ended the process.
func TestAnErrorWhoseMethodsAreBrokenIsTold(t *testing.T) {
	stack := func(err error) []byte { // as errors.As walks
		_, _ = errors.AsType[panicked](err)
		return nil
	}
	bounded := func(err error) (found []byte) {
		dispatch.Find(err, func(err error) bool {
			p, is := err.(panicked) //nolint:errorlint // Find unwraps
			found = []byte(p.stack)
			return is
		})
		return found
	}
	for name, x := range broken {
		for how, stack := range map[string]func(error) []byte{"": bounded, ", whoever looks for its stack": stack} {
			if _, loops := x.err.(*circle); loops && how != "" { //nolint:errorlint // the value itself
				continue // nobody ends that
			}
			t.Run(name+how, func(t *testing.T) {
				log, heard := newLog(), 0
				d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelDebug), Stack: stack, Listeners: []func(event.Event){func(event.Event) { heard++ }}})
				for _, e := range []event.Event{
					event.ItemEnded{Job: "j", Err: x.err}, event.Warning{Problem: "p", Err: x.err}, event.RoundHeard{Err: x.err}, event.SessionLost{Err: x.err},
				} {
					emit(d, e)
				}
				emit(d, event.Waiting{})
				d.Close()
				require.Equal(t, 5, heard, "each once")
				lines := log.lines()
				require.Len(t, lines, 5, lines)
				for _, line := range lines[:4] {
					require.Contains(t, line, x.text)
				}
				require.Contains(t, lines[0], `msg="item failed"`)
			})
		}
	}
}

// What a listener panics with may panic itself.
func TestAListenerThatPanicsWithWhatPanics(t *testing.T) {
	log, heard := newLog(), 0
	d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelError), Listeners: []func(event.Event){
		func(event.Event) { panic(rude{}) }, func(event.Event) { panic(says(ends)) }, func(event.Event) { heard++ },
	}})
	emit(d, event.Started{})
	emit(d, event.Started{})
	d.Close()
	require.Equal(t, 2, heard)
	require.Len(t, log.lines(), 4)
	require.Contains(t, log.lines()[0], `msg="a listener panicked: dispatch_test.rude"`)
	require.Contains(t, log.lines()[1], `msg="a listener ended its goroutine"`)
}

// A handler of the program's own.
type handler struct {
	slog.Handler
	enabled func()
	handle  func(r slog.Record)
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool {
	if h.enabled != nil {
		h.enabled()
	}
	return h.Handler.Enabled(ctx, l)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if h.handle != nil {
		h.handle(r)
	}
	return h.Handler.Handle(ctx, r)
}

// A log that panics, or ends the goroutine, ends neither the process nor what listeners hear. The default log says so,
// once: each record would.
func TestALogThatIsBroken(t *testing.T) {
	no := func() { panic(rude{}) }
	for name, h := range map[string]handler{
		"it panics":                        {handle: func(slog.Record) { no() }},
		"it ends its goroutine":            {handle: func(slog.Record) { ends() }},
		"it panics when it is asked":       {enabled: no},
		"it panics with what must be said": {handle: func(r slog.Record) { r.Attrs(func(slog.Attr) bool { panic("no attributes") }); panic("none") }},
	} {
		t.Run(name, func(t *testing.T) {
			std, own, heard := newLog(), newLog(), 0
			setDefault(t, std.logger(slog.LevelDebug))
			h.Handler = own.logger(slog.LevelDebug).Handler()
			d := dispatch.New(dispatch.Config{Log: slog.New(&h), Listeners: []func(event.Event){func(event.Event) { heard++ }}})
			for range 3 {
				emit(d, event.ItemEnded{Err: errors.New("no")})
				emit(d, event.Waiting{})
				emit(d, event.Warning{Job: "j", Problem: "p"})
			}
			d.Close()
			require.Equal(t, 9, heard, "each once")
			require.Empty(t, own.lines())
			lines := std.lines()
			require.Len(t, lines, 1, lines)
			require.Contains(t, lines[0], `level=ERROR msg="the logger given to WithLogger `)
		})
	}
}

// A handler that cannot take an error as it is gets its text.
func TestALogThatCannotTakeAnError(t *testing.T) {
	own, std := newLog(), newLog()
	setDefault(t, std.logger(slog.LevelDebug))
	h := &handler{Handler: own.logger(slog.LevelDebug).Handler(), handle: func(r slog.Record) {
		r.Attrs(func(a slog.Attr) bool {
			if a.Value.Kind() == slog.KindAny && a.Key == "error" {
				panic("no errors, please")
			}
			return true
		})
	}}
	d := dispatch.New(dispatch.Config{Log: slog.New(h), Stack: stackOf})
	emit(d, event.ItemEnded{Job: "j", Item: 1, Due: at, Err: panicked{"here"}})
	d.Close()
	require.Equal(t, []string{`level=ERROR msg="item failed" job=j item=1 due=2026-03-01T02:00:00.000Z took=0s error="panic: oh no"`}, own.lines())
	require.Empty(t, std.lines())
}

// That a listener is slow is said while somebody emits, who may hold a lock that the log's handler wants.
func TestWhoEmitsDoesNotCallTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		setDefault(t, newLog().logger(slog.LevelDebug))
		let, said := make(chan struct{}), make(chan struct{})
		h := &handler{Handler: newLog().logger(slog.LevelWarn).Handler(), handle: func(r slog.Record) {
			if strings.Contains(r.Message, "slower") {
				<-said
				panic("oh no")
			}
		}}
		d := dispatch.New(dispatch.Config{Log: slog.New(h), Listeners: []func(event.Event){func(event.Event) { <-let }}})
		for range 1 << 18 {
			dispatch.Emit(d, event.Waiting{})
		}
		close(said)
		close(let)
		d.Close()
	})
}

func TestFindLooksAtAllThatAnErrorWraps(t *testing.T) {
	one, other := errors.New("one"), errors.New("other")
	var seen []string
	deep := errors.Join(one, errors.Join(nil, wraps(func() error { return other })))
	require.True(t, dispatch.Find(deep, func(err error) bool {
		seen = append(seen, strings.ReplaceAll(err.Error(), "\n", "+"))
		return err == other //nolint:errorlint // Find unwraps
	}))
	require.Equal(t, []string{"one+wraps", "one", "wraps", "wraps", "other"}, seen)
	require.False(t, dispatch.Find(nil, func(error) bool { return true }))
	looked := 0
	require.False(t, dispatch.Find(&circle{}, func(error) bool { looked++; return false }))
	require.Greater(t, looked, 99, "it comes to an end")
	var many error = &circle{}
	for range 50 {
		many = errors.Join(many, many) // each twice as many as the one before
	}
	require.False(t, dispatch.Find(many, func(error) bool { return false }))
	require.Equal(t, "one", dispatch.Text(one))
	require.Equal(t, "panic in Error: dispatch_test.rude", dispatch.Text(rude{}))
}
