package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const old = `elasticjob:
  regCenter: {serverLists: 'h:2181', namespace: shop, digest: 'jo:hunter2', sessionTimeoutMilliseconds: 30000}
  jobs:
    report:
      elasticJobType: SCRIPT
      cron: 0 0 2 * * ?
      shardingTotalCount: 1
      monitorExecution: true
      misfire: true
      reconcileIntervalMinutes: 10
      props: {script.command.line: a.sh}
`

const made = `# Made of application.yml by elasticron convert.
# - line 2: elasticjob.regCenter.digest: goes into the environment variable REGISTRY_PASSWORD
registry:
  url: zookeeper://h:2181/shop?session-timeout=30s
  username: jo
  passwordEnv: REGISTRY_PASSWORD
jobs:
  report:
    type: SCRIPT
    elasticJobClass: SCRIPT
    cron: 0 0 2 * * ?
    shardingTotalCount: 1
    monitorExecution: true
    misfire: true
    reconcileInterval: 10m
    props:
      script.command.line: a.sh
`

// elasticron runs the command.
func elasticron(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestConvert(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "application.yml", old)
	code, out, errs := elasticron(t, "convert", file)
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, made, out)
	require.Equal(t, "secret: line 2: elasticjob.regCenter.digest: goes into the environment variable REGISTRY_PASSWORD\n", errs)

	// Into files.
	secrets, output := filepath.Join(dir, "secrets"), filepath.Join(dir, "jobs.yaml")
	code, out, errs = elasticron(t, "convert", "-o", output, "-secrets", secrets, file)
	require.Equal(t, exitOK, code, errs)
	require.Empty(t, out)
	secret := filepath.Join(secrets, "registry-password")
	require.Equal(t, "secret: line 2: elasticjob.regCenter.digest: goes into the file "+secret+"\n", errs)
	text, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "hunter2\n", string(text))
	info, err := os.Stat(secret)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "others can read it")
	text, err = os.ReadFile(output)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	cfg, err := config.Load(output)
	require.NoError(t, err)
	require.Equal(t, secret, cfg.Registry.PasswordFile)

	// Nothing is written over.
	code, _, errs = elasticron(t, "convert", "-o", output, file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "file exists")
	code, out, errs = elasticron(t, "convert", "-secrets", secrets, file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "file exists")
	require.Empty(t, out)

	// Something is lost, something does not load.
	code, out, errs = elasticron(t, "convert", write(t, dir, "lost.yml", strings.Replace(old, "  jobs:", "  tracing: {type: RDB}\n  jobs:", 1)))
	require.Equal(t, exitLost, code)
	require.Contains(t, errs, "lost: line 3: elasticjob.tracing: ")
	require.Contains(t, out, "# - line 3: elasticjob.tracing: ")
	code, _, errs = elasticron(t, "convert", write(t, dir, "wrong.yml", strings.Replace(old, "0 0 2 * * ?", "0 2 * * *", 1)))
	require.Equal(t, exitLost, code)
	require.Contains(t, errs, "wrong.yml:6:13: jobs.report.cron: has 5 fields")

	// No such file, and one that is something else.
	code, _, errs = elasticron(t, "convert", filepath.Join(dir, "none"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "no such file")
	code, _, errs = elasticron(t, "convert", output)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "has no block elasticjob")
}

// ElasticJob 1's nodes, one for each field, are read from the registry.
func TestConvertRegistry(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Config{})
	require.NoError(t, err)
	defer srv.Close()
	url := "etcd://" + srv.Endpoint() + "/shop"
	reg, err := registry.Open(t.Context(), url)
	require.NoError(t, err)
	defer reg.Close()
	store, err := reg.OpenStore(t.Context())
	require.NoError(t, err)
	defer store.Close(t.Context())
	_, err = store.Commit(t.Context(), registry.Create("/shop", nil), registry.Create("/shop/hello", nil), registry.Create("/shop/hello/config", nil),
		registry.Create("/shop/hello/config/cron", []byte("0 0 1 * * ?")), registry.Create("/shop/hello/config/shardingTotalCount", []byte("3")),
		registry.Create("/shop/hello/config/monitorExecution", []byte("true")), registry.Create("/shop/hello/config/misfire", []byte("false")),
		registry.Create("/shop/hello/config/fetchDataCount", []byte("100")), registry.Create("/shop/hello/config/monitorPort", []byte("9888")))
	require.NoError(t, err)
	code, out, errs := elasticron(t, "convert", "-registry", url, "hello")
	require.Equal(t, exitLost, code, errs)
	require.Contains(t, errs, "lost: jobs.hello.monitorPort: ")
	require.Contains(t, out, `jobs:
  hello:
    cron: 0 0 1 * * ?
    misfire: false
    monitorExecution: true
    shardingTotalCount: 3
    props:
      dataflow.fetch.count: '100'
    reconcileInterval: never
`)
	code, _, errs = elasticron(t, "convert", "-registry", "nothing://h/shop")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "unknown scheme")
}

