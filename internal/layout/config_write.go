package layout

import (
	"maps"
	"slices"
)

// MarshalConfig writes a configuration as ElasticJob reads it, and nearly as it writes it:
// keys in alphabetical order, empty strings left out but for description, jobParameter
// and shardingItemParameters, empty collections left out, props sorted; but each text is
// one line.
// JobExtraConfigurations are copied.
//
// The error has a *field.Error for each fault: a name or a total that no reader would accept, or
// text that YAML cannot hold (control characters, bytes that are not UTF-8).
func MarshalConfig(c Config) ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	var w yamlWriter
	poolKey := keyPool
	if c.OldThreadPoolKey {
		poolKey = keyOldPool
	}
	w.optional("cron", c.Cron)
	w.text("description", c.Description)
	w.bool("disabled", c.Disabled)
	w.bool("failover", c.Failover)
	w.optional("jobErrorHandlerType", c.JobErrorHandlerType)
	w.optional(poolKey, c.JobExecutorThreadPoolSizeProviderType)
	w.verbatim(keyExtra, c.JobExtraConfigurations.text)
	w.list("jobListenerTypes", c.JobListenerTypes)
	w.text("jobName", c.JobName)
	w.text("jobParameter", c.JobParameter)
	w.optional("jobShardingStrategyType", c.JobShardingStrategyType)
	w.optional("label", c.Label)
	w.int("maxTimeDiffSeconds", c.MaxTimeDiffSeconds)
	w.bool("misfire", c.Misfire)
	w.bool("monitorExecution", c.MonitorExecution)
	w.bool("overwrite", c.Overwrite)
	w.mapping("props", c.Props)
	w.int("reconcileIntervalMinutes", c.ReconcileIntervalMinutes)
	w.text("shardingItemParameters", c.ShardingItemParameters)
	w.int("shardingTotalCount", c.ShardingTotalCount)
	w.bool("staticSharding", c.StaticSharding)
	w.optional("timeZone", c.TimeZone)
	return w.done()
}

func (w *yamlWriter) optional(key, value string) {
	if value != "" {
		w.text(key, value)
	}
}

func (w *yamlWriter) bool(key string, value bool) {
	word := "false"
	if value {
		word = "true"
	}
	w.raw(key + ": " + word + "\n")
}

func (w *yamlWriter) list(key string, values []string) {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	if len(values) == 0 {
		return
	}
	w.raw(key + ":\n")
	for _, v := range values {
		w.check(key, v)
		w.raw("- " + quoted(v) + "\n")
	}
}

func (w *yamlWriter) mapping(key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	w.raw(key + ":\n")
	for _, k := range slices.Sorted(maps.Keys(values)) {
		w.checkKey(key, k)
		w.check(key+"."+k, values[k])
		w.raw("  " + quoted(k) + ": " + quoted(values[k]) + "\n")
	}
}
