package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	_ "github.com/elasticron/elasticron/errorhandler/chat" // registers SLACK, DINGTALK, WECHAT, FEISHU
	_ "github.com/elasticron/elasticron/errorhandler/mail" // registers EMAIL
)

// checkedJob is a good file with one job, whose settings follow on line 7.
const checkedJob = oneJob + "shardingTotalCount: 1\n    "

// What Bind would refuse is told by Check, in the same words or better ones.
func TestCheckRefuses(t *testing.T) {
	for settings, want := range map[string]string{
		"type: SCRIT":                `f.yaml:7:11: jobs.hello.type: "SCRIT" is not known here; did you mean SCRIPT? (if the program brings it: elasticron check -own SCRIT)`,
		"type: https":                `f.yaml:7:11: jobs.hello.type: "https" is not known here; did you mean HTTP? (if the program brings it: elasticron check -own https)`,
		"type: SIMPEL":               `f.yaml:7:11: jobs.hello.type: "SIMPEL" is not known here; did you mean SIMPLE? (if`,
		"type: SCRIPT":               `f.yaml:4:3: jobs.hello.props."script.command.line": is missing; write for example script.command.line: scripts/reindex.sh`,
		"type: HTTP":                 `f.yaml:4:3: jobs.hello.props."http.uri": is missing; write for example http.uri: http://127.0.0.1:8080/path`,
		"jobErrorHandlerType: STPO":  `f.yaml:7:26: jobs.hello.jobErrorHandlerType: "STPO" is not known here; did you mean STOP? (if`,
		"jobErrorHandlerType: slak":  `f.yaml:7:26: jobs.hello.jobErrorHandlerType: "slak" is not known here; did you mean SLACK? (if`,
		"jobErrorHandlerType: SLACK": `f.yaml:4:3: jobs.hello.props."slack.webhookEnv": is missing; give the name of the environment variable that holds it, or slack.webhookFile`,
		"jobErrorHandlerType: WEBHOOK\n    props: {notify.limit: 0, webhook.url: 'http://h'}":                      `f.yaml:8:27: jobs.hello.props."notify.limit": is 0: nothing would be sent; give at least 1, or another handler`,
		"jobErrorHandlerType: EMAIL\n    props: {email.host: h, email.from: a@b, email.to: c@d, email.port: many}": `f.yaml:8:72: jobs.hello.props."email.port": is not a port; write a number from 1 to 65535`,
		"type: DATAFLOW\n    props: {dataflow.concurrency: -1}":                                                    `f.yaml:8:35: jobs.hello.props."dataflow.concurrency": is not a whole number from 0 on; write digits alone`,
		"jobShardingStrategyType: STIKCY":                                                                          `f.yaml:7:30: jobs.hello.jobShardingStrategyType: "STIKCY" is not known here; did you mean STICKY? (if`,
		"jobShardingStrategyType: SINGLE_SHARDING_BALANCE":                                                         `f.yaml:7:30: jobs.hello.jobShardingStrategyType: "SINGLE_SHARDING_BALANCE" depends on the clock`,
		// All at once, in the order of the file.
		"type: SCRIT\n    jobShardingStrategyType: MINE\n    timeZone: Mars\n    jobErrorHandlerType: STPO": "f.yaml:7:11: jobs.hello.type: \"SCRIT\" is not known here; did you mean SCRIPT? (if the program brings it: elasticron check -own SCRIT)\n" +
			"f.yaml:9:15: jobs.hello.timeZone: \"Mars\" is not",
	} {
		_, err := Check("f.yaml", []byte(checkedJob+settings+"\n"))
		require.Error(t, err, settings)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s\n%s", want, err)
	}
}

