package config

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/memory"    // registers memory://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

// every sets each field of core.JobConfig to something else than its default.
const every = `
registry:
  url: memory://every/shop
jobs:
  hello:
    elasticJobClass: com.acme.HelloJob
    cron: 0/5 * * * * ?
    timeZone: Europe/Berlin
    gap: skip
    overlap: both
    shardingTotalCount: 3
    shardingItemParameters: 0=Beijing,1=Shanghai
    jobParameter: 007
    monitorExecution: false
    showRunningAfter: never
    beginAhead: 500ms
    misfire: false
    misfireCap: 5
    misfireWindow: 0s
    maxTimeDiff: 90s
    reconcileInterval: never
    jobShardingStrategyType: STICKY
    description: says hello
    label: "no"
    props:
      http.uri: http://127.0.0.1/
      retries: 3
    disabled: true
    overwrite: true
    staticSharding: true
    concurrency: 2
  orders: {cron: "@every 90s", shardingTotalCount: 2, shardingItemParameters: {0: north, 1: south}, reconcileInterval: 1h, misfire: all, misfireWindow: 30m, failover: true}
`

func TestEveryFieldOfAJob(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte(every))
	require.NoError(t, err)
	want := []core.JobConfig{
		{
			Name: "hello", Class: "com.acme.HelloJob", Cron: "0/5 * * * * ?", TimeZone: "Europe/Berlin", Gap: "skip", Overlap: "both",
			Shards: 3, ItemParams: map[int]string{0: "Beijing", 1: "Shanghai"}, JobParam: "007", Monitor: core.MonitorOff, ShowRunningAfter: -time.Second, Misfire: core.MisfireSkip,
			BeginAhead: 500 * time.Millisecond,
			MisfireCap: 5, MisfireWindow: -time.Second,
			MaxTimeDiff: 90 * time.Second, ReconcileInterval: -time.Minute, Strategy: "STICKY", Description: "says hello", Label: "no",
			Props: map[string]string{"http.uri": "http://127.0.0.1/", "retries": "3"}, Disabled: true, Overwrite: true, StaticSharding: true, Concurrency: 2,
		},
		{Name: "orders", Cron: "@every 90s", Shards: 2, ItemParams: map[int]string{0: "north", 1: "south"}, ReconcileInterval: time.Hour, Misfire: core.MisfireAll, MisfireWindow: 30 * time.Minute, Failover: true},
	}
	require.Empty(t, cmp.Diff(want, c.Jobs))
	job, ok := c.Job("orders")
	require.True(t, ok)
	require.Empty(t, cmp.Diff(want[1], job))
	_, ok = c.Job("nobody")
	require.False(t, ok)

	// A field that is added to core.JobConfig is added to the table and to the file above.
	v := reflect.ValueOf(c.Jobs[0])
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		other := reflect.ValueOf(c.Jobs[1]).Field(i) // has what goes with monitoring alone
		require.False(t, v.Field(i).IsZero() && other.IsZero(), "%s is not read", name)
		_, known := fieldOf(name)
		require.True(t, known || name == "Name", "%s has no key", name)
	}
	require.Len(t, fields, v.NumField()-1)
}

func TestDocumentationHasEveryKey(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, f := range fields {
		require.Regexp(t, `(?m)^//\t`+f.key+` +`+f.name+` `, string(doc))
	}
}

func TestDefaultsAreThoseOfCore(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte("registry: {url: memory://defaults/shop}\njobs: {hello: {cron: '@daily', shardingTotalCount: 1}}\n"))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]core.JobConfig{{Name: "hello", Cron: "@daily", Shards: 1}}, c.Jobs))
}

func TestJobsKeepTheirOrder(t *testing.T) {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "  job%d: {cron: '@daily', shardingTotalCount: 1}\n", 99-i)
	}
	b.WriteString("registry: {url: memory://order/shop}\n")
	c, err := Parse("jobs.yaml", []byte(b.String()))
	require.NoError(t, err)
	for i, j := range c.Jobs {
		require.Equal(t, fmt.Sprintf("job%d", 99-i), j.Name)
	}
}

