package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
)

// A jobKey is a key of a job: its name in the file, the field of core.JobConfig, and
// how it is read. read reports whether the value could be read.
type jobKey struct {
	key, name string
	read      func(r *reader, m member, c *core.JobConfig) bool
}

// fields are in the order of core.JobConfig. Name is the key of the job's block.
var fields = []jobKey{
	{"elasticJobClass", "Class", word(func(c *core.JobConfig) *string { return &c.Class })},
	{"cron", "Cron", word(func(c *core.JobConfig) *string { return &c.Cron })},
	{"timeZone", "TimeZone", word(func(c *core.JobConfig) *string { return &c.TimeZone })},
	{"gap", "Gap", word(func(c *core.JobConfig) *string { return &c.Gap })},
	{"overlap", "Overlap", word(func(c *core.JobConfig) *string { return &c.Overlap })},
	{"shardingTotalCount", "Shards", number(func(c *core.JobConfig) *int { return &c.Shards })},
	{"shardingItemParameters", "ItemParams", readParams},
	{"jobParameter", "JobParam", text(func(c *core.JobConfig) *string { return &c.JobParam })},
	{"monitorExecution", "Monitor", either(core.MonitorOn, core.MonitorOff, func(c *core.JobConfig) *core.Monitor { return &c.Monitor })},
	{"misfire", "Misfire", either(core.MisfireOnce, core.MisfireSkip, func(c *core.JobConfig) *core.Misfire { return &c.Misfire })},
	{"failover", "Failover", flag(func(c *core.JobConfig) *bool { return &c.Failover })},
	{"maxTimeDiff", "MaxTimeDiff", readTimeDiff},
	{"reconcileInterval", "ReconcileInterval", readReconcile},
	{"jobShardingStrategyType", "Strategy", word(func(c *core.JobConfig) *string { return &c.Strategy })},
	{"description", "Description", text(func(c *core.JobConfig) *string { return &c.Description })},
	{"label", "Label", text(func(c *core.JobConfig) *string { return &c.Label })},
	{"props", "Props", readProps},
	{"disabled", "Disabled", flag(func(c *core.JobConfig) *bool { return &c.Disabled })},
	{"overwrite", "Overwrite", flag(func(c *core.JobConfig) *bool { return &c.Overwrite })},
	{"staticSharding", "StaticSharding", flag(func(c *core.JobConfig) *bool { return &c.StaticSharding })},
	{"concurrency", "Concurrency", number(func(c *core.JobConfig) *int { return &c.Concurrency })},
}

// fieldOf finds the key of a field of core.JobConfig.
func fieldOf(name string) (jobKey, bool) {
	i := slices.IndexFunc(fields, func(f jobKey) bool { return f.name == name })
	if i < 0 {
		return jobKey{}, false
	}
	return fields[i], true
}

func text(at func(*core.JobConfig) *string) func(*reader, member, *core.JobConfig) bool {
	return func(r *reader, m member, c *core.JobConfig) (ok bool) {
		*at(c), ok = r.text(m)
		return ok
	}
}

// word is a text that has a form, in which a variable has no place.
func word(at func(*core.JobConfig) *string) func(*reader, member, *core.JobConfig) bool {
	return func(r *reader, m member, c *core.JobConfig) (ok bool) {
		s, ok := r.text(m)
		*at(c) = s
		return ok && !r.variable(m, s)
	}
}

func number(at func(*core.JobConfig) *int) func(*reader, member, *core.JobConfig) bool {
	return func(r *reader, m member, c *core.JobConfig) (ok bool) {
		*at(c), ok = r.int(m)
		return ok
	}
}

func flag(at func(*core.JobConfig) *bool) func(*reader, member, *core.JobConfig) bool {
	return func(r *reader, m member, c *core.JobConfig) (ok bool) {
		*at(c), ok = r.bool(m)
		return ok
	}
}

