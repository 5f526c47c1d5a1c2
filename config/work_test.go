package config

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/job"
	"github.com/elasticron/elasticron/registry/memory"
)

// A file alone runs a script and a request; a program adds its functions and its kinds.
func TestAFileAloneRunsJobs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it runs sh")
	}
	asked := make(chan string, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Method + " " + r.Header.Get("Shardingcontext"):
		default:
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	t.Setenv("WORK_DIR", dir)
	t.Setenv("WORK_URL", srv.URL)
	c, err := Parse("jobs.yaml", []byte(`registry: {url: 'memory://a/b'}
jobs:
  touch:
    cron: '* * * * * ?'
    shardingTotalCount: 1
    type: script
    timeout: 10s
    props: {script.command.line: sh -c 'echo "$$ELASTICRON_ITEM $$ELASTICRON_JOB" >out', script.dir: '${WORK_DIR}'}
  ask:
    cron: '* * * * * ?'
    shardingTotalCount: 1
    type: HTTP
    props: {http.uri: '${WORK_URL}', http.method: post}
  mine: {cron: '* * * * * ?', shardingTotalCount: 1, type: Mine}
  simple: {cron: '* * * * * ?', shardingTotalCount: 1, type: SIMPLE}
`))
	require.NoError(t, err)
	ran := make(chan string, 100)
	tell := func(what string) core.Job {
		return core.JobFunc(func(context.Context, core.Shard) error {
			select {
			case ran <- what:
			default:
			}
			return nil
		})
	}
	reg := memory.NewServer(memory.Config{}).Registry("b")
	defer reg.Close()
	sched := core.New(reg, core.WithLogger(nil), core.WithIP("127.0.0.1"))
	require.NoError(t, c.Bind(sched, map[string]core.Job{"simple": tell("simple")}, job.Kinds{
		"mine": job.KindFunc(func(cfg core.JobConfig) (core.Job, error) { return tell("kind " + cfg.Name), nil }),
	}))
	require.NoError(t, sched.Start(t.Context()))
	require.Contains(t, <-asked, `POST {"jobName":"ask"`)
	seen := map[string]bool{}
	for len(seen) < 2 {
		seen[<-ran] = true
	}
	require.True(t, seen["simple"] && seen["kind mine"], seen)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "out"))
		return err == nil && string(text) == "0 touch\n"
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, sched.Stop(t.Context()))
}

// attempts, timeout and the error handler stand around the job, in the order of package link.
func TestWorkIsChained(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte(oneJob+"shardingTotalCount: 1\n    attempts: 2\n    timeout: 20ms\n    jobErrorHandlerType: IGNORE\n"))
	require.NoError(t, err)
	calls := 0
	w, err := c.Work("hello", core.JobFunc(func(ctx context.Context, _ core.Shard) error {
		calls++
		<-ctx.Done()
		return ctx.Err()
	}))
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context(), core.Shard{Attempt: 1}), "IGNORE makes a success of it")
	require.Equal(t, 2, calls)
	_, err = c.Work("nobody", nil)
	require.EqualError(t, err, `config: there is no job "nobody"`)
}

// A Dataflow of the program takes its settings from the file.
func TestDataflowOfAFile(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte(oneJob+"shardingTotalCount: 1\n    type: dataflow\n    props: {streaming.process: true, dataflow.fetch.count: 2}\n"))
	require.NoError(t, err)
	var batches [][]int
	flow := &job.Dataflow[int]{
		Fetch: func(_ context.Context, _ core.Shard, from string, count int) ([]int, string, error) {
			return make([]int, min(count, 5-len(from))), from + strings.Repeat("x", min(count, 5-len(from))), nil
		},
		Process: func(_ context.Context, _ core.Shard, data []int) error { batches = append(batches, data); return nil },
	}
	w, err := c.Work("hello", flow)
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context(), core.Shard{Attempt: 1}))
	require.Equal(t, [][]int{{0, 0}, {0, 0}, {0}}, batches)
	require.False(t, flow.Streaming, "the program's own is left as it is")
}

