package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/field"
)

// contextHeader is spelled as ElasticJob spells it.
const contextHeader = "shardingContext"

// HTTP makes a request for each item. It fails with an *HTTPError when the status is 400 or
// above, which ElasticJob only logs. Proxies and authorities are those of the usual
// environment: HTTP_PROXY, HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR.
type HTTP struct {
	// Method is the request's. "" is GET.
	Method string
	// URL is http or https.
	URL string
	// Body is sent with POST, PUT, PATCH and DELETE.
	Body string
	// ContentType is that of Body. "" leaves the header out.
	ContentType string
	// Header are more headers.
	Header http.Header
	// ConnectTimeout bounds making the connection. 0 is 3 s, negative is no bound.
	ConnectTimeout time.Duration
	// ReadTimeout bounds the rest, to the last byte of the answer; what connecting did not need
	// is added. ElasticJob's bounds each read of some bytes by itself, so that an answer which
	// trickles may take for ever there. 0 is 5 s, negative is no bound. The end of the run's
	// context ends the request in any case.
	ReadTimeout time.Duration
	// MaxResponse bounds what is read of the answer, in bytes. 0 is 64 KiB.
	MaxResponse int
	// Response gets each answer, as far as it was read. It may be nil.
	Response func(s core.Shard, status int, body []byte)
	// Client makes the requests in place of a client of the job's own, which makes a new
	// connection for each. ConnectTimeout is then that client's matter.
	Client *http.Client

	once   sync.Once
	client *http.Client
}

// An HTTPError is an answer with a status of 400 or above.
type HTTPError struct {
	// Status is that of the answer.
	Status int
	// Body is the answer, as far as it was read.
	Body []byte
}

func (e *HTTPError) Error() string {
	text := fmt.Sprintf("http: %d %s", e.Status, http.StatusText(e.Status))
	if line := lastLine(e.Body); line != "" {
		text += ": " + line
	}
	return text
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace,
}

// Validate reports what is wrong, as *core.ConfigError. It does not repeat the URL, which may
// hold a secret.
func (c *HTTP) Validate() error {
	var errs []error
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		errs = append(errs, field.Errorf("URL", "is not the URL of a server; write for example http://127.0.0.1:8080/path"))
	}
	if c.Method != "" && !slices.Contains(methods, c.Method) {
		errs = append(errs, field.Errorf("Method", "%.20q is not a method; write one of %s", c.Method, strings.Join(methods, ", ")))
	}
	if c.MaxResponse < 0 {
		errs = append(errs, field.Errorf("MaxResponse", "%d is negative; leave it out for 64 KiB", c.MaxResponse))
	}
	return errors.Join(errs...)
}

// Run implements core.Job.
func (c *HTTP) Run(ctx context.Context, s core.Shard) error {
	if err := c.Validate(); err != nil {
		return err
	}
	connect, read := cmp.Or(c.ConnectTimeout, 3*time.Second), cmp.Or(c.ReadTimeout, 5*time.Second)
	c.once.Do(func() { c.client = cmp.Or(c.Client, ownClient(max(connect, 0))) })
	ctx, cancel := bounded(ctx, connect, read)
	defer cancel()
	req, err := c.request(ctx, s)
	if err != nil {
		return err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return c.failed(ctx, req, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(cmp.Or(c.MaxResponse, 64<<10))))
	if c.Response != nil {
		c.Response(s, res.StatusCode, body)
	}
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		return &HTTPError{Status: res.StatusCode, Body: body}
	case err != nil:
		return c.failed(ctx, req, err)
	}
	return nil
}

// bounded is the context of a request. Where the connection has no bound, that of the answer
// counts while there is one; where the answer has none, connecting is the dialer's to bound.
func bounded(ctx context.Context, connect, read time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case read < 0:
		return ctx, func() {}
	case connect >= 0:
		return context.WithTimeoutCause(ctx, connect+read, noAnswer(connect+read))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(read, func() { cancel(noAnswer(read)) })
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { timer.Stop() },
		GotConn: func(httptrace.GotConnInfo) { timer.Reset(read) },
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

func noAnswer(bound time.Duration) error { return fmt.Errorf("no answer within %v", bound) }

func (c *HTTP) request(ctx context.Context, s core.Shard) (*http.Request, error) {
	method := cmp.Or(c.Method, http.MethodGet)
	var body io.Reader
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		if c.Body != "" {
			body = strings.NewReader(c.Body)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL, body)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	for name, values := range c.Header {
		req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if c.ContentType != "" {
		req.Header.Set("Content-Type", c.ContentType)
	}
	req.Header[contextHeader] = []string{headerOf(s)}
	return req, nil
}

// failed says what happened and to whom, without the path and the query, which may hold a secret.
func (c *HTTP) failed(ctx context.Context, req *http.Request, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("http: %s %s: %w", req.Method, req.URL.Host, err)
}

// ownClient keeps no connection, so that nothing is left behind by a job. 0 is no bound.
func ownClient(connect time.Duration) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout: connect,
		DisableKeepAlives:   true,
		ForceAttemptHTTP2:   true,
	}}
}

var _ core.Job = (*HTTP)(nil)
