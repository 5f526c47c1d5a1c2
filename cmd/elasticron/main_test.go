package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/errorhandler"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
	_ "github.com/elasticron/elasticron/registry/memory" // registers memory://
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
	require.Equal(t, output+" exists; give another -o, or remove it\n", errs)
	code, out, errs = elasticron(t, "convert", "-secrets", secrets, file)
	require.Equal(t, exitFailed, code)
	require.Equal(t, secret+" exists; give another -secrets, or remove it\n", errs)
	require.Empty(t, out)
	code, _, errs = elasticron(t, "convert", "-secrets", secrets, "-o", output, file)
	require.Equal(t, exitFailed, code)
	require.Equal(t, secret+" exists; give another -secrets, or remove it\n"+output+" exists; give another -o, or remove it\n", errs)

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

// What has failed has written nothing, and can be given again.
func TestConvertCanBeRepeated(t *testing.T) {
	dir := t.TempDir()
	file, output, secrets := write(t, dir, "application.yml", old), write(t, dir, "jobs.yaml", ""), filepath.Join(dir, "new", "secrets")
	code, _, errs := elasticron(t, "convert", "-o", output, "-secrets", secrets, file)
	require.Equal(t, exitFailed, code)
	require.Equal(t, output+" exists; give another -o, or remove it\n", errs)
	require.NoFileExists(t, filepath.Join(secrets, "registry-password"))
	code, _, errs = elasticron(t, "convert", "-o", filepath.Join(output, "below"), "-secrets", secrets, file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "not a directory")
	require.NoDirExists(t, filepath.Join(dir, "new"), "its folders are gone too")
	var broken brokenWriter
	require.Equal(t, exitFailed, run(t.Context(), []string{"convert", "-secrets", secrets, file}, broken, io.Discard))
	require.NoDirExists(t, filepath.Join(dir, "new"))

	require.NoError(t, os.Remove(output))
	code, _, errs = elasticron(t, "convert", "-o", output, "-secrets", secrets, file)
	require.Equal(t, exitOK, code, errs)

	// Two secrets of one name, and one that is given twice.
	props := func(list string) string {
		return write(t, dir, "two.yml", strings.Replace(old, "{script.command.line: a.sh}", "{script.command.line: a.sh, "+list+"}", 1))
	}
	code, out, errs := elasticron(t, "convert", "-secrets", filepath.Join(dir, "two"), props("a/token: one, a_token: two"))
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
	require.Contains(t, errs, `line 11: elasticjob.jobs.report.props.a_token: goes into the file `+filepath.Join(dir, "two", "report-a_token")+
		`, where another secret goes (line 11: elasticjob.jobs.report.props."a/token"); convert without -secrets, or rename the job or the prop`)
	require.NoDirExists(t, filepath.Join(dir, "two"))
	code, _, errs = elasticron(t, "convert", props("a/token: one, a_token: two"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, `goes into the environment variable REPORT_A_TOKEN, where another secret goes`)
	code, _, errs = elasticron(t, "convert", "-secrets", filepath.Join(dir, "two"), props("a/token: one, a_token: one"))
	require.Equal(t, exitOK, code, errs)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Flags stand where one likes, and "-" is the standard input.
func TestArguments(t *testing.T) {
	dir := t.TempDir()
	file, output := write(t, dir, "application.yml", old), filepath.Join(dir, "jobs.yaml")
	code, out, errs := elasticron(t, "convert", file, "-o", output)
	require.Equal(t, exitOK, code, errs)
	require.Empty(t, out)
	require.FileExists(t, output)
	code, _, errs = elasticron(t, "convert", "-registry", "nothing://h/shop", "job1", "-o", filepath.Join(dir, "f"), "job2")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "unknown scheme")
	code, _, errs = elasticron(t, "convert", file, "-p")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "flag provided but not defined: -p")
	code, _, errs = elasticron(t, "check", "--", "-o")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "open -o: no such file")

	defer func(before io.Reader) { standardInput = before }(standardInput)
	standardInput = strings.NewReader(old)
	code, out, errs = elasticron(t, "convert", "-")
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, strings.Replace(made, "application.yml", "stdin", 1), out)
	standardInput = strings.NewReader(out)
	code, out, errs = elasticron(t, "check", "-own", "PAGER", "-")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "report  this machine's  ")
	standardInput = strings.NewReader("x")
	code, _, errs = elasticron(t, "check", "-")
	require.Equal(t, exitFailed, code)
	require.Equal(t, "stdin:1:1: is one value, want a mapping; write the blocks registry and jobs\n", errs)
}

