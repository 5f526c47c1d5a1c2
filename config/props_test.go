package config

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/errorhandler"
	"github.com/elasticron/elasticron/internal/secret"
	"github.com/elasticron/elasticron/job"
)

var nothing = core.JobFunc(func(context.Context, core.Shard) error { return nil })

// jobWith is a file whose one job has these settings, and these props, a line each from line 8 on.
func jobWith(settings string, props ...string) []byte {
	return []byte(oneJob + "shardingTotalCount: 1\n" + settings + "    props:\n      " + strings.Join(props, "\n      ") + "\n")
}

// A prop that nobody reads, and that looks as if somebody did, is refused; whatever else is the job's own.
func TestMisspelledProps(t *testing.T) {
	const script, request, email = "    type: SCRIPT\n", "    type: http\n", "    jobErrorHandlerType: EMAIL\n"
	for _, c := range []struct {
		settings, prop, want string
	}{
		{script, "script.timeout.miliseconds: 3", `"script.timeout.miliseconds": is not a setting of SCRIPT; did you mean script.timeout.milliseconds?`},
		{script, "scrpt.timeout.milliseconds: 3", `"scrpt.timeout.milliseconds": is not a setting of SCRIPT; did you mean script.timeout.milliseconds?`},
		{script, "Script.Dir: a", `"Script.Dir": is not a setting of SCRIPT; did you mean script.dir?`},
		{script, "script.colour: a", `"script.colour": is not a setting of SCRIPT; there are: script.command.line, script.dir, script.timeout.milliseconds, script.grace.milliseconds, script.output.bytes`},
		{request, "http.urifile: a", `"http.urifile": is not a setting of HTTP; did you mean http.uriFile?`},
		{request, "http.headers.X: a", `"http.headers.X": is not a setting of HTTP; there are: http.uri, http.uriEnv, http.uriFile, http.method,`},
		{email, "email.usessl: a", `"email.usessl": is not a setting of EMAIL; did you mean email.useSsl?`},
		{email, "email.colour: a", `"email.colour": is not a setting of EMAIL; there are: email.host, email.port,`},
		{email, "notify.limt: 3", `"notify.limt": is not a setting of an error handler; did you mean notify.limit?`},
		{"    jobErrorHandlerType: wecom\n", "wechat.webhok: a", `"wechat.webhok": is not a setting of WECHAT; did you mean wechat.webhook?`},
		{"    jobErrorHandlerType: DINGTALK\n", "dingtalk.readTimeout: 3", `"dingtalk.readTimeout": is not a setting of DINGTALK; there are: dingtalk.webhook, dingtalk.webhookEnv, dingtalk.webhookFile, dingtalk.secret,`},
		{"    type: DATAFLOW\n", "dataflow.fetchCont: 3", `"dataflow.fetchCont": is not a setting of DATAFLOW; did you mean dataflow.fetch.count?`},

		{script, "http.colour: a", ""},  // read by nobody
		{script, "retries: 3", ""},      // for people
		{request, "webhook.url: a", ""}, // of a handler that is switched off
		{email, "mail.host: a", ""},     // the function's
		{"", "script.timeout.miliseconds: 3", ""},
		{"    jobErrorHandlerType: LOG\n", "email.colour: a", ""},
		{"    type: DATAFLOW\n", "dataflow.colour: a", ""}, // a Configurable of the program may read it
	} {
		cfg, err := Parse("f.yaml", jobWith(c.settings, c.prop))
		require.NoError(t, err)
		var function core.Job
		if c.settings != script && c.settings != request {
			function = standIn
		}
		_, err = cfg.Work("hello", function)
		line := "f.yaml:9:7: jobs.hello.props."
		if c.settings == "" {
			line = "f.yaml:8:7: jobs.hello.props."
		}
		var texts []string
		if err != nil {
			texts = strings.Split(err.Error(), "\n")
		}
		texts = slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(text, "is missing") })
		if c.want == "" {
			require.Empty(t, texts, c.prop)
			continue
		}
		require.Len(t, texts, 1, c.prop)
		require.True(t, strings.HasPrefix(texts[0], line+c.want), "%s\n%s", line+c.want, texts[0])
		require.ErrorIs(t, err, core.ErrConfig)
	}
}

