package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry/memory"
)

// What defaults say counts for every job that does not say otherwise, wherever the block stands.
func TestDefaults(t *testing.T) {
	const block = `defaults:
  timeZone: Europe/Berlin
  shardingTotalCount: 3
  misfire: false
  maxTimeDiff: 90s
  timeout: 5s
  attempts: 2
  jobErrorHandlerType: IGNORE
  props: {a: one, b: two}
`
	const jobs = `jobs:
  plain: {cron: '@daily'}
  other:
    cron: '@hourly'
    timeZone: UTC
    shardingTotalCount: 1
    misfire: all
    attempts: 4
    props: {b: three, c: four}
`
	for _, order := range []string{block + jobs, jobs + block} {
		c, err := Parse("jobs.yaml", []byte("registry: {url: 'memory://a/b'}\n"+order))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff([]core.JobConfig{
			{Name: "plain", Cron: "@daily", TimeZone: "Europe/Berlin", Shards: 3, Misfire: core.MisfireSkip, MaxTimeDiff: 90 * time.Second, Props: map[string]string{"a": "one", "b": "two"}},
			{Name: "other", Cron: "@hourly", TimeZone: "UTC", Shards: 1, Misfire: core.MisfireAll, MaxTimeDiff: 90 * time.Second, Props: map[string]string{"a": "one", "b": "three", "c": "four"}},
		}, c.Jobs))
		require.Equal(t, map[string]work{
			"plain": {handler: "IGNORE", timeout: 5 * time.Second, attempts: 2}, "other": {handler: "IGNORE", timeout: 5 * time.Second, attempts: 4},
		}, c.works)
	}
}

// Every key of a job may stand there, but for cron.
func TestEveryKeyOfDefaults(t *testing.T) {
	_, job, _ := strings.Cut(every, "  hello:\n")
	job, _, _ = strings.Cut(job, "  orders:")
	job = strings.ReplaceAll(job, "\n    ", "\n  ")[2:]
	file := "registry: {url: 'memory://a/b'}\ndefaults:\n" + strings.Replace(job, "  cron: 0/5 * * * * ?\n", "  type: SCRIPT\n  timeout: 5s\n  attempts: 4\n  jobErrorHandlerType: LOG\n", 1) +
		"jobs: {hello: {cron: 0/5 * * * * ?}}\n"
	c, err := Parse("jobs.yaml", []byte(file))
	require.NoError(t, err)
	want, err := Parse("jobs.yaml", []byte(every))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want.Jobs[0], c.Jobs[0]))
	require.Equal(t, work{kind: "SCRIPT", handler: "LOG", timeout: 5 * time.Second, attempts: 4}, c.works["hello"])
}

