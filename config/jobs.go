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

// A jobKey is a key of a job: its name in the file, the field of core.JobConfig, how it is
// read, and what the reference says of it. read reports whether the value could be read.
type jobKey struct {
	key, name string
	read      func(r *reader, m member, c *core.JobConfig) bool
	about     about
}

// strategies are those of package strategy.
var strategies = []string{"AVG_ALLOCATION", "ODEVITY", "ROUND_ROBIN", "STICKY"}

// fields are in the order of core.JobConfig. Name is the key of the job's block.
var fields = []jobKey{
	{"elasticJobClass", "Class", text(func(c *core.JobConfig) *string { return &c.Class }), about{
		aText, "none", "The Java class or type that stands at the job's node in the registry, where ElasticJob has written there before or shares the job. " +
			"A program of Go needs none."}},
	{"cron", "Cron", text(func(c *core.JobConfig) *string { return &c.Cron }), about{
		aText, "none: it must be given", "When the job fires: Quartz's six or seven fields, seconds first (`0/5 * * * * ?`), " +
			"`@every 90s` (fixed rate), `@delay 90s` (fixed delay after the end of an item's run), `@hourly`, `@daily` and so on; `@requests` never: the job runs when somebody asks. " +
			"One that begins with `*` or `@` stands in quotes."}},
	{"timeZone", "TimeZone", text(func(c *core.JobConfig) *string { return &c.TimeZone }), about{
		aText, "the zone of the process that writes the configuration to the registry first", "The zone in which `cron` is read: an IANA name, `UTC` or `GMT+8`."}},
	{"gap", "Gap", text(func(c *core.JobConfig) *string { return &c.Gap }), about{
		oneOf("run-after", "skip"), "`run-after`", "What becomes of a fire that a change to summer time leaves out."}},
	{"overlap", "Overlap", text(func(c *core.JobConfig) *string { return &c.Overlap }), about{
		oneOf("first", "both"), "`first`", "What becomes of a fire that occurs twice when summer time ends."}},
	{"shardingTotalCount", "Shards", number(func(c *core.JobConfig) *int { return &c.Shards }), about{
		aNumber, "none: it must be given", "The number of sharding items, 1 to 100,000."}},
	{"shardingItemParameters", "ItemParams", readParams, about{
		someParams, "none", "The items' own parameters: `0=a,1=b`, or a mapping `{0: a, 1: b}`. A parameter holds neither `,` nor `=`."}},
	{"jobParameter", "JobParam", text(func(c *core.JobConfig) *string { return &c.JobParam }), about{
		aText, "empty", "Is given to every item. All who can read the registry see it."}},
	{"monitorExecution", "Monitor", either(core.MonitorOn, core.MonitorOff, func(c *core.JobConfig) *core.Monitor { return &c.Monitor }), about{
		aFlag, "`true`", "Whether what runs is recorded in the registry. With `false` a fire costs no request, and overlap over instances is not prevented."}},
	{"showRunningAfter", "ShowRunningAfter", readShowRunning, about{
		durationOr("never"), "`1s`", "How long a run lasts until it is shown to ElasticJob's tools."}},
	{"beginAhead", "BeginAhead", readAhead, about{
		durationOr("never"), "`1s` with `failover`, else `never`", "How long before a fire is due its begin may be recorded, at most a second, " +
			"so that no commit makes it late. The function is never called before. Without `failover` a fire that was begun ahead is lost, and told, in a crash."}},
	{"misfire", "Misfire", readMisfire, about{
		flagOr("all"), "`true`", "What becomes of fires that came due while the item was busy or had no owner: `true` runs once for all of them, `all` for each, `false` for none."}},
	{"misfireCap", "MisfireCap", readMisfireCap, about{
		aNumber, "10", "How many missed fires of an item `misfire: all` makes up, 1 to 1,000."}},
	{"misfireWindow", "MisfireWindow", readMisfireWindow, about{
		aDuration, "`1h`", "How late a missed fire may be to be made up, at least `1s`. `0s` is not none but the opposite, no bound: a fire is made up however late, " +
			"but for those that were due while no instance was up. To make up nothing write `misfire: false`."}},
	{"failover", "Failover", flag(func(c *core.JobConfig) *bool { return &c.Failover }), about{
		aFlag, "`false`", "Whether a fire runs again at once, at the item's next owner, when its instance dies while it runs; after three deaths it is told as cut. It needs `monitorExecution`."}},
	{"maxTimeDiff", "MaxTimeDiff", readTimeDiff, about{
		aDuration, "any difference", "How far an instance's clock may be off that of the leader, in whole seconds. Beyond it the job does not start there, or begins nothing until the clock is right."}},
	{"reconcileInterval", "ReconcileInterval", readReconcile, about{
		durationOr("never"), "`10m`", "How often the leader compares the whole state with what it should be, in whole minutes."}},
	{"jobShardingStrategyType", "Strategy", text(func(c *core.JobConfig) *string { return &c.Strategy }), about{
		aText, "`AVG_ALLOCATION`", "The sharding strategy: `" + strings.Join(strategies, "`, `") + "`, or one of the program's (core.WithStrategy)."}},
	{"description", "Description", text(func(c *core.JobConfig) *string { return &c.Description }), about{
		aText, "empty", "For people."}},
	{"label", "Label", text(func(c *core.JobConfig) *string { return &c.Label }), about{
		aText, "empty", "For people."}},
	{"props", "Props", readProps, about{
		someProps, "none", "Settings of the kind of job and of the error handler, and the job's own. All who can read the registry see them: no secret belongs here, " +
			"and one is refused. " +
			"Names that begin with `elasticron.` are taken."}},
	{"disabled", "Disabled", flag(func(c *core.JobConfig) *bool { return &c.Disabled }), about{
		aFlag, "`false`", "Whether a new job begins nothing anywhere until somebody enables it."}},
	{"overwrite", "Overwrite", flag(func(c *core.JobConfig) *bool { return &c.Overwrite }), about{
		aFlag, "`false`", "Whether this configuration replaces the one in the registry, once in the life of a process: when the job first registers. " +
			"A job that an operator or the error handler STOP has disabled stays disabled."}},
	{"staticSharding", "StaticSharding", flag(func(c *core.JobConfig) *bool { return &c.StaticSharding }), about{
		aFlag, "`false`", "Whether an item stays with the instance that has it, over its restarts, until the number of items changes."}},
	{"concurrency", "Concurrency", number(func(c *core.JobConfig) *int { return &c.Concurrency }), about{
		aNumber, "2 for each CPU", "How many items run at once in this process."}},
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

// orDuration takes a word that stands for a duration with a meaning of its own, and durations.
func orDuration(at func(*core.JobConfig) *time.Duration, word string, is time.Duration, example, advice string) func(*reader, member, *core.JobConfig) bool {
	return func(r *reader, m member, c *core.JobConfig) (ok bool) {
		if r.says(m, word) {
			*at(c) = is
			return true
		}
		*at(c), ok = r.duration(m, example, advice)
		return ok
	}
}

var (
	readReconcile = orDuration(func(c *core.JobConfig) *time.Duration { return &c.ReconcileInterval },
		"never", -time.Minute, "10m", "write never, or remove the key for 10m")
	readShowRunning = orDuration(func(c *core.JobConfig) *time.Duration { return &c.ShowRunningAfter },
		"never", -time.Second, "500ms", "write never, or remove the key for 1s")
	readAhead = orDuration(func(c *core.JobConfig) *time.Duration { return &c.BeginAhead },
		"never", -time.Second, "500ms", "write never, or remove the key for 1s")
	readMisfireWindow = orDuration(func(c *core.JobConfig) *time.Duration { return &c.MisfireWindow },
		"0s", -time.Second, "1h", "write 0s for no bound, or misfire: false to make up nothing")
)

func readTimeDiff(r *reader, m member, c *core.JobConfig) (ok bool) {
	c.MaxTimeDiff, ok = r.duration(m, "90s", "remove the key to allow any difference")
	return ok
}

// readMisfire takes ElasticJob's true and false, and all.
func readMisfire(r *reader, m member, c *core.JobConfig) bool {
	if r.says(m, "all") {
		c.Misfire = core.MisfireAll
		return true
	}
	s, ok := r.text(m)
	if ok && !slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, strings.ToLower(s)) {
		r.add(m.value, m.path, "is none of true, false and all; write one of them")
		ok = false
	}
	return ok && either(core.MisfireOnce, core.MisfireSkip, func(c *core.JobConfig) *core.Misfire { return &c.Misfire })(r, m, c)
}