// A kind of the program's own comes before a built-in one, and reads what it likes.
func TestOwnKindsReadTheirOwnProps(t *testing.T) {
	cfg, err := Parse("f.yaml", jobWith("    type: SCRIPT\n", "script.colour: red", "http.uriFile: relative"))
	require.NoError(t, err)
	var got map[string]string
	_, err = cfg.Work("hello", nil, job.Kinds{"script": job.KindFunc(func(c core.JobConfig) (core.Job, error) {
		got = c.Props
		return nothing, nil
	})})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"script.colour": "red", "http.uriFile": "relative"}, got)
}

// Whatever ElasticJob knows of HTTP, SCRIPT and its handlers is accepted, read or not.
func TestPropsOfElasticJobAreAccepted(t *testing.T) {
	t.Setenv("PROPS_TEST", "http://127.0.0.1/")
	kinds := map[string][]string{
		"SCRIPT": {"script.command.line: a.sh"},
		"HTTP": {
			"http.uri: http://h", "http.method: GET", "http.data: a", "http.content.type: b", "http.connect.timeout.milliseconds: 1", "http.read.timeout.milliseconds: 2",
		},
	}
	handlers := map[string][]string{
		"EMAIL": {
			"email.host: h", "email.port: 25", "email.username: jo", "email.passwordEnv: PROPS_TEST", "email.useSsl: true", "email.ssl.trust: x", "email.subject: y",
			"email.from: a@b", "email.to: c@d", "email.cc: e@f", "email.bcc: g@h", "email.debug: false",
		},
		"WECHAT": {"wechat.webhookEnv: PROPS_TEST", "wechat.connectTimeoutMilliseconds: 1", "wechat.readTimeoutMilliseconds: 2"},
		"DINGTALK": {
			"dingtalk.webhookEnv: PROPS_TEST", "dingtalk.keyword: k", "dingtalk.secretEnv: PROPS_TEST", "dingtalk.connectTimeoutMilliseconds: 1", "dingtalk.readTimeoutMilliseconds: 2",
		},
	}
	for kind, settings := range kinds {
		for handler, more := range handlers {
			cfg, err := Parse("f.yaml", jobWith("    type: "+kind+"\n    jobErrorHandlerType: "+handler+"\n", slices.Concat(settings, more)...))
			require.NoError(t, err)
			_, err = cfg.Work("hello", nil)
			require.NoError(t, err)
		}
	}
}

// A request has the headers that the props say, those that are secrets from files and variables.
func TestHeaders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte("hunter2\n"), 0o600))
	t.Setenv("HEADERS_TEST", "Bearer hunter2")
	asked := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header }))
	defer srv.Close()
	cfg, err := Parse(filepath.Join(dir, "jobs.yaml"), jobWith("    type: HTTP\n", "http.uri: "+srv.URL, "http.method: GET",
		"http.header.x-tenant: north", "http.headerEnv.Authorization: HEADERS_TEST", "http.headerFile.X-Key: key"))
	require.NoError(t, err)
	work, err := cfg.Work("hello", nil)
	require.NoError(t, err)
	require.NoError(t, work.Run(t.Context(), core.Shard{Job: "hello"}))
	got := <-asked
	require.Equal(t, []string{"north"}, got["X-Tenant"])
	require.Equal(t, []string{"Bearer hunter2"}, got["Authorization"])
	require.Equal(t, []string{"hunter2"}, got["X-Key"])
	require.Contains(t, got.Get("Shardingcontext"), `"jobName":"hello"`)
	require.Equal(t, "key", cfg.Jobs[0].Props["http.headerFile.X-Key"], "the registry gets what stands in the file")
}

