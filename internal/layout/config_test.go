package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/field"
)

func TestMarshalConfigOfAPlainJob(t *testing.T) {
	text, err := MarshalConfig(Config{
		JobName: "demo", Cron: "0/5 * * * * ?", ShardingTotalCount: 3,
		MaxTimeDiffSeconds: -1, Misfire: true, MonitorExecution: true, ReconcileIntervalMinutes: 10,
	})
	require.NoError(t, err)
	require.Equal(t, `cron: 0/5 * * * * ?
description: ''
disabled: false
failover: false
jobName: demo
jobParameter: ''
maxTimeDiffSeconds: -1
misfire: true
monitorExecution: true
overwrite: false
reconcileIntervalMinutes: 10
shardingItemParameters: ''
shardingTotalCount: 3
staticSharding: false
`, string(text))
}

// full has every field set.
func full() Config {
	return Config{
		Cron: "* * * * * ?", Description: "d", Disabled: true, Failover: true, JobErrorHandlerType: "LOG",
		JobExecutorThreadPoolSizeProviderType: "CPU", JobListenerTypes: []string{"b", "a"}, JobName: "demo", JobParameter: "p",
		JobShardingStrategyType: "ODEVITY", Label: "l", MaxTimeDiffSeconds: 5, Misfire: true, MonitorExecution: true, Overwrite: true,
		Props: Props{"z": "010", "a": "true", "m": "x"}, ReconcileIntervalMinutes: 7, ShardingItemParameters: "0=a", ShardingTotalCount: 3,
		StaticSharding: true, TimeZone: "GMT+8:00",
	}
}

const fullText = `cron: '* * * * * ?'
description: d
disabled: true
failover: true
jobErrorHandlerType: LOG
jobExecutorThreadPoolSizeProviderType: CPU
jobListenerTypes:
- b
- a
jobName: demo
jobParameter: p
jobShardingStrategyType: ODEVITY
label: l
maxTimeDiffSeconds: 5
misfire: true
monitorExecution: true
overwrite: true
props:
  a: 'true'
  m: x
  z: '010'
reconcileIntervalMinutes: 7
shardingItemParameters: 0=a
shardingTotalCount: 3
staticSharding: true
timeZone: GMT+8:00
`

func TestConfigWithEveryField(t *testing.T) {
	text, err := MarshalConfig(full())
	require.NoError(t, err)
	require.Equal(t, fullText, string(text))
	back, err := newJob(t, "shop", "demo").UnmarshalConfig(text)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(full(), back))
}

func TestThreadPoolKeys(t *testing.T) {
	const head = "jobName: j\nshardingTotalCount: 1\n"
	for text, want := range map[string]struct {
		pool string
		old  bool
	}{
		"": {},
		"jobExecutorThreadPoolSizeProviderType: ''\n":                                                {},
		"jobExecutorServiceHandlerType: ''\n":                                                        {},
		"jobExecutorServiceHandlerType: CPU\n":                                                       {"CPU", true},
		"jobExecutorThreadPoolSizeProviderType: CPU\n":                                               {"CPU", false},
		"jobExecutorThreadPoolSizeProviderType: CPU\njobExecutorServiceHandlerType: SINGLE_THREAD\n": {"CPU", false},
		"jobExecutorThreadPoolSizeProviderType: ''\njobExecutorServiceHandlerType: SINGLE_THREAD\n":  {"SINGLE_THREAD", true},
	} {
		c, err := UnmarshalConfig([]byte(head + text))
		require.NoError(t, err, text)
		require.Equal(t, want.pool, c.JobExecutorThreadPoolSizeProviderType, text)
		require.Equal(t, want.old, c.OldThreadPoolKey, text)
		out, err := MarshalConfig(c)
		require.NoError(t, err)
		require.Equal(t, want.old, strings.Contains(string(out), "jobExecutorServiceHandlerType: "+want.pool), text)
		require.Equal(t, want.pool != "" && !want.old, strings.Contains(string(out), "jobExecutorThreadPoolSizeProviderType: "+want.pool), text)
	}
}

func TestUnmarshalConfigDefaults(t *testing.T) {
	for _, text := range []string{
		"jobName: j\nshardingTotalCount: 1\n",
		"jobName: j\nshardingTotalCount: 1\ncron:\ndescription: null\nprops:\njobListenerTypes: []\njobExtraConfigurations: ~\nlabel: ''\n",
		"--- !!org.apache.shardingsphere.elasticjob.infra.pojo.JobConfigurationPOJO\njobName: !!str j\nshardingTotalCount: '1'\nprops: {}\n...\n",
		"# by hand\r\njobName: j # the name\r\nshardingTotalCount: 0x1\r\njobListenerTypes: ['']\r\n",
		"\ufeffjobName: j\nshardingTotalCount: &n 1\nreconcileIntervalMinutes: 0\n",
	} {
		c, err := UnmarshalConfig([]byte(text))
		require.NoError(t, err, text)
		require.Empty(t, cmp.Diff(Config{JobName: "j", ShardingTotalCount: 1, MaxTimeDiffSeconds: -1}, c), text)
	}
}