// either is a choice that ElasticJob writes as true or false.
func either[T any](yes, no T, at func(*core.JobConfig) *T) func(*reader, member, *core.JobConfig) bool {
	return func(r *reader, m member, c *core.JobConfig) bool {
		on, ok := r.bool(m)
		*at(c) = yes
		if ok && !on {
			*at(c) = no
		}
		return ok
	}
}

func readTimeDiff(r *reader, m member, c *core.JobConfig) (ok bool) {
	c.MaxTimeDiff, ok = r.duration(m, "90s", "remove the key to allow any difference")
	return ok
}

func readReconcile(r *reader, m member, c *core.JobConfig) (ok bool) {
	if m.value.Kind == yaml.ScalarNode && m.value.Value == "never" {
		c.ReconcileInterval = -time.Minute
		return true
	}
	c.ReconcileInterval, ok = r.duration(m, "10m", "write never, or remove the key for 10m")
	return ok
}

// readParams takes ElasticJob's text and a mapping.
func readParams(r *reader, m member, c *core.JobConfig) bool {
	if m.value.Kind == yaml.MappingNode {
		return readParamMapping(r, m, c)
	}
	if m.value.Kind != yaml.ScalarNode {
		r.add(m.value, m.path, "%s; write 0=a,1=b or a mapping {0: a, 1: b}", nature(m.value))
		return false
	}
	s, ok := r.text(m)
	if !ok {
		return false
	}
	params, err := layout.ParseItemParams(s)
	if err != nil {
		for _, e := range field.All(err) {
			r.addCause(m.value, m.path, e, "%s", e.Problem)
		}
		return false
	}
	c.ItemParams = params
	return true
}

func readParamMapping(r *reader, m member, c *core.JobConfig) bool {
	c.ItemParams = map[int]string{}
	ok := true
	for _, p := range r.members(m.value, m.path, "") {
		item, isItem := r.int(member{key: p.key, value: p.key, path: p.path})
		value, isText := r.text(p)
		ok = ok && isItem && isText
		if _, twice := c.ItemParams[item]; isItem && twice {
			r.add(p.key, p.path, "gives item %d twice; leave one", item)
			ok = false
		}
		c.ItemParams[item] = value
	}
	return ok
}

func readProps(r *reader, m member, c *core.JobConfig) bool {
	before := len(r.problems)
	c.Props = map[string]string{}
	for _, p := range r.members(m.value, m.path, "write name: value on the next lines, indented") {
		c.Props[p.key.Value], _ = r.text(p)
	}
	return len(r.problems) == before
}

// jobWords are other spellings: those of core.JobConfig, and what people guess.
var jobWords = map[string]string{
	"shards": "shardingTotalCount", "shardcount": "shardingTotalCount", "total": "shardingTotalCount",
	"params": "shardingItemParameters", "itemparameters": "shardingItemParameters", "shardingparameters": "shardingItemParameters",
	"param": "jobParameter", "parameter": "jobParameter",
	"itemparams": "shardingItemParameters", "jobparam": "jobParameter",
	"monitor": "monitorExecution", "monitoroff": "monitorExecution: false", "misfireoff": "misfire: false", "misfireskip": "misfire: false",
	"strategy": "jobShardingStrategyType", "shardingstrategy": "jobShardingStrategyType", "jobshardingstrategyclass": "jobShardingStrategyType",
	"class": "elasticJobClass", "jobclass": "elasticJobClass",
	"schedule": "cron", "tz": "timeZone", "zone": "timeZone",
}

const byFunction = "is ElasticJob's: here the program gives each job its function (Config.Bind); remove it"

// foreign are keys of ElasticJob that mean nothing here yet.
var foreign = map[string]string{
	"jobtype":                               byFunction,
	"elasticjobtype":                        byFunction,
	"jobname":                               "the name is that of the block; remove the key",
	"name":                                  "the name is that of the block; remove the key",
	"jobexecutorthreadpoolsizeprovidertype": "is ElasticJob's alone; remove it, and write concurrency to bound the items that run at once",
	"jobexecutorservicehandlertype":         "is ElasticJob's alone; remove it, and write concurrency to bound the items that run at once",
	"joberrorhandlertype":                   "is ElasticJob's and not here yet; remove it",
	"joblistenertypes":                      "is ElasticJob's and not here yet; remove it",
	"jobextraconfigurations":                "is ElasticJob's and not here yet; remove it",
	"extraconfigurations":                   "is ElasticJob's and not here yet; remove it",
	"jobbootstrapbeanname":                  "is ElasticJob's alone; remove it",
}