// What is wrong with the block is told once, at its line, however many jobs there are.
func TestBadDefaults(t *testing.T) {
	var jobs strings.Builder
	jobs.WriteString("jobs:\n")
	for i := range 50 {
		fmt.Fprintf(&jobs, "  job%d: {cron: '@daily'}\n", i)
	}
	const total = "shardingTotalCount: 1, "
	for block, want := range map[string]string{
		"":                                     "f.yaml:2:10: defaults: has no value, want a mapping; write the keys of a job on the next lines, indented, such as timeZone: Europe/Berlin",
		"[]":                                   "f.yaml:2:11: defaults: is a list, want a mapping; write the keys of a job on the next lines, indented, such as timeZone: Europe/Berlin",
		"{" + total + "cron: '@daily'}":        "f.yaml:2:35: defaults.cron: belongs to each job; write it there",
		"{" + total + "name: x}":               "f.yaml:2:35: defaults.name: the name is that of the block; remove the key",
		"{" + total + "timezone: UTC}":         "f.yaml:2:35: defaults.timezone: is not a key here; did you mean timeZone?",
		"{" + total + "failover: maybe}":       "f.yaml:2:45: defaults.failover: is neither true nor false; write one of them",
		"{" + total + "timeZone: Mars}":        "f.yaml:2:45: defaults.timeZone: \"Mars\" is not",
		"{" + total + "timeout: 5}":            "f.yaml:2:44: defaults.timeout: has no unit; write for example 30s",
		"{shardingTotalCount: many}":           "f.yaml:2:32: defaults.shardingTotalCount: is not a whole number; write digits alone, such as 3, without quotes",
		"{shardingTotalCount: 0}":              "f.yaml:2:32: defaults.shardingTotalCount: the sharding total count is 0; give at least 1",
		"{" + total + "props: {a: [b]}}":       "f.yaml:2:46: defaults.props.a: is a list, want text",
		"{" + total + "props: {api.token: x}}": `f.yaml:2:43: defaults.props."api.token": is a secret, which all who read the registry would see; put it in a file that api.tokenFile names, or`,
		"{" + total + "monitorExecution: false, failover: true}":                         "f.yaml:2:70: defaults.failover: without monitoring nothing says what a dead instance ran",
		"{" + total + "jobShardingStrategyType: BEST}":                                   `f.yaml:2:60: defaults.jobShardingStrategyType: "BEST" is not a strategy; there are:`,
		"{" + total + "shardingItemParameters: {1: a}}":                                  "f.yaml:2:59: defaults.shardingItemParameters: item 1 does not exist: items are 0 to 0",
		"{" + total + "type: SCRIT}":                                                     `f.yaml:2:41: defaults.type: "SCRIT" is not a kind of job; did you mean SCRIPT? (job "job0" and 49 more)`,
		"{" + total + "jobErrorHandlerType: STPO, type: SIMPLE}":                         `f.yaml:2:56: defaults.jobErrorHandlerType: "STPO" is unknown; did you mean STOP? (job "job0" and 49 more)`,
		"{" + total + "type: SCRIPT, props: {script.command.line: a, script.foo: b}}":    `f.yaml:2:81: defaults.props."script.foo": is not a setting of SCRIPT; there are: `,
		"{" + total + "type: SCRIPT, props: {script.command.line: a, script.dri: b}}":    `f.yaml:2:81: defaults.props."script.dri": is not a setting of SCRIPT; did you mean script.dir? (job "job0" and 49 more)`,
		"{" + total + "jobErrorHandlerType: WEBHOOK, props: {webhook.urlEnv: NOBODY_X}}": `f.yaml:2:89: defaults.props."webhook.urlEnv": names what is empty or not set; put the secret there (job "job0" and 49 more)`,
	} {
		functions := map[string]core.Job{}
		cfg, err := Parse("f.yaml", []byte("registry: {url: 'memory://a/b'}\ndefaults: "+block+"\n"+jobs.String()))
		if err == nil {
			for _, j := range cfg.Jobs {
				if !strings.Contains(block, "type: SCRI") {
					functions[j.Name] = core.JobFunc(nil)
				}
			}
			reg := memory.NewServer(memory.Config{}).Registry("b")
			err = cfg.Bind(core.New(reg), functions)
			require.NoError(t, reg.Close())
		}
		require.Error(t, err, block)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s\n%s", want, err)
		if block != "" && block != "[]" {
			require.NotContains(t, err.Error(), "\n", block)
		}
	}
}

// What is wrong with a job alone names the job, and what it lacks is told there.
func TestDefaultsOfOneJob(t *testing.T) {
	const registry = "registry: {url: 'memory://a/b'}\n"
	_, err := Parse("f.yaml", []byte(registry+"defaults: {shardingItemParameters: {1: a}}\njobs:\n  one: {cron: '@daily', shardingTotalCount: 1}\n  two: {cron: '@daily', shardingTotalCount: 2}\n"))
	require.EqualError(t, err, `f.yaml:2:36: defaults.shardingItemParameters: item 1 does not exist: items are 0 to 0 (job "one")`)
	_, err = Parse("f.yaml", []byte(registry+"defaults: {shardingTotalCount: many}\njobs:\n  one: {cron: '@daily', shardingTotalCount: 0}\n"))
	require.ErrorContains(t, err, "f.yaml:4:45: jobs.one.shardingTotalCount: the sharding total count is 0")
	c, err := Parse("f.yaml", []byte(registry+"defaults: {shardingTotalCount: 1, type: SCRIPT, props: {script.dir: /tmp}}\njobs:\n  one: {cron: '@daily'}\n"))
	require.NoError(t, err)
	_, err = c.Work("one", nil)
	require.EqualError(t, err, `f.yaml:4:3: jobs.one.props."script.command.line": is missing; write for example script.command.line: scripts/reindex.sh`)
	_, err = Parse("f.yaml", []byte(registry+"defaults: {props: {a: b}}\njobs:\n  one:\n    cron: '@daily'\n    shardingTotalCount: 1\n    props:\n"))
	require.EqualError(t, err, "f.yaml:7:11: jobs.one.props: has no value, want a mapping; write name: value on the next lines, indented")
}

// A file of ElasticJob has no such block: it is one of the program's.
func TestElasticJobHasNoDefaults(t *testing.T) {
	c, err := Parse("application.yml", []byte("defaults: {timeZone: UTC, nonsense: [1]}\n"+old("", "", "")))
	require.NoError(t, err)
	require.Empty(t, c.Jobs[0].TimeZone)
	require.Contains(t, c.Notes()[len(c.Notes())-1].String(), "defaults: are other blocks of the program's file")
	c, err = Parse("application.yml", []byte(old("defaults: {timeZone: UTC}", "", "")))
	require.NoError(t, err)
	require.Empty(t, c.Jobs[0].TimeZone)
	require.Contains(t, fmt.Sprint(c.Notes()), "elasticjob.defaults: is not a key of ElasticJob 3; left out")
}