func TestCheckAndSchema(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("REGISTRY_PASSWORD", "hunter2")
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
	t.Setenv("PW", "hunter2")
	code, out, errs = elasticron(t, "check", write(t, dir, "application.yml", strings.Replace(old, "hunter2", "${PW}", 1)))
	require.Equal(t, exitOK, code, errs)
	require.NotContains(t, out+errs, "hunter2")
	code, out, errs = elasticron(t, "check", write(t, dir, "lost.yml", strings.NewReplacer("jo:hunter2", "jo:${PW}", "  jobs:", "  tracing: {type: RDB}\n  jobs:").Replace(old)))
	require.Equal(t, exitLost, code)
	require.Contains(t, errs, "lost: line 3: elasticjob.tracing: ")
	require.Contains(t, out, `jobs ["report"]`)

	code, _, errs = elasticron(t, "check", write(t, dir, "jobs.yaml", "registry: {url: 'etdc://h/shop?a=b'}\njobs: {}\n"))
	require.Equal(t, exitOK, code, "a program may import an adapter of that name")
	require.Contains(t, errs, "note: line 1: registry.url: the scheme etdc is none of Elasticron's own (embedded, etcd, memory, postgres, zookeeper); did you mean etcd?")
	require.Contains(t, errs, "note: jobs: there is none; write jobs: and below it the name of a job with its settings\n")

	code, out, _ = elasticron(t, "schema")
	require.Equal(t, exitOK, code)
	require.Equal(t, string(config.Schema()), out)
}