// jobs reads the jobs block, in the order of the file.
func (r *reader) jobs(block member) ([]core.JobConfig, places) {
	fix := "write the name of a job and a colon on the next line, indented, and its settings below"
	if block.value.Kind == yaml.SequenceNode {
		fix = `write "hello:" in place of "- name: hello", with its settings indented below`
	}
	var jobs []core.JobConfig
	where := places{}
	for _, m := range r.members(block.value, block.path, fix) {
		c := core.JobConfig{Name: m.key.Value}
		where[c.Name] = map[string]member{"Name": m}
		unread, ok := r.job(m, &c, where[c.Name])
		if ok {
			r.check(c, where, unread)
		}
		jobs = append(jobs, c)
	}
	return jobs, where
}

// job reads the settings of one job. It returns the fields that could not be read.
func (r *reader) job(block member, c *core.JobConfig, where map[string]member) (unread []string, ok bool) {
	found := r.members(block.value, block.path, "write cron and shardingTotalCount on the next lines, indented")
	for n, m := range found {
		if rest := n > 0 && block.value.Style&yaml.FlowStyle != 0 && m.value.Kind == yaml.ScalarNode && m.value.Value == "" && null(m.value); rest {
			before := found[n-1]
			r.add(m.key, before.path, "ends at the comma before %s; put a value that holds a comma in quotes", clip(m.key.Value))
			for _, f := range fields {
				if f.key == before.key.Value {
					unread = append(unread, f.name)
				}
			}
			continue
		}
		i := slices.IndexFunc(fields, func(f jobKey) bool { return f.key == m.key.Value })
		if i < 0 {
			unread = append(unread, r.unknownField(m)...)
			continue
		}
		where[fields[i].name] = m
		if !fields[i].read(r, m, c) {
			unread = append(unread, fields[i].name)
		}
	}
	return unread, block.value.Kind == yaml.MappingNode
}

// unknownField notes a key of a job that is not known. It returns the fields that
// may be meant: that they are missing need not be told too.
func (r *reader) unknownField(m member) (meant []string) {
	word := normal(m.key.Value)
	unit, _ := fieldOf(map[string]string{"maxtimediffseconds": "MaxTimeDiff", "reconcileintervalminutes": "ReconcileInterval"}[word])
	switch {
	case unit.key != "":
		r.add(m.key, m.path, "is %s here, with its unit; write %s", unit.key, inUnits(m, unit.key))
		return []string{unit.name}
	case foreign[word] != "":
		r.add(m.key, m.path, "%s", foreign[word])
		return nil
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.key
	}
	r.unknown(m, known, jobWords)
	near := jobWords[word]
	if near == "" {
		near = nearest(m.key.Value, known)
	}
	for _, f := range fields {
		if f.key == near {
			meant = append(meant, f.name)
		}
	}
	return meant
}

// inUnits is the line to write for a number of seconds or minutes of ElasticJob.
func inUnits(m member, key string) string {
	n := m.value.Value
	switch number := m.value.Kind == yaml.ScalarNode && wholeNumber.MatchString(n); {
	case key == "maxTimeDiff" && number && strings.HasPrefix(n, "-"):
		return "nothing: any difference is allowed"
	case key == "maxTimeDiff" && number && len(n) < 10:
		return fmt.Sprintf("maxTimeDiff: %ss", n)
	case key == "maxTimeDiff":
		return "for example maxTimeDiff: 90s"
	case number && (strings.HasPrefix(n, "-") || n == "0"):
		return "reconcileInterval: never"
	case number && len(n) < 10:
		return fmt.Sprintf("reconcileInterval: %sm", n)
	}
	return "for example reconcileInterval: 10m"
}
