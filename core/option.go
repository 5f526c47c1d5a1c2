package core

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/strategy"
)

// A Listener receives events, one at a time and in the order in which they
// happened, on a goroutine of the scheduler. A slow listener delays only later
// events, and Stop, which waits until all are told. It must not call Stop. One that
// panics is told of later events all the same; its panic is logged.
type Listener func(event.Event)

// An Option changes how a Scheduler behaves.
type Option func(*options)

type options struct {
	log        *slog.Logger
	silent     bool
	listen     []func(event.Event)
	now        func() time.Time
	name       string
	named      bool // by WithInstanceName
	host       string
	ip         string
	patience   time.Duration
	kept       int
	strategies map[string]strategy.Strategy
	beside     bool
	rounds     map[string]RoundListeners // by job
	fires      map[string]FireListeners  // by job
}

// WithLogger writes every event as a record of this logger, at its level: what fires do
// is Debug, what goes on otherwise is Info, what needs a look is Warn, and failures are
// Error, with the stack of a panic. Of one warning that many jobs give at once it gets ten in
// ten seconds, and then how many more there were. nil is silence. Without this option
// warnings and errors go to slog.Default(), and of folded fires ten in ten seconds.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.log, o.silent = l, l == nil }
}

// WithListener adds a listener of events. It may be given several times.
// nil adds none.
func WithListener(l Listener) Option {
	return func(o *options) {
		if l != nil {
			o.listen = append(o.listen, l)
		}
	}
}

// WithStrategy adds a sharding strategy of one's own, which JobConfig.Strategy selects by
// name; it comes before a built-in one of the same name. Every instance of the job must
// have it, since each may come to lead.
func WithStrategy(name string, s strategy.Strategy) Option {
	return func(o *options) {
		if o.strategies == nil {
			o.strategies = map[string]strategy.Strategy{}
		}
		o.strategies[name] = s
	}
}

// WithElasticJob joins a job although an instance of ElasticJob itself is registered for
// it, or leads it, where Start would fail. It is not safe: ElasticJob's instances know no
// ledgers. While one of ours leads, theirs get no items; while one of theirs leads, nothing
// begins here, and what comes due is told as skipped. When the lead changes, an item may run
// on both sides. There is a Warning for each of them.
func WithElasticJob() Option { return func(o *options) { o.beside = true } }

// WithRunPatience is how long Run, and a Start that fails, let items end by themselves before they are
// cancelled. 0 is 10 s. A Scheduler that is stopped by Stop asks the context of that call.
func WithRunPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// WithClock replaces the wall clock by which fires come due; nil is time.Now. Timers stay real.
func WithClock(now func() time.Time) Option {
	return func(o *options) {
		if o.now = now; now == nil {
			o.now = time.Now
		}
	}
}

// WithInstanceName names this process among those on its host, in the stable part
// of the instance id. It should survive a restart of the process. The default is
// the host's name.
func WithInstanceName(name string) Option {
	return func(o *options) { o.name, o.named = name, name != "" }
}

// WithIP sets the IPv4 address under which this server appears. The default is
// the first address of a network interface that is up and not loopback.
func WithIP(ip string) Option { return func(o *options) { o.ip = ip } }

// listened are the jobs for which listeners are given, in order.
func (o options) listened() []string {
	names := slices.Collect(maps.Keys(o.rounds))
	return slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(o.fires)))))
}

// dispatcher tells events to the listeners and the log.
func (o options) dispatcher() *dispatch.Dispatcher {
	return dispatch.New(dispatch.Config{Listeners: o.listen, Log: o.log, Silent: o.silent, Stack: stackOf})
}

// stackOf is the stack of an error that was a panic.
func stackOf(err error) (stack []byte) {
	dispatch.Find(err, func(err error) bool {
		p, is := err.(*PanicError)
		if x, as := err.(interface{ As(target any) bool }); !is && as {
			is = x.As(&p)
		}
		if is && p != nil {
			stack = p.Stack
		}
		return is
	})
	return stack
}
