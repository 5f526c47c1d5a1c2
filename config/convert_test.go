package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
	"github.com/elasticron/elasticron/registry/retry"
)

// A row is a field of ElasticJob as docs/migration.md lists it, with what becomes of it.
type row struct {
	name string
	// in is the line of the old file, want the lines that it adds to the new one.
	in, want string
	// note is a part of what is told; lost, that nothing does it from now on.
	note string
	lost bool
}

// rows of a job, of the registry centre, and of the whole block.
var (
	jobRows = []row{
		{name: "jobName", in: "jobName: hello"},
		{name: "elasticJobClass", in: "elasticJobClass: com.acme.Hello", want: "elasticJobClass: com.acme.Hello", note: `the program gives a function for the job "hello" to Config.Bind`},
		{name: "elasticJobType", in: "elasticJobType: SCRIPT\n      props: {script.command.line: a.sh}", want: "type: SCRIPT\nelasticJobClass: SCRIPT\nprops:\n  script.command.line: a.sh"},
		{name: "elasticJobType", in: "elastic-job-type: http\n      props: {http.uri: 'http://h', http.method: GET}", want: "type: HTTP\nelasticJobClass: http\nprops:\n  http.uri: http://h\n  http.method: GET", note: "a status of 400 or more fails a run here"},
		{name: "elasticJobType", in: "elasticJobType: DATAFLOW", want: "type: DATAFLOW"},
		{name: "elasticJobType", in: "elasticJobType: Mine", want: "type: MINE\nelasticJobClass: Mine", note: "job.Kinds"},
		{name: "cron", in: `cron: "*/5 * * * * ?"`, want: `cron: '*/5 * * * * ?'`},
		{name: "cron", in: "cron: ''", want: "cron: '@requests'", note: "it runs when somebody asks, by admin.Trigger"},
		{name: "cron", in: "cron:\n      monitorExecution: false", want: "cron: '@requests'", note: "is true from now on, since a request runs once by the record alone"},
		{name: "cron", in: "cron:\n      monitorExecution: ${MONITOR:true}", want: "monitorExecution: ${MONITOR:-true}\ncron: '@requests'", note: "becomes cron: '@requests'"},
		{name: "cron", in: "cron:\n      monitorExecution: false\n      failover: true", want: "cron: '@requests'", note: "does nothing in ElasticJob without monitorExecution: true", lost: true},
		{name: "timeZone", in: "timeZone: GMT+8:00", want: "timeZone: GMT+8:00"},
		{name: "jobBootstrapBeanName", in: "jobBootstrapBeanName: bean", note: "is the name of a Spring bean"},
		{name: "shardingTotalCount", in: "shardingTotalCount: '5'", want: "shardingTotalCount: 5"},
		{name: "shardingItemParameters", in: "sharding-item-parameters: 0=a,1=b", want: "shardingItemParameters: 0=a,1=b"},
		{name: "jobParameter", in: "jobParameter: x", want: "jobParameter: x"},
		{name: "monitorExecution", in: "monitorExecution: false", want: "monitorExecution: false"},
		{name: "failover", in: "failover: yes", want: "failover: true"},
		{name: "failover", in: "failover: true\n      monitorExecution: false", want: "monitorExecution: false", note: "does nothing in ElasticJob without monitorExecution: true", lost: true},
		{name: "misfire", in: "misfire: 'false'", want: "misfire: false"},
		{name: "maxTimeDiffSeconds", in: "max-time-diff-seconds: 90", want: "maxTimeDiff: 90s"},
		{name: "maxTimeDiffSeconds", in: "maxTimeDiffSeconds: -1"},
		{name: "maxTimeDiffSeconds", in: "maxTimeDiffSeconds: 0", note: "is 0, which no two clocks keep", lost: true},
		{name: "reconcileIntervalMinutes", in: "reconcileIntervalMinutes: 5", want: "reconcileInterval: 5m"},
		{name: "reconcileIntervalMinutes", in: "reconcileIntervalMinutes: 0", want: "reconcileInterval: never"},
		{name: "jobShardingStrategyType", in: "jobShardingStrategyType: ODEVITY", want: "jobShardingStrategyType: ODEVITY"},
		{name: "jobShardingStrategyType", in: "jobShardingStrategyType: SINGLE_SHARDING_BALANCE", note: "moves the only item on after each run", lost: true},
		{name: "jobExecutorThreadPoolSizeProviderType", in: "jobExecutorThreadPoolSizeProviderType: SINGLE_THREAD", want: "concurrency: 1"},
		{name: "jobExecutorThreadPoolSizeProviderType", in: "jobExecutorThreadPoolSizeProviderType: CPU"},
		{name: "jobExecutorThreadPoolSizeProviderType", in: "jobExecutorThreadPoolSizeProviderType: MINE", note: "write concurrency", lost: true},
		{name: "jobExecutorServiceHandlerType", in: "jobExecutorServiceHandlerType: SINGLE_THREAD", want: "concurrency: 1"},
		{name: "jobErrorHandlerType", in: "jobErrorHandlerType: IGNORE", want: "jobErrorHandlerType: IGNORE"},
		{name: "jobListenerTypes", in: "jobListenerTypes: [mine]", note: "are Java classes", lost: true},
		{name: "jobListenerTypes", in: "jobListenerTypes: []"},
		{name: "jobExtraConfigurations", in: "jobExtraConfigurations: [{type: RDB}]", note: "ElasticJob's tables of runs are not written", lost: true},
		{name: "description", in: "description: says hello", want: "description: says hello"},
		{name: "props", in: "props:\n        streaming.process: true\n        http: {data: a$b}", want: "props:\n  streaming.process: 'true'\n  http.data: a$$b"},
		{name: "script.command.line", in: "props: {script.command.line: 'curl http://h:80 && mail jo@example.com'}", want: "props:\n  script.command.line: curl http://h:80 && mail jo@example.com"},
		{name: "script.command.line", in: "props: {script.command.line: 'curl http://jo:changeme@h'}", note: "holds a password", lost: true},
		{name: "script.command.line", in: "props: {script.command.line: a.sh 'b c'}", want: "props:\n  script.command.line: a.sh 'b c'"},
		{name: "http.connect.timeout.milliseconds", in: "props: {http.connect.timeout.milliseconds: 0}", want: "props:\n  http.connect.timeout.milliseconds: '0'"},
		{name: "http.read.timeout.milliseconds", in: "props: {http.read.timeout.milliseconds: 9}", want: "props:\n  http.read.timeout.milliseconds: '9'"},
		{name: "wechat.connectTimeoutMilliseconds", in: "props: {wechat.connectTimeoutMilliseconds: 9}", want: "props:\n  wechat.connectTimeoutMilliseconds: '9'"},
		{name: "wechat.readTimeoutMilliseconds", in: "props: {wechat.readTimeoutMilliseconds: 9}", want: "props:\n  wechat.readTimeoutMilliseconds: '9'"},
		{name: "dingtalk.connectTimeoutMilliseconds", in: "props: {dingtalk.connectTimeoutMilliseconds: 9}", want: "props:\n  dingtalk.connectTimeoutMilliseconds: '9'"},
		{name: "dingtalk.readTimeoutMilliseconds", in: "props: {dingtalk.readTimeoutMilliseconds: 9}", want: "props:\n  dingtalk.readTimeoutMilliseconds: '9'"},
		{name: "email.password", in: "props: {email.password: hunter2}", want: "props:\n  email.passwordEnv: HELLO_EMAIL_PASSWORD"},
		{name: "email.password", in: "props: {email.password: '${MAIL:hunter2}'}", want: "props:\n  email.passwordEnv: MAIL", note: "the default of MAIL was a password"},
		{name: "email.ssl.trust", in: "props: {email.ssl.trust: '*'}", note: "certificates are checked", lost: true},
		{name: "email.debug", in: "props: {email.debug: true}", note: "is not printed", lost: true},
		{name: "wechat.webhook", in: "props: {wechat.webhook: 'https://h/hunter2'}", want: "props:\n  wechat.webhookEnv: HELLO_WECHAT_WEBHOOK"},
		{name: "dingtalk.webhook", in: "props: {dingtalk.webhook: 'https://h/hunter2'}", want: "props:\n  dingtalk.webhookEnv: HELLO_DINGTALK_WEBHOOK"},
		{name: "dingtalk.secret", in: "props: {dingtalk.secret: hunter2}", want: "props:\n  dingtalk.secretEnv: HELLO_DINGTALK_SECRET"},
		{name: "props", in: "props: {my.db-password: hunter2}", want: "props:\n  my.db-passwordEnv: HELLO_MY_DB_PASSWORD", note: "where all can read it"},
		{name: "props", in: "props: {http.uri: 'http://jo:hunter2@h/'}", want: "props:\n  http.uriEnv: HELLO_HTTP_URI"},
		{name: "props", in: "props: {http.uri: 'http://jo:${PW}@h/?t=hunter2'}", want: "props:\n  http.uriEnv: HELLO_HTTP_URI", note: "the variables in it are not filled in there"},
		{name: "props", in: "props: {db.url: 'jdbc:mysql://jo:hunter2@h/'}", want: "props:\n  db.urlEnv: HELLO_DB_URL", note: "where all can read it"},
		{name: "disabled", in: "disabled: true", want: "disabled: true"},
		{name: "overwrite", in: "overwrite: on", want: "overwrite: true"},
		{name: "label", in: "label: 007", want: "label: '007'"},
		{name: "staticSharding", in: "staticSharding: true", want: "staticSharding: true"},
		// ElasticJob 2 and 1, from the registry.
		{name: "jobClass", in: "jobClass: com.acme.Hello", want: "elasticJobClass: com.acme.Hello", note: "is a Java class"},
		{name: "jobType", in: "jobType: SIMPLE", want: "type: SIMPLE"},
		{name: "jobProperties", in: "jobProperties: {job_exception_handler: com.acme.Mine}", note: "use jobErrorHandlerType and concurrency", lost: true},
		{name: "jobProperties", in: "jobProperties: {job_exception_handler: com.dangdang.ddframe.job.executor.handler.impl.DefaultJobExceptionHandler}"},
		{name: "jobShardingStrategyClass", in: "jobShardingStrategyClass: com.dangdang.ddframe.job.lite.api.strategy.impl.RotateServerByNameJobShardingStrategy", want: "jobShardingStrategyType: ROUND_ROBIN"},
		{name: "jobShardingStrategyClass", in: "jobShardingStrategyClass: com.acme.Mine", note: "core.WithStrategy", lost: true},
		{name: "monitorPort", in: "monitorPort: 9888", note: "no port is opened", lost: true},
		{name: "monitorPort", in: "monitorPort: -1"},
		{name: "streamingProcess", in: "streamingProcess: true", want: "props:\n  streaming.process: 'true'"},
		{name: "scriptCommandLine", in: "scriptCommandLine: a.sh", want: "type: SCRIPT\nprops:\n  script.command.line: a.sh"},
		{name: "processCountIntervalSeconds", in: "processCountIntervalSeconds: 300", want: "props:\n  dataflow.count.interval.seconds: '300'"},
		{name: "concurrentDataProcessThreadCount", in: "concurrentDataProcessThreadCount: 2", want: "props:\n  dataflow.concurrency: '2'"},
		{name: "fetchDataCount", in: "fetchDataCount: 100", want: "props:\n  dataflow.fetch.count: '100'"},
		{name: "(anything else)", in: "frequency: 2", note: "is not a property of an ElasticJob job", lost: true},
	}
	centreRows = []row{
		{name: "serverLists", in: "server-lists: 'a:2181, b:2181/apps'", want: "url: zookeeper://a:2181,b:2181/shop?chroot=/apps&session-timeout=30s"},
		{name: "serverLists", in: "serverLists: http://a:2379,http://b:2379", want: "url: etcd://a:2379,b:2379/shop?session-timeout=30s"},
		{name: "serverLists", in: "serverLists: https://a:2379", want: "url: etcd://a:2379/shop?session-timeout=30s\ntls:\n  enabled: true"},
		{name: "serverLists", in: "serverLists: ${ZK:127.0.0.1:2181}", want: "url: zookeeper://${ZK:-127.0.0.1:2181}/shop?session-timeout=30s"},
		{name: "namespace", in: "namespace: team/jobs", want: "url: zookeeper://h:2181/team/jobs?session-timeout=30s"},
		{name: "baseSleepTimeMilliseconds", in: "base-sleep-time-milliseconds: 1500", want: "retry:\n  base: 1500ms"},
		{name: "maxSleepTimeMilliseconds", in: "maxSleepTimeMilliseconds: ${MAX:3000}", want: "retry:\n  max: ${MAX:-3000}ms"},
		{name: "maxRetries", in: "maxRetries: 5", want: "retry:\n  retries: 5"},
		{name: "sessionTimeoutMilliseconds", in: "sessionTimeoutMilliseconds: 2500", want: "url: zookeeper://h:2181/shop?session-timeout=2500ms"},
		{name: "sessionTimeoutMilliseconds", in: "sessionTimeoutMilliseconds: 0", want: "url: zookeeper://h:2181/shop", note: "and 60s in ElasticJob"},
		{name: "connectionTimeoutMilliseconds", in: "connectionTimeoutMilliseconds: 4000", want: "url: zookeeper://h:2181/shop?session-timeout=30s&dial-timeout=4s"},
		{name: "digest", in: "digest: jo:hunter2", want: "username: jo\npasswordEnv: REGISTRY_PASSWORD"},
		{name: "digest", in: "digest: jo:${ZK_PASSWORD}", want: "username: jo\npasswordEnv: ZK_PASSWORD"},
		{name: "digest", in: "digest: ${ZK_DIGEST}", want: "username: ${REGISTRY_USERNAME}\npasswordEnv: REGISTRY_PASSWORD", note: "a variable that holds a user and a password"},
		{name: "ensembleTracker", in: "ensembleTracker: true", note: "is Curator's"},
		{name: "username", in: "username: jo\n    password: hunter2", want: "username: jo\npasswordEnv: REGISTRY_PASSWORD"},
		{name: "password", in: "username: jo\n    password: ${PW}", want: "username: jo\npasswordEnv: PW"},
		{name: "ssl", in: "ssl: true", want: "tls:\n  enabled: true"},
		{name: "authority", in: "authority: x", note: "is not a key of ElasticJob's registry centre", lost: true},
	}
	blockRows = []row{
		{name: "elasticjob.enabled", in: "enabled: false", note: "Scheduler.Start", lost: true},
		{name: "elasticjob.enabled", in: "enabled: true"},
		{name: "elasticjob.tracing", in: "tracing: {type: RDB, data-source: {password: hunter2}}", note: "ElasticJob's tables of runs are not written", lost: true},
		{name: "elasticjob.dump", in: "dump: {enabled: true, port: 9888}", note: "admin.Dump prints a job", lost: true},
	}
)

