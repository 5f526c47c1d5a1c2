package settings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/strategy"
)

// shown are the fields that have a meaning here, in the order of core.JobConfig, each
// with its value for people: equal texts mean the same.
var shown = []struct {
	field string
	value func(c layout.Config) string
}{
	{"Cron", func(c layout.Config) string { return strings.Join(strings.Fields(c.Cron), " ") }},
	{"TimeZone", func(c layout.Config) string { return cmp.Or(c.TimeZone, c.Props[PropZone]) }},
	{"Gap", func(c layout.Config) string { return cmp.Or(c.Props[PropGap], "run-after") }},
	{"Overlap", func(c layout.Config) string { return cmp.Or(c.Props[PropOverlap], "first") }},
	{"Shards", func(c layout.Config) string { return strconv.Itoa(c.ShardingTotalCount) }},
	{"ItemParams", itemParams},
	{"JobParam", func(c layout.Config) string { return c.JobParameter }},
	{"Monitor", func(c layout.Config) string { return choice(c.MonitorExecution, "on", "off") }},
	{"ShowRunningAfter", func(c layout.Config) string { return cmp.Or(c.Props[PropShowRunning], showRunning.String()) }},
	{"BeginAhead", func(c layout.Config) string {
		return cmp.Or(c.Props[PropBeginAhead], choice(c.Failover, MaxBeginAhead.String(), never))
	}},
	{"Misfire", misfirePolicy},
	{"MisfireCap", func(c layout.Config) string { return cmp.Or(c.Props[PropMisfireCap], strconv.Itoa(misfireCap)) }},
	{"MisfireWindow", func(c layout.Config) string { return duration(c.Props[PropMisfireWindow], misfireWindow) }},
	{"Failover", func(c layout.Config) string { return strconv.FormatBool(c.Failover) }},
	{"MaxTimeDiff", func(c layout.Config) string { return interval(c.MaxTimeDiffSeconds, time.Second, "any") }},
	{"ReconcileInterval", func(c layout.Config) string { return interval(c.ReconcileIntervalMinutes, time.Minute, "never") }},
	{"Strategy", func(c layout.Config) string { return strategyName(c.JobShardingStrategyType) }},
	{"Description", func(c layout.Config) string { return c.Description }},
	{"Label", func(c layout.Config) string { return c.Label }},
	{"Disabled", func(c layout.Config) string { return strconv.FormatBool(c.Disabled) }},
	{"StaticSharding", func(c layout.Config) string { return strconv.FormatBool(c.StaticSharding) }},
}

// Adopted are the differences of the configuration that was given to Add to the one in the
// registry. That a zone was written down there is none.
func Adopted(local, registry layout.Config) []event.Change {
	if registry.TimeZone == "" {
		registry.Props = maps.Clone(registry.Props)
		delete(registry.Props, PropZone)
	}
	return Differences(local, registry)
}

// Replaced are the differences that the configuration in the registry will have when the one that was given
// to Add has taken its place.
func Replaced(registry, local layout.Config) []event.Change {
	written := Overwritten(local, &registry)
	if registry.TimeZone == "" && written.TimeZone == "" { // where no zone was written down, that one will be is no difference
		registry.Props, written.Props = maps.Clone(registry.Props), maps.Clone(written.Props)
		delete(registry.Props, PropZone)
		delete(written.Props, PropZone)
	}
	return Differences(registry, written)
}

// Differences are the fields in which two configurations of the registry differ in a way
// that means something here. Of props only names are shown.
func Differences(before, after layout.Config) []event.Change {
	var changes []event.Change
	for _, f := range shown {
		was, is := f.value(before), f.value(after)
		if was != is {
			changes = append(changes, event.Change{Field: f.field, Old: clip(was), New: clip(is)})
		}
	}
	if was, is := changedProps(before.Props, after.Props); was != is {
		changes = append(changes, event.Change{Field: "Props", Old: clip(was), New: clip(is)})
	}
	return changes
}

// Refires reports whether the differences change when the job fires.
func Refires(changes []event.Change) bool {
	return slices.ContainsFunc(changes, func(c event.Change) bool {
		return c.Field == "Cron" || c.Field == "TimeZone" || c.Field == "Gap" || c.Field == "Overlap"
	})
}

// changedProps names the props that differ: each where it is set, and "(other value)"
// behind its name where it is set in both.
func changedProps(before, after layout.Props) (was, is string) {
	var olds, news []string
	for _, m := range []layout.Props{before, after} {
		for key := range m {
			old, had := before[key]
			now, has := after[key]
			switch {
			case strings.HasPrefix(key, OwnProps) || had && has && old == now:
			case had && has:
				olds, news = append(olds, key), append(news, key+" (other value)")
			case had:
				olds = append(olds, key)
			default:
				news = append(news, key)
			}
		}
	}
	list := func(keys []string) string {
		slices.Sort(keys)
		return strings.Join(slices.Compact(keys), ", ")
	}
	return list(olds), list(news)
}

func itemParams(c layout.Config) string {
	params, err := layout.ParseItemParams(c.ShardingItemParameters)
	if err != nil {
		return c.ShardingItemParameters
	}
	var b strings.Builder
	for i, n := range slices.Sorted(maps.Keys(params)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d=%s", n, params[n])
	}
	return b.String()
}

// strategyName makes one of the spellings of a built-in strategy.
func strategyName(name string) string {
	if s, err := strategy.ByName(name); err == nil {
		return s.Name()
	}
	return name
}

func choice(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

func misfirePolicy(c layout.Config) string {
	if c.Misfire && c.Props[PropMisfirePolicy] != "" {
		return c.Props[PropMisfirePolicy]
	}
	return choice(c.Misfire, "once", "skip")
}

// duration makes one of the spellings of a duration.
func duration(text string, otherwise time.Duration) string {
	if text == "" {
		return otherwise.String()
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d.String()
	}
	return text
}

func interval(n int, unit time.Duration, none string) string {
	if n <= 0 {
		return none
	}
	return (time.Duration(n) * unit).String()
}

// maxShown bounds a value for people, in characters.
const maxShown = 80

// clip keeps a value for people to one short line.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	if cut := []rune(s); len(cut) > maxShown {
		return string(cut[:maxShown]) + "…"
	}
	return s
}
