package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/layout"
)

// A Schedule says when a job fires; it cannot change. Next returns the first fire after
// an instant; ok is false when there is none. With a fixed delay that instant is the end
// of an item's run, and Delay returns the pause. Prev returns the last fire before an
// instant and not before another.
//
//	Next(after time.Time) (next time.Time, ok bool)
//	Prev(before, notBefore time.Time) (prev time.Time, ok bool)
//	Delay() (time.Duration, bool)
//	Location() *time.Location
type Schedule = schedule.Schedule

// Schedule compiles Cron, TimeZone, Gap and Overlap, and looks at nothing else. Its
// error joins a *ConfigError for each that is wrong. An empty TimeZone is this process's
// zone here.
func (c JobConfig) Schedule() (*Schedule, error) {
	s, err := settings.ParseSchedule(c.Cron, c.TimeZone, c.Gap, c.Overlap)
	return s, settings.Named(c.Name, err)
}

// ReadConfig reads a configuration as it stands in the registry, ElasticJob's YAML. What
// JobConfig has no field for is left out, and Rewrite keeps it. The error joins a
// *ConfigError for each thing that is wrong.
func ReadConfig(text []byte) (JobConfig, error) {
	c, err := layout.UnmarshalConfig(text)
	if err != nil {
		return JobConfig{}, settings.Named("", err)
	}
	params, err := layout.ParseItemParams(c.ShardingItemParameters)
	if err != nil {
		return JobConfig{}, settings.Named(c.JobName, err)
	}
	show, err := settings.ParseShowRunning(c.Props[settings.PropShowRunning])
	if err != nil {
		return JobConfig{}, settings.Named(c.JobName, err)
	}
	if c.Props[settings.PropShowRunning] == "" {
		show = 0
	}
	ahead, err := settings.ParseBeginAhead(c)
	switch {
	case err != nil:
		return JobConfig{}, settings.Named(c.JobName, err)
	case c.Props[settings.PropBeginAhead] == "":
		ahead = 0
	case ahead == 0:
		ahead = -1
	}
	rule, err := settings.ParseMisfire(c)
	if err != nil {
		return JobConfig{}, settings.Named(c.JobName, err)
	}
	out := JobConfig{
		Name: c.JobName, Cron: c.Cron, TimeZone: c.TimeZone,
		Gap: c.Props[settings.PropGap], Overlap: c.Props[settings.PropOverlap], Shards: c.ShardingTotalCount,
		JobParam: c.JobParameter, ShowRunningAfter: show, BeginAhead: ahead, Failover: c.Failover, Strategy: c.JobShardingStrategyType,
		MaxTimeDiff: time.Duration(max(c.MaxTimeDiffSeconds, 0)) * time.Second, Description: c.Description, Label: c.Label,
		ReconcileInterval: cmp.Or(c.ReconcileInterval(), -1), // never
		Disabled:          c.Disabled, Overwrite: c.Overwrite, StaticSharding: c.StaticSharding,
	}
	if len(params) > 0 {
		out.ItemParams = params
	}
	if !c.MonitorExecution {
		out.Monitor = MonitorOff
	}
	switch rule.Policy {
	case misfire.Skip:
		out.Misfire = MisfireSkip
	case misfire.All:
		out.Misfire = MisfireAll
	case misfire.Once:
	}
	if c.Props[settings.PropMisfireCap] != "" {
		out.MisfireCap = rule.Cap
	}
	if c.Props[settings.PropMisfireWindow] != "" {
		out.MisfireWindow = cmp.Or(rule.Window, -1)
	}
	for key, value := range c.Props {
		if strings.HasPrefix(key, settings.OwnProps) {
			continue
		}
		if out.Props == nil {
			out.Props = map[string]string{}
		}
		out.Props[key] = value
	}
	return out, nil
}

// shown are the props of ours that fields of JobConfig stand for.
var shown = []string{settings.PropGap, settings.PropOverlap, settings.PropShowRunning, settings.PropBeginAhead,
	settings.PropMisfirePolicy, settings.PropMisfireCap, settings.PropMisfireWindow}

// Rewrite writes the configuration in the place of text, as it is to stand in the
// registry: what only ElasticJob or a later version knows is kept, and so is the zone of
// a job without a TimeZone. It does not Validate.
func (c JobConfig) Rewrite(text []byte) ([]byte, error) {
	before, err := layout.UnmarshalConfig(text)
	if err != nil {
		return nil, settings.Named(c.Name, err)
	}
	stored, err := c.stored()
	if err != nil {
		return nil, err
	}
	stored = settings.ToWrite(stored, &before)
	if before.Props[settings.PropZone] == "" { // the zone of whoever writes is nobody's
		delete(stored.Props, settings.PropZone)
	}
	for key, value := range before.Props {
		if !strings.HasPrefix(key, settings.OwnProps) || slices.Contains(shown, key) || key == settings.PropZone {
			continue
		}
		if stored.Props == nil {
			stored.Props = layout.Props{}
		}
		stored.Props[key] = cmp.Or(stored.Props[key], value)
	}
	if !stored.Disabled {
		stored.Enable() // why it was disabled goes too
	}
	out, err := layout.MarshalConfig(stored)
	return out, settings.Named(c.Name, err)
}
