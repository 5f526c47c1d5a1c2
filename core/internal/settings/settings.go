package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/strategy"
)

// Props of ours.
const (
	// OwnProps begins the names of all of them.
	OwnProps = "elasticron."
	// PropGap and PropOverlap hold JobConfig.Gap and Overlap.
	PropGap     = OwnProps + "dst.gap"
	PropOverlap = OwnProps + "dst.overlap"
	// PropZone is the zone of a job that has no time zone: that of the process which
	// wrote the configuration first.
	PropZone = OwnProps + "zone"
	// PropShowRunning holds JobConfig.ShowRunningAfter.
	PropShowRunning = OwnProps + "showRunningAfter"
	// PropBeginAhead holds JobConfig.BeginAhead.
	PropBeginAhead = OwnProps + "beginAhead"
	// PropMisfirePolicy is "all" for core.MisfireAll. It counts where ElasticJob's misfire
	// is true: switched off there, nothing is made up.
	PropMisfirePolicy = OwnProps + "misfire.policy"
	// PropMisfireCap and PropMisfireWindow hold JobConfig.MisfireCap and MisfireWindow.
	PropMisfireCap    = OwnProps + "misfire.cap"
	PropMisfireWindow = OwnProps + "misfire.window"
)

const (
	// never is PropShowRunning of a job whose runs are not shown, and PropBeginAhead of one nothing of
	// which begins ahead.
	never = "never"
	// showRunning is how long a run lasts until it is shown, unless it is configured.
	showRunning = time.Second
	// MaxBeginAhead is how long before it is due a fire's begin is recorded at most, and with
	// failover unless it is configured.
	MaxBeginAhead = time.Second
)

const (
	// misfireAll is PropMisfirePolicy of core.MisfireAll.
	misfireAll = "all"
	// misfireCap and misfireWindow are the bounds of what is made up, unless they are configured.
	misfireCap    = 10
	misfireWindow = time.Hour
	// MaxMisfireCap keeps a decision about fires cheap.
	MaxMisfireCap = 1_000
)

// MaxItems bounds what a leader computes with.
const MaxItems = 100_000

// Settings are a configuration, checked and ready for use.
type Settings struct {
	// Stored is the configuration as it stands in the registry.
	Stored layout.Config
	// Schedule is when the job fires, in Zone.
	Schedule *schedule.Schedule
	// Zone is the name of the zone that counts, as ParseSchedule takes it: the time zone,
	// else that of the process which wrote the configuration, else the local one, "" when
	// that has no name (LocalZone).
	Zone string
	// Gap and Overlap are the policies for a change of summer time, by their names.
	Gap, Overlap string
	// Strategy spreads the items.
	Strategy strategy.Strategy
	// ItemParams are the items' own parameters.
	ItemParams map[int]string
	// Monitor: what runs is recorded.
	Monitor bool
	// Misfire is what becomes of fires that came due and could not begin.
	Misfire misfire.Rule
	// ShowAfter is how long a run lasts until it is shown as a running node; negative is
	// for ever.
	ShowAfter time.Duration
	// Ahead is how long before it is due a fire's begin may be recorded; 0 is not at all.
	Ahead time.Duration
	// Reconcile is how often the leader looks at everything; 0 is never.
	Reconcile time.Duration
}

// Parse checks a stored configuration and makes it ready. own are strategies that this
// process brings, by name; they are found before the built-in ones.
func Parse(job string, c layout.Config, own map[string]strategy.Strategy) (Settings, error) {
	s := Settings{
		Stored: c, Monitor: c.MonitorExecution, Zone: zoneThatCounts(c),
		Gap: cmp.Or(c.Props[PropGap], "run-after"), Overlap: cmp.Or(c.Props[PropOverlap], "first"),
		Reconcile: c.ReconcileInterval(),
	}
	var errs [8]error
	s.ShowAfter, errs[4] = ParseShowRunning(c.Props[PropShowRunning])
	s.Ahead, errs[7] = ParseBeginAhead(c)
	s.Misfire, errs[5] = ParseMisfire(c)
	s.Schedule, errs[0] = ParseSchedule(c.Cron, s.Zone, s.Gap, s.Overlap)
	errs[1] = checkTotal(c.ShardingTotalCount)
	s.Strategy, errs[2] = findStrategy(c.JobShardingStrategyType, own)
	s.ItemParams, errs[3] = layout.ParseItemParams(c.ShardingItemParameters)
	if c.Failover && !c.MonitorExecution {
		errs[6] = field.Errorf("failover", "without monitoring nothing says what a dead instance ran; set Monitor, or leave Failover out")
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Settings{}, Named(job, err)
	}
	return s, nil
}