// readMisfireCap knows that zero is the default in Go, and nothing here.
func readMisfireCap(r *reader, m member, c *core.JobConfig) (ok bool) {
	if c.MisfireCap, ok = r.int(m); ok && c.MisfireCap == 0 {
		r.add(m.value, m.path, "is 0; write misfire: false to make up nothing")
		return false
	}
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
	own := r.members(m.value, m.path, "write name: value on the next lines, indented")
	for _, p := range slices.Concat(own, m.more) {
		name := p.key.Value
		c.Props[name], _ = r.text(p)
		if problem := openSecret(name, c.Props[name]); problem != "" {
			r.add(p.key, p.path, "%s", problem)
		}
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
	"misfireall": "misfire: all",
	"strategy":   "jobShardingStrategyType", "shardingstrategy": "jobShardingStrategyType", "jobshardingstrategyclass": "jobShardingStrategyType",
	"class": "elasticJobClass", "jobclass": "elasticJobClass",
	"kind": "type", "errorhandler": "jobErrorHandlerType", "onerror": "jobErrorHandlerType",
	"schedule": "cron", "tz": "timeZone", "zone": "timeZone",
}

const typeHere = "is type here; write for example type: SCRIPT, and nothing for a job whose function the program has"

// foreign are keys of ElasticJob that mean nothing here yet.
var foreign = map[string]string{
	"jobtype":                               typeHere,
	"elasticjobtype":                        typeHere,
	"jobname":                               "the name is that of the block; remove the key",
	"name":                                  "the name is that of the block; remove the key",
	"jobexecutorthreadpoolsizeprovidertype": "is ElasticJob's alone; remove it, and write concurrency to bound the items that run at once",
	"jobexecutorservicehandlertype":         "is ElasticJob's alone; remove it, and write concurrency to bound the items that run at once",
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
			r.validate(c, where, unread)
		}
		if r.checking != nil {
			r.checking.unread[c.Name] = unread
		}
		jobs = append(jobs, c)
	}
	return jobs, where
}