// old is a file of ElasticJob with other lines in three places; a line replaces one of its key.
func old(block, centre, job string) string {
	merge := func(lines []string, more, indent string) string {
		if more != "" {
			key, _, _ := strings.Cut(more, ":")
			lines = slices.DeleteFunc(lines, func(l string) bool {
				k, _, _ := strings.Cut(l, ":")
				return normal(k) == normal(key) || strings.Contains(more, "\n"+indent+k+":")
			})
			lines = append(lines, more)
		}
		return indent + strings.Join(lines, "\n"+indent) + "\n"
	}
	if block != "" {
		block = "  " + block + "\n"
	}
	return "elasticjob:\n" + block + "  regCenter:\n" +
		merge([]string{"serverLists: h:2181", "namespace: shop", "sessionTimeoutMilliseconds: 30000"}, centre, "    ") +
		"  jobs:\n    hello:\n" +
		merge([]string{"cron: 0/5 * * * * ?", "shardingTotalCount: 3", "monitorExecution: true", "misfire: true", "reconcileIntervalMinutes: 10"}, job, "      ")
}

// added are the lines of a block of the new file that the plain one does not have.
func added(plain, got string) string {
	var lines []string
	for l := range strings.SplitSeq(strings.TrimRight(got, "\n"), "\n") {
		if !slices.Contains(strings.Split(plain, "\n"), l) && !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}

func indented(by, s string) string {
	if s == "" {
		return ""
	}
	return by + strings.ReplaceAll(s, "\n", "\n"+by)
}

// Every row of the migration page: what is written, what is told, and whether it is lost.
func TestEveryRowOfTheMigrationTable(t *testing.T) {
	plain, err := Convert("old.yaml", []byte(old("", "", "")), ConvertOptions{})
	require.NoError(t, err)
	require.Empty(t, plain.Notes)
	require.Equal(t, `# Made of old.yaml by elasticron convert.
registry:
  url: zookeeper://h:2181/shop?session-timeout=30s
jobs:
  hello:
    cron: 0/5 * * * * ?
    shardingTotalCount: 3
    monitorExecution: true
    misfire: true
    reconcileInterval: 10m
`, string(plain.YAML))
	try := func(r row, file, indent string) {
		t.Run(r.name+"/"+strings.ReplaceAll(r.in, "\n", " "), func(t *testing.T) {
			c, err := Convert("old.yaml", []byte(file), ConvertOptions{})
			require.NoError(t, err)
			require.Equal(t, indented(indent, r.want), added(string(plain.YAML), string(c.YAML)))
			require.NotContains(t, string(c.YAML), "hunter2")
			require.Equal(t, strings.Contains(file, "hunter2") && !strings.Contains(file, "tracing") && !strings.Contains(file, ":hunter2}"), len(c.Secrets) == 1, c.Secrets)
			var texts []string
			lost := false
			for _, n := range c.Notes {
				texts, lost = append(texts, n.String()), lost || n.Lost
				require.NotContains(t, n.String(), "hunter2")
				require.Positive(t, n.Line)
			}
			require.Equal(t, r.lost, lost, texts)
			require.Equal(t, r.note != "", len(texts) > 0, texts)
			require.Contains(t, strings.Join(texts, "\n"), r.note)
		})
	}
	for _, r := range jobRows {
		try(r, old("", "", r.in), "    ")
	}
	for _, r := range centreRows {
		try(r, old("", r.in, ""), "  ")
	}
	for _, r := range blockRows {
		try(r, old(r.in, "", ""), "")
	}
}

// Each property that the converter knows has a row above, and each row above stands in both
// pages; what else stands there is a matter of the JVM and says so.
func TestTheMigrationPagesHaveEveryRow(t *testing.T) {
	names := map[string]bool{}
	for _, r := range slices.Concat(jobRows, centreRows, blockRows) {
		names[r.name] = true
	}
	for _, p := range properties {
		require.True(t, names[p.name], "%s has no row", p.name)
	}
	for file, jvm := range map[string]string{"migration.md": "a JVM matter", "migration.zh.md": "JVM"} {
		page, err := os.ReadFile(filepath.Join("..", "docs", file))
		require.NoError(t, err)
		found := map[string]bool{}
		for _, m := range regexp.MustCompile("(?m)^\\| `?([^|`]+)`? \\|(.*)$").FindAllStringSubmatch(string(page), -1) {
			name := strings.TrimSpace(m[1])
			found[name] = true
			known := names[name] || headings[name]
			require.True(t, known || strings.Contains(m[2], jvm), "%s: nothing tries the row %q", file, name)
		}
		for name := range names {
			require.True(t, found[name] || strings.HasPrefix(name, "("), "%s lacks the row %q", file, name)
		}
	}
}

// headings are the first cells of the tables' heads and rules.
var headings = map[string]bool{"ElasticJob": true, "---": true}

const application = `# the old file; digest: jo:hunter2
spring:
  application: {name: shop}
zk: {host: 10.0.0.1:2181}
elasticjob:
  tracing: {type: RDB}
  reg-center:
    server-lists: ${zk.host},10.0.0.2:2181
    namespace: ${NS:shop}
    digest: jo:hunter2
    max-retries: 3
  jobs:
    hello:
      elasticJobClass: com.acme.HelloJob
      cron: ${HELLO_CRON}
      shardingTotalCount: 3
    "[report.daily]":
      elasticJobType: SCRIPT
      cron: 0 0 2 * * ?
      shardingTotalCount: 1
      monitorExecution: true
      misfire: true
      props: {script.command.line: 'sh -c "echo $HOME"', email.password: 'hunter3'}
    manual: {elasticJobClass: com.acme.Manual, jobBootstrapBeanName: manual, shardingTotalCount: 1}
`

func TestConvertAWholeFile(t *testing.T) {
	c, err := Convert("etc/application.yml", []byte(application), ConvertOptions{})
	require.NoError(t, err)
	require.Empty(t, c.Problems)
	require.Equal(t, `# Made of application.yml by elasticron convert.
# - line 10: elasticjob.reg-center.digest: goes into the environment variable REGISTRY_PASSWORD
# - line 23: elasticjob.jobs."[report.daily]".props."email.password": goes into the environment variable REPORT_DAILY_EMAIL_PASSWORD
# - spring, zk: are other blocks of the program's file, and were not looked at
# - line 6: elasticjob.tracing: ElasticJob's tables of runs are not written: a sink of the program gets each run (its password, if any, stays behind)
# - line 8: elasticjob.reg-center.server-lists: Spring's property "zk.host" is the environment variable ZK_HOST here
# - line 8: elasticjob.reg-center.server-lists: the session timeout is 6s where none is given, and 60s in ElasticJob; write ?session-timeout=60s behind the url for that
# - line 13: elasticjob.jobs.hello: did not say monitorExecution: false, misfire: false, reconcileInterval: never, which ElasticJob's YAML then means; it is written out. Remove it for the defaults here
# - line 14: elasticjob.jobs.hello.elasticJobClass: is a Java class; the program gives a function for the job "hello" to Config.Bind
# - line 17: elasticjob.jobs."[report.daily]": did not say reconcileInterval: never, which ElasticJob's YAML then means; it is written out. Remove it for the defaults here
# - line 24: elasticjob.jobs.manual.jobBootstrapBeanName: is the name of a Spring bean, and left out
# - line 24: elasticjob.jobs.manual.elasticJobClass: is a Java class; the program gives a function for the job "manual" to Config.Bind
# - line 24: elasticjob.jobs.manual: did not say misfire: false, reconcileInterval: never, which ElasticJob's YAML then means; it is written out. Remove it for the defaults here
# - line 24: elasticjob.jobs.manual: has no cron and becomes cron: '@requests': it runs when somebody asks, by admin.Trigger, which is OneOffJobBootstrap.execute
# - line 24: elasticjob.jobs.manual.monitorExecution: is true from now on, since a request runs once by the record alone
registry:
  url: zookeeper://${ZK_HOST:-10.0.0.1:2181},10.0.0.2:2181/${NS:-shop}
  username: jo
  passwordEnv: REGISTRY_PASSWORD
  retry:
    retries: 3
jobs:
  hello:
    elasticJobClass: com.acme.HelloJob
    cron: ${HELLO_CRON}
    shardingTotalCount: 3
    monitorExecution: false
    misfire: false
    reconcileInterval: never
  report.daily:
    type: SCRIPT
    elasticJobClass: SCRIPT
    cron: 0 0 2 * * ?
    shardingTotalCount: 1
    monitorExecution: true
    misfire: true
    props:
      script.command.line: sh -c "echo $$HOME"
      email.passwordEnv: REPORT_DAILY_EMAIL_PASSWORD
    reconcileInterval: never
  manual:
    elasticJobClass: com.acme.Manual
    shardingTotalCount: 1
    misfire: false
    reconcileInterval: never
    cron: '@requests'
    monitorExecution: true
`, string(c.YAML))
	require.Equal(t, []string{"hunter2", "hunter3"}, []string{c.Secrets[0].Value(), c.Secrets[1].Value()})
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", c.Secrets, c.Secrets, c.Secrets), "hunter")

	// What was made is read, and is what was meant.
	t.Setenv("HELLO_CRON", "0/5 * * * * ?")
	t.Setenv("HOME", "nobody's")
	made, err := Parse("jobs.yaml", c.YAML)
	require.NoError(t, err)
	require.Equal(t, core.JobConfig{
		Name: "hello", Class: "com.acme.HelloJob", Cron: "0/5 * * * * ?", Shards: 3, Monitor: core.MonitorOff, Misfire: core.MisfireSkip, ReconcileInterval: made.Jobs[0].ReconcileInterval,
	}, made.Jobs[0])
	require.Negative(t, made.Jobs[0].ReconcileInterval)
	require.Equal(t, `sh -c "echo $HOME"`, made.Jobs[1].Props["script.command.line"])
	require.Equal(t, core.JobConfig{
		Name: "manual", Class: "com.acme.Manual", Cron: "@requests", Shards: 1, Monitor: core.MonitorOn, Misfire: core.MisfireSkip, ReconcileInterval: made.Jobs[2].ReconcileInterval,
	}, made.Jobs[2])
	require.Equal(t, Registry{Address: "zookeeper://10.0.0.1:2181,10.0.0.2:2181/shop", Username: "jo", PasswordEnv: "REGISTRY_PASSWORD", Retry: retry.Config{Retries: 3}}, made.Registry)

	// Files in place of variables.
	c, err = Convert("application.yml", []byte(application), ConvertOptions{SecretDir: "/etc/secrets"})
	require.NoError(t, err)
	require.Contains(t, string(c.YAML), "passwordFile: /etc/secrets/registry-password\n")
	require.Contains(t, string(c.YAML), "email.passwordFile: /etc/secrets/report.daily-email.password\n")
	require.Equal(t, "line 10: elasticjob.reg-center.digest: goes into the file /etc/secrets/registry-password", c.Secrets[0].String())
}

// The same file without secrets is read as it is; what is lost is a warning of the registry.
func TestElasticJobsFileIsReadDirectly(t *testing.T) {
	_, err := Parse("application.yml", []byte(application))
	const fix = "holds a secret, which does not belong in this file; write a variable in its place, ${NAME}, or have `elasticron convert` take it out"
	require.EqualError(t, err, "application.yml:10:13: elasticjob.reg-center.digest: "+fix+"\n"+
		`application.yml:23:74: elasticjob.jobs."[report.daily]".props."email.password": `+fix)

	t.Setenv("HELLO_CRON", "0/5 * * * * ?")
	file := strings.NewReplacer("jo:hunter2", "jo:${REGISTRY_PW}", "hunter3", "${MAIL_PW}").Replace(application)
	c, err := Parse("application.yml", []byte(file))
	require.NoError(t, err)
	require.Len(t, c.Jobs, 3)
	require.Equal(t, "REGISTRY_PW", c.Registry.PasswordEnv)
	require.Equal(t, "MAIL_PW", c.Jobs[1].Props["email.passwordEnv"])
	lost := 0
	for _, n := range c.Notes() {
		if n.Lost {
			lost++
		}
	}
	require.Equal(t, 1, lost)
	reg := c.telling(warned{Registry: nil, warnings: []string{"of the adapter"}})
	require.Equal(t, []string{
		"application.yml: line 6: elasticjob.tracing: ElasticJob's tables of runs are not written: a sink of the program gets each run (its password, if any, stays behind)",
		"of the adapter",
	}, reg.(interface{ Warnings() []string }).Warnings())

	// What is wrong is told at its place in ElasticJob's file.
	_, err = Parse("application.yml", []byte(strings.Replace(file, "0 0 2 * * ?", "0 2 * * *", 1)))
	require.EqualError(t, err, `application.yml:19:13: jobs."report.daily".cron: has 5 fields, Quartz has 6, seconds first, or 7 with the year; write 0 0 2 * * ?`)

	c, err = Parse("application.yml", []byte("elasticjob.regCenter.serverLists: h:2181\nelasticjob.reg-center.namespace: shop\nelasticjob.jobs.hello.cron: '@daily'\nelasticjob.jobs.hello.sharding-total-count: 2\nelasticjob.jobs.hello.props.a.b: c\n"))
	require.NoError(t, err)
	require.Equal(t, "zookeeper://h:2181/shop", c.Registry.Address)
	require.Equal(t, map[string]string{"a.b": "c"}, c.Jobs[0].Props)
}

func TestConvertRefuses(t *testing.T) {
	for file, want := range map[string]string{
		"":                               "f.yaml: is empty; write the blocks registry and jobs",
		"registry: {url: a}\n":           "f.yaml: has no block elasticjob with regCenter and jobs; give the application.yml of a Spring Boot program (one of .properties is not read)",
		"spring: {}\n":                   "f.yaml: has no block elasticjob with regCenter and jobs; give the application.yml of a Spring Boot program (one of .properties is not read)",
		"elasticjob: 3\n":                "f.yaml:1:13: elasticjob: is one value, want a mapping; write its keys on the next lines, indented",
		"elasticjob: {regCenter: {}}\n":  "f.yaml:1:14: elasticjob.regCenter.serverLists: is missing; write for example serverLists: 127.0.0.1:2181\nf.yaml:1:14: elasticjob.regCenter.namespace: is missing; write for example namespace: shop",
		"elasticjob: {jobs: [a]}\n":      "f.yaml:1:20: elasticjob.jobs: is a list, want a mapping; write its keys on the next lines, indented",
		"elasticjob: &a {jobs: *a}\n":    "f.yaml:1:13: anchors (&name) are not read; write the value out\nf.yaml:1:23: aliases (*name) are not read; write the value out",
		"elasticjob: {}\n---\nspring: 1": "f.yaml:2:1: a second document begins (---); keep one in a file",
		"elasticjob: {jobs: {a: {cron: [x], cron: y}}}\n": "f.yaml:1:31: elasticjob.jobs.a.cron: is a list, want text\nf.yaml:1:36: elasticjob.jobs.a.cron: is given twice, first on line 1; leave one",
	} {
		_, err := Convert("f.yaml", []byte(file), ConvertOptions{})
		require.EqualError(t, err, want, file)
	}
}

func TestPlaceholdersOfSpring(t *testing.T) {
	for in, want := range map[string]string{
		"${A}": "${A}", "${A:}": "${A:-}", "${A:b}": "${A:-b}", "${A:b:c}": "${A:-b:c}", "${my.own-name:x}": "${MY_OWNNAME:-x}",
		"a$b": "a$$b", "$": "$$", "${": "$${", "${A:$}": "${A:-$$}", "x${A}y${B:1}z": "x${A}y${B:-1}z", "${A:${B:c}}": "${A}", "${old.one}": "${OLD_ONE:-1}",
	} {
		c, err := Convert("f.yaml", []byte("old: {one: 1}\n"+old("", "", "description: '"+in+"'")), ConvertOptions{})
		require.NoError(t, err)
		require.Contains(t, strings.ReplaceAll(string(c.YAML), "'", ""), "description: "+want+"\n", in)
	}
	c, err := Convert("f.yaml", []byte(old("", "", "description: '#{1+1} ${A:${B}}'")), ConvertOptions{})
	require.NoError(t, err)
	require.Len(t, c.Notes, 2)
	require.True(t, c.Notes[0].Lost && c.Notes[1].Lost)
}

// What is wrong in the new file is told at its place in the old one.
func TestProblemsOfWhatWasMade(t *testing.T) {
	c, err := Convert("f.yaml", []byte(old("", "", "jobShardingStrategyType: BEST\n      timeZone: Mars\n      cron: '${UNSET}'")), ConvertOptions{})
	require.NoError(t, err)
	require.Len(t, c.Problems, 2)
	require.ErrorContains(t, c.Problems[0], "f.yaml:12:32: jobs.hello.jobShardingStrategyType: \"BEST\" is not a strategy")
	require.ErrorContains(t, c.Problems[1], "f.yaml:13:17: jobs.hello.timeZone:")
}

// ElasticJob takes parameters of items that are refused here, as the migration page says.
func TestItemParametersThatAreRefused(t *testing.T) {
	for params, want := range map[string]string{
		"2=c": "item 2 does not exist: items are 0 to 1", "0=a=": `gives item "0" a parameter with "=" in it`, "0=a,0=b": "gives item 0 twice; leave one", "-1=a": `has the item "-1", want a whole number from 0`,
	} {
		c, err := Convert("f.yaml", []byte(old("", "", "shardingItemParameters: "+params+"\n      shardingTotalCount: 2")), ConvertOptions{})
		require.NoError(t, err)
		require.Len(t, c.Problems, 1, params)
		require.ErrorContains(t, c.Problems[0], "jobs.hello.shardingItemParameters: ")
		require.ErrorContains(t, c.Problems[0], want)
	}
}

// A job of ElasticJob 1 goes on in its own namespace: what was converted of its nodes replaces
// them once.
func TestAJobOfElasticJob1GoesOn(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	store, err := reg.OpenStore(t.Context())
	require.NoError(t, err)
	defer store.Close(t.Context())
	ops := []registry.Op{registry.Create("/shop", nil), registry.Create("/shop/one", nil), registry.Create("/shop/one/config", nil)}
	for leaf, value := range leaves {
		if leaf == "cron" {
			value = "* * * * * ?"
		}
		ops = append(ops, registry.Create("/shop/one/config/"+leaf, []byte(value)))
	}
	_, err = store.Commit(t.Context(), ops...)
	require.NoError(t, err)
	made, err := ConvertRegistry(t.Context(), store, "shop", nil, ConvertOptions{})
	require.NoError(t, err)
	file := strings.Replace(string(made.YAML), "    cron:", "    overwrite: true\n    cron:", 1) + "registry: {url: memory://one/shop}\n"
	c, err := Parse("jobs.yaml", []byte(file))
	require.NoError(t, err)
	ran := make(chan core.Shard, 100)
	sched := core.New(reg, core.WithLogger(nil), core.WithIP("127.0.0.1"))
	require.NoError(t, c.Bind(sched, map[string]core.Job{"one": core.JobFunc(func(_ context.Context, s core.Shard) error {
		select {
		case ran <- s:
		default:
		}
		return nil
	})}))
	require.NoError(t, sched.Start(t.Context()))
	got := map[string]bool{}
	for len(got) < 3 {
		s := <-ran
		require.Equal(t, 3, s.Total)
		require.Equal(t, "x", s.JobParam)
		got[fmt.Sprint(s.Item, s.Param)] = true
	}
	require.Equal(t, map[string]bool{"0a": true, "1b": true, "2": true}, got)
	require.NoError(t, sched.Stop(t.Context()))
}

// leaves are a job of ElasticJob 1, as the oldest of its descriptions has it: one node a field.
var leaves = map[string]string{
	"jobClass": "com.acme.Hello", "shardingTotalCount": "3", "shardingItemParameters": "0=a,1=b", "jobParameter": "x", "cron": "0/5 * * * * ?",
	"monitorExecution": "true", "processCountIntervalSeconds": "300", "concurrentDataProcessThreadCount": "1", "fetchDataCount": "1",
	"maxTimeDiffSeconds": "-1", "failover": "false", "misfire": "true",
	"jobShardingStrategyClass": "com.dangdang.ddframe.job.plugin.sharding.strategy.AverageAllocationJobShardingStrategy", "description": "says hello", "monitorPort": "-1",
}

func TestConvertRegistry(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	store, err := reg.OpenStore(t.Context())
	require.NoError(t, err)
	defer store.Close(t.Context())
	create := func(path, value string) {
		_, err := store.Commit(t.Context(), registry.Create(path, []byte(value)))
		require.NoError(t, err, path)
	}
	create("/shop", "")
	for _, job := range []string{"one", "two", "three", "four"} {
		create("/shop/"+job, map[string]string{"three": "SCRIPT"}[job])
	}
	create("/shop/one/config", "")
	for leaf, value := range leaves {
		create("/shop/one/config/"+leaf, value)
	}
	create("/shop/two/config", `{"jobName":"two","jobClass":"com.acme.Two","jobType":"DATAFLOW","cron":"0 0 1 * * ?","shardingTotalCount":2,"shardingItemParameters":"","jobParameter":"","failover":true,"misfire":true,"description":"","jobProperties":{"job_exception_handler":"com.dangdang.ddframe.job.executor.handler.impl.DefaultJobExceptionHandler"},"monitorExecution":true,"maxTimeDiffSeconds":30,"monitorPort":9888,"jobShardingStrategyClass":"","reconcileIntervalMinutes":10,"disabled":false,"overwrite":false,"streamingProcess":true}`)
	create("/shop/three/config", `cron: 0 0 2 * * ?
description: ''
disabled: false
failover: false
jobExtraConfigurations:
- !!org.apache.shardingsphere.elasticjob.kernel.tracing.yaml.YamlTracingConfiguration
  tracingStorageConfiguration: {password: hunter2}
jobName: three
maxTimeDiffSeconds: -1
misfire: true
monitorExecution: true
overwrite: false
props: {script.command.line: a.sh}
reconcileIntervalMinutes: 10
shardingItemParameters: ''
shardingTotalCount: 3
staticSharding: false
`)
	before, err := store.Get(t.Context(), "/shop")
	require.NoError(t, err)
	c, err := ConvertRegistry(t.Context(), store, "shop", nil, ConvertOptions{})
	require.NoError(t, err)
	require.Empty(t, c.Problems)
	require.Equal(t, `jobs:
  one:
    cron: 0/5 * * * * ?
    description: says hello
    failover: false
    elasticJobClass: com.acme.Hello
    jobParameter: x
    jobShardingStrategyType: AVG_ALLOCATION
    misfire: true
    monitorExecution: true
    shardingItemParameters: 0=a,1=b
    shardingTotalCount: 3
    props:
      dataflow.concurrency: '1'
      dataflow.fetch.count: '1'
      dataflow.count.interval.seconds: '300'
    reconcileInterval: never
  three:
    cron: 0 0 2 * * ?
    disabled: false
    failover: false
    misfire: true
    monitorExecution: true
    overwrite: false
    reconcileInterval: 10m
    shardingTotalCount: 3
    staticSharding: false
    type: SCRIPT
    elasticJobClass: SCRIPT
    props:
      script.command.line: a.sh
  two:
    elasticJobClass: com.acme.Two
    type: DATAFLOW
    cron: 0 0 1 * * ?
    shardingTotalCount: 2
    failover: true
    misfire: true
    monitorExecution: true
    maxTimeDiff: 30s
    reconcileInterval: 10m
    disabled: false
    overwrite: false
    props:
      streaming.process: 'true'
`, string(regexp.MustCompile(`(?m)^#.*\n`).ReplaceAll(c.YAML, nil)))
	require.NotContains(t, string(c.YAML), "hunter2")
	var lost []string
	for _, n := range c.Notes {
		if n.Lost {
			lost = append(lost, n.Field)
		}
	}
	require.ElementsMatch(t, []string{
		"jobs.four",
		"jobs.three.jobExtraConfigurations", "jobs.two.monitorPort",
	}, lost)
	after, err := store.Get(t.Context(), "/shop")
	require.NoError(t, err)
	require.Equal(t, before, after)

	c, err = ConvertRegistry(t.Context(), store, "shop", []string{"one"}, ConvertOptions{})
	require.NoError(t, err)
	require.NotContains(t, string(c.YAML), "two:")
	_, err = ConvertRegistry(t.Context(), store, "nobody", nil, ConvertOptions{})
	require.ErrorIs(t, err, registry.ErrNotFound)
	_, err = store.Commit(t.Context(), registry.Set("/shop/two/config", []byte("{"), registry.AnyVersion))
	require.NoError(t, err)
	_, err = ConvertRegistry(t.Context(), store, "shop", []string{"two"}, ConvertOptions{})
	require.ErrorContains(t, err, "/shop/two/config:")
}