// What only the program knows, or the machine on which it runs, is a note.
func TestCheckNotes(t *testing.T) {
	for _, c := range []struct {
		file string
		own  []string
		want []string
	}{
		{file: checkedJob + "type: MINE\n    jobErrorHandlerType: PAGER\n    jobShardingStrategyType: BEST\n", want: []string{
			`line 7: jobs.hello.type: "MINE" is not known here; a program may bring it (job.Kinds, which Config.Bind takes)`,
			`line 8: jobs.hello.jobErrorHandlerType: "PAGER" is not known here; a program may bring it (errorhandler.Register)`,
			`line 9: jobs.hello.jobShardingStrategyType: "BEST" is not known here; a program may bring it (core.WithStrategy)`,
		}},
		{file: checkedJob + "type: HTTPS\n    jobErrorHandlerType: pager\n    jobShardingStrategyType: STICKIER\n", own: []string{"https", "PAGER", "STICKIER"}},
		{file: checkedJob + "type: SCRIPT\n", own: []string{"SCRIPT"}}, // its own comes before the built-in one
		{file: checkedJob + "type: HTTP\n    props: {http.uriEnv: NOBODY_SETS_THIS, http.method: GET, http.headerFile.X: /no/such/file}\n", want: []string{
			`line 8: jobs.hello.props."http.headerFile.X": cannot be read: open /no/such/file: no such file or directory; the program needs it where it runs`,
			`line 8: jobs.hello.props."http.uriEnv": names what is empty or not set; the program needs it where it runs`,
		}},
		{file: checkedJob + "jobErrorHandlerType: EMAIL\n    props: {email.host: h, email.port: 25, email.from: a@b, email.to: c@d, email.debug: true}\n", want: []string{
			`line 8: jobs.hello.props."email.debug": is ElasticJob's, and does nothing here: what a mail server says is not printed`,
		}},
		{file: "registry:\n  url: etcd://h/shop\n  username: jo\n  passwordEnv: NOBODY_SETS_THIS\n  tls: {ca: /no/such/file}\n", want: []string{
			"jobs: there is none; write jobs: and below it the name of a job with its settings",
			"line 4: registry.passwordEnv: the environment variable NOBODY_SETS_THIS is not set; the program needs it where it runs",
			"line 5: registry.tls.ca: the file /no/such/file cannot be read: no such file or directory; the program needs it where it runs",
		}},
		{file: strings.Replace(checkedJob, "memory:", "etdc:", 1), want: []string{
			"line 2: registry.url: the scheme etdc is none of Elasticron's own (embedded, etcd, memory, postgres, zookeeper); did you mean etcd? Else the program must import an adapter that has it",
		}},
		{file: strings.Replace(checkedJob, "memory:", "consul:", 1), want: []string{
			"line 2: registry.url: the scheme consul is none of Elasticron's own (embedded, etcd, memory, postgres, zookeeper); the program must import an adapter that has it",
		}},
		{file: strings.Replace(checkedJob, "memory:", "consul:", 1), own: []string{"consul"}},
	} {
		cfg, err := Check("f.yaml", []byte(c.file), c.own...)
		require.NoError(t, err, c.file)
		var got []string
		for _, n := range cfg.Notes() {
			require.False(t, n.Lost)
			got = append(got, n.String())
		}
		require.ElementsMatch(t, c.want, got, c.file)
	}
}

// A file of ElasticJob keeps its notes, of which what is lost can be told.
func TestCheckOfElasticJob(t *testing.T) {
	cfg, err := Check("application.yml", []byte(old("tracing: {type: RDB}", "", "")))
	require.NoError(t, err)
	require.True(t, cfg.Notes()[0].Lost, cfg.Notes())
	_, err = Check("application.yml", []byte("elasticjob:\n  regCenter: {}\n"))
	require.ErrorContains(t, err, "application.yml:2:3: elasticjob.regCenter.serverLists: is missing")
	_, err = Check("f.yaml", nil)
	require.EqualError(t, err, "f.yaml: is empty; write the blocks registry and jobs")
	_, err = Check("f.yaml", []byte("registry: &a {url: 'memory://a/b'}\n"))
	require.EqualError(t, err, "f.yaml:1:11: anchors (&name) are not read; write the value out")
}

// Parse is stricter: what it is not told, the scheduler will not know. The rest of the job is told once.
func TestAStrategyIsSuggested(t *testing.T) {
	_, err := Parse("f.yaml", []byte(checkedJob+"jobShardingStrategyType: STIKCY\n    gap: a\n    misfireCap: -1\n"))
	require.EqualError(t, err, `f.yaml:7:30: jobs.hello.jobShardingStrategyType: "STIKCY" is not a strategy; did you mean STICKY?`+"\n"+
		`f.yaml:8:10: jobs.hello.gap: "a" is not a policy; use "run-after" or "skip"`+"\n"+
		`f.yaml:9:17: jobs.hello.misfireCap: "-1" is not a number of fires to make up; give 1 to 1000`)
	_, err = Parse("f.yaml", []byte(checkedJob+"jobShardingStrategyType: STICKY\n"), core.WithStrategy("STICKY", nil))
	require.ErrorContains(t, err, "that WithStrategy gives is nil")
}

func TestNearest(t *testing.T) {
	known := []string{"SCRIPT", "HTTP", "STOP", "LOG", "http.uri", "session-timeout"}
	for key, want := range map[string]string{
		"SCRIT": "SCRIPT", "script": "SCRIPT", "STPO": "STOP", "LGO": "LOG", "HTTPS": "HTTP", "http.uir": "http.uri", "httpUri": "http.uri",
		"sesion_timeout": "session-timeout", "MINE": "", "PAGER": "", "": "", "SOAP": "",
	} {
		require.Equal(t, want, nearest(key, known), key)
	}
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"", "ab"}: 2, {"ab", "ba"}: 1, {"kitten", "sitting"}: 3, {"stpo", "stop"}: 1, {"abcd", "badc"}: 2,
	} {
		require.Equal(t, want, distance(pair[0], pair[1]), pair)
	}
}
