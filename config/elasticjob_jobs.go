package config

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A draft is a job on its way from ElasticJob to here.
type draft struct {
	name  string
	out   block
	props block
	class member
}

// A property is a key of a job in ElasticJob, with what becomes of it. docs/migration.md has a
// row for each.
type property struct {
	name    string
	convert func(c *converter, d *draft, m member)
}

// properties are those of ElasticJob 3, and then what only 2 and 1 had in the registry.
var properties = []property{
	{"elasticJobClass", (*converter).class},
	{"elasticJobType", (*converter).kind},
	{"jobName", func(*converter, *draft, member) {}},
	{"cron", moved("cron")},
	{"timeZone", moved("timeZone")},
	{"jobBootstrapBeanName", func(c *converter, _ *draft, m member) {
		c.note(m.key, m.path, "is the name of a Spring bean, and left out")
	}},
	{"shardingTotalCount", number3("shardingTotalCount")},
	{"shardingItemParameters", moved("shardingItemParameters")},
	{"jobParameter", moved("jobParameter")},
	{"monitorExecution", switched("monitorExecution")},
	{"failover", switched("failover")},
	{"misfire", switched("misfire")},
	{"maxTimeDiffSeconds", (*converter).timeDiff},
	{"reconcileIntervalMinutes", (*converter).reconcile},
	{"jobShardingStrategyType", (*converter).strategy},
	{"jobExecutorThreadPoolSizeProviderType", (*converter).pool},
	{"jobExecutorServiceHandlerType", (*converter).pool},
	{"jobErrorHandlerType", moved("jobErrorHandlerType")},
	{"jobListenerTypes", func(c *converter, _ *draft, m member) {
		if len(m.value.Content) > 0 || m.value.Value != "" && !null(m.value) {
			c.lost(m.key, m.path, "are Java classes; the program gives its own to the scheduler (core.WithListener) or around the job (package job/link)")
		}
	}},
	{"jobExtraConfigurations", func(c *converter, _ *draft, m member) {
		if len(m.value.Content) > 0 {
			c.lost(m.key, m.path, "%s", noTracing)
		}
	}},
	{"description", moved("description")},
	{"props", (*converter).convertProps},
	{"disabled", switched("disabled")},
	{"overwrite", switched("overwrite")},
	{"label", moved("label")},
	{"staticSharding", switched("staticSharding")},
	// ElasticJob 2.
	{"jobClass", (*converter).class},
	{"jobType", (*converter).kind},
	{"jobProperties", func(c *converter, _ *draft, m member) {
		if m.value.Kind == yaml.MappingNode && ownClass(m.value) {
			c.lost(m.key, m.path, "are Java classes for failed runs and for threads; use jobErrorHandlerType and concurrency")
		}
	}},
	{"jobShardingStrategyClass", (*converter).strategyClass},
	{"monitorPort", func(c *converter, _ *draft, m member) {
		if n, _ := strconv.Atoi(m.value.Value); n > 0 {
			c.lost(m.key, m.path, "no port is opened; admin.Dump prints a job")
		}
	}},
	{"streamingProcess", prop("streaming.process", (*converter).boolean)},
	{"scriptCommandLine", func(c *converter, d *draft, m member) {
		if prop("script.command.line", (*converter).foreignText)(c, d, m); d.props.has("script.command.line") && !d.out.has("type") {
			d.out.text("type", m, "SCRIPT")
		}
	}},
	// ElasticJob 1.
	{"processCountIntervalSeconds", prop("dataflow.count.interval.seconds", (*converter).foreignText)},
	{"concurrentDataProcessThreadCount", prop("dataflow.concurrency", (*converter).foreignText)},
	{"fetchDataCount", prop("dataflow.fetch.count", (*converter).foreignText)},
}

// ownClass reports whether a mapping names a class that is not ElasticJob's default.
func ownClass(n *yaml.Node) bool {
	for i := 1; i < len(n.Content); i += 2 {
		class := n.Content[i].Value
		if !strings.HasPrefix(class[strings.LastIndexByte(class, '.')+1:], "Default") {
			return true
		}
	}
	return false
}

func moved(key string) func(*converter, *draft, member) {
	return func(c *converter, d *draft, m member) {
		if text, ok := c.foreignText(m); ok && text != "" {
			d.out.text(key, m, text)
		}
	}
}

func number3(key string) func(*converter, *draft, member) {
	return func(c *converter, d *draft, m member) {
		if text, ok := c.foreignText(m); ok && text != "" {
			d.out.plain(key, m, text)
		}
	}
}

func switched(key string) func(*converter, *draft, member) {
	return func(c *converter, d *draft, m member) {
		if text, ok := c.boolean(m); ok {
			d.out.plain(key, m, text)
		}
	}
}