func TestBadWork(t *testing.T) {
	function := map[string]core.Job{"hello": core.JobFunc(func(context.Context, core.Shard) error { return errors.New("x") })}
	flow := map[string]core.Job{"hello": &job.Dataflow[int]{}}
	for _, c := range []struct {
		settings  string
		functions map[string]core.Job
		want      string
	}{
		{"type: SCRIPT", nil, `f.yaml:4:3: jobs.hello.props."script.command.line": is missing; write for example script.command.line: scripts/reindex.sh`},
		{"type: SCRIPT\n    props: {script.command.line: 'a \"b'}", nil, `f.yaml:8:34: jobs.hello.props."script.command.line": has a " that is not closed; close it`},
		{"type: HTTP\n    props: {http.uri: hunter2, http.method: GET}", nil, `f.yaml:8:23: jobs.hello.props."http.uri": is not the URL of a server; write for example http://127.0.0.1:8080/path`},
		{"type: HTTP\n    props: {http.uri: 'http://jo:hunter2@h/', http.method: GET}", nil, `f.yaml:8:13: jobs.hello.props."http.uri": holds a password, which all who read the registry would see; put it in a file that http.uriFile names, or in`},
		{"type: HTTP\n    props: {http.uriEnv: NOBODY_SETS_THIS, http.method: GET}", nil, `f.yaml:8:26: jobs.hello.props."http.uriEnv": names what is empty or not set; put the secret there`},
		{"type: HTTP\n    props: {http.uri: 'http://h', http.uriEnv: WORK_URL, http.method: GET}", nil, `f.yaml:8:23: jobs.hello.props."http.uri": is a secret`},
		{"type: HTTP\n    props: {http.uri: 'http://h'}", nil, `f.yaml:8:12: jobs.hello.props."http.method": is missing; write for example http.method: POST`},
		{"type: HTTP\n    props: {http.uri: 'http://h', http.method: GET, http.read.timeout.milliseconds: 5s}", nil, `f.yaml:8:85: jobs.hello.props."http.read.timeout.milliseconds": is not a whole number from 0 on; write digits alone`},
		{"type: COBOL", nil, `f.yaml:7:11: jobs.hello.type: "COBOL" is not a kind of job; there are: HTTP, SCRIPT`},
		{"type: SCRIPT", function, "f.yaml:7:11: jobs.hello.type: the program has a function for this job too; remove type, or the function"},
		{"type: DATAFLOW", nil, "f.yaml:4:3: jobs.hello: the program has no function for this job"},
		{"type: DATAFLOW", function, "f.yaml:7:11: jobs.hello.type: the program's function for this job is no job.Dataflow; give it one, or remove type"},
		{"type: DATAFLOW\n    props: {streaming.process: maybe}", flow, `f.yaml:8:32: jobs.hello.props."streaming.process": is neither true nor false`},
		{"jobErrorHandlerType: PAGER", function, `f.yaml:7:26: jobs.hello.jobErrorHandlerType: "PAGER" is unknown (forgotten import?); there are: `},
		{"jobErrorHandlerType: STPO", function, `f.yaml:7:26: jobs.hello.jobErrorHandlerType: "STPO" is unknown; did you mean STOP?`},
		{"type: SCRIT", nil, `f.yaml:7:11: jobs.hello.type: "SCRIT" is not a kind of job; did you mean SCRIPT?`},
		{"type: DATAFLO", nil, `f.yaml:7:11: jobs.hello.type: "DATAFLO" is not a kind of job; did you mean DATAFLOW?`},
		{"jobErrorHandlerType: WEBHOOK\n    props: {webhook.secret: hunter2}", function, `f.yaml:8:13: jobs.hello.props."webhook.secret": is a secret, which all`},
		{"jobErrorHandlerType: WEBHOOK\n    props: {webhook.secretEnv: NOBODY_SETS_THIS}", function, `f.yaml:8:12: jobs.hello.props."webhook.urlEnv": is missing`},
		{"jobErrorHandlerType: WEBHOOK\n    props: {webhook.url: 'http://h', notify.limits: 3}", function, `f.yaml:8:38: jobs.hello.props."notify.limits": is not a setting of an error handler; did you mean notify.limit?`},
		{"jobErrorHandlerType: wecom\n    props:\n      wechat.webhook: hunter2", function, `f.yaml:9:7: jobs.hello.props."wechat.webhook": is a secret, which all`},
		{"attempts: 0", function, "f.yaml:7:15: jobs.hello.attempts: is less than 1; write how often a run is tried in all, such as 3"},
		{"timeout: 5", function, "f.yaml:7:14: jobs.hello.timeout: has no unit; write for example 30s"},
	} {
		cfg, err := Parse("f.yaml", []byte(oneJob+"shardingTotalCount: 1\n    "+c.settings+"\n"))
		if err == nil {
			reg := memory.NewServer(memory.Config{}).Registry("b")
			err = cfg.Bind(core.New(reg), c.functions)
			require.NoError(t, reg.Close())
		}
		require.Error(t, err, c.settings)
		require.True(t, strings.HasPrefix(err.Error(), c.want), "%s\n%s", c.want, err)
		require.NotContains(t, err.Error(), "hunter2")
		require.ErrorIs(t, err, core.ErrConfig)
	}
}

