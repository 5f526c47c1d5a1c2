package core

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
)

// JobConfig is what a job is. The zero value of a field means its default.
//
// The first instance writes it to the registry; later ones adopt what stands there and
// say where it differs (event.ConfigChanged), unless Overwrite is set. Class, Overwrite
// and Concurrency are of this process alone.
type JobConfig struct {
	// Name identifies the job in its namespace: 1 to 255 bytes without "/", without
	// space at its ends. It has no default.
	Name string
	// Class is the Java class or type of the job when Java members share it. It is written
	// to the root of a job that this instance makes, since ElasticJob 3.0.0 to 3.0.2 refuse
	// one without. "" joins only jobs that have none.
	Class string
	// Cron says when the job fires: Quartz's six or seven fields ("0/5 * * * * ?"),
	// "@every 90s" (fixed rate, at multiples since the Unix epoch), "@delay 90s"
	// (fixed delay after the end of an item's run) or @hourly, @daily and so on; "@requests"
	// never, so that the job runs only when somebody asks (admin.Trigger). It has no default.
	Cron string
	// TimeZone is the zone in which Cron is read: an IANA name, "UTC" or "GMT+8". "" is
	// the zone of the process that writes the configuration first; those in other zones
	// follow it, with a warning.
	TimeZone string
	// Gap says what becomes of a fire that a change to summer time leaves out:
	// "run-after" (the default) or "skip".
	Gap string
	// Overlap says what becomes of a fire that occurs twice when summer time
	// ends: "first" (the default) or "both".
	Overlap string
	// Shards is the sharding total count, 1 to 100,000. It has no default.
	Shards int
	// ItemParams are the items' own parameters, Shard.Param, by item. A value holds
	// neither "," nor "=". The default is none.
	ItemParams map[int]string
	// JobParam is given to every item, as Shard.JobParam. The default is "".
	JobParam string
	// Monitor says whether what runs is recorded in the registry. The default is
	// MonitorOn.
	Monitor Monitor
	// ShowRunningAfter is how long a run lasts until it is shown to tools, as ElasticJob's
	// running node. 0 is one second, negative is never. While an instance of ElasticJob is
	// registered, every run is shown before it begins. Nothing is shown with MonitorOff.
	ShowRunningAfter time.Duration
	// BeginAhead is how long before a fire is due its begin may be recorded, at most one second:
	// then the time which a commit takes makes nothing late, and the end of a run and the begin
	// of the next one are recorded together where they are as close. The function is never called
	// before the fire is due. When an instance dies in between, the fire counts as begun: with
	// Failover it runs again, without it is told as cut, though it never ran. So 0 is one second
	// with Failover, and not at all without; negative is not at all. Nothing begins ahead with a
	// fixed delay, with MonitorOff, with MaxTimeDiff, where somebody listens to rounds, and while
	// an instance of ElasticJob is registered.
	BeginAhead time.Duration
	// Misfire says what becomes of a fire that comes due while the item is busy, has no
	// owner, or its owner stands still. The default is MisfireOnce. With a fixed delay no
	// fire is missed.
	Misfire Misfire
	// MisfireCap is how many missed fires of an item MisfireAll makes up, the latest ones, 1
	// to 1,000. 0 is 10.
	MisfireCap int
	// MisfireWindow is how late a missed fire may be to be made up, at least one second; what
	// is later is told as skipped. 0 is one hour. Negative: however late, but none that was
	// due while no instance was registered.
	MisfireWindow time.Duration
	// Failover runs a fire of an item again when its instance dies while it runs: at once, at
	// the item's next owner, before anything else of the item. A fire while which three
	// instances died, or which is older than MisfireWindow after a time in which no instance
	// was up, is told as cut instead. It needs Monitor. The default is false: what was
	// running is told as cut.
	Failover bool
	// MaxTimeDiff is how far an instance's clock may be off that of the leader, in whole
	// seconds; 0, the default, is any. A job is refused where the clock is off at the start, and
	// starts there when it is right; where it goes off later nothing begins until it is right
	// again, and what came due meanwhile is decided by Misfire. State says so.
	MaxTimeDiff time.Duration
	// ReconcileInterval is how often the leader compares the whole state with
	// what it should be, in whole minutes. 0 is 10 minutes, negative is never.
	ReconcileInterval time.Duration
	// Strategy names the sharding strategy: one of package strategy, or of WithStrategy.
	// "" is AVG_ALLOCATION.
	Strategy string
	// Description is for people. The default is "".
	Description string
	// Label is for people. The default is "".
	Label string
	// Props are free settings, visible to all who can read the registry. Names that
	// begin with "elasticron." are taken. The default is none.
	Props map[string]string
	// Disabled makes a new job that begins nothing anywhere until somebody enables it. The
	// default is false.
	Disabled bool
	// Overwrite replaces the configuration in the registry, once in the life of the process: when
	// the job registers for the first time. A job that admin.DisableJob or the error handler STOP
	// has disabled stays disabled. The default is false.
	Overwrite bool
	// StaticSharding binds each item to the instance that has it, by its stable name
	// (WithInstanceName): it moves only when Shards changes. While that instance is away no
	// other begins the item; when it is back the item is its own again, and Misfire says what
	// becomes of what came due. With Failover what it ran when it died runs again elsewhere,
	// and nothing else. Who joins gets nothing, so that the first instance of a new job would
	// have all: switch it on when all are there. The default is false.
	StaticSharding bool
	// Concurrency bounds the items that run at once in this process. 0 is
	// 2×GOMAXPROCS.
	Concurrency int
}

