package core

import (
	"log/slog"
	"time"

	"github.com/elasticron/elasticron/strategy"
)

// An Option changes how a Scheduler behaves.
type Option func(*options)

type options struct {
	log    *slog.Logger
	listen []Listener
	now    func() time.Time
	name   string
	ip     string
	// strategies are those of WithStrategy, by name.
	strategies map[string]strategy.Strategy
}

// WithLogger writes the events as log records. The default is silence.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithListener adds a listener of events. It may be given several times.
func WithListener(l Listener) Option {
	return func(o *options) { o.listen = append(o.listen, l) }
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

// WithClock replaces the wall clock by which fires come due. Timers stay real.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithInstanceName names this process among those on its host, in the stable part
// of the instance id. It should survive a restart of the process. The default is
// the host's name.
func WithInstanceName(name string) Option { return func(o *options) { o.name = name } }

// WithIP sets the IPv4 address under which this server appears. The default is
// the first address of a network interface that is up and not loopback.
func WithIP(ip string) Option { return func(o *options) { o.ip = ip } }
