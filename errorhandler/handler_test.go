package errorhandler_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/errorhandler"
	"github.com/elasticron/elasticron/job/link"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("no such table")

var broken = core.JobFunc(func(context.Context, core.Shard) error { return errBroken })

var shard = core.Shard{
	Job: "orders", Item: 2, Total: 3, Instance: "10.0.0.1@-@web-1", Due: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), TaskID: "t", Attempt: 1,
}

func open(t *testing.T, name string, props map[string]string) errorhandler.Handler {
	t.Helper()
	h, err := errorhandler.Open(name, props)
	require.NoError(t, err)
	return h
}

func TestBuiltIn(t *testing.T) {
	for name, want := range map[string]error{"": errBroken, "LOG": errBroken, "log": errBroken, "THROW": errBroken, "IGNORE": nil, "STOP": errBroken} {
		require.Equal(t, want, errorhandler.Link(open(t, name, nil))(broken).Run(t.Context(), shard), name)
	}
	called := false
	h := errorhandler.Func(func(context.Context, errorhandler.Failure) error { called = true; return nil })
	fine := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	require.NoError(t, errorhandler.Link(h)(fine).Run(t.Context(), shard))
	require.False(t, called)
	panics := core.JobFunc(func(context.Context, core.Shard) error { panic("no") })
	require.EqualError(t, errorhandler.Link(open(t, "LOG", nil))(panics).Run(t.Context(), shard), "panic: no")
	_, err := errorhandler.Open("PAGER", nil)
	require.ErrorIs(t, err, core.ErrConfig)
	require.EqualError(t, err, `jobErrorHandlerType: "PAGER" is unknown (forgotten import?); there are: IGNORE, LOG, STOP, THROW, WEBHOOK`)
	require.Panics(t, func() { errorhandler.Register("LOG", nil) })
}

// STOP disables the job for all instances, with the reason.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		var schedulers []*core.Scheduler
		for _, name := range []string{"a", "b"} {
			reg := srv.Registry("shop")
			defer reg.Close()
			s := core.New(reg, core.WithLogger(nil), core.WithInstanceName(name), core.WithIP("127.0.0.1"))
			require.NoError(t, s.Add(errorhandler.Link(open(t, "STOP", nil))(broken), core.JobConfig{Name: "orders", Cron: "0 * * * * ?", Shards: 1}))
			require.NoError(t, s.Start(t.Context()))
			schedulers = append(schedulers, s)
		}
		<-time.After(90 * time.Second)
		for _, s := range schedulers {
			require.Contains(t, s.State().Jobs[0].Disabled, "item 0 failed at the fire of ")
			require.Contains(t, s.State().Jobs[0].Disabled, ": no such table")
			require.NoError(t, s.Stop(t.Context()))
		}
	})
}

// What the scheduler, a lost session or a person has ended has not failed by itself.
func TestAnEndedRunIsNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		cause   error
		failure bool
	}{
		"stopped":          {core.ErrStopped, false},
		"session lost":     {fmt.Errorf("the connection broke: %w", core.ErrSessionLost), false},
		"killed":           {&request.KilledError{By: "somebody"}, false},
		"its timeout":      {link.ErrTimeout, true},
		"the caller's own": {errors.New("enough"), true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		called := false
		h := errorhandler.Func(func(context.Context, errorhandler.Failure) error { called = true; return nil })
		err := errorhandler.Link(h)(core.JobFunc(func(ctx context.Context, _ core.Shard) error {
			cancel(c.cause)
			return ctx.Err()
		})).Run(ctx, shard)
		require.Equal(t, c.failure, called, name)
		if !c.failure {
			require.ErrorIs(t, err, context.Canceled, name)
		}
	}
}