// Monitor says whether what runs is recorded in the registry.
type Monitor uint8

const (
	// MonitorOn records each begin and each end.
	MonitorOn Monitor = iota
	// MonitorOff records nothing: a fire costs no request, and nothing prevents overlap
	// across instances or carries fires along. Shard.Fence is 0.
	MonitorOff
)

// Misfire says what becomes of a fire that could not begin when it came due.
type Misfire uint8

// A fire is missed once it is more than a second late, or where the item was busy with a run
// before.
const (
	// MisfireOnce runs the item once as soon as it can, for the latest fire that was missed:
	// ElasticJob's misfire = true. The others are folded into it (Shard.Missed,
	// event.ItemsFolded).
	MisfireOnce Misfire = iota
	// MisfireSkip makes up nothing: ElasticJob's misfire = false. What was missed is told as
	// skipped.
	MisfireSkip
	// MisfireAll runs the item for each fire that was missed, oldest first, up to MisfireCap.
	// ElasticJob sees misfire = true.
	MisfireAll
)

const defaultReconcile = 10 * time.Minute

// Validate reports all that is wrong, each as a *ConfigError, joined; nil is nothing.
// Scheduler.Add makes the same check. opts are those that New gets: WithStrategy makes
// names known, WithClock says what time it is.
//
// A schedule that will not fire from now on is wrong here. One that has fired for the
// last time while the configuration stands in the registry is told by a warning.
func (c JobConfig) Validate(opts ...Option) error {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return c.validate(o)
}

func (c JobConfig) validate(o options) error {
	// Whether the namespace is right is the registry's matter.
	_, nameErr := layout.New("any", c.Name)
	errs := []error{settings.Named(c.Name, nameErr)}
	wrong := func(name, format string, args ...any) {
		e := field.Errorf(name, format, args...)
		e.Job = c.Name
		errs = append(errs, e)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Props)) {
		if strings.HasPrefix(key, settings.OwnProps) {
			wrong("Props", "the name %.60q is taken; use one that does not begin with %q", key, settings.OwnProps)
		}
	}
	if c.Monitor > MonitorOff {
		wrong("Monitor", "is neither MonitorOn nor MonitorOff")
	}
	if c.Misfire > MisfireAll {
		wrong("Misfire", "is none of MisfireOnce, MisfireSkip and MisfireAll")
	}
	if c.Concurrency < 0 {
		wrong("Concurrency", "%d is negative; give 0 for the default, or at least 1", c.Concurrency)
	}
	stored, err := c.stored()
	errs = append(errs, err)
	set, err := settings.Parse(c.Name, stored, o.strategies)
	if errs = append(errs, err); err == nil {
		_, delayed := set.Schedule.Delay()
		errs = append(errs, c.willFire(set, o), o.rounds[c.Name].validate(c, delayed), o.fires[c.Name].validate(c.Name))
	}
	if errors.Join(errs...) == nil {
		// What else the registry's form cannot hold: control characters, for example.
		_, err := layout.MarshalConfig(stored)
		errs = append(errs, settings.Named(c.Name, err))
	}
	return errors.Join(errs...)
}