// job reads the settings of one job. It returns the fields that could not be read.
func (r *reader) job(block member, c *core.JobConfig, where map[string]member) (unread []string, ok bool) {
	found := r.members(block.value, block.path, "write cron and shardingTotalCount on the next lines, indented")
	_, unread = r.keys(r.withDefaults(found), block.value.Style&yaml.FlowStyle != 0, c, where)
	for _, name := range r.shared.unread {
		if _, given := where[name]; !given {
			unread = append(unread, name)
		}
	}
	return unread, block.value.Kind == yaml.MappingNode
}

// keys reads keys of a job, which stand in braces or not. It returns those that could be read, and
// the fields that could not.
func (r *reader) keys(found []member, braces bool, c *core.JobConfig, where map[string]member) (read []member, unread []string) {
	for n, m := range found {
		before := len(r.problems)
		switch rest := n > 0 && braces && m.value.Kind == yaml.ScalarNode && m.value.Value == "" && null(m.value); {
		case rest:
			r.add(m.key, found[n-1].path, "ends at the comma before %s; put a value that holds a comma in quotes", clip(m.key.Value))
			for _, f := range fields {
				if f.key == found[n-1].key.Value {
					unread = append(unread, f.name)
				}
			}
		default:
			unread = append(unread, r.key(m, c, where)...)
		}
		if len(r.problems) == before {
			read = append(read, m)
		}
	}
	return read, unread
}

// key reads one key of a job. It returns the fields that could not be read.
func (r *reader) key(m member, c *core.JobConfig, where map[string]member) (unread []string) {
	if i := slices.IndexFunc(works, func(w workKey) bool { return w.key == m.key.Value }); i >= 0 {
		where[works[i].name] = m
		r.work(m, c.Name, works[i])
		return nil
	}
	i := slices.IndexFunc(fields, func(f jobKey) bool { return f.key == m.key.Value })
	if i < 0 {
		return r.unknownField(m)
	}
	where[fields[i].name] = m
	if fields[i].name == "Props" {
		for _, p := range m.mapped() {
			where["Props."+p.key.Value] = p
		}
	}
	if !fields[i].read(r, m, c) {
		return []string{fields[i].name}
	}
	return nil
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
	known := make([]string, 0, len(fields)+len(works))
	for _, f := range fields {
		known = append(known, f.key)
	}
	for _, w := range works {
		known = append(known, w.key)
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