// A configuration of ElasticJob 2 is told from one of 3 and refused, with what to change.
func TestUnmarshalConfigRefusesVersion2(t *testing.T) {
	const common = `"jobName":"old","cron":"0 0 1 * * ?","shardingTotalCount":10,"failover":true,"misfire":false`
	_, err := UnmarshalConfig([]byte("{" + common + "}")) // nothing says that it is 2's
	require.NoError(t, err)
	for _, v := range version2 {
		_, err := UnmarshalConfig(fmt.Appendf(nil, "{%s,%q:%q}", common, v.key, "sesame"))
		require.ErrorContains(t, err, "config: was written by ElasticJob 2")
		require.ErrorContains(t, err, v.key+" ("+v.change+")")
		require.NotContains(t, err.Error(), "sesame")
	}
	_, err = UnmarshalConfig([]byte(`{"jobName":"old","jobClass":"com.example.Old","jobType":"SCRIPT","cron":"0 0 1 * * ?","shardingTotalCount":10,
		"shardingItemParameters":"0=A,1=B","jobParameter":"","failover":true,"misfire":false,"description":"d \"q\"",
		"jobProperties":{"job_exception_handler":"com.dangdang.Default","executor_service_handler":"com.dangdang.Default"},
		"monitorExecution":true,"maxTimeDiffSeconds":-1,"monitorPort":-1,"jobShardingStrategyClass":"",
		"reconcileIntervalMinutes":5,"disabled":false,"overwrite":true,"scriptCommandLine":"echo 1","streamingProcess":true}`))
	var wrong *field.Error
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, 1, wrong.Line)
	for _, v := range version2 {
		require.ErrorContains(t, err, v.key+" (")
	}
}

