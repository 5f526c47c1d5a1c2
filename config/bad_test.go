package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneJob is a good file with one job, whose settings follow on line 6.
const oneJob = "registry:\n  url: memory://bad/shop\njobs:\n  hello:\n    cron: '@daily'\n    "

func TestBadFilesAreOneLineForEachProblem(t *testing.T) {
	const registry = "registry: {url: 'memory://a/b'}\n"
	for _, c := range []struct {
		name, file, want string
	}{
		// The file as a whole.
		{"empty", "", "f.yaml: is empty; write the blocks registry and jobs"},
		{"only a comment", "# nothing\n", "f.yaml: is empty; write the blocks registry and jobs"},
		{"null", "~\n", "f.yaml:1:1: has no value, want a mapping; write the blocks registry and jobs"},
		{"text", "hello\n", "f.yaml:1:1: is one value, want a mapping; write the blocks registry and jobs"},
		{"list", "- registry\n", "f.yaml:1:1: is a list, want a mapping; write the blocks registry and jobs"},
		{"no registry", "jobs: {}\n", "f.yaml: registry: is missing; write registry: and below it url: scheme://host:port/namespace"},
		{"two documents", registry + "---\njobs: {}\n", "f.yaml:2:1: a second document begins (---); keep one in a file"},
		{"bytes", registry + "# caf\xe9\n", "f.yaml:2:6: is not UTF-8 from here on; save the file as UTF-8"},
		{"UTF-16", "\xff\xfea\x00", "f.yaml:1:1: is UTF-16; save it as UTF-8"},
		{"control character", registry + "# \x07\n", "f.yaml:2:3: the control character U+0007 stands here; remove it"},
		{"1 MiB", strings.Repeat("#", 1<<20+1), "f.yaml: is larger than 1024 KiB; it holds something else, or should be several files"},
		// Syntax.
		{"tab", "registry:\n\turl: memory://a/b\n", "f.yaml:2:1: the line is indented with a tab; use spaces"},
		{"tab among spaces", "registry:\n  url: memory://a/b\n\tusername: jo\n", "f.yaml:3:1: the line is indented with a tab; use spaces"},
		{"spaces and a tab", "jobs:\n  hello:\n  \tcron: '@daily'\n", "f.yaml:3:3: the line is indented with a tab; use spaces"},
		{"cron with a star", "jobs:\n  a:\n    cron: * * * * * ?\n", "f.yaml:3:11: a value cannot begin with * or &; put it in quotes"},
		{"cron with a step", "jobs:\n  a:\n    cron: */5 * * * * ?\n", "f.yaml:3:11: a value cannot begin with * or &; put it in quotes"},
		{"at", "jobs:\n  a:\n    cron: @daily\n", "f.yaml:3:11: a value cannot begin with '@'; put it in quotes"},
		{"two colons", "registry: url: x\n", `f.yaml:1:14: a second ":" on the line, or a wrong indentation; put a value that holds ": " in quotes, or line the key up with its neighbours`},
		{"indentation", "registry:\n  url: x\n jobs: {}\n", "f.yaml:3:2: the line does not line up with those above; correct its indentation"},
		{"quote", "registry: {url: 'x\n", "f.yaml:1:17: a quote is opened here and never closed; close it"},
		// Finding C 21.
		{"quote, lines before", "registry:\n  url: \"x\njobs:\n  a: {cron: x}\n", "f.yaml:2:8: a quote is opened here and never closed; close it"},
		{"full-width colon", "registry:\n  url： x\n  username: y\n", "f.yaml:2:6: the full-width character '：' stands here; write ':'"},
		{"full-width comma", "registry: {url: 'x'，username: y}\n", "f.yaml:1:20: the full-width character '，' stands here; write ','"},
		{"bracket", "registry: [x\n", "f.yaml:2:1: a list in brackets is not closed, or lacks a comma; write [a, b]"},
		{"braces", "registry: {url: ${X}}\n", "f.yaml:1:18: a mapping in braces is not closed, or lacks a comma; write {a: 1, b: 2}, and put a value that holds braces in quotes"},
		{"escape", `registry: {url: "\q"}` + "\n", `f.yaml:1:18: a "\" in double quotes begins an escape that YAML does not have; use single quotes`},
		{"anchor", "registry: &r {url: 'memory://a/b'}\n", "f.yaml:1:11: anchors (&name) are not read; write the value out"},
		{"alias", "registry: {url: &u 'memory://a/b', username: *u}\n", "f.yaml:1:17: anchors (&name) are not read; write the value out\nf.yaml:1:46: aliases (*name) are not read; write the value out"},
		{"merge", registry + "jobs:\n  a:\n    <<: {cron: x}\n", "f.yaml:4:5: merge keys (<<) are not read; write the value out"},
		{"tag", "registry: {url: !!str memory://a/b}\n", "f.yaml:1:17: tags (!name) are not read; write the value out"},
		// Keys.
		{"unknown at the top", registry + "console: {}\n", "f.yaml:2:1: console: is not a key here; there are: registry, defaults, jobs"},
		{"near at the top", registry + "job: {}\n", "f.yaml:2:1: job: is not a key here; did you mean jobs?"},
		{"Spring Boot", registry + "elasticjob:\n  regCenter: {}\n", "f.yaml:2:1: elasticjob: is not a key here; did you mean its inner blocks alone: registry and jobs?"},
		{"twice at the top", registry + "jobs: {}\nregistry: {url: x}\n", "f.yaml:3:1: registry: is given twice, first on line 1; leave one"},
		{"job twice", oneJob + "shardingTotalCount: 1\n  hello: {cron: '@daily', shardingTotalCount: 1}\n", "f.yaml:7:3: jobs.hello: is given twice, first on line 4; leave one"},
		{"field twice", oneJob + "shardingTotalCount: 1\n    cron: '@hourly'\n", "f.yaml:7:5: jobs.hello.cron: is given twice, first on line 5; leave one"},
		{"key is a list", registry + "? [a]\n: b\n", "f.yaml:2:3: has a key that is not text; write key: value"},
		{"typing error", oneJob + "shardingTotalCont: 1\n", "f.yaml:6:5: jobs.hello.shardingTotalCont: is not a key here; did you mean shardingTotalCount?"},
		{"kebab-case", oneJob + "sharding-total-count: 1\n", "f.yaml:6:5: jobs.hello.sharding-total-count: is not a key here; did you mean shardingTotalCount?"},
		{"Go's name", oneJob + "shards: 1\n", "f.yaml:6:5: jobs.hello.shards: is not a key here; did you mean shardingTotalCount?"},
		{"unknown", oneJob + "shardingTotalCount: 1\n    frequency: 2\n", "f.yaml:7:5: jobs.hello.frequency: is not a key here; there are: elasticJobClass, cron, timeZone, gap, overlap, shardingTotalCount, " +
			"shardingItemParameters, jobParameter, monitorExecution, showRunningAfter, beginAhead, misfire, misfireCap, misfireWindow, failover, maxTimeDiff, reconcileInterval, jobShardingStrategyType, description, label, props, disabled, overwrite, staticSharding, concurrency, attempts, jobErrorHandlerType, timeout, type"},
		{"odd key", oneJob + "shardingTotalCount: 1\n    \"a\\nb\": 2\n    jobName: x\n", `f.yaml:7:5: jobs.hello."a\nb": is not a key here; there are: ` + "elasticJobClass"},
		{"name", oneJob + "shardingTotalCount: 1\n    jobName: hello\n", "f.yaml:7:5: jobs.hello.jobName: the name is that of the block; remove the key"},
		{"thread pool", oneJob + "shardingTotalCount: 1\n    jobExecutorThreadPoolSizeProviderType: CPU\n", "f.yaml:7:5: jobs.hello.jobExecutorThreadPoolSizeProviderType: is ElasticJob's alone; remove it, and write concurrency to bound the items that run at once"},
		{"listeners", oneJob + "shardingTotalCount: 1\n    jobListenerTypes: [a]\n", "f.yaml:7:5: jobs.hello.jobListenerTypes: is ElasticJob's and not here yet; remove it"},
		{"seconds", oneJob + "shardingTotalCount: 1\n    maxTimeDiffSeconds: 90\n", "f.yaml:7:5: jobs.hello.maxTimeDiffSeconds: is maxTimeDiff here, with its unit; write maxTimeDiff: 90s"},
		{"any difference", oneJob + "shardingTotalCount: 1\n    maxTimeDiffSeconds: -1\n", "f.yaml:7:5: jobs.hello.maxTimeDiffSeconds: is maxTimeDiff here, with its unit; write nothing: any difference is allowed"},
		{"minutes", oneJob + "shardingTotalCount: 1\n    reconcileIntervalMinutes: 5\n", "f.yaml:7:5: jobs.hello.reconcileIntervalMinutes: is reconcileInterval here, with its unit; write reconcileInterval: 5m"},
		{"never", oneJob + "shardingTotalCount: 1\n    reconcileIntervalMinutes: 0\n", "f.yaml:7:5: jobs.hello.reconcileIntervalMinutes: is reconcileInterval here, with its unit; write reconcileInterval: never"},
		{"no minutes", oneJob + "shardingTotalCount: 1\n    reconcileIntervalMinutes: soon\n", "f.yaml:7:5: jobs.hello.reconcileIntervalMinutes: is reconcileInterval here, with its unit; write for example reconcileInterval: 10m"},
		// Types.
		{"jobs is a list", registry + "jobs:\n- name: hello\n", `f.yaml:3:1: jobs: is a list, want a mapping; write "hello:" in place of "- name: hello", with its settings indented below`},
		{"jobs is empty", registry + "jobs:\n", "f.yaml:2:6: jobs: has no value, want a mapping; write the name of a job and a colon on the next line, indented, and its settings below"},
		{"job is empty", registry + "jobs:\n  hello:\n", "f.yaml:3:9: jobs.hello: has no value, want a mapping; write cron and shardingTotalCount on the next lines, indented"},
		{"registry is text", "registry: memory://a/b\n", "f.yaml:1:11: registry: is one value, want a mapping; write url: and the address on the next line, indented"},
		{"text is a list", oneJob + "shardingTotalCount: 1\n    label: [a]\n", "f.yaml:7:12: jobs.hello.label: is a list, want text"},
		{"text is empty", oneJob + "shardingTotalCount: 1\n    label:\n", "f.yaml:7:11: jobs.hello.label: has no value; give one or remove the key"},
		{"number is text", oneJob + "shardingTotalCount: '3'\n", "f.yaml:6:25: jobs.hello.shardingTotalCount: is not a whole number; write digits alone, such as 3, without quotes"},
		{"number is octal", oneJob + "shardingTotalCount: 010\n", "f.yaml:6:25: jobs.hello.shardingTotalCount: is not a whole number; write digits alone, such as 3, without quotes"},
		{"number is large", oneJob + "shardingTotalCount: 4294967296\n", "f.yaml:6:25: jobs.hello.shardingTotalCount: does not fit 32 bits; give a smaller number"},
		{"boolean is yes", oneJob + "shardingTotalCount: 1\n    failover: yes\n", "f.yaml:7:15: jobs.hello.failover: want true or false; write true"},
		{"boolean is off", oneJob + "shardingTotalCount: 1\n    misfire: off\n", "f.yaml:7:14: jobs.hello.misfire: want true or false; write false"},
		{"boolean is text", oneJob + "shardingTotalCount: 1\n    misfire: 'true'\n", "f.yaml:7:14: jobs.hello.misfire: is text, want true or false without quotes"},
		{"boolean is 1", oneJob + "shardingTotalCount: 1\n    failover: 1\n", "f.yaml:7:15: jobs.hello.failover: is neither true nor false; write one of them"},
		{"misfire is skip", oneJob + "shardingTotalCount: 1\n    misfire: skip\n", "f.yaml:7:14: jobs.hello.misfire: is none of true, false and all; write one of them"},
		{"misfire is ALL", oneJob + "shardingTotalCount: 1\n    misfire: ALL\n", "f.yaml:7:14: jobs.hello.misfire: is none of true, false and all; write one of them"},
		{"parameters with a full-width comma", oneJob + "shardingTotalCount: 2\n    shardingItemParameters: 0=北京，1=上海\n",
			`f.yaml:7:29: jobs.hello.shardingItemParameters: gives item "0" a parameter with '，' and "=" in it; separate parameters by ','`},
		{"parameters with a semicolon", oneJob + "shardingTotalCount: 2\n    shardingItemParameters: 0=a; 1=b\n",
			`f.yaml:7:29: jobs.hello.shardingItemParameters: gives item "0" a parameter with ';' and "=" in it; separate parameters by ','`},
		{"parameters with a full-width equals sign", oneJob + "shardingTotalCount: 2\n    shardingItemParameters: 0＝北京\n",
			`f.yaml:7:29: jobs.hello.shardingItemParameters: has "0＝北京", with the full-width character '＝'; write '='`},
		{"no cap", oneJob + "shardingTotalCount: 1\n    misfireCap: 0\n", "f.yaml:7:17: jobs.hello.misfireCap: is 0; write misfire: false to make up nothing"},
		{"negative cap", oneJob + "shardingTotalCount: 1\n    misfireCap: -1\n", `f.yaml:7:17: jobs.hello.misfireCap: "-1" is not a number of fires to make up; give 1 to 1000`},
		{"negative window", oneJob + "shardingTotalCount: 1\n    misfireWindow: -1h\n", "f.yaml:7:20: jobs.hello.misfireWindow: is not positive; write 0s for no bound, or misfire: false to make up nothing"},
		{"short window", oneJob + "shardingTotalCount: 1\n    misfireWindow: 10ms\n", `f.yaml:7:20: jobs.hello.misfireWindow: "10ms" is not a duration of at least 1s; write for example 30m`},
		{"duration without unit", oneJob + "shardingTotalCount: 1\n    maxTimeDiff: 90\n", "f.yaml:7:18: jobs.hello.maxTimeDiff: has no unit; write for example 90s"},
		{"no duration", oneJob + "shardingTotalCount: 1\n    reconcileInterval: soon\n", "f.yaml:7:24: jobs.hello.reconcileInterval: is not a duration; write for example 10m"},
		{"no time", oneJob + "shardingTotalCount: 1\n    reconcileInterval: 0s\n", "f.yaml:7:24: jobs.hello.reconcileInterval: is not positive; write never, or remove the key for 10m"},
		{"no difference", oneJob + "shardingTotalCount: 1\n    maxTimeDiff: -1s\n", "f.yaml:7:18: jobs.hello.maxTimeDiff: is not positive; remove the key to allow any difference"},
		{"parameters are a list", oneJob + "shardingTotalCount: 1\n    shardingItemParameters: [a]\n", "f.yaml:7:29: jobs.hello.shardingItemParameters: is a list; write 0=a,1=b or a mapping {0: a, 1: b}"},
		{"parameters", oneJob + "shardingTotalCount: 1\n    shardingItemParameters: a\n", `f.yaml:7:29: jobs.hello.shardingItemParameters: has "a", want item=parameter, for example "0=a,1=b" (a parameter can hold no comma)`},
		{"parameter of no item", oneJob + "shardingTotalCount: 1\n    shardingItemParameters: {a: b}\n", "f.yaml:7:30: jobs.hello.shardingItemParameters.a: is not a whole number; write digits alone, such as 3, without quotes"},
		{"parameter twice", oneJob + "shardingTotalCount: 1\n    shardingItemParameters: {0: b, +0: c}\n", `f.yaml:7:36: jobs.hello.shardingItemParameters."+0": gives item 0 twice; leave one`},
		{"props", oneJob + "shardingTotalCount: 1\n    props: {a: [b]}\n", "f.yaml:7:16: jobs.hello.props.a: is a list, want text"},
		{"props are a list", oneJob + "shardingTotalCount: 1\n    props: [b]\n", "f.yaml:7:12: jobs.hello.props: is a list, want a mapping; write name: value on the next lines, indented"},
		// Finding C 21.
		{"jobType", oneJob + "shardingTotalCount: 1\n    jobType: SIMPLE\n", "f.yaml:7:5: jobs.hello.jobType: is type here; write for example type: SCRIPT, and nothing for a job whose function the program has"},
		{"elasticJobType", oneJob + "shardingTotalCount: 1\n    elasticJobType: SIMPLE\n", "f.yaml:7:5: jobs.hello.elasticJobType: is type here; write for example type: SCRIPT, and nothing for a job whose function the program has"},
		{"a list without quotes", registry + "jobs: {a: {cron: 0 0 9 ? * MON,FRI, shardingTotalCount: 1}}\n", `f.yaml:2:32: jobs.a.cron: ends at the comma before "FRI"; put a value that holds a comma in quotes`},
		{"a list of hours without quotes", registry + "jobs: {a: {cron: 0 0 9,10 * * ?, shardingTotalCount: 1}}\n", `f.yaml:2:24: jobs.a.cron: ends at the comma before "10 * * ?"; put a value that holds a comma in quotes`},
		{"variable in cron", registry + "jobs: {a: {cron: '${CRON}', shardingTotalCount: 1}}\n", "f.yaml:2:18: jobs.a.cron: the environment variable CRON is not set; set it, or give a default: ${CRON:-value}"},
		{"variable as a number", oneJob + "shardingTotalCount: ${SHARDS}\n", "f.yaml:6:25: jobs.hello.shardingTotalCount: the environment variable SHARDS is not set; set it, or give a default: ${SHARDS:-value}"},
		{"variable as a flag", oneJob + "shardingTotalCount: 1\n    failover: ${F}\n", "f.yaml:7:15: jobs.hello.failover: the environment variable F is not set; set it, or give a default: ${F:-value}"},
		{"variable as a duration", oneJob + "shardingTotalCount: 1\n    maxTimeDiff: ${D}\n", "f.yaml:7:18: jobs.hello.maxTimeDiff: the environment variable D is not set; set it, or give a default: ${D:-value}"},
		{"several parameters", oneJob + "shardingTotalCount: 3\n    shardingItemParameters: 0=a=b,x=c,2=d\n", `f.yaml:7:29: jobs.hello.shardingItemParameters: gives item "0" a parameter with "=" in it; use another character` + "\n" +
			`f.yaml:7:29: jobs.hello.shardingItemParameters: has the item "x", want a whole number from 0`},
		{"several parameters of a mapping", oneJob + "shardingTotalCount: 1\n    shardingItemParameters: {0: 'a=b', 1: c}\n",
			`f.yaml:7:29: jobs.hello.shardingItemParameters: cannot hold the parameter of item 0: "," and "=" separate parameters; use another character` + "\n" +
				"f.yaml:7:29: jobs.hello.shardingItemParameters: item 1 does not exist: items are 0 to 0"},
		{"a cron in the past", registry + "jobs: {a: {cron: 0 0 0 1 1 ? 2001, timeZone: UTC, shardingTotalCount: 1}}\n",
			`f.yaml:2:18: jobs.a.cron: "0 0 0 1 1 ? 2001" never fires again: its last time was 2001-01-01T00:00:00Z; give a time to come`},
		{"a prop of ours", oneJob + "shardingTotalCount: 1\n    props: {elasticron.zone: UTC}\n", `f.yaml:7:12: jobs.hello.props: the name "elasticron.zone" is taken; use one that does not begin with "elasticron."`},
		{"a prop that YAML cannot hold", oneJob + "shardingTotalCount: 1\n    props: {uri: \"sesame\\x00\"}\n", "f.yaml:7:18: jobs.hello.props.uri: holds the character U+0000, which YAML cannot hold; remove it"},
		{"a name with space", registry + "jobs: {' a ': {cron: '@daily', shardingTotalCount: 1}}\n", `f.yaml:2:8: jobs." a ": is " a "; remove the space at its ends`},
		{"a port that is none", "registry: {url: 'etcd://127.0.0.1:99999/shop'}\n", "f.yaml:1:12: registry.url: has a port that is none; write host:port with a port of 1 to 65535"},
		// What core refuses.
		{"no total", oneJob + "label: a\n", "f.yaml:4:3: jobs.hello.shardingTotalCount: is missing; give the number of sharding items, at least 1"},
		{"no cron", registry + "jobs: {a: {shardingTotalCount: 1}}\n", `f.yaml:2:8: jobs.a.cron: is missing; give a schedule such as "0/5 * * * * ?" or "@every 90s"`},
		{"total 0", oneJob + "shardingTotalCount: 0\n", "f.yaml:6:25: jobs.hello.shardingTotalCount: the sharding total count is 0; give at least 1"},
		{"five fields", registry + "jobs: {a: {cron: '0 2 * * *', shardingTotalCount: 1}}\n", "f.yaml:2:18: jobs.a.cron: has 5 fields, Quartz has 6, seconds first, or 7 with the year; write 0 0 2 * * ?"},
		{"zone", oneJob + "shardingTotalCount: 1\n    timeZone: Mars\n", "f.yaml:7:15: jobs.hello.timeZone:"},
		{"gap", oneJob + "shardingTotalCount: 1\n    gap: jump\n", `f.yaml:7:10: jobs.hello.gap: "jump" is not a policy; use "run-after" or "skip"`},
		{"strategy", oneJob + "shardingTotalCount: 1\n    jobShardingStrategyType: BEST\n", "f.yaml:7:30: jobs.hello.jobShardingStrategyType: \"BEST\" is not a strategy; there are: AVG_ALLOCATION, ODEVITY, ROUND_ROBIN, STICKY (core.WithStrategy adds one of your own)"},
		{"parameter too many", oneJob + "shardingTotalCount: 1\n    shardingItemParameters: 1=a\n", "f.yaml:7:29: jobs.hello.shardingItemParameters: item 1 does not exist: items are 0 to 0"},
		{"parameter empty", oneJob + "shardingTotalCount: 1\n    shardingItemParameters: {0: ''}\n", "f.yaml:7:29: jobs.hello.shardingItemParameters: cannot hold the parameter of item 0: it is empty; leave the item out"},
		{"half a minute", oneJob + "shardingTotalCount: 1\n    reconcileInterval: 30s\n", "f.yaml:7:24: jobs.hello.reconcileInterval: 30s is not a number of whole minutes"},
		{"concurrency", oneJob + "shardingTotalCount: 1\n    concurrency: -1\n", "f.yaml:7:18: jobs.hello.concurrency: -1 is negative; give 0 for the default, or at least 1"},
		{"job's name", registry + "jobs: {a/b: {cron: '@daily', shardingTotalCount: 1}}\n", `f.yaml:2:8: jobs."a/b":`},
		{"job without a name", registry + "jobs: {'': {cron: '@daily', shardingTotalCount: 1}}\n", `f.yaml:2:8: jobs."": is empty; give the job a name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.file))
			require.Error(t, err)
			if strings.HasSuffix(c.want, ":") || c.name == "odd key" {
				require.True(t, strings.HasPrefix(err.Error(), c.want), err.Error())
				return
			}
			require.Equal(t, c.want, err.Error())
		})
	}
}

func TestAllProblemsOfAFileAreToldAtOnce(t *testing.T) {
	_, err := Parse("f.yaml", []byte(`jobs:
  hello:
    cron: 0 2 * * *
    timeZone: Mars
    shards: 3
    shardingItemParameters: 7=a
    failover: maybe
    concurrency: -1
  orders:
    shardingTotalCount: x
registry:
  url: etcd://jo:hunter2@127.0.0.1/shop
  password: hunter2
`))
	var all *Error
	require.ErrorAs(t, err, &all)
	var got []string
	for _, p := range all.Problems {
		require.NotContains(t, p.Error(), "\n")
		require.NotContains(t, p.Error(), "hunter2")
		got = append(got, p.Field)
	}
	require.Equal(t, []string{
		"jobs.hello.cron", "jobs.hello.timeZone", "jobs.hello.shards", "jobs.hello.failover", "jobs.hello.concurrency",
		"jobs.orders.cron", "jobs.orders.shardingTotalCount", "registry.url", "registry.password",
	}, got)
}
