package errorhandler

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A Poster posts JSON to one address, which it never repeats in an error: the address of a
// webhook is a secret.
type Poster struct {
	// URL is the address.
	URL string
	// Connect and Read bound the connection and the rest, and are above 0: a run waits for its
	// message.
	Connect, Read time.Duration
}

// Post sends a value, with headers. It returns what was answered, at most 64 KiB.
func (p Poster) Post(ctx context.Context, body []byte, header map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Connect+p.Read, fmt.Errorf("no answer within %v", p.Connect+p.Read))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is no URL")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: p.Connect}).DialContext, DisableKeepAlives: true,
	}}
	res, err := client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if res.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("it answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	}
	return answer, err
}

// Posting reads the settings of a Poster, whose names begin with prefix.
func Posting(s *Settings, prefix, address string) Poster {
	if u, err := url.Parse(address); address != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
		s.Wrong(s.holder(prefix), "gives what is not the URL of a server; that is for example https://example.com/alerts")
	}
	return Poster{
		URL:     address,
		Connect: s.Timeout(prefix+".connectTimeoutMilliseconds", 3*time.Second),
		Read:    s.Timeout(prefix+".readTimeoutMilliseconds", 5*time.Second),
	}
}

// hook is the webhook for programs.
type hook struct {
	post   Poster
	secret string
}

func webhook(s *Settings) Sender {
	address := s.Text("webhook.url", "")
	if address == "" {
		address = s.NeededSecret("webhook.url")
	}
	return hook{post: Posting(s, "webhook", address), secret: s.Secret("webhook.secret")}
}

// notice is what a webhook gets.
type notice struct {
	Job      string    `json:"job"`
	Item     int       `json:"item"`
	Total    int       `json:"total"`
	Due      time.Time `json:"due"`
	Instance string    `json:"instance"`
	TaskID   string    `json:"taskId"`
	Attempt  int       `json:"attempt"`
	At       time.Time `json:"at"`
	Error    string    `json:"error"`
	Text     string    `json:"text"`
}

// Send implements Sender.
func (h hook) Send(ctx context.Context, _, text string, f Failure) error {
	s := f.Shard
	body, err := json.Marshal(notice{
		Job: s.Job, Item: s.Item, Total: s.Total, Due: s.Due, Instance: s.Instance, TaskID: s.TaskID, Attempt: s.Attempt,
		At: f.At, Error: f.Err.Error(), Text: text,
	})
	if err != nil {
		return err
	}
	header := map[string]string{}
	if h.secret != "" {
		mac := hmac.New(sha256.New, []byte(h.secret))
		mac.Write(body)
		header["X-Elasticron-Signature"] = "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	_, err = h.post.Post(ctx, body, header)
	return err
}