func TestBadHeaders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lines"), []byte("hunter2\nand more"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	for prop, want := range map[string]string{
		"'http.header.': a":                          `10:23: jobs.hello.props."http.header.": names no header; write for example http.header.X-Tenant`,
		"http.header.Ä: a":                           `10:22: jobs.hello.props."http.header.Ä": names no header; write for example http.header.X-Tenant`,
		"http.header.host: a":                        `10:25: jobs.hello.props."http.header.host": is that of http.uri; remove it`,
		"http.header.Content-Length: 3":              `10:35: jobs.hello.props."http.header.Content-Length": is that of the body; remove it`,
		"http.header.shardingContext: a":             `10:36: jobs.hello.props."http.header.shardingContext": is the item's own context; remove it`,
		"http.header.content-type: a":                `10:33: jobs.hello.props."http.header.content-type": gives a header that http.content.type gives too; leave one`,
		"http.header.X-Twice: a":                     `10:28: jobs.hello.props."http.header.X-Twice": gives a header that http.header.X-TWICE gives too; leave one`,
		`http.header.X: "a\nb"`:                      `10:22: jobs.hello.props."http.header.X": gives a header that holds a control character or several lines; remove it`,
		"http.headerFile.X: lines":                   `10:26: jobs.hello.props."http.headerFile.X": gives a header that holds a control character or several lines; remove it`,
		"http.headerFile.X: empty":                   `10:26: jobs.hello.props."http.headerFile.X": names what is empty or not set; put the secret there`,
		"http.headerFile.X: none":                    `10:26: jobs.hello.props."http.headerFile.X": cannot be read: open ` + dir + `/none: no such file or directory`,
		"http.headerEnv.X: NOBODY_SETS_THIS":         `10:25: jobs.hello.props."http.headerEnv.X": names what is empty or not set; put the secret there`,
		"http.header.Authorization: Bearer hunter2":  `10:7: jobs.hello.props."http.header.Authorization": is a secret, which all who read the registry would see; put it in a file that http.headerFile.Authorization names, or in an environment variable that http.headerEnv.Authorization names`,
		"http.header.Cookie: hunter2":                `10:7: jobs.hello.props."http.header.Cookie": is a secret,`,
		"http.header.X-Api-Key: hunter2":             `10:7: jobs.hello.props."http.header.X-Api-Key": is a secret,`,
		"http.header.X-Auth-Token: hunter2":          `10:7: jobs.hello.props."http.header.X-Auth-Token": is a secret,`,
		"http.header.Referer: 'http://jo:hunter2@h'": `10:7: jobs.hello.props."http.header.Referer": holds a password,`,
	} {
		file := filepath.Join(dir, "f.yaml")
		cfg, err := Parse(file, jobWith("    type: HTTP\n", "http.method: GET", prop, "http.uri: http://h", "http.content.type: b", "http.header.X-TWICE: b"))
		if err == nil {
			_, err = cfg.Work("hello", nil)
		}
		require.Error(t, err, prop)
		require.True(t, strings.HasPrefix(err.Error(), file+":"+want), "%s\n%s", want, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// Files that props name are relative to the folder of the YAML file, as those of the registry are,
// and what the registry gets of it stays as it was written.
func TestFilesOfPropsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "url"), []byte("http://127.0.0.1:1/hunter2"), 0o600))
	for _, c := range []struct {
		settings string
		props    []string
	}{
		{"    type: HTTP\n", []string{"http.method: GET", "http.uriFile: url"}},
		{"    jobErrorHandlerType: WEBHOOK\n", []string{"webhook.urlFile: ./url", "webhook.secretFile: url"}},
		{"    jobErrorHandlerType: SLACK\n", []string{"slack.webhookFile: " + filepath.Join(dir, "url")}},
		{"    jobErrorHandlerType: OWN_PAGER\n", []string{"pager.urlFile: url"}},
	} {
		cfg, err := Parse(filepath.Join(dir, "jobs.yaml"), jobWith(c.settings, c.props...))
		require.NoError(t, err)
		before := maps.Clone(cfg.Jobs[0].Props)
		var function core.Job
		if !strings.Contains(c.settings, "HTTP") {
			function = nothing
		}
		_, err = cfg.Work("hello", function)
		require.NoError(t, err, c.settings)
		require.Equal(t, before, cfg.Jobs[0].Props)
	}
}

