package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
)

func TestListenersHearAllInOrder(t *testing.T) {
	var first, second []event.Event
	d := dispatch.New(dispatch.Config{Silent: true, Listeners: []func(event.Event){
		func(e event.Event) { first = append(first, e) }, func(e event.Event) { second = append(second, e) },
	}})
	var want []event.Event
	for i := range 1000 {
		want = append(want, event.ItemCut{Item: i})
		dispatch.Emit(d, event.ItemCut{Item: i})
	}
	d.Close()
	d.Close()
	require.Equal(t, want, first)
	require.Equal(t, want, second)
	dispatch.Emit(d, event.ItemCut{}) // dropped
	require.Len(t, first, 1000)
}

func TestManyMayEmitAtOnce(t *testing.T) {
	n := 0
	d := dispatch.New(dispatch.Config{Silent: true, Listeners: []func(event.Event){func(event.Event) { n++ }}})
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 500 {
				dispatch.Emit(d, event.Waiting{})
			}
		})
	}
	g.Wait()
	d.Close()
	require.Equal(t, 4000, n)
}

// Who emits does not wait for a listener.
func TestASlowListenerHoldsNobodyUp(t *testing.T) {
	release, heard := make(chan struct{}), 0
	d := dispatch.New(dispatch.Config{Silent: true, Listeners: []func(event.Event){func(event.Event) { <-release; heard++ }}})
	for range 100 {
		dispatch.Emit(d, event.Started{})
	}
	close(release)
	d.Close()
	require.Equal(t, 100, heard)
}

// Finding C 20: a listener's panic ended the process.
func TestAListenersPanicIsLoggedAndItGoesOn(t *testing.T) {
	log := newLog()
	var heard, other []int
	d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelError), Listeners: []func(event.Event){
		func(e event.Event) {
			cut, _ := e.(event.ItemCut)
			heard = append(heard, cut.Item)
			switch cut.Item {
			case 1:
				panic("oh no")
			case 2:
				runtime.Goexit() // as testing.T.FailNow does
			case 3:
				_ = heard[len(heard)+cut.Item]
			}
		},
		func(e event.Event) {
			cut, _ := e.(event.ItemCut)
			other = append(other, cut.Item)
		},
	}})
	for i := range 5 {
		dispatch.Emit(d, event.ItemCut{Item: i})
	}
	d.Close()
	require.Equal(t, []int{0, 1, 2, 3, 4}, heard)
	require.Equal(t, heard, other)
	lines := log.lines()
	require.Len(t, lines, 3)
	require.Contains(t, lines[0], `level=ERROR msg="a listener panicked: oh no" event=event.ItemCut stack=`)
	require.Contains(t, lines[0], "dispatch_test.go")
	require.Equal(t, `level=ERROR msg="a listener ended its goroutine" event=event.ItemCut`, lines[1])
	require.Contains(t, lines[2], "a listener panicked: runtime error: index out of range [7] with length 4")
}

// A log is a text handler without times.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func newLog() *log { return &log{} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func (l *log) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(l.buf.String(), "\n"), "\n")
}

var at = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

type panicked struct{ stack string }

func (panicked) Error() string { return "panic: oh no" }