// names are the fields of core.JobConfig by their keys in the registry.
var names = map[string]string{
	"jobName": "Name", "cron": "Cron", "timeZone": "TimeZone", "gap": "Gap", "overlap": "Overlap",
	"shardingTotalCount": "Shards", "shardingItemParameters": "ItemParams", "jobParameter": "JobParam",
	"monitorExecution": "Monitor", "showRunningAfter": "ShowRunningAfter", "beginAhead": "BeginAhead", "misfire": "Misfire",
	"misfireCap": "MisfireCap", "misfireWindow": "MisfireWindow", "failover": "Failover", "maxTimeDiffSeconds": "MaxTimeDiff",
	"reconcileIntervalMinutes": "ReconcileInterval", "jobShardingStrategyType": "Strategy",
	"description": "Description", "label": "Label", "disabled": "Disabled", "staticSharding": "StaticSharding",
}

// Named tells errors of the registry's keys as errors of the fields of core.JobConfig.
func Named(job string, err error) error {
	return field.Adapt(err, func(e *field.Error) {
		e.Job = job
		if props, isProp := strings.CutPrefix(e.Field, "props"); isProp {
			e.Field = "Props" + props
		}
		e.Field = cmp.Or(names[e.Field], e.Field)
	})
}

// FormatDuration is PropShowRunning for JobConfig.ShowRunningAfter, and PropBeginAhead for BeginAhead:
// "" for the default, 0, and never for what is negative.
func FormatDuration(d time.Duration) string {
	switch {
	case d < 0:
		return never
	case d == 0:
		return ""
	}
	return d.String()
}

