package layout

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/internal/field"
)

const (
	keyExtra   = "jobExtraConfigurations"
	keyPool    = "jobExecutorThreadPoolSizeProviderType"
	keyOldPool = "jobExecutorServiceHandlerType"
)

var (
	stringFields = map[string]func(*Config) *string{
		"cron":                    func(c *Config) *string { return &c.Cron },
		"description":             func(c *Config) *string { return &c.Description },
		"jobErrorHandlerType":     func(c *Config) *string { return &c.JobErrorHandlerType },
		keyPool:                   func(c *Config) *string { return &c.JobExecutorThreadPoolSizeProviderType },
		"jobName":                 func(c *Config) *string { return &c.JobName },
		"jobParameter":            func(c *Config) *string { return &c.JobParameter },
		"jobShardingStrategyType": func(c *Config) *string { return &c.JobShardingStrategyType },
		"label":                   func(c *Config) *string { return &c.Label },
		"shardingItemParameters":  func(c *Config) *string { return &c.ShardingItemParameters },
		"timeZone":                func(c *Config) *string { return &c.TimeZone },
	}
	boolFields = map[string]func(*Config) *bool{
		"disabled":         func(c *Config) *bool { return &c.Disabled },
		"failover":         func(c *Config) *bool { return &c.Failover },
		"misfire":          func(c *Config) *bool { return &c.Misfire },
		"monitorExecution": func(c *Config) *bool { return &c.MonitorExecution },
		"overwrite":        func(c *Config) *bool { return &c.Overwrite },
		"staticSharding":   func(c *Config) *bool { return &c.StaticSharding },
	}
	intFields = map[string]func(*Config) *int{
		"maxTimeDiffSeconds":       func(c *Config) *int { return &c.MaxTimeDiffSeconds },
		"reconcileIntervalMinutes": func(c *Config) *int { return &c.ReconcileIntervalMinutes },
		"shardingTotalCount":       func(c *Config) *int { return &c.ShardingTotalCount },
	}
)

// UnmarshalConfig is the function UnmarshalConfig; it also demands that the
// configuration is this job's.
func (j Job) UnmarshalConfig(data []byte) (Config, error) {
	c, err := UnmarshalConfig(data)
	if err != nil {
		return Config{}, err
	}
	if c.JobName != j.Name() {
		return Config{}, field.Errorf("jobName", "is %q in the configuration of %q; set it to the name of the job's node", c.JobName, j.Name())
	}
	return c, nil
}

// UnmarshalConfig reads what MarshalConfig, ElasticJob 3.0.0 to 3.0.5 and its
// console wrote: YAML 1.1 under all its keys, with tags of classes. Keys that are
// absent get the zero value, maxTimeDiffSeconds -1.
//
// The error is a *field.Error with the line: not YAML, an unknown key, a value of
// the wrong type, a name or a total that cannot be, or the JSON of ElasticJob 2, which
// is told from the others by its keys: the error says what to change by hand.
func UnmarshalConfig(data []byte) (Config, error) {
	root, err := parseMapping(data)
	if err != nil {
		return Config{}, err
	}
	r := configReader{data: data, root: root, config: Config{MaxTimeDiffSeconds: -1}}
	if err := r.read(); err != nil {
		return Config{}, err
	}
	if err := r.config.validate(); err != nil {
		return Config{}, field.Adapt(err, func(e *field.Error) { e.Line = r.lines[e.Field] })
	}
	return r.config, nil
}

// parseMapping returns the mapping that data holds. The parser's own words are
// dropped: they can repeat a secret.
func parseMapping(data []byte) (*yaml.Node, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &field.Error{Field: "config", Problem: "is empty, want YAML; write the job's configuration (elasticron convert -registry reads that of ElasticJob 1, a node for each field)"}
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, &field.Error{Field: "config", Line: errorLine(err), Problem: "is not one YAML document; correct its syntax (quote a value that begins with * & ! % @ or holds \": \")"}
	}
	root := &doc
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if root.Kind != yaml.MappingNode {
		return nil, &field.Error{Field: "config", Line: root.Line, Problem: "is not a mapping, want one line for each key, such as \"cron: '0/5 * * * * ?'\""}
	}
	return root, nil
}

func errorLine(err error) int {
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		return load.Mark.Line
	}
	return 0
}

type configReader struct {
	data    []byte
	root    *yaml.Node
	config  Config
	oldPool string
	lines   map[string]int // of the keys seen
}

func (r *configReader) read() error {
	r.lines = map[string]int{}
	for i := 0; i+1 < len(r.root.Content); i += 2 {
		key, value := r.root.Content[i], resolveAlias(r.root.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			return &field.Error{Field: "config", Line: key.Line, Problem: "has a key that is not text"}
		}
		if r.lines[key.Value] != 0 {
			return &field.Error{Field: clip(key.Value), Line: key.Line, Problem: "is given twice; leave one"}
		}
		r.lines[key.Value] = key.Line
		if err := r.field(key, value, i); err != nil {
			return err
		}
	}
	if r.config.JobExecutorThreadPoolSizeProviderType == "" && r.oldPool != "" {
		r.config.JobExecutorThreadPoolSizeProviderType = r.oldPool
		r.config.OldThreadPoolKey = true
	}
	return nil
}

func (r *configReader) field(key, value *yaml.Node, index int) (err error) {
	name := key.Value
	if at, ok := stringFields[name]; ok {
		*at(&r.config), err = readString(name, value)
		return err
	}
	if at, ok := boolFields[name]; ok {
		*at(&r.config), err = readBool(name, value)
		return err
	}
	if at, ok := intFields[name]; ok {
		*at(&r.config), err = readInt(name, value)
		return err
	}
	switch name {
	case keyOldPool:
		r.oldPool, err = readString(name, value)
	case "jobListenerTypes":
		r.config.JobListenerTypes, err = readList(name, value)
	case "props":
		err = r.readProps(value)
	case keyExtra:
		r.config.JobExtraConfigurations, err = r.readExtra(index)
	default:
		err = r.unknown(key)
	}
	return err
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// version2 are the keys that only ElasticJob 2 wrote, and what is to be done with each.
var version2 = []struct{ key, change string }{
	{"jobClass", "remove it"},
	{"jobType", "remove it"},
	{"jobProperties", "remove it"},
	{"monitorPort", "remove it"},
	{"streamingProcess", `write it as props: {streaming.process: "true"}, or remove it`},
	{"scriptCommandLine", "write it as props: {script.command.line: ...}, or remove it"},
	{"jobShardingStrategyClass", "write jobShardingStrategyType: AVG_ALLOCATION, ODEVITY, ROUND_ROBIN or one of your own, or remove it"},
}

// unknown refuses a key. ElasticJob 2 wrote JSON: there is more to say of it than of one
// that was mistyped.
func (r *configReader) unknown(key *yaml.Node) error {
	is := func(name string) bool {
		return slices.ContainsFunc(version2, func(v struct{ key, change string }) bool { return v.key == name })
	}
	if r.root.Style&yaml.FlowStyle == 0 || !is(key.Value) {
		return wrong(clip(key.Value), key, "is not a key of the configuration; correct or remove it")
	}
	var changes []string
	for _, v := range version2 {
		for i := 0; i < len(r.root.Content); i += 2 {
			if r.root.Content[i].Value == v.key {
				changes = append(changes, v.key+" ("+v.change+")")
			}
		}
	}
	return &field.Error{Field: "config", Line: key.Line, Problem: "was written by ElasticJob 2, whose members understand no other form; " +
		"stop them, then change by hand: " + strings.Join(changes, ", ")}
}