// records are every type of event, with the line that it makes.
var records = []struct {
	e    event.Event
	want string
}{
	{event.Started{Job: "j", Instance: "i"}, `level=INFO msg="job started" job=j instance=i`},
	{event.Stopped{Job: "j", Instance: "i", Reason: event.StopCalled}, `level=INFO msg="job stopped" job=j instance=i reason="the scheduler was stopped"`},
	// Finding C 10.
	{event.Stopped{Job: "j", Instance: "i", Reason: event.StopShutDown}, `level=WARN msg="job stopped" job=j instance=i reason="the instance was shut down from outside"`},
	{event.Stopped{Job: "j", Reason: event.StopFailed, Err: errors.New("no")}, `level=ERROR msg="job stopped" job=j reason="the job cannot run" error=no`},
	{event.LeaderChanged{Job: "j", Leader: "i", Self: true}, `level=INFO msg="leader changed" job=j leader=i self=true`},
	{event.Resharded{Job: "j", Epoch: 2, Total: 3, Moves: make([]event.Move, 4), Commits: 5, Took: time.Second}, `level=INFO msg=resharded job=j epoch=2 total=3 moves=4 commits=5 took=1s`},
	{event.ItemsChanged{Job: "j", Items: []int{1, 2}, Total: 3}, `level=INFO msg="items changed" job=j items="[1 2]" total=3`},
	{event.FireBegun{Job: "j", Due: at, Items: []int{1}, Late: time.Millisecond}, `level=DEBUG msg="fire begun" job=j due=2026-03-01T02:00:00.000Z items=[1] late=1ms "made up"=false`},
	{event.FireBegun{Job: "j", Due: at, Items: []int{1}, Late: time.Second, Redo: true}, `level=WARN msg="fire begun again: its instance's life ended while it ran" job=j due=2026-03-01T02:00:00.000Z items=[1] late=1s`},
	{event.FireEnded{Job: "j", Due: at, Items: []int{1}, Failed: 1, Took: time.Second}, `level=DEBUG msg="fire ended" job=j due=2026-03-01T02:00:00.000Z items=[1] failed=1 took=1s`},
	{event.ItemEnded{Job: "j", Item: 1, Due: at, Took: time.Second}, `level=DEBUG msg="item ended" job=j item=1 due=2026-03-01T02:00:00.000Z took=1s`},
	{event.ItemEnded{Job: "j", Item: 1, Due: at, Took: time.Second, Err: errors.New("no")}, `level=ERROR msg="item failed" job=j item=1 due=2026-03-01T02:00:00.000Z took=1s error=no`},
	// Finding C 4.
	{event.ItemEnded{Job: "j", Item: 1, Due: at, Err: fmt.Errorf("x: %w", panicked{"main.go:7"})}, `level=ERROR msg="item failed" job=j item=1 due=2026-03-01T02:00:00.000Z took=0s error="x: panic: oh no" stack=main.go:7`},
	{event.ItemCalled{Run: event.Run{Job: "j", Item: 1, Due: at, TaskID: "t"}}, `level=DEBUG msg="item called" job=j item=1 due=2026-03-01T02:00:00.000Z task=t`},
	{event.ItemReturned{Run: event.Run{Job: "j", Item: 1, Due: at, TaskID: "t", Began: at, Ended: at.Add(time.Second)}}, `level=DEBUG msg="item returned" job=j item=1 due=2026-03-01T02:00:00.000Z task=t took=1s`},
	{event.ItemsSkipped{Job: "j", Items: []int{1}, Due: at, Count: 2, Reason: event.SkipMissed, Detail: "d"}, `level=WARN msg="items skipped" job=j items=[1] due=2026-03-01T02:00:00.000Z count=2 reason=missed detail=d`},
	{event.ItemsFolded{Job: "j", Items: []int{1}, First: at, Last: at.Add(time.Minute), Count: 2, Into: at.Add(2 * time.Minute)}, `level=WARN msg="missed fires folded into one" job=j items=[1] first=2026-03-01T02:00:00.000Z last=2026-03-01T02:01:00.000Z count=2 into=2026-03-01T02:02:00.000Z`},
	{event.ItemsSkipped{Job: "j", Items: []int{1}, Due: at, Count: 1, Reason: event.SkipDisabled}, `level=INFO msg="items skipped" job=j items=[1] due=2026-03-01T02:00:00.000Z count=1 reason=disabled`},
	{event.ItemCut{Job: "j", Item: 1, Due: at, Instance: "i"}, `level=WARN msg="item cut: its instance's life ended while it ran" job=j item=1 due=2026-03-01T02:00:00.000Z instance=i`},
	{event.SessionLost{Err: errors.New("no")}, `level=WARN msg="session lost" error=no`},
	{event.SessionRegained{Session: "s", Outage: time.Second}, `level=WARN msg="session regained" session=s outage=1s`},
	{event.Waiting{Job: "j", For: "x"}, `level=INFO msg=waits job=j for=x`},
	{event.Waiting{}, `level=INFO msg="waits no more"`},
	// Finding C 1.
	{
		event.ConfigChanged{Job: "j", Adopted: true, Changes: []event.Change{{Field: "Cron", Old: "0/5 * * * * ?", New: "0/10 * * * * ?"}, {Field: "Shards", Old: "3", New: "4"}}},
		`level=WARN msg="the registry's configuration differs from the one given to Add, and wins: Cron \"0/5 * * * * ?\" → registry \"0/10 * * * * ?\", ` +
			`Shards \"3\" → registry \"4\"; set Overwrite to write yours, or change the registry's" job=j`,
	},
	{
		event.ConfigChanged{Job: "j", Adopted: true, Changes: []event.Change{{Field: "Disabled", Old: "false", New: "true"}}},
		`level=WARN msg="the registry's configuration differs from the one given to Add, and wins: Disabled \"false\" → registry \"true\"; ` +
			`set Overwrite to write yours (that leaves a job disabled that an operator has disabled), or change the registry's" job=j`,
	},
	{
		event.ConfigChanged{Job: "j", Changes: []event.Change{{Field: "Cron", Old: "a", New: "b"}, {Field: "Props", Old: "", New: "uri"}}},
		`level=INFO msg="configuration changed: Cron \"a\" → \"b\", Props with other values: uri" job=j`,
	},
	{event.Warning{Job: "j", Problem: "p", Err: errors.New("no")}, `level=WARN msg=p job=j error=no`},
	{event.Warning{Problem: "p"}, `level=WARN msg=p`},
}

// emit emits an event as its own type, as the engine does.
func emit(d *dispatch.Dispatcher, e event.Event) { dispatch.Emit(d, e) }