// willFire reports a schedule without a fire from now on.
func (c JobConfig) willFire(set settings.Settings, o options) error {
	now := time.Now
	if o.now != nil {
		now = o.now
	}
	if set.Schedule.OnRequest() {
		if c.Monitor == MonitorOff {
			return &ConfigError{Job: c.Name, Field: "Monitor", Problem: "is off, and @requests needs it: requests run once by the record alone"}
		}
		return nil
	}
	if _, ok := set.Schedule.Next(now()); ok {
		return nil
	}
	e := field.Errorf("Cron", "%q never fires: there is no such time in 1970 to 2099", set.Schedule)
	if last, ok := set.Schedule.Prev(now(), time.Time{}); ok {
		e = field.Errorf("Cron", "%q never fires again: its last time was %s; give a time to come", set.Schedule, last.Format(time.RFC3339))
	}
	e.Job = c.Name
	return e
}

// stored is the configuration as it stands in the registry. It is as whole as it can
// be when there is an error.
func (c JobConfig) stored() (layout.Config, error) {
	var errs []error
	wrong := func(name, format string, args ...any) {
		e := field.Errorf(name, format, args...)
		e.Job = c.Name
		errs = append(errs, e)
	}
	params, err := layout.FormatItemParams(c.ItemParams)
	errs = append(errs, settings.Named(c.Name, err))
	for _, n := range slices.Sorted(maps.Keys(c.ItemParams)) {
		if c.Shards > 0 && n >= c.Shards {
			wrong("ItemParams", "item %d does not exist: items are 0 to %d", n, c.Shards-1)
		}
	}
	out := layout.Config{
		Cron: c.Cron, Description: c.Description, Disabled: c.Disabled, Failover: c.Failover,
		JobName: c.Name, JobParameter: c.JobParam, JobShardingStrategyType: c.Strategy, Label: c.Label,
		MaxTimeDiffSeconds: -1, Misfire: c.Misfire != MisfireSkip, MonitorExecution: c.Monitor == MonitorOn, Overwrite: c.Overwrite,
		Props: maps.Clone(c.Props), ReconcileIntervalMinutes: -1, ShardingItemParameters: params, ShardingTotalCount: c.Shards,
		StaticSharding: c.StaticSharding, TimeZone: c.TimeZone,
	}
	switch d := c.MaxTimeDiff; {
	case d == 0:
	case d < 0 || d%time.Second != 0 || d/time.Second > math.MaxInt32:
		wrong("MaxTimeDiff", "%v is not a positive number of whole seconds", d)
	default:
		out.MaxTimeDiffSeconds = int(d / time.Second)
	}
	switch d := cmp.Or(c.ReconcileInterval, defaultReconcile); {
	case d < 0:
	case d%time.Minute != 0 || d/time.Minute > math.MaxInt32:
		wrong("ReconcileInterval", "%v is not a number of whole minutes", d)
	default:
		out.ReconcileIntervalMinutes = int(d / time.Minute)
	}
	if out.Props == nil {
		out.Props = layout.Props{}
	}
	settings.SetMisfire(out.Props, c.Misfire == MisfireAll, c.MisfireCap, c.MisfireWindow)
	for prop, value := range map[string]string{
		settings.PropGap: c.Gap, settings.PropOverlap: c.Overlap, settings.PropShowRunning: settings.FormatDuration(c.ShowRunningAfter),
		settings.PropBeginAhead: settings.FormatDuration(c.BeginAhead),
	} {
		if value != "" {
			out.Props[prop] = value
		}
	}
	if len(out.Props) == 0 {
		out.Props = nil
	}
	return out, errors.Join(errs...)
}

// limitOf is the number of items that may run at once in this process.
func limitOf(cfg JobConfig) int {
	return cmp.Or(cfg.Concurrency, 2*runtime.GOMAXPROCS(0))
}