func TestTheRegistryBlockBecomesAURL(t *testing.T) {
	t.Setenv("CONFIG_HOST", "10.0.0.1")
	t.Setenv("CONFIG_EMPTY", "")
	dir, err := filepath.Abs("deploy")
	require.NoError(t, err)
	escaped := strings.ReplaceAll(dir, "/", "%2F")
	for block, want := range map[string]string{
		`url: etcd://127.0.0.1:2379/shop`:                                                 "etcd://127.0.0.1:2379/shop",
		`url: zookeeper://a:2181,b:2181/team/shop?session-timeout=6s`:                     "zookeeper://a:2181,b:2181/team/shop?session-timeout=6s",
		`url: "${CONFIG_URL:-etcd://${CONFIG_HOST}/x}"`:                                   "",
		`url: ${CONFIG_URL:-etcd://127.0.0.1:2379/x}`:                                     "etcd://127.0.0.1:2379/x",
		`url: etcd://${CONFIG_HOST}:2379/${CONFIG_EMPTY:-shop}`:                           "etcd://10.0.0.1:2379/shop",
		`{url: 'etcd://h/shop', username: jo, passwordFile: pw}`:                          "etcd://h/shop?password-file=" + escaped + "%2Fpw&username=jo",
		`{url: 'etcd://h/shop?max-ops=99', username: jo, passwordEnv: PW}`:                "etcd://h/shop?max-ops=99&password-env=PW&username=jo",
		`{url: 'etcd://h/shop', username: a$$b}`:                                          "etcd://h/shop?username=a%24b",
		`{url: 'etcd://h/shop', username: '${CONFIG_EMPTY}'}`:                             "etcd://h/shop",
		`{url: 'etcd://h/shop', tls: {ca: /etc/ca.pem}}`:                                  "etcd://h/shop?ca=%2Fetc%2Fca.pem&tls=true",
		`{url: 'etcd://h/shop', tls: {enabled: true}}`:                                    "etcd://h/shop?tls=true",
		`{url: 'etcd://h/shop', tls: {enabled: "${CONFIG_TLS:-false}", ca: /etc/ca}}`:     "etcd://h/shop",
		`{url: 'etcd://h/shop', tls: {ca: '${CONFIG_CA:-}', cert: '', key: ''}}`:          "etcd://h/shop",
		`{url: 'etcd://h/shop', tls: {ca: ../ca.pem, cert: /c.pem, key: "/k.pem"}}`:       "etcd://h/shop?ca=" + strings.TrimSuffix(escaped, "deploy") + "ca.pem&cert=%2Fc.pem&key=%2Fk.pem&tls=true",
		`{url: 'etcd://h/shop', username: jo, passwordFile: /run/pw, tls: {ca: /ca.pem}}`: "etcd://h/shop?ca=%2Fca.pem&password-file=%2Frun%2Fpw&tls=true&username=jo",
	} {
		c, err := Parse(filepath.Join("deploy", "jobs.yaml"), []byte("registry:\n  "+block+"\n"))
		if want == "" {
			require.ErrorContains(t, err, "within the default of CONFIG_URL", block)
			continue
		}
		require.NoError(t, err, block)
		got, err := c.Registry.URL()
		require.NoError(t, err, block)
		require.Equal(t, want, got, block)
		require.Equal(t, want, c.Registry.String())
	}
}