// A sound file is shown with the next fires of each job.
func TestCheckShowsFires(t *testing.T) {
	cfg, err := config.Check("jobs.yaml", []byte(`registry: {url: 'etcd://h/shop'}
defaults: {shardingTotalCount: 1, timeZone: Europe/Berlin}
jobs:
  nightly: {cron: 0 30 2 * * ?}
  once: {cron: 0 0 0 1 1 ? 2099, timeZone: UTC, disabled: true}
  quick: {cron: '@every 1500ms', timeZone: GMT+8}
  behind: {cron: '@delay 10s'}
  asked: {cron: '@requests'}
`))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printFires(&out, cfg, time.Date(2026, time.March, 28, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, `registry etcd://h/shop, jobs ["nightly", "once", "quick", "behind", "asked"]

job              zone           next fires
nightly          Europe/Berlin  Sat 2026-03-28 02:30:00 +01:00
                                Sun 2026-03-29 03:00:00 +02:00
                                Mon 2026-03-30 02:30:00 +02:00
once (disabled)  UTC            Thu 2099-01-01 00:00:00 +00:00
                                and never again
quick            GMT+8          Sat 2026-03-28 08:00:01.5 +08:00
                                Sat 2026-03-28 08:00:03 +08:00
                                Sat 2026-03-28 08:00:04.5 +08:00
behind           Europe/Berlin  10s after the end of each run
asked            Europe/Berlin  when somebody asks
`, out.String())
	require.Error(t, printFires(brokenWriter{}, cfg, time.Now()))
}

// A file is refused for its url as the adapter would refuse it, and for nothing else.
func TestURLsAreCheckedAsTheAdaptersDo(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check := func(address string) string {
		_, err := config.Check("jobs.yaml", []byte("registry: {url: '"+address+"'}\njobs: {}\n"))
		if err == nil {
			return ""
		}
		require.Contains(t, err.Error(), "jobs.yaml:1:12: registry.url: ")
		return err.Error()
	}
	for address, want := range map[string]string{
		"etcd://h/shop?sesion-timeout=3s":          `has the setting "sesion-timeout", which etcd does not know; did you mean session-timeout?`,
		"zookeeper://h/shop?max-ops=3":             `which zookeeper does not know; there are: ca, cert, chroot,`,
		"postgres://h/db/shop?dial-timeout=3":      "has the setting dial-timeout=3, which is no positive duration; write dial-timeout=6s",
		"etcd://h/shop?dial-timeout=-1s":           "which is no positive duration; write dial-timeout=6s",
		"etcd://h/shop?session-timeout=1ms":        "has the setting session-timeout=1ms, which is shorter than 500ms; write session-timeout=6s",
		"zookeeper://h/shop?session-timeout=24h":   "has the setting session-timeout=24h, which is longer than 10m; write session-timeout=6s",
		"embedded:///?namespace=a&session-timeout": "has the setting session-timeout=, which is no positive duration; write session-timeout=6s",
		"postgres://h/db/shop?max-conns=-3":        "has the setting max-conns=-3, which is no whole number from 2 on; write max-conns=5",
		"postgres://h/db/shop?max-conns=1":         "which is no whole number from 2 on",
		"etcd://h/shop?max-ops=0":                  "which is no whole number from 1 on; write max-ops=40",
		"etcd://h/shop?max-bytes=1MiB":             "which is no whole number from 1 on; write max-bytes=1048576",
		"etcd://h/shop?tls=maybe":                  "has the setting tls=maybe, which is neither true nor false; write tls=true",
		"zookeeper://h/shop?chroot=apps":           "has the setting chroot=apps, which is no path from the root; write chroot=/apps",
		"zookeeper://h/shop?chroot=/zookeeper/a":   "which belongs to ZooKeeper itself; write chroot=/apps",
		"etcd://h/shop?tls=true&tls=true":          "has the setting tls 2 times",
		"etcd://h":                                 "has no namespace",
		"postgres://h/db":                          "has no namespace; name one, as in postgres://host:5432/database/shop",
		"etcd://h/shop" + " ":                      "has space at its ends; remove it",
		"etcd：//h/shop":                            "holds the full-width character '：'; write ':'",
		"etcd://h：2379/shop":                       "holds the full-width character '：'; write ':'",
		"memory://a":                               "has no namespace; name one, as in memory://name/shop",
		"memory://a/shop?b=c":                      "has settings, and memory knows none; write memory://name/shop",
		"etcd:///shop":                             "has no host; write scheme://host:port/shop",
		"etcd://h/elasticron/a":                    "has the namespace elasticron, which is reserved",
		"etcd://h/a//b":                            "has a namespace that cannot be a path of the registry",
		"etcd://h/shop#a":                          "has a fragment",
		"embedded:///d?username=jo":                `"username", which embedded does not know`,
		"embedded:///d":                            "has no namespace; write embedded:///folder?namespace=shop",
		"embedded://d?namespace=shop":              "names a folder that is not written from the root",
	} {
		require.Contains(t, check(address), want)
		_, err := registry.Open(ended, address)
		require.ErrorIs(t, err, registry.ErrInvalid, address)
	}
	for _, address := range []string{
		"etcd://h/shop?session-timeout=500ms&max-ops=1&max-bytes=1&tls=1", "zookeeper://h/team/shop/?session-timeout=10m&chroot=/", "zookeeper://h/elasticron2?chroot=/zookeeper2/",
		"postgres://h/db/team/shop?max-conns=2&dial-timeout=1ns&tls=F",
	} {
		require.Empty(t, check(address))
		_, err := registry.Open(ended, address)
		require.Error(t, err, "its context has ended")
		require.NotErrorIs(t, err, registry.ErrInvalid, address)
	}
	require.Empty(t, check("embedded:///d?namespace=shop&session-timeout=1s"))
	require.Empty(t, check("memory://here/shop"))
}

// Every handler that this program has is known to package config, so that one who mistypes it is told.
func TestHandlersAreKnownToTheFile(t *testing.T) {
	_, err := errorhandler.Open("nobody", nil)
	_, known, found := strings.Cut(err.Error(), "there are: ")
	require.True(t, found, err)
	names := strings.Split(known, ", ")
	require.Subset(t, names, []string{"EMAIL", "FEISHU", "LARK", "LOG", "SLACK", "STOP", "WECOM", "WEBHOOK"})
	for _, name := range names {
		typo := name[:len(name)-1] + "_" + name[len(name)-1:] + "x"
		_, err := config.Check("jobs.yaml", []byte("registry: {url: 'etcd://h/shop'}\njobs: {a: {cron: '@daily', shardingTotalCount: 1, jobErrorHandlerType: "+typo+"}}\n"))
		require.ErrorContains(t, err, "did you mean "+name+"?")
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"nothing"}, {"convert"}, {"convert", "a", "b"}, {"convert", "-x"}, {"check"}, {"check", "-x"}, {"check", "a", "b"}, {"schema", "a"}, {"schema", "-x"}} {
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