func init() {
	errorhandler.Register("OWN_PAGER", func(s *errorhandler.Settings) errorhandler.Handler {
		s.NeededSecret("pager.url")
		return errorhandler.Func(func(context.Context, errorhandler.Failure) error { return nil })
	})
}

// What Convert takes out of an old file is refused in a new one, with the place where it belongs.
func TestSecretsAmongProps(t *testing.T) {
	t.Setenv("PROPS_TEST", "hunter2")
	for prop, want := range map[string]string{
		"db.password: ${PROPS_TEST}":                    `"db.password": is a secret, which all who read the registry would see; put it in a file that db.passwordFile names, or in an environment variable that db.passwordEnv names, for the function to read`,
		"apiToken: hunter2":                             `apiToken: is a secret,`,
		"my.access-key: hunter2":                        `"my.access-key": is a secret,`,
		"wechat.webhook: hunter2":                       `"wechat.webhook": is a secret, which all who read the registry would see; put it in a file that wechat.webhookFile names, or in an environment variable that wechat.webhookEnv names`,
		"feishu.webhook: hunter2":                       `"feishu.webhook": is a secret,`,
		"webhook.url: http://jo:hunter2@h/":             `"webhook.url": holds a password, which all who read the registry would see; put it in a file that webhook.urlFile names, or in an environment variable that webhook.urlEnv names`,
		"db.url: jdbc:x://jo:${PROPS_TEST}@h":           `"db.url": holds a password, which all who read the registry would see; put it in a file that db.urlFile names, or in an environment variable that db.urlEnv names, for the function to read`,
		"script.command.line: curl http://jo:hunter2@h": `"script.command.line": holds a password, which all who read the registry would see; have the script read it from its environment, or from a file`,
		"http.data: x://:hunter2@h":                     `"http.data": holds a password, which all who read the registry would see; leave it out`,

		"db.password: ''":            "",
		"db.passwordEnv: PROPS_TEST": "",
		"db.passwordFile: hunter2":   "",
		"tokens: 3":                  "",
		"script.command.line: wget http://h:80/a && mail jo@h": "",
		"http.uri: http://jo@h:80/a@b":                         "",
		"http.headerEnv.X-Token: PROPS_TEST":                   "",
	} {
		_, err := Parse("f.yaml", jobWith("", prop))
		if want == "" {
			require.NoError(t, err, prop)
			continue
		}
		require.Error(t, err, prop)
		require.True(t, strings.HasPrefix(err.Error(), "f.yaml:8:7: jobs.hello.props."+want), "%s\n%s", want, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, name := range slices.Concat(secretProps, []string{"a." + secretWords[0], "b" + secretWords[1]}) {
		require.NotEmpty(t, openSecret(name, "x"), name)
	}
}

// The words for a secret are those of package secret, which this one may not import.
func TestWordsOfSecrets(t *testing.T) {
	require.Equal(t, "Props.a.password: "+strings.TrimSuffix(openSecret("a.password", "x"), ", for the function to read"), secret.Refused("a.password").Error())
	_, err := secret.Read(map[string]string{"aEnv": "NOBODY_SETS_THIS"}, "a")
	require.EqualError(t, err, "Props.aEnv: "+errAbsent.Error())
	require.ErrorIs(t, errAbsent, os.ErrNotExist)
	require.ErrorIs(t, err, os.ErrNotExist)
}