func prop(key string, read func(*converter, member) (string, bool)) func(*converter, *draft, member) {
	return func(c *converter, d *draft, m member) {
		if text, ok := read(c, m); ok && text != "" && text != "false" {
			d.props.text(key, m, text)
		}
	}
}

// class keeps the name by which Java members know the job.
func (c *converter) class(d *draft, m member) {
	text, ok := c.foreignText(m)
	if !ok || text == "" {
		return
	}
	d.out.text("elasticJobClass", m, text)
	d.class = m
}

// kind is SCRIPT or HTTP, which need no function, or what ElasticJob knows by a class.
func (c *converter) kind(d *draft, m member) {
	text, ok := c.foreignText(m)
	if !ok || text == "" {
		return
	}
	upper := strings.ToUpper(text)
	d.out.text("type", m, upper)
	switch upper {
	case "SCRIPT":
	case "HTTP":
		c.note(m.value, m.path, "a status of 400 or more fails a run here; ElasticJob only logs it")
	case "SIMPLE", "DATAFLOW":
		return // the class is what the registry holds
	default:
		c.note(m.value, m.path, "is a type of yours; the program gives a job.Kinds with it to Config.Bind")
	}
	if normal(m.key.Value) == "elasticjobtype" {
		// What stands at the job's node in the registry.
		d.out.text("elasticJobClass", m, text)
	}
}

func (c *converter) timeDiff(d *draft, m member) {
	text, ok := c.foreignText(m)
	switch n, err := strconv.Atoi(text); {
	case !ok || text == "" || err == nil && n < 0:
	case err == nil && n == 0:
		c.lost(m.value, m.path, "is 0, which no two clocks keep; a difference of at least 1s can be asked for")
	default:
		d.out.text("maxTimeDiff", m, text+"s")
	}
}

func (c *converter) reconcile(d *draft, m member) {
	text, ok := c.foreignText(m)
	if !ok || text == "" {
		return
	}
	if n, err := strconv.Atoi(text); err == nil && n <= 0 {
		d.out.text("reconcileInterval", m, "never")
		return
	}
	d.out.text("reconcileInterval", m, text+"m")
}

func (c *converter) strategy(d *draft, m member) {
	text, ok := c.foreignText(m)
	switch {
	case !ok || text == "":
	case text == "SINGLE_SHARDING_BALANCE":
		c.lost(m.value, m.path, "%s moves the only item on after each run; it stays with its instance here. STICKY and ROUND_ROBIN spread jobs over instances", text)
	default:
		d.out.text("jobShardingStrategyType", m, text)
	}
}

// strategyClasses are those of ElasticJob 1 and 2, which had no types.
var strategyClasses = map[string]string{
	"AverageAllocationJobShardingStrategy": "AVG_ALLOCATION", "OdevitySortByNameJobShardingStrategy": "ODEVITY", "RotateServerByNameJobShardingStrategy": "ROUND_ROBIN",
}

func (c *converter) strategyClass(d *draft, m member) {
	text, ok := c.foreignText(m)
	if !ok || text == "" {
		return
	}
	name, known := strategyClasses[text[strings.LastIndexByte(text, '.')+1:]]
	if !known {
		c.lost(m.value, m.path, "is a Java class; give a strategy to core.WithStrategy and its name as jobShardingStrategyType")
		return
	}
	d.out.text("jobShardingStrategyType", m, name)
}

func (c *converter) pool(d *draft, m member) {
	text, ok := c.foreignText(m)
	switch {
	case !ok || text == "" || text == "CPU": // the default is the same
	case text == "SINGLE_THREAD":
		d.out.plain("concurrency", m, "1")
	default:
		c.lost(m.value, m.path, "is a Java class; write concurrency, the number of items that run at once in a process")
	}
}

// secretProps are the settings of ElasticJob's handlers that are secrets.
var secretProps = []string{"email.password", "wechat.webhook", "dingtalk.webhook", "dingtalk.secret"}

// secretWords in the last part of a prop's name make it one, whoever reads it.
var secretWords = []string{"password", "passwd", "pwd", "secret", "token", "accesskey", "privatekey"}

// lostProps have no counterpart.
var lostProps = map[string]string{
	"email.debug":     "what a mail server says is not printed",
	"email.ssl.trust": "certificates are checked against those of the system; none is trusted unseen",
}

// convertProps flattens the settings, as Spring does, and takes secrets out.
func (c *converter) convertProps(d *draft, m member) {
	if m.value.Kind == yaml.ScalarNode && (null(m.value) || m.value.Value == "") {
		return
	}
	for _, p := range c.flatten(m, "") {
		text, ok := c.foreignText(p.member)
		switch {
		case !ok:
		case lostProps[p.name] != "":
			c.lost(p.key, p.path, "%s", lostProps[p.name])
		case strings.HasPrefix(p.name, "script.") && passwordInURL.MatchString(text): // a command is nowhere but here
			c.lost(p.key, p.path, "holds a password, which all who read the registry would see; have the script read it from its environment, or from a file")
		case slices.Contains(secretProps, p.name) && text != "", p.name == "http.uri" && passwordInURL.MatchString(text):
			c.secret(d.props, p.member, p.name, text, d.name)
		case secretName(p.name) && text != "", passwordInURL.MatchString(text):
			c.secret(d.props, p.member, p.name, text, d.name)
			c.note(p.key, p.path, "what stands among props is written to the registry, where all can read it; the function reads the secret where the new prop says")
		default:
			d.props.text(p.name, p.member, text)
		}
	}
}