// A deploy that ends a long run does not disable the job for everybody.
func TestStopIsNotCalledByAShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		begun := make(chan struct{}, 8)
		long := core.JobFunc(func(ctx context.Context, _ core.Shard) error {
			begun <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		start := func(name string, work core.Job) *core.Scheduler {
			reg := srv.Registry("shop")
			t.Cleanup(func() { _ = reg.Close() })
			s := core.New(reg, core.WithLogger(nil), core.WithInstanceName(name), core.WithIP("127.0.0.1"))
			require.NoError(t, s.Add(errorhandler.Link(open(t, "STOP", nil))(work), core.JobConfig{Name: "orders", Cron: "0 * * * * ?", Shards: 1}))
			require.NoError(t, s.Start(t.Context()))
			return s
		}
		old := start("old", long)
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, old.Stop(ctx))
		next := start("next", core.JobFunc(func(context.Context, core.Shard) error { begun <- struct{}{}; return nil }))
		<-begun
		require.Empty(t, next.State().Jobs[0].Disabled)
		require.NoError(t, next.Stop(t.Context()))
	})
}

// requests collects what a server gets.
type requests struct {
	mu     sync.Mutex
	bodies [][]byte
	sign   []string
	status int
}

func (r *requests) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies, r.sign = append(r.bodies, body), append(r.sign, req.Header.Get("X-Elasticron-Signature"))
	if r.status != 0 {
		w.WriteHeader(r.status)
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestWebhook(t *testing.T) {
	got := &requests{}
	t.Setenv("HOOK_URL", serve(t, got)+"/?token=hunter2")
	t.Setenv("HOOK_SECRET", "s3cret")
	h := open(t, "WEBHOOK", map[string]string{"webhook.urlEnv": "HOOK_URL", "webhook.secretEnv": "HOOK_SECRET"})
	require.Equal(t, errBroken, errorhandler.Link(h)(broken).Run(t.Context(), shard))
	require.Len(t, got.bodies, 1)
	var said map[string]any
	require.NoError(t, json.Unmarshal(got.bodies[0], &said))
	require.Equal(t, "orders", said["job"])
	require.InDelta(t, 2, said["item"], 0)
	require.Equal(t, "2026-01-02T03:04:05Z", said["due"])
	require.Equal(t, "no such table", said["error"])
	require.Equal(t, "job orders: item 2 of 3 failed\nfire: 2026-01-02T03:04:05Z\ninstance: 10.0.0.1@-@web-1\nerror: no such table", said["text"])
	mac := hmac.New(sha256.New, []byte("s3cret"))
	mac.Write(got.bodies[0])
	require.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), got.sign[0])
}

// A run whose context has ended is told all the same.
func TestWebhookAfterTheContext(t *testing.T) {
	got := &requests{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := open(t, "WEBHOOK", map[string]string{"webhook.url": serve(t, got)})
	require.Equal(t, errBroken, errorhandler.Link(h)(broken).Run(ctx, shard))
	require.Len(t, got.bodies, 1)
}

// A burst is cut off, and the next message says how many were left out.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		h := errorhandler.Notify("TEST", sender(func(text string) error { sent = append(sent, text); return nil }), 2)
		for range 10 {
			require.Equal(t, errBroken, errorhandler.Link(h)(broken).Run(t.Context(), shard))
		}
		require.Len(t, sent, 2)
		<-time.After(31 * time.Second)
		for range 2 {
			require.Equal(t, errBroken, errorhandler.Link(h)(broken).Run(t.Context(), shard))
		}
		require.Len(t, sent, 3)
		require.Contains(t, sent[2], "\n8 more failures were not sent since the last message")
		require.NotContains(t, sent[1], "more failures")
	})
}

type sender func(text string) error

func (s sender) Send(_ context.Context, _, text string, _ errorhandler.Failure) error { return s(text) }