// A variable works in every value of a job, whatever its type, and quotes make no difference.
func TestVariablesInJobs(t *testing.T) {
	t.Setenv("CONFIG_SHARDS", "3")
	t.Setenv("CONFIG_CITY", "深圳")
	t.Setenv("CONFIG_NEVER", "never")
	c, err := Parse("jobs.yaml", []byte(`registry: {url: 'memory://a/b'}
jobs:
  hello:
    cron: ${CONFIG_CRON:-0/5 * * * * ?}
    timeZone: "${CONFIG_ZONE:-Asia/Shanghai}"
    shardingTotalCount: ${CONFIG_SHARDS}
    shardingItemParameters: {0: '${CONFIG_CITY}', 1: b}
    jobParameter: ${CONFIG_CITY} costs $$5
    monitorExecution: "${CONFIG_MONITOR:-false}"
    maxTimeDiff: ${CONFIG_DIFF:-90s}
    reconcileInterval: ${CONFIG_NEVER}
    concurrency: '${CONFIG_SHARDS}'
    props: {a: "${CONFIG_CITY}", b: '${CONFIG_EMPTY:-}'}
  other: {cron: '@daily', shardingTotalCount: 1, shardingItemParameters: '0=${CONFIG_CITY}'}
`))
	require.NoError(t, err)
	require.Equal(t, core.JobConfig{
		Name: "hello", Cron: "0/5 * * * * ?", TimeZone: "Asia/Shanghai", Shards: 3, ItemParams: map[int]string{0: "深圳", 1: "b"},
		JobParam: "深圳 costs $5", Monitor: core.MonitorOff, MaxTimeDiff: 90 * time.Second, ReconcileInterval: -time.Minute, Concurrency: 3,
		Props: map[string]string{"a": "深圳", "b": ""},
	}, c.Jobs[0])
	require.Equal(t, map[int]string{0: "深圳"}, c.Jobs[1].ItemParams)
	_, err = Parse("f.yaml", []byte(oneJob+"shardingTotalCount: 1\n    jobParameter: costs $5\n"))
	require.EqualError(t, err, "f.yaml:7:19: jobs.hello.jobParameter: has a lone $; write ${NAME} for an environment variable, or $$ for a dollar")
}

// Every string of a file may be a variable: what uses every key reads the same with one in every
// value.
func TestVariablesInEveryValue(t *testing.T) {
	const more = `
  username: jo
  passwordFile: /run/pw
  tls: {enabled: true, ca: /ca.pem, cert: /c.pem, key: /k.pem}
  retry: {base: 2s, max: 4s, retries: 5}
`
	file := strings.Replace(every, "\n  url: memory://every/shop\n", "\n  url: memory://every/shop"+more, 1)
	file = strings.Replace(file, "    concurrency: 2\n", "    concurrency: 2\n    type: SCRIPT\n    timeout: 5s\n    attempts: 4\n    jobErrorHandlerType: IGNORE\n", 1)
	want, err := Parse("jobs.yaml", []byte(file))
	require.NoError(t, err)
	root, problem := document([]byte(file))
	require.Nil(t, problem)
	replaced := 0
	var replace func(n *yaml.Node)
	replace = func(n *yaml.Node) {
		for i := 1; i < len(n.Content); i += 2 {
			if v := n.Content[i]; v.Kind == yaml.ScalarNode {
				v.Value, v.Tag, v.Style = "${CONFIG_NOBODY_SETS:-"+v.Value+"}", "!!str", 0
				replaced++
			} else {
				replace(v)
			}
		}
	}
	replace(root)
	require.Equal(t, 3+4+3+len(fields)-1+2+len(works)+7, replaced, "a key is missing above")
	text, err := yaml.Dump(root)
	require.NoError(t, err)
	got, err := Parse("jobs.yaml", text)
	require.NoError(t, err, string(text))
	require.Equal(t, want.Jobs, got.Jobs)
	require.Equal(t, want.Registry, got.Registry)
	require.Equal(t, want.works, got.works)
}

