package job

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
)

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestHTTPRequest(t *testing.T) {
	type seen struct{ method, path, kind, own, body, sharding string }
	var got seen
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("X-Own"), string(body), r.Header.Get("Shardingcontext")}
		_, _ = io.WriteString(w, "done")
	})
	s := core.Shard{Job: "hello", Item: 1, Total: 2, Param: "北京\r\nX: y", TaskID: "t"}
	var status int
	var answer string
	c := &HTTP{
		Method: "POST", URL: url + "/a?b=c", Body: `{"x":1}`, ContentType: "application/json", Header: http.Header{"x-own": {"yes"}},
		Response: func(_ core.Shard, code int, body []byte) { status, answer = code, string(body) },
	}
	require.NoError(t, c.Validate())
	require.NoError(t, c.Run(t.Context(), s))
	require.Equal(t, seen{"POST", "/a?b=c", "application/json", "yes", `{"x":1}`, headerOf(s)}, got)
	require.Equal(t, 200, status)
	require.Equal(t, "done", answer)
	var back shardingContext
	require.NoError(t, json.Unmarshal([]byte(got.sharding), &back))
	require.Equal(t, s.Param, back.ShardingParameter)

	// A body is none of GET.
	require.NoError(t, (&HTTP{URL: url, Body: "x"}).Run(t.Context(), s))
	require.Equal(t, seen{"GET", "/", "", "", "", headerOf(s)}, got)
}

// The header has ElasticJob's spelling on the wire.
func TestHTTPSpelling(t *testing.T) {
	req, err := (&HTTP{URL: "http://127.0.0.1"}).request(t.Context(), core.Shard{})
	require.NoError(t, err)
	require.Contains(t, req.Header, "shardingContext")
}

func TestHTTPStatus(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/bad":
			http.Error(w, "no such table", http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	require.NoError(t, (&HTTP{URL: url + "/ok"}).Run(t.Context(), core.Shard{}))
	require.NoError(t, (&HTTP{URL: url + "/moved"}).Run(t.Context(), core.Shard{}))
	err := (&HTTP{URL: url + "/bad"}).Run(t.Context(), core.Shard{})
	var e *HTTPError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 400, e.Status)
	require.EqualError(t, err, "http: 400 Bad Request: no such table")
	require.EqualError(t, (&HTTP{URL: url + "/x"}).Run(t.Context(), core.Shard{}), "http: 500 Internal Server Error")
}

// What is read of an answer is bounded.
func TestHTTPAnswerIsBounded(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 1000 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	})
	var got int
	c := &HTTP{URL: url, MaxResponse: 1500, Response: func(_ core.Shard, _ int, body []byte) { got = len(body) }}
	require.NoError(t, c.Run(t.Context(), core.Shard{}))
	require.Equal(t, 1500, got)
}

// Who does not answer, or stops in the middle, is waited for no longer than configured; the
// end of the run's context ends the request at once. No error repeats path and query.
func TestHTTPTimeouts(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, handle)
			c := &HTTP{URL: url + "/?token=secret", ConnectTimeout: 50 * time.Millisecond, ReadTimeout: 150 * time.Millisecond}
			err := c.Run(t.Context(), core.Shard{})
			require.EqualError(t, err, "http: GET "+strings.TrimPrefix(url, "http://")+": no answer within 200ms")
			c = &HTTP{URL: url + "/?token=secret", ConnectTimeout: -1, ReadTimeout: 150 * time.Millisecond}
			err = c.Run(t.Context(), core.Shard{})
			require.EqualError(t, err, "http: GET "+strings.TrimPrefix(url, "http://")+": no answer within 150ms")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(core.ErrStopped)
			require.ErrorIs(t, (&HTTP{URL: url}).Run(ctx, core.Shard{}), core.ErrStopped)
		})
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	err := (&HTTP{URL: srv.URL + "/?token=secret"}).Run(t.Context(), core.Shard{})
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), "secret")
}

// No bound is what it says, for the connection and for the answer.
func TestHTTPWithoutTimeouts(t *testing.T) {
	for _, c := range []struct {
		connect, read time.Duration
		// connects is how long making the connection takes, ends when the request has ended.
		connects, ends time.Duration
		want           string
	}{
		{0, 0, time.Second, 8 * time.Second, "no answer within 8s"},
		{-1, 0, time.Hour, time.Hour + 5*time.Second, "no answer within 5s"},
		{-1, time.Second, time.Hour, time.Hour + time.Second, "no answer within 1s"},
		{0, -1, time.Second, 100 * time.Hour, "the run was killed"},
		{-1, -1, time.Hour, 100 * time.Hour, "the run was killed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Hour, errors.New("the run was killed"))
			defer cancel()
			began := time.Now()
			err := (&HTTP{
				URL: "http://h.invalid", ConnectTimeout: c.connect, ReadTimeout: c.read,
				Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					trace := httptrace.ContextClientTrace(r.Context())
					if trace == nil {
						trace = &httptrace.ClientTrace{GetConn: func(string) {}, GotConn: func(httptrace.GotConnInfo) {}}
					}
					trace.GetConn("h.invalid:80")
					<-time.After(c.connects)
					trace.GotConn(httptrace.GotConnInfo{})
					<-r.Context().Done()
					return nil, r.Context().Err()
				})},
			}).Run(ctx, core.Shard{})
			require.EqualError(t, err, "http: GET h.invalid: "+c.want)
			require.Equal(t, c.ends, time.Since(began))
		})
	}
	// The job's own client has the bounds of its connection from it.
	for connect, want := range map[time.Duration]time.Duration{0: 3 * time.Second, -1: 0, time.Minute: time.Minute} {
		c := &HTTP{URL: serve(t, func(http.ResponseWriter, *http.Request) {}), ConnectTimeout: connect, ReadTimeout: -1}
		require.NoError(t, c.Run(t.Context(), core.Shard{}))
		require.Equal(t, want, c.client.Transport.(*http.Transport).TLSHandshakeTimeout)
	}
}

func TestHTTPValidate(t *testing.T) {
	for _, c := range []*HTTP{
		{}, {URL: "hunter2"}, {URL: "ftp://h/hunter2"}, {URL: "http:///hunter2"}, {URL: "http://h", Method: "FETCH"}, {URL: "http://h", MaxResponse: -1},
	} {
		err := c.Validate()
		require.ErrorIs(t, err, core.ErrConfig)
		require.NotContains(t, err.Error(), "hunter2")
		require.Error(t, c.Run(t.Context(), core.Shard{}))
	}
}

// Another client is used as it is.
func TestHTTPClient(t *testing.T) {
	called := false
	c := &HTTP{URL: "http://h.invalid", Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		called = true
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	})}}
	require.NoError(t, c.Run(t.Context(), core.Shard{}))
	require.True(t, called)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