// An error of the program's own kind, or function, that names no field is told too.
func TestErrorsOfTheProgram(t *testing.T) {
	errNone := errors.New("there is no database")
	cfg, err := Parse("f.yaml", []byte(oneJob+"shardingTotalCount: 1\n    type: MINE\n"))
	require.NoError(t, err)
	kinds := job.Kinds{"MINE": job.KindFunc(func(core.JobConfig) (core.Job, error) { return nil, errNone })}
	_, err = cfg.Work("hello", nil, kinds)
	require.EqualError(t, err, "f.yaml:7:11: jobs.hello.type: there is no database")
	require.ErrorIs(t, err, errNone)
	reg := memory.NewServer(memory.Config{}).Registry("b")
	defer reg.Close()
	require.ErrorIs(t, cfg.Bind(core.New(reg), nil, kinds), errNone)
	cfg, err = Parse("f.yaml", []byte(oneJob+"shardingTotalCount: 1\n"))
	require.NoError(t, err)
	_, err = cfg.Work("hello", configurable{core.JobFunc(nil), errNone})
	require.EqualError(t, err, "f.yaml:4:3: jobs.hello: there is no database")
}

// configurable refuses every configuration.
type configurable struct {
	core.Job

	err error
}

func (c configurable) Configured(core.JobConfig) (core.Job, error) { return nil, c.err }

// STOP, from the file: the job disables itself.
func TestStopByFile(t *testing.T) {
	c, err := Parse("jobs.yaml", []byte("registry: {url: 'memory://a/b'}\njobs: {hello: {cron: '* * * * * ?', shardingTotalCount: 1, jobErrorHandlerType: STOP}}\n"))
	require.NoError(t, err)
	reg := memory.NewServer(memory.Config{}).Registry("b")
	defer reg.Close()
	changed := make(chan struct{}, 100)
	sched := core.New(reg, core.WithLogger(nil), core.WithIP("127.0.0.1"), core.WithListener(func(e event.Event) {
		if _, ok := e.(event.ConfigChanged); ok {
			changed <- struct{}{}
		}
	}))
	require.NoError(t, c.Bind(sched, map[string]core.Job{"hello": core.JobFunc(func(context.Context, core.Shard) error { return errors.New("broken") })}))
	require.NoError(t, sched.Start(t.Context()))
	<-changed
	require.Contains(t, sched.State().Jobs[0].Disabled, "broken")
	require.NoError(t, sched.Stop(t.Context()))
}