func TestUnmarshalConfigRefuses(t *testing.T) {
	const ok = "jobName: j\nshardingTotalCount: 1\n"
	for name, c := range map[string]struct {
		text, field string
		line        int
		says        string
	}{
		"nothing":           {"", "config", 0, "is empty"},
		"space":             {" \n\t", "config", 0, "is empty"},
		"only a comment":    {"# x\n", "config", 0, ""},
		"not YAML":          {ok + "cron: * * *\n", "config", 3, "not one YAML document"},
		"two documents":     {ok + "---\n" + ok, "config", 0, "not one YAML document"},
		"a list":            {"- a\n", "config", 1, "not a mapping"},
		"text":              {"hello", "config", 1, "not a mapping"},
		"binary":            {"\xff\x00", "config", 0, ""},
		"unknown key":       {ok + "corn: x\n", `"corn"`, 3, "correct or remove"},
		"unknown JSON key":  {`{"corn": 1}`, `"corn"`, 1, "correct or remove"},
		"2.x key in YAML":   {ok + "monitorPort: 1\n", `"monitorPort"`, 3, "correct or remove"},
		"merge key":         {ok + "<<: {cron: x}\n", `"<<"`, 3, "correct or remove"},
		"key twice":         {ok + "jobName: k\n", `"jobName"`, 3, "twice"},
		"key not text":      {ok + "[a]: k\n", "config", 3, "not text"},
		"no name":           {"shardingTotalCount: 1\n", "jobName", 0, "is empty"},
		"name with slash":   {"jobName: a/b\nshardingTotalCount: 1\n", "jobName", 1, "instead of"},
		"no total":          {"jobName: j\n", "shardingTotalCount", 0, "want 1 or more"},
		"total 0":           {"jobName: j\nshardingTotalCount: 0\n", "shardingTotalCount", 2, "want 1 or more"},
		"total null":        {"jobName: j\nshardingTotalCount:\n", "shardingTotalCount", 2, "whole number"},
		"total text":        {"jobName: j\nshardingTotalCount: many\n", "shardingTotalCount", 2, "whole number"},
		"total too large":   {"jobName: j\nshardingTotalCount: 2147483648\n", "shardingTotalCount", 2, "32 bits"},
		"bool":              {ok + "failover: maybe\n", "failover", 3, "want true or false"},
		"text is a list":    {ok + "cron:\n- x\n", "cron", 4, "want text"},
		"listeners":         {ok + "jobListenerTypes: x\n", "jobListenerTypes", 3, "not a list"},
		"listener":          {ok + "jobListenerTypes: [[x]]\n", "jobListenerTypes", 3, "want text"},
		"props":             {ok + "props: [x]\n", "props", 3, "not a mapping"},
		"prop key":          {ok + "props: {[x]: y}\n", "props", 3, "not text"},
		"prop list":         {ok + "props:\n  a: [x]\n", "props.a", 4, "quotes"},
		"prop null":         {ok + "props:\n  a:\n", "props.a", 4, "quotes"},
		"prop twice":        {ok + "props:\n  a: x\n  a: y\n", "props.a", 5, "twice"},
		"extra":             {ok + "jobExtraConfigurations: {a: b}\n", "jobExtraConfigurations", 3, "not a list"},
		"a 2.x key":         {`{"jobName":"j","shardingTotalCount":1,"jobShardingStrategyClass":"a.B"}`, "config", 1, "jobShardingStrategyType"},
		"alias to a parent": {"&a\njobName: *a\nshardingTotalCount: 1\n", "jobName", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := UnmarshalConfig([]byte(c.text))
			var wrong *field.Error
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, Config{}, got)
			require.Equal(t, c.field, wrong.Field, "%v", err)
			if c.line > 0 {
				require.Equal(t, c.line, wrong.Line, "%v", err)
				require.Contains(t, err.Error(), fmt.Sprintf("line %d: %s: ", c.line, c.field))
			}
			require.Contains(t, err.Error(), c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestUnmarshalConfigRefusesAnotherJob(t *testing.T) {
	_, err := newJob(t, "shop", "other").UnmarshalConfig([]byte(fullText))
	require.ErrorContains(t, err, `jobName: is "demo" in the configuration of "other"`)
	_, err = newJob(t, "shop", "other").UnmarshalConfig([]byte("{"))
	require.ErrorContains(t, err, "YAML")
}

func TestMarshalConfigRefuses(t *testing.T) {
	for key, change := range map[string]func(*Config){
		"jobName":                  func(c *Config) { c.JobName = "" },
		"shardingTotalCount":       func(c *Config) { c.ShardingTotalCount = 0 },
		"maxTimeDiffSeconds":       func(c *Config) { c.MaxTimeDiffSeconds = 1 << 31 },
		"reconcileIntervalMinutes": func(c *Config) { c.ReconcileIntervalMinutes = -1<<31 - 1 },
		"description":              func(c *Config) { c.Description = "a\x00" },
		"label":                    func(c *Config) { c.Label = "a\xff" },
		"cron":                     func(c *Config) { c.Cron = "a\u2028b" },
		"jobListenerTypes":         func(c *Config) { c.JobListenerTypes = []string{"a\x7f"} },
		"props.a":                  func(c *Config) { c.Props["a"] = "sesame\ufeff" },
		"props":                    func(c *Config) { c.Props[strings.Repeat("k", 123)] = "sesame" },
	} {
		c := full()
		change(&c)
		text, err := MarshalConfig(c)
		var wrong *field.Error
		require.ErrorAs(t, err, &wrong, key)
		require.Equal(t, key, wrong.Field)
		require.NotContains(t, err.Error(), "sesame")
		require.Nil(t, text)
	}
	c := full()
	c.Props[""] = "v"
	_, err := MarshalConfig(c)
	require.ErrorContains(t, err, "want one line")
}

func TestSecretsAreNotShown(t *testing.T) {
	text := "jobName: j\nshardingTotalCount: 1\nprops:\n  password: sesame\njobExtraConfigurations:\n- !!x\n  password: sesame\n"
	c, err := UnmarshalConfig([]byte(text))
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "pointer", &c, "props", c.Props, "extra", c.JobExtraConfigurations)
	extra, err := json.Marshal(c.JobExtraConfigurations) //nolint:staticcheck // that nothing is shown is what is tested
	require.NoError(t, err)
	shown := log.String() + string(extra)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		shown += fmt.Sprintf(verb, c) + fmt.Sprintf(verb, &c) + fmt.Sprintf(verb, c.Props) + fmt.Sprintf(verb, c.JobExtraConfigurations)
	}
	require.NotContains(t, shown, "sesame")
	require.NotContains(t, shown, "736573616d65")
	require.Contains(t, shown, "hidden")
}

// Whatever stands at a secret's place, the error does not repeat it.
func TestErrorsDoNotRepeatSecrets(t *testing.T) {
	for _, value := range []string{"*sesame", "&sesame", "!sesame", "!!sesame/x%zz ", "@sesame", "%sesame", "`sesame", "sesame: x: sesame", "[sesame", "{sesame", `"sesame`, "'sesame", "|sesame", "[sesame]", "{sesame: sesame}", "\tsesame: a", "? sesame", "sesame\n sesame: sesame"} {
		for _, place := range []string{"props:\n  password: ", "jobExtraConfigurations:\n- !!org.apache.X\n  password: ", "jobExtraConfigurations: ", "props: "} {
			_, err := UnmarshalConfig([]byte("jobName: j\nshardingTotalCount: 1\n" + place + value + "\nmisfire: x\n"))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "sesame", "%s%s", place, value)
		}
	}
}
