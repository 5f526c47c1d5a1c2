package core

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/strategy"
)

// Go's own settings travel as props, the only place in the configuration where
// Java members accept what they do not know.
const (
	propGap     = "elasticron.dst.gap"
	propOverlap = "elasticron.dst.overlap"
)

const defaultReconcile = 10 * time.Minute

// settings are a job's configuration, checked and ready for use.
type settings struct {
	stored    layout.Config
	schedule  *schedule.Schedule
	strategy  strategy.Strategy
	params    map[int]string
	reconcile time.Duration // 0: never
}

// store writes cfg as it stands in the registry.
func store(cfg JobConfig) (layout.Config, error) {
	params, err := layout.FormatItemParams(cfg.Params)
	if err != nil {
		return layout.Config{}, named(cfg.Name, err)
	}
	for n := range cfg.Params {
		if n < 0 || n >= cfg.Shards {
			return layout.Config{}, &ConfigError{Job: cfg.Name, Field: "Params", Problem: fmt.Sprintf("item %d does not exist: items are 0 to %d", n, cfg.Shards-1)}
		}
	}
	c := layout.Config{
		Cron: cfg.Cron, Description: cfg.Description, Disabled: cfg.Disabled, Failover: cfg.Failover,
		JobName: cfg.Name, JobParameter: cfg.Param, JobShardingStrategyType: cfg.Strategy, Label: cfg.Label,
		MaxTimeDiffSeconds: -1, Misfire: !cfg.MisfireOff, MonitorExecution: !cfg.MonitorOff, Overwrite: cfg.Overwrite,
		Props: maps.Clone(cfg.Props), ShardingItemParameters: params, ShardingTotalCount: cfg.Shards,
		StaticSharding: cfg.StaticSharding, TimeZone: cfg.TimeZone,
	}
	if err := wholeUnits(cfg, &c); err != nil {
		return layout.Config{}, err
	}
	for prop, value := range map[string]string{propGap: cfg.Gap, propOverlap: cfg.Overlap} {
		if value != "" {
			if c.Props == nil {
				c.Props = map[string]string{}
			}
			c.Props[prop] = value
		}
	}
	return c, nil
}

// named tells errors of the registry's fields with the names of JobConfig's.
func named(job string, err error) error {
	return field.Adapt(err, func(e *field.Error) {
		e.Job = job
		e.Field = cmp.Or(map[string]string{
			"cron": "Cron", "timeZone": "TimeZone", "jobName": "Name", "shardingItemParameters": "Params", "shardingTotalCount": "Shards",
		}[e.Field], e.Field)
	})
}

// wholeUnits stores the durations that the registry holds as whole numbers.
func wholeUnits(cfg JobConfig, c *layout.Config) error {
	if cfg.MaxTimeDiff != 0 {
		if cfg.MaxTimeDiff < 0 || cfg.MaxTimeDiff%time.Second != 0 {
			return &ConfigError{Job: cfg.Name, Field: "MaxTimeDiff", Problem: fmt.Sprintf("%v is not a positive number of whole seconds", cfg.MaxTimeDiff)}
		}
		c.MaxTimeDiffSeconds = int(cfg.MaxTimeDiff / time.Second)
	}
	interval := cmp.Or(cfg.ReconcileInterval, defaultReconcile)
	switch {
	case interval < 0:
		c.ReconcileIntervalMinutes = -1
	case interval%time.Minute != 0:
		return &ConfigError{Job: cfg.Name, Field: "ReconcileInterval", Problem: fmt.Sprintf("%v is not a number of whole minutes", interval)}
	default:
		c.ReconcileIntervalMinutes = int(interval / time.Minute)
	}
	return nil
}

// parse checks a stored configuration and makes it ready.
func parse(job string, c layout.Config) (settings, error) {
	wrong := func(name, problem string, err error) (settings, error) {
		return settings{}, &ConfigError{Job: job, Field: name, Problem: problem, Err: err}
	}
	s := settings{stored: c}
	if c.ShardingTotalCount <= 0 {
		return wrong("Shards", fmt.Sprintf("the sharding total count is %d; give at least 1", c.ShardingTotalCount), nil)
	}
	if c.ShardingTotalCount > maxTotal {
		return wrong("Shards", fmt.Sprintf("the sharding total count is %d; at most %d are possible", c.ShardingTotalCount, maxTotal), nil)
	}
	if c.Cron == "" {
		return wrong("Cron", `is empty; give a schedule such as "0/5 * * * * ?" or "@every 90s"`, nil)
	}
	var err error
	sc := schedule.Config{Expr: c.Cron, Zone: c.TimeZone}
	if sc.Gap, err = gapOf(c.Props[propGap]); err != nil {
		return wrong("Gap", err.Error(), nil)
	}
	if sc.Overlap, err = overlapOf(c.Props[propOverlap]); err != nil {
		return wrong("Overlap", err.Error(), nil)
	}
	if s.schedule, err = schedule.Parse(sc); err != nil {
		return settings{}, named(job, err)
	}
	if _, fixed := s.schedule.Delay(); fixed && c.ShardingTotalCount > maxDelayed {
		return wrong("Shards", fmt.Sprintf("the sharding total count is %d; with a fixed delay at most %d are possible", c.ShardingTotalCount, maxDelayed), nil)
	}
	if s.strategy, err = strategy.ByName(c.JobShardingStrategyType); err != nil {
		return wrong("Strategy", err.Error(), err)
	}
	if s.params, err = layout.ParseItemParams(c.ShardingItemParameters); err != nil {
		return settings{}, named(job, err)
	}
	if c.ReconcileIntervalMinutes > 0 {
		s.reconcile = time.Duration(c.ReconcileIntervalMinutes) * time.Minute
	}
	return s, nil
}

const (
	// maxTotal bounds what a leader computes with.
	maxTotal = 100_000
	// maxDelayed keeps one ledger within a value of the registry when every item has
	// a record of its own, as with a fixed delay: about 60 bytes each.
	maxDelayed = 4_000
)

func gapOf(policy string) (schedule.Gap, error) {
	switch policy {
	case "", "run-after":
		return schedule.RunAfterGap, nil
	case "skip":
		return schedule.SkipGap, nil
	}
	return 0, fmt.Errorf(`%q is not a policy; use "run-after" or "skip"`, policy)
}

func overlapOf(policy string) (schedule.Overlap, error) {
	switch policy {
	case "", "first":
		return schedule.FirstOnly, nil
	case "both":
		return schedule.Both, nil
	}
	return 0, fmt.Errorf(`%q is not a policy; use "first" or "both"`, policy)
}

// notOurs are fields in which two configurations may differ without meaning to us.
var notOurs = []string{"Overwrite", "OldThreadPoolKey", "JobExtraConfigurations"}

// differences names the fields in which two stored configurations differ.
func differences(a, b layout.Config) []string {
	var names []string
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		f, x, y := va.Type().Field(i), va.Field(i), vb.Field(i)
		if (x.Kind() == reflect.Map || x.Kind() == reflect.Slice) && x.Len()+y.Len() == 0 {
			continue
		}
		if !slices.Contains(notOurs, f.Name) && !reflect.DeepEqual(x.Interface(), y.Interface()) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// limitOf is the number of items that may run at once in this process.
func limitOf(cfg JobConfig) int {
	return cmp.Or(cfg.Concurrency, 2*runtime.GOMAXPROCS(0))
}