// What could not be sent is told, without the address.
func TestNotSentIsTold(t *testing.T) {
	got := &requests{status: http.StatusForbidden}
	t.Setenv("HOOK_URL", serve(t, got)+"/?token=hunter2")
	h := open(t, "WEBHOOK", map[string]string{"webhook.urlEnv": "HOOK_URL"})
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	told := make(chan event.Warning, 100)
	sched := core.New(reg, core.WithLogger(nil), core.WithIP("127.0.0.1"), core.WithListener(func(e event.Event) {
		if w, ok := e.(event.Warning); ok && w.Err != nil {
			select {
			case told <- w:
			default:
			}
		}
	}))
	require.NoError(t, sched.Add(errorhandler.Link(h)(broken), core.JobConfig{Name: "orders", Cron: "* * * * * ?", Shards: 1}))
	require.NoError(t, sched.Start(t.Context()))
	w := <-told
	require.Equal(t, "the failure of a run could not be sent by WEBHOOK", w.Problem)
	require.EqualError(t, w.Err, "it answered 403 Forbidden")
	require.NoError(t, sched.Stop(t.Context()))
}

// Secrets come from files and the environment, and no error repeats one.
func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte("http://127.0.0.1:1/hunter2\n"), 0o600))
	open(t, "WEBHOOK", map[string]string{"webhook.urlFile": file})
	bad := filepath.Join(t.TempDir(), "bad")
	require.NoError(t, os.WriteFile(bad, []byte("hunter2\n"), 0o600))
	for _, c := range []struct {
		props map[string]string
		want  string
	}{
		{nil, "Props.webhook.urlEnv: is missing; give the name of the environment variable that holds it, or webhook.urlFile"},
		{map[string]string{"webhook.url": "hunter2"}, "Props.webhook.url: gives what is not the URL of a server; that is for example https://example.com/alerts"},
		{map[string]string{"webhook.urlFile": bad}, "Props.webhook.urlFile: gives what is not the URL of a server; that is for example https://example.com/alerts"},
		{map[string]string{"webhook.url": "http://h", "notify.limit": "many"}, "Props.notify.limit: is not a whole number from 0 on; write digits alone"},
		{map[string]string{"webhook.url": "http://h", "webhook.secret": "hunter2"}, "Props.webhook.secret: is a secret, which all who read the registry would see; put it in a file that webhook.secretFile names, or in an environment variable that webhook.secretEnv names"},
		{map[string]string{"webhook.urlEnv": "NOBODY_SETS_THIS"}, "Props.webhook.urlEnv: names what is empty or not set; put the secret there"},
		{map[string]string{"webhook.urlFile": file, "webhook.urlEnv": "X"}, "Props.webhook.urlFile: is given, and webhook.urlEnv too; leave one"},
		{map[string]string{"webhook.url": "http://h", "notify.limit": "0"}, "Props.notify.limit: is 0: nothing would be sent; give at least 1, or another handler"},
		{map[string]string{"webhook.url": "http://h", "webhook.readTimeoutMilliseconds": "5s"}, "Props.webhook.readTimeoutMilliseconds: is not a whole number of milliseconds from 1 to 86400000, and the run waits for its message; leave it out for 5000"},
		{map[string]string{"webhook.url": "http://h", "webhook.connectTimeoutMilliseconds": "0"}, "Props.webhook.connectTimeoutMilliseconds: is not a whole number of milliseconds from 1 to 86400000, and the run waits for its message; leave it out for 3000"},
		{map[string]string{"webhook.url": "http://h", "webhook.readTimeoutMilliseconds": "-1"}, "Props.webhook.readTimeoutMilliseconds: is not a whole number of milliseconds from 1 to 86400000, and the run waits for its message; leave it out for 5000"},
		{map[string]string{"webhook.url": "http://h", "webhook.readTimeoutMilliseconds": "99999999999"}, "Props.webhook.readTimeoutMilliseconds: is not a whole number of milliseconds from 1 to 86400000, and the run waits for its message; leave it out for 5000"},
	} {
		_, err := errorhandler.Open("WEBHOOK", c.props)
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, core.ErrConfig)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
