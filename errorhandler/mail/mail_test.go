package mail

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/errorhandler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server keeps what it gets. It has neither TLS nor a login.
type server struct {
	mu    sync.Mutex
	from  string
	to    []string
	mails []string
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) { return s, nil }
func (s *server) Reset()                                      {}
func (s *server) Logout() error                               { return nil }

func (s *server) Mail(from string, _ *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = from
	return nil
}

func (s *server) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = append(s.to, to)
	return nil
}

func (s *server) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, string(text))
	return err
}

func TestMail(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := &server{}
	srv := smtp.NewServer(got)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	defer func() {
		require.NoError(t, srv.Close())
		<-done
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	h, err := errorhandler.Open("EMAIL", map[string]string{
		"email.host": "127.0.0.1", "email.port": port, "email.useSsl": "false", "email.from": "jobs@example.org",
		"email.to": "a@example.org, b@example.org", "email.bcc": "c@example.org", "email.subject": "深圳",
	})
	require.NoError(t, err)
	failed := errors.New("no such table")
	s := core.Shard{Job: "orders", Item: 2, Total: 3, Instance: "i", Due: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	require.Equal(t, failed, h.Handle(context.Background(), errorhandler.Failure{Shard: s, Err: failed}))
	require.Equal(t, "jobs@example.org", got.from)
	require.Equal(t, []string{"a@example.org", "b@example.org", "c@example.org"}, got.to)
	require.Len(t, got.mails, 1)
	require.Contains(t, got.mails[0], "job orders: item 2 of 3 failed")
	require.Contains(t, got.mails[0], "error: no such table")
	require.Contains(t, got.mails[0], "Subject: =?UTF-8?q?=E6=B7=B1=E5=9C=B3?=")
	require.NotContains(t, got.mails[0], "c@example.org")
}

func TestSettings(t *testing.T) {
	_, err := errorhandler.Open("EMAIL", nil)
	for _, key := range []string{"host", "port", "from", "to"} {
		require.ErrorContains(t, err, "Props.email."+key+": is missing")
	}
	props := map[string]string{"email.host": "h", "email.port": "25", "email.from": "not an address", "email.to": "a@example.org"}
	_, err = errorhandler.Open("EMAIL", props)
	require.EqualError(t, err, "Props.email.from: holds what is not a mail address; write for example ops@example.org, with commas between several")
	_, err = errorhandler.Open("EMAIL", map[string]string{"email.host": "h", "email.port": "99999", "email.from": "a@example.org", "email.to": "a@example.org，b@example.org"})
	require.EqualError(t, err, "Props.email.port: is not a port; write a number from 1 to 65535\n"+
		"Props.email.to: holds what is not a mail address; write for example ops@example.org, with commas between several")
	props["email.from"], props["email.username"] = "a@example.org", "jo"
	_, err = errorhandler.Open("EMAIL", props)
	require.ErrorContains(t, err, "Props.email.passwordEnv: is missing")
	props["email.password"] = "hunter2"
	_, err = errorhandler.Open("EMAIL", props)
	require.ErrorContains(t, err, "Props.email.password: is a secret")
	require.NotContains(t, err.Error(), "hunter2")
	require.Equal(t, 1, strings.Count(err.Error(), "Props."))
	for value, want := range map[string]string{"0": "is not a whole number of milliseconds from 1 to ", "-1": "is not a whole number of milliseconds from 1 to ", "1": ""} {
		_, err = errorhandler.Open("EMAIL", map[string]string{
			"email.host": "h", "email.port": "25", "email.from": "a@example.org", "email.to": "a@example.org", "email.timeoutMilliseconds": value,
		})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "Props.email.timeoutMilliseconds: "+want)
		require.NotContains(t, err.Error(), "\n", "one error for one mistake")
	}
}