func secretName(name string) bool {
	last := normal(name[strings.LastIndexByte(name, '.')+1:])
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.HasSuffix(last, w) })
}

// A flatProp is a setting with its whole name.
type flatProp struct {
	member

	name string
}

// flatten returns the scalars below a mapping, with their names joined by dots.
func (c *converter) flatten(m member, prefix string) []flatProp {
	var all []flatProp
	for _, p := range c.members(m.value, m.path, "write name: value on the next lines, indented") {
		name := prefix + strings.TrimSuffix(strings.TrimPrefix(p.key.Value, "["), "]")
		if p.value.Kind == yaml.MappingNode {
			all = append(all, c.flatten(p, name+".")...)
			continue
		}
		all = append(all, flatProp{p, name})
	}
	return all
}

// convertJobs converts the block of all jobs.
func (c *converter) convertJobs(from member, out block) {
	jobs := newBlock()
	for _, m := range c.spread(from.value, from.path, exactly) {
		name := strings.TrimSuffix(strings.TrimPrefix(m.key.Value, "["), "]")
		if made, ok := c.convertJob(name, m); ok {
			jobs.put(name, m, made)
		}
	}
	out.put("jobs", from, jobs.Node)
}

// convertJob makes one job. It reports false for one that is no mapping, which is told.
func (c *converter) convertJob(name string, from member) (*yaml.Node, bool) {
	d := &draft{name: name, out: newBlock(), props: newBlock()}
	var propsAt member
	for _, m := range c.spread(from.value, from.path, normal) {
		i := slices.IndexFunc(properties, func(p property) bool { return normal(p.name) == normal(m.key.Value) })
		if i < 0 {
			c.lost(m.key, m.path, "is not a property of an ElasticJob job; left out")
			continue
		}
		if properties[i].convert(c, d, m); len(d.props.Content) > 0 && propsAt.key == nil {
			propsAt = m
		}
	}
	if len(d.props.Content) > 0 {
		d.out.put("props", propsAt, d.props.Node)
	}
	if kind := d.out.get("type"); d.class.key != nil && kind != "SCRIPT" && kind != "HTTP" {
		c.note(d.class.value, d.class.path, "is a Java class; the program gives a function for the job %s to Config.Bind", clip(name))
	}
	once := !d.out.has("cron")
	c.bootDefaults(d, from, once)
	if once {
		c.onRequest(d, from)
	}
	return d.out.Node, from.value.Kind == yaml.MappingNode
}

// bootDefaults writes what ElasticJob's YAML takes for granted and this package does not. once
// is a job that runs when it is asked to, whose monitoring is the matter of onRequest.
func (c *converter) bootDefaults(d *draft, from member, once bool) {
	at := member{key: from.key}
	var missing []string
	for _, key := range []string{"monitorExecution", "misfire"} {
		if d.out.has(key) {
			continue
		}
		d.out.plain(key, at, "false")
		if key == "misfire" || !once {
			missing = append(missing, key+": false")
		}
	}
	if !d.out.has("reconcileInterval") {
		d.out.text("reconcileInterval", at, "never")
		missing = append(missing, "reconcileInterval: never")
	}
	if len(missing) > 0 {
		c.note(from.key, from.path, "did not say %s, which ElasticJob's YAML then means; it is written out. Remove it for the defaults here", strings.Join(missing, ", "))
	}
	if d.out.get("failover") == "true" && d.out.get("monitorExecution") == "false" {
		d.out.drop("failover")
		c.lost(from.key, join(from.path, "failover"), "does nothing in ElasticJob without monitorExecution: true, and is left out; write both for failover")
	}
}

// onRequest makes the schedule of a job that has none, and that a OneOffJobBootstrap runs.
func (c *converter) onRequest(d *draft, from member) {
	at := member{key: from.key}
	d.out.text("cron", at, "@requests")
	c.note(from.key, from.path, "has no cron and becomes cron: '@requests': it runs when somebody asks, by admin.Trigger, which is OneOffJobBootstrap.execute")
	if d.out.get("monitorExecution") == "false" {
		d.out.drop("monitorExecution")
		d.out.plain("monitorExecution", at, "true")
		c.note(from.key, join(from.path, "monitorExecution"), "is true from now on, since a request runs once by the record alone")
	}
}