// The settings that the block becomes are known to the adapters.
func TestBothAdaptersKnowTheSettings(t *testing.T) {
	t.Setenv("CONFIG_PASSWORD", "hunter2")
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("hunter2"), 0o600))
	for _, scheme := range []string{"etcd", "zookeeper"} {
		for block, want := range map[string]string{
			"passwordEnv: CONFIG_PASSWORD\n  tls: {enabled: true}":                         "127.0.0.1:1",
			"passwordFile: " + file:                                                        "127.0.0.1:1",
			"passwordEnv: CONFIG_PASSWORD\n  tls: {ca: " + file + "}":                      file,
			"passwordEnv: CONFIG_PASSWORD\n  tls: {cert: " + file + ", key: " + file + "}": file,
		} {
			c, err := Parse("jobs.yaml", []byte("registry:\n  url: "+scheme+"://127.0.0.1:1/shop?dial-timeout=200ms\n  username: jo\n  "+block+"\n"))
			require.NoError(t, err, block)
			_, err = c.Open(t.Context())
			require.ErrorContains(t, err, "jobs.yaml:2:3: registry.url: "+scheme, block)
			require.ErrorContains(t, err, want, block)
			require.NotContains(t, err.Error(), "unknown setting")
			require.NotContains(t, err.Error(), "hunter2")
		}
	}
}

// Finding C 21: a file or variable that is missing is told where it is named.
func TestMissingFilesAndVariables(t *testing.T) {
	dir, err := filepath.Abs("no")
	require.NoError(t, err)
	for block, want := range map[string]string{
		"passwordFile: no/password":             "4:3: registry.passwordFile: the file " + dir + "/password cannot be read: no such file or directory",
		"tls: {ca: no/ca.pem}":                  "4:9: registry.tls.ca: the file " + dir + "/ca.pem cannot be read: no such file or directory",
		"tls: {cert: config.go, key: no/k.pem}": "4:26: registry.tls.key: the file " + dir + "/k.pem cannot be read: no such file or directory",
		"passwordEnv: CONFIG_NOBODY_SETS":       "4:3: registry.passwordEnv: the environment variable CONFIG_NOBODY_SETS is not set; put the password in it",
		"tls: {cert: no/c.pem, key: doc.go}":    "4:9: registry.tls.cert: the file " + dir + "/c.pem cannot be read: no such file or directory",
		"tls: {enabled: true, ca: no/ca.pem}":   "4:24: registry.tls.ca: the file " + dir + "/ca.pem cannot be read: no such file or directory",
	} {
		c, err := Parse("jobs.yaml", []byte("registry:\n  url: etcd://127.0.0.1:1/shop\n  username: jo\n  "+block+"\n"))
		require.NoError(t, err, block)
		_, err = c.Open(t.Context())
		require.EqualError(t, err, "jobs.yaml:"+want, block)
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	require.NoError(t, os.WriteFile(file, []byte(every), 0o600))
	c, err := Load(file)
	require.NoError(t, err)
	require.Len(t, c.Jobs, 2)

	_, err = Load("") // Finding C 21.
	require.EqualError(t, err, `config: the name of the file is empty; give one, such as "jobs.yaml"`)
	_, err = Load(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "none.yaml")
	_, err = Load(t.TempDir())
	require.ErrorContains(t, err, "directory")

	require.NoError(t, os.WriteFile(file, append([]byte(every), strings.Repeat("#", maxSize)...), 0o600))
	_, err = Load(file)
	require.EqualError(t, err, file+": is larger than 1024 KiB; it holds something else, or should be several files")
}

func TestOpen(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte("registry:\n  url: memory://open/shop\n"))
	require.NoError(t, err)
	reg, err := c.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, "shop", reg.Namespace())
	require.NoError(t, reg.Close())

	c, err = Parse("jobs.yaml", []byte("registry:\n  url: consul://h/shop\n"))
	require.NoError(t, err)
	_, err = c.Open(t.Context())
	require.EqualError(t, err, `jobs.yaml:2:3: registry.url: registry: unknown scheme "consul" (forgotten import?); registered: [etcd flaky memory zookeeper]`)

	_, err = (&Config{}).Open(t.Context())
	require.ErrorContains(t, err, "registry.url: is missing")
	_, err = (&Config{Registry: Registry{Address: "consul://h/shop"}}).Open(t.Context())
	require.ErrorContains(t, err, "unknown scheme")
}