func TestCheckAndSchema(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := elasticron(t, "check", write(t, dir, "jobs.yaml", made))
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, `jobs ["report"]`)
	require.Empty(t, errs)
	file := write(t, dir, "bad.yaml", "registry: {url: x}\njobs: {a: {}}\n")
	code, out, errs = elasticron(t, "check", file)
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
	require.Contains(t, errs, file+":1:12: registry.url: is not a URL")
	require.Contains(t, errs, "jobs.a.cron: is missing")
	code, _, errs = elasticron(t, "check", write(t, dir, "application.yml", strings.Replace(old, "hunter2", "${PW}", 1)))
	require.Equal(t, exitOK, code, errs)

	for address, want := range map[string]string{
		"etcd://h/shop?sesion-timeout=3s":     `registry.url: has the setting "sesion-timeout", which etcd does not know; did you mean session-timeout?`,
		"zookeeper://h/shop?max-ops=3":        `which zookeeper does not know; there are: ca, cert, chroot,`,
		"postgres://h/db/shop?dial-timeout=3": "has the setting dial-timeout=3, which is no positive duration; write dial-timeout=6s",
		"etcd://h/shop?tls=true&tls=true":     "has the setting tls 2 times",
		"etcd://h":                            "has no namespace",
		"embedded:///d?username=jo":           `"username", which embedded does not know`,
	} {
		code, out, errs = elasticron(t, "check", write(t, dir, "jobs.yaml", "registry: {url: '"+address+"'}\njobs: {}\n"))
		require.Equal(t, exitFailed, code, address)
		require.Empty(t, out)
		require.Contains(t, errs, "jobs.yaml:1:12: registry.url: ")
		require.Contains(t, errs, want)
	}
	code, _, errs = elasticron(t, "check", write(t, dir, "jobs.yaml", "registry: {url: 'etdc://h/shop?a=b'}\njobs: {}\n"))
	require.Equal(t, exitOK, code, "a program may import an adapter of that name")
	require.Contains(t, errs, "note: registry.url: the scheme etdc is none of Elasticron's own (embedded, etcd, memory, postgres, zookeeper); ")

	code, out, _ = elasticron(t, "schema")
	require.Equal(t, exitOK, code)
	require.Equal(t, string(config.Schema()), out)
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"nothing"}, {"convert"}, {"convert", "a", "b"}, {"convert", "-x"}, {"check"}, {"check", "-x"}, {"schema", "a"}, {"schema", "-x"}} {
		code, out, errs := elasticron(t, args...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, out)
		require.Contains(t, errs, "elasticron", args)
	}
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}, {"convert", "-h"}, {"check", "-h"}, {"schema", "-h"}} {
		code, out, errs := elasticron(t, args...)
		require.Equal(t, exitOK, code, args)
		require.Empty(t, errs)
		require.Contains(t, out, "elasticron", args)
	}
	_, out, _ := elasticron(t, "convert", "-h")
	require.Contains(t, out, "-secrets DIR")
	for line := range strings.SplitSeq(out+usage, "\n") {
		require.LessOrEqual(t, len(line), 110, line)
	}
}

// The settings of a url that the reference lists are those that the adapters know.
func TestTheReferenceHasTheSettingsOfAURL(t *testing.T) {
	listed := map[string]map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^- `([a-z-]+)` \\(([a-z, ]+)\\):").FindAllStringSubmatch(config.Reference(), -1) {
		for scheme := range strings.SplitSeq(m[2], ", ") {
			if listed[scheme] == nil {
				listed[scheme] = map[string]bool{}
			}
			listed[scheme][m[1]] = true
		}
	}
	inBlock := []string{"username", "password-file", "password-env", "tls", "ca", "cert", "key"}
	require.Contains(t, config.Reference(), "`"+strings.Join(inBlock[:4], "`, `")+"`")
	require.Equal(t, []string{"embedded", "etcd", "memory", "postgres", "zookeeper"}, config.Schemes())
	for scheme, address := range map[string]string{"etcd": "etcd://h/shop", "zookeeper": "zookeeper://h/shop", "postgres": "postgres://h/db/shop", "embedded": "embedded:///"} {
		_, err := registry.Open(t.Context(), address+"?nothing=1")
		require.ErrorIs(t, err, registry.ErrInvalid)
		_, known, found := strings.Cut(err.Error(), "; known: ")
		require.True(t, found, err)
		for name := range strings.FieldsSeq(known) {
			require.True(t, listed[scheme][name] || slices.Contains(inBlock, name), "%s: %s stands in no list of the reference", scheme, name)
			delete(listed[scheme], name)
		}
		require.Empty(t, listed[scheme], "%s does not know what the reference lists", scheme)
	}
}

// A program that loads ElasticJob's file itself hears at start what is lost.
func TestWhatIsLostIsAWarning(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Config{})
	require.NoError(t, err)
	defer srv.Close()
	cfg, err := config.Parse("application.yml", []byte(strings.NewReplacer(
		"'h:2181'", "'http://"+srv.Endpoint()+"'", ", digest: 'jo:hunter2'", "", "  jobs:", "  tracing: {type: RDB}\n  jobs:").Replace(old)))
	require.NoError(t, err)
	reg, err := cfg.Open(t.Context())
	require.NoError(t, err)
	defer reg.Close()
	var log bytes.Buffer
	sched := core.New(reg, core.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), core.WithIP("127.0.0.1"))
	require.NoError(t, cfg.Bind(sched, nil))
	require.NoError(t, sched.Start(t.Context()))
	require.NoError(t, sched.Stop(t.Context()))
	require.Contains(t, log.String(), "application.yml: line 3: elasticjob.tracing: ")
}