// ParseShowRunning reads PropShowRunning; negative is never.
func ParseShowRunning(text string) (time.Duration, error) {
	switch text {
	case "":
		return showRunning, nil
	case never:
		return -1, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after <= 0 {
		return 0, field.Errorf("showRunningAfter", "%.40q is not a duration; write for example 500ms, or never", text)
	}
	return after, nil
}

// ParseBeginAhead reads PropBeginAhead; 0 is not at all. Without failover it must be wanted: a crash
// would lose a fire that is else made up.
func ParseBeginAhead(c layout.Config) (time.Duration, error) {
	text := c.Props[PropBeginAhead]
	switch {
	case text == "" && c.Failover:
		return MaxBeginAhead, nil
	case text == "", text == never:
		return 0, nil
	}
	ahead, err := time.ParseDuration(text)
	if err != nil || ahead <= 0 || ahead > MaxBeginAhead {
		return 0, field.Errorf("beginAhead", "%.40q is not a duration of at most %v; write for example 500ms, or never", text, MaxBeginAhead)
	}
	return ahead, nil
}

// SetMisfire makes props of ours say JobConfig.Misfire's All, MisfireCap and MisfireWindow;
// what is the default is left out.
func SetMisfire(props layout.Props, all bool, atMost int, window time.Duration) {
	if all {
		props[PropMisfirePolicy] = misfireAll
	}
	if atMost != 0 && atMost != misfireCap {
		props[PropMisfireCap] = strconv.Itoa(atMost)
	}
	if window != 0 && window != misfireWindow {
		props[PropMisfireWindow] = max(window, 0).String()
	}
}

// ParseMisfire reads the policy for fires that were missed.
func ParseMisfire(c layout.Config) (misfire.Rule, error) {
	r := misfire.Rule{Policy: misfire.Once, Cap: misfireCap, Window: misfireWindow}
	var errs [3]error
	switch policy := c.Props[PropMisfirePolicy]; {
	case policy != "" && policy != misfireAll:
		errs[0] = field.Errorf("misfire", `%.40q is not a policy of its own; write "all", or leave it out`, policy)
	case !c.Misfire:
		r.Policy = misfire.Skip
	case policy == misfireAll:
		r.Policy = misfire.All
	}
	if text := c.Props[PropMisfireCap]; text != "" {
		n, err := strconv.Atoi(text)
		if r.Cap = n; err != nil || n < 1 || n > MaxMisfireCap {
			errs[1] = field.Errorf("misfireCap", "%.40q is not a number of fires to make up; give 1 to %d", text, MaxMisfireCap)
		}
	}
	if text := c.Props[PropMisfireWindow]; text != "" {
		window, err := time.ParseDuration(text)
		if r.Window = window; err != nil || window < 0 || (window > 0 && window < misfire.Prompt) {
			errs[2] = field.Errorf("misfireWindow", "%.40q is not a duration of at least %v; write for example 30m", text, misfire.Prompt)
		}
	}
	return r, errors.Join(errs[:]...)
}

// ParseSchedule reads a schedule: the expression, the name of a zone ("" is the local
// one), and the policies for a change of summer time ("" is the default).
func ParseSchedule(cron, zone, gap, overlap string) (*schedule.Schedule, error) {
	c := schedule.Config{Expr: cron, Zone: zone}
	var errs [4]error
	if gap == "skip" {
		c.Gap = schedule.SkipGap
	} else if gap != "" && gap != "run-after" {
		errs[1] = field.Errorf("gap", `%q is not a policy; use "run-after" or "skip"`, gap)
	}
	if overlap == "both" {
		c.Overlap = schedule.Both
	} else if overlap != "" && overlap != "first" {
		errs[2] = field.Errorf("overlap", `%q is not a policy; use "first" or "both"`, overlap)
	}
	s, err := schedule.Parse(c)
	errs[0] = err
	if isZone(err) {
		// A wrong zone hides a wrong expression.
		c.Zone = "UTC"
		_, errs[3] = schedule.Parse(c)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return s, nil
}

func isZone(err error) bool {
	e := (*field.Error)(nil)
	return errors.As(err, &e) && e.Field == "timeZone"
}

// checkTotal checks the sharding total count.
func checkTotal(total int) error {
	const key = "shardingTotalCount"
	switch {
	case total <= 0:
		return field.Errorf(key, "the sharding total count is %d; give at least 1", total)
	case total > MaxItems:
		return field.Errorf(key, "the sharding total count is %d; at most %d are possible", total, MaxItems)
	}
	return nil
}

func findStrategy(name string, own map[string]strategy.Strategy) (strategy.Strategy, error) {
	const key = "jobShardingStrategyType"
	if s, ok := own[name]; ok && name != "" {
		if s == nil {
			return nil, field.Errorf(key, "the strategy %q that WithStrategy gives is nil", name)
		}
		return s, nil
	}
	s, err := strategy.ByName(name)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, &field.Error{Field: key, Err: err, Problem: fmt.Sprintf(
			"%q depends on the clock and on a node outside the assignment; use ROUND_ROBIN or STICKY, on every member of the job", name)}
	case err != nil:
		known := append(strategy.Names(), slices.Sorted(maps.Keys(own))...)
		return nil, &field.Error{Field: key, Err: err, Problem: fmt.Sprintf(
			"%q is not a strategy; there are: %s (core.WithStrategy adds one of your own)", name, strings.Join(known, ", "))}
	}
	return s, nil
}

// jobProps begin the names of props that ElasticJob gives to its kinds of job and to its
// error handlers.
var jobProps = []string{"streaming.", "script.", "http.", "email.", "wechat.", "dingtalk."}

// Inactive says in one line which settings have no effect, but would in ElasticJob; "" is
// none. local are the program's own props, which count here.
func Inactive(c layout.Config, local layout.Props) string {
	var foreign []string
	for key, set := range map[string]bool{
		"jobErrorHandlerType": c.JobErrorHandlerType != "", "jobListenerTypes": len(c.JobListenerTypes) > 0,
		"jobExtraConfigurations":                !c.JobExtraConfigurations.IsZero(),
		"jobExecutorThreadPoolSizeProviderType": c.JobExecutorThreadPoolSizeProviderType != "",
	} {
		if set {
			foreign = append(foreign, key)
		}
	}
	for key := range c.Props {
		_, counts := local[key]
		if !counts && slices.ContainsFunc(jobProps, func(p string) bool { return strings.HasPrefix(key, p) }) {
			foreign = append(foreign, "props."+key)
		}
	}
	if len(foreign) == 0 {
		return ""
	}
	slices.Sort(foreign)
	return "settings of ElasticJob have no effect here and are kept as they are: " + strings.Join(foreign, ", ")
}

// ToWrite is the configuration to write in place of the one that stands in the registry,
// nil when there is none: what only ElasticJob knows is kept, and a job without a time
// zone keeps its zone, or gets this process's.
func ToWrite(c layout.Config, before *layout.Config) layout.Config {
	zone := ""
	if before != nil {
		c.JobErrorHandlerType, c.JobListenerTypes = before.JobErrorHandlerType, before.JobListenerTypes
		c.JobExecutorThreadPoolSizeProviderType, c.OldThreadPoolKey = before.JobExecutorThreadPoolSizeProviderType, before.OldThreadPoolKey
		c.JobExtraConfigurations = before.JobExtraConfigurations
		zone = before.Props[PropZone]
	}
	if zone = cmp.Or(zone, LocalZone()); c.TimeZone == "" && zone != "" && readsClock(c) {
		c.Props = maps.Clone(c.Props)
		if c.Props == nil {
			c.Props = layout.Props{}
		}
		c.Props[PropZone] = zone
	}
	return c
}

// Overwritten is ToWrite for a program that replaces what stands in the registry whenever it starts: a job that an
// operator or its error handler has switched off stays so.
func Overwritten(c layout.Config, before *layout.Config) layout.Config {
	if before != nil && before.SwitchedOff() != "" {
		c.Disable(before.SwitchedOff())
	}
	return ToWrite(c, before)
}