func TestBind(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte(every))
	require.NoError(t, err)
	reg, err := c.Open(t.Context())
	require.NoError(t, err)
	defer reg.Close()
	work := core.JobFunc(nil)

	s := core.New(reg)
	require.NoError(t, c.Bind(s, map[string]core.Job{"hello": work, "orders": work}))
	require.Len(t, s.State().Jobs, 2)
	err = c.Bind(s, map[string]core.Job{"hello": work, "orders": work})
	require.EqualError(t, err, "jobs.yaml:5:3: jobs.hello: a job of this name was added already; give each its own")
	require.ErrorIs(t, err, core.ErrConfig)
	require.NoError(t, s.Stop(t.Context()))

	s = core.New(reg)
	err = c.Bind(s, map[string]core.Job{"helo": work, "orders": work})
	require.EqualError(t, err, strings.Join([]string{
		`jobs.yaml: jobs.helo: is missing: the program has a function of this name; add the job (the file has "hello", "orders")`,
		`jobs.yaml:5:3: jobs.hello: the program has no function for this job; it has them for "helo", "orders"`,
	}, "\n"))
	require.Empty(t, s.State().Jobs)
	require.NoError(t, s.Stop(t.Context()))

	require.ErrorIs(t, c.Bind(s, map[string]core.Job{"hello": work, "orders": work}), core.ErrStopped)
	require.EqualError(t, (&Config{}).Bind(s, nil), "jobs: there is none; write jobs: and below it the name of a job with its settings") // Finding C 21.
}

func TestPrintingShowsNoSettings(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte(every))
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("configured", "config", c, "registry", c.Registry)
	shown := log.String() + fmt.Sprintf("%v %+v %#v %s %q %v", c, c, c, c, c, c.Registry)
	require.Contains(t, shown, "memory://every/shop")
	require.Contains(t, shown, "orders")
	require.NotContains(t, shown, "127.0.0.1")

	bad := Registry{Address: "etcd://jo:hunter2@h/shop"}
	shown = fmt.Sprintf("%v %+v %#v %s", bad, bad, bad, &Config{Registry: bad}) + bad.LogValue().String()
	require.NotContains(t, shown, "hunter2")
	require.Contains(t, shown, "password")
}

func TestAProblemLeadsToItsCause(t *testing.T) {
	_, err := Parse("jobs.yaml", []byte("registry: {url: memory://a/b}\njobs: {hello: {cron: '* * * * *', shardingTotalCount: 1}}\n"))
	var all *Error
	require.ErrorAs(t, err, &all)
	want := []*FieldError{{Job: "hello", File: "jobs.yaml", Line: 2, Column: 22, Field: "jobs.hello.cron"}}
	require.Empty(t, cmp.Diff(want, all.Problems, cmpopts.IgnoreFields(FieldError{}, "Problem", "Err")))
	require.ErrorIs(t, err, core.ErrConfig)
}

// flaky is a registry in memory that can be reached at the third attempt.
var flaky atomic.Int32

func init() {
	registry.Register("flaky", func(ctx context.Context, _ *url.URL) (registry.Registry, error) {
		if flaky.Add(1) < 3 {
			return nil, fmt.Errorf("flaky: %w: not yet", registry.ErrUnavailable)
		}
		return registry.Open(ctx, "memory://flaky/shop")
	})
}

func TestOpenRetriesAsTheFileSays(t *testing.T) {
	for block, attempts := range map[string]int32{"": 1, "retry: {base: 1ms, retries: 1}": 2, "retry: {base: 1ms, max: 2ms, retries: 5}": 3} {
		flaky.Store(0)
		c, err := Parse("jobs.yaml", []byte("registry:\n  url: flaky://h/shop\n  "+block+"\n"))
		require.NoError(t, err)
		reg, err := c.Open(t.Context())
		require.Equal(t, attempts, flaky.Load(), block)
		if attempts < 3 {
			require.ErrorIs(t, err, registry.ErrUnavailable)
			require.ErrorContains(t, err, "jobs.yaml:2:3: registry.url: flaky: ")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "shop", reg.Namespace())
		require.NoError(t, reg.Close())
	}
}