func stackOf(err error) []byte {
	p, _ := errors.AsType[panicked](err)
	return []byte(p.stack)
}

func TestEachEventIsOneRecord(t *testing.T) {
	log := newLog()
	d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelDebug), Stack: stackOf})
	types := map[reflect.Type]bool{}
	var want []string
	for _, r := range records {
		emit(d, r.e)
		want = append(want, r.want)
		types[reflect.TypeOf(r.e)] = true
	}
	d.Close()
	require.Equal(t, want, log.lines())
	require.Len(t, types, 18, "a new type of event has a record")
}

// setDefault puts a default logger in place for the test.
func setDefault(t *testing.T, l *slog.Logger) {
	before := slog.Default() //nolint:forbidigo // what is tested
	slog.SetDefault(l)
	t.Cleanup(func() { slog.SetDefault(before) })
}

// Finding C 2: warnings and errors reach the default logger, and nothing else does.
func TestTheDefaultLoggerGetsWarningsAndErrors(t *testing.T) {
	log := newLog()
	setDefault(t, log.logger(slog.LevelDebug))
	d := dispatch.New(dispatch.Config{Stack: stackOf})
	want := []string{}
	for _, r := range records {
		emit(d, r.e)
		if strings.HasPrefix(r.want, "level=WARN") || strings.HasPrefix(r.want, "level=ERROR") {
			want = append(want, r.want)
		}
	}
	d.Close()
	require.Equal(t, want, log.lines())
}

func TestSilence(t *testing.T) {
	log := newLog()
	setDefault(t, log.logger(slog.LevelDebug))
	for _, listeners := range [][]func(event.Event){nil, {func(event.Event) {}}, {func(event.Event) { panic("unheard") }}} {
		d := dispatch.New(dispatch.Config{Silent: true, Listeners: listeners})
		for _, r := range records {
			emit(d, r.e)
		}
		d.Close()
	}
	require.Empty(t, log.lines())
}

func TestALoggerDecidesItsLevel(t *testing.T) {
	log := newLog()
	d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelError)})
	dispatch.Emit(d, event.Warning{Problem: "p"})
	dispatch.Emit(d, event.Stopped{Job: "j", Reason: event.StopFailed})
	d.Close()
	require.Len(t, log.lines(), 1)
}

func TestWants(t *testing.T) {
	setDefault(t, newLog().logger(slog.LevelDebug))
	quiet := dispatch.New(dispatch.Config{})
	defer quiet.Close()
	require.False(t, dispatch.Wants(quiet, event.FireBegun{}))
	require.False(t, dispatch.Wants(quiet, event.ItemEnded{}))
	require.True(t, dispatch.Wants(quiet, event.ItemEnded{Err: context.Canceled}))
	require.True(t, dispatch.Wants(quiet, event.ItemCut{}))
	heard := dispatch.New(dispatch.Config{Silent: true, Listeners: []func(event.Event){func(event.Event) {}}})
	defer heard.Close()
	require.True(t, dispatch.Wants(heard, event.FireBegun{}))
}

// What nobody wants costs nothing: with no listener and the default logger a fire
// makes no garbage.
func TestEventsThatNobodyWantsDoNotAllocate(t *testing.T) {
	setDefault(t, newLog().logger(slog.LevelDebug))
	items := []int{1, 2, 3}
	for name, cfg := range map[string]dispatch.Config{"default": {}, "silent": {Silent: true}, "errors": {Log: newLog().logger(slog.LevelError)}} {
		d := dispatch.New(cfg)
		require.Zero(t, testing.AllocsPerRun(100, func() { fire(d, items) }), name)
		d.Close()
	}
}

func fire(d *dispatch.Dispatcher, items []int) {
	dispatch.Emit(d, event.FireBegun{Job: "j", Due: at, Items: items})
	dispatch.Emit(d, event.ItemEnded{Job: "j", Item: 1, Due: at})
	dispatch.Emit(d, event.FireEnded{Job: "j", Due: at, Items: items})
	dispatch.Emit(d, event.LeaderChanged{Job: "j"})
	dispatch.Emit(d, event.ItemsChanged{Job: "j", Items: items})
	dispatch.Emit(d, event.Waiting{Job: "j"})
}

func BenchmarkEventsThatNobodyWants(b *testing.B) {
	d := dispatch.New(dispatch.Config{Silent: true})
	defer d.Close()
	items := slices.Repeat([]int{1}, 10)
	b.ReportAllocs()
	for b.Loop() {
		fire(d, items)
	}
}

func BenchmarkAListener(b *testing.B) {
	d := dispatch.New(dispatch.Config{Silent: true, Listeners: []func(event.Event){func(event.Event) {}}})
	defer d.Close()
	b.ReportAllocs()
	for b.Loop() {
		dispatch.Emit(d, event.FireBegun{Job: "j", Due: at})
	}
}
