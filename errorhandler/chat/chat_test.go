package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/errorhandler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var failure = errorhandler.Failure{
	Shard: core.Shard{Job: "orders", Item: 2, Total: 3, Instance: "i", Due: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, Err: errors.New("a < b"),
}

// sent opens a handler on a server that answers, and returns the request of one failure.
func sent(t *testing.T, name, prefix, answer string, props map[string]string) (query url.Values, body string, err error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		query, body = r.URL.Query(), string(text)
		_, _ = io.WriteString(w, answer)
	}))
	defer srv.Close()
	t.Setenv("CHAT_HOOK", srv.URL+"/send?access_token=hunter2")
	all := map[string]string{prefix + ".webhookEnv": "CHAT_HOOK"}
	maps.Copy(all, props)
	h, err := errorhandler.Open(name, all)
	require.NoError(t, err)
	require.Equal(t, failure.Err, h.Handle(context.Background(), failure))
	probe := &catch{open: map[string]func(*errorhandler.Settings) errorhandler.Sender{
		"slack": slack, "dingtalk": dingTalk, "wechat": weCom, "feishu": feishu,
	}[prefix]}
	return query, body, probe.send(t, all)
}

// catch keeps the sender that is made of settings, since a handler does not tell its error.
type catch struct {
	open   func(*errorhandler.Settings) errorhandler.Sender
	sender errorhandler.Sender
}

var probes atomic.Int64

func (c *catch) send(t *testing.T, props map[string]string) error {
	t.Helper()
	name := fmt.Sprintf("PROBE %d", probes.Add(1))
	errorhandler.Register(name, func(s *errorhandler.Settings) errorhandler.Handler {
		c.sender = c.open(s)
		return errorhandler.Notify(name, c.sender, 1)
	})
	_, err := errorhandler.Open(name, props)
	require.NoError(t, err)
	return c.sender.Send(t.Context(), "", failure.Text(), failure)
}

const text = `job orders: item 2 of 3 failed\nfire: 2026-01-02T03:04:05Z\ninstance: i\nerror: a \u003c b`

func TestMessages(t *testing.T) {
	for _, c := range []struct{ name, prefix, answer, want string }{
		{"SLACK", "slack", "ok", `{"text":"` + strings.Replace(text, `\u003c`, `\u0026lt;`, 1) + `"}`},
		{"WECHAT", "wechat", `{"errcode":0}`, `{"msgtype":"text","text":{"content":"` + text + `"}}`},
		{"WECOM", "wechat", `{"errcode":0}`, `{"msgtype":"text","text":{"content":"` + text + `"}}`},
		{"DINGTALK", "dingtalk", `{"errcode":0}`, `{"msgtype":"text","text":{"content":"` + text + `"}}`},
		{"FEISHU", "feishu", `{"code":0}`, `{"msg_type":"text","content":{"text":"` + text + `"}}`},
		{"LARK", "feishu", `{"code":0}`, `{"msg_type":"text","content":{"text":"` + text + `"}}`},
	} {
		query, body, err := sent(t, c.name, c.prefix, c.answer, nil)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, body, c.name)
		require.Equal(t, "hunter2", query.Get("access_token"))
	}
}

// A service that answers 200 and refuses is an error.
func TestRefused(t *testing.T) {
	for name, c := range map[string][2]string{
		"DINGTALK": {"dingtalk", `{"errcode":310000,"errmsg":"sign not match"}`},
		"WECHAT":   {"wechat", `{"errcode":310000,"errmsg":"sign not match"}`},
		"FEISHU":   {"feishu", `{"code":310000,"msg":"sign not match"}`},
	} {
		_, _, err := sent(t, name, c[0], c[1], nil)
		require.EqualError(t, err, "it refused: 310000 sign not match", name)
		_, _, err = sent(t, name, c[0], "<html>", nil)
		require.ErrorContains(t, err, "its answer is not understood")
	}
}

// The signatures are those of known secrets at a known time, made with openssl.
func TestSignatures(t *testing.T) {
	at := "1700000000000"
	require.Equal(t, "jcUpW0QmtKduN03n4JqQ0PBosVjqnM8gU7fIIvsDmCM=", signature([]byte("SECabc"), at+"\nSECabc"))
	require.Equal(t, "VIS10b0EBvzzSdFnuk4tznEmK5wHaruvf/WnViv2yR4=", signature([]byte("1700000000\nabc"), ""))
	t.Setenv("CHAT_SECRET", "SECabc")
	query, body, err := sent(t, "DINGTALK", "dingtalk", `{"errcode":0}`, map[string]string{"dingtalk.secretEnv": "CHAT_SECRET", "dingtalk.keyword": "alert"})
	require.NoError(t, err)
	require.Equal(t, signature([]byte("SECabc"), query.Get("timestamp")+"\nSECabc"), query.Get("sign"))
	require.Contains(t, body, `"alert: job orders`)
	_, body, err = sent(t, "FEISHU", "feishu", `{"code":0}`, map[string]string{"feishu.secretEnv": "CHAT_SECRET"})
	require.NoError(t, err)
	require.Regexp(t, `^\{"timestamp":"\d{10}","sign":"[^"]{44}","msg_type"`, body)
}

func TestFit(t *testing.T) {
	require.Equal(t, "abc", fit("abc", 3))
	require.Equal(t, "a…", fit("a深圳", 6))
}

func TestSecretsAreNeeded(t *testing.T) {
	for name, prefix := range map[string]string{"SLACK": "slack", "DINGTALK": "dingtalk", "WECOM": "wechat", "LARK": "feishu"} {
		_, err := errorhandler.Open(name, nil)
		require.ErrorContains(t, err, "Props."+prefix+".webhookEnv: is missing")
		_, err = errorhandler.Open(name, map[string]string{prefix + ".webhook": "https://h/hunter2"})
		require.ErrorContains(t, err, prefix+".webhook: is a secret")
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// A run waits for its message, so that nothing may be without a bound.
func TestTimeoutsAreBounds(t *testing.T) {
	t.Setenv("CHAT_HOOK", "https://h/hunter2")
	for name, prefix := range map[string]string{"SLACK": "slack", "DINGTALK": "dingtalk", "WECOM": "wechat", "LARK": "feishu"} {
		for _, key := range []string{prefix + ".connectTimeoutMilliseconds", prefix + ".readTimeoutMilliseconds"} {
			for value, fine := range map[string]bool{"": true, "1": true, "0": false, "-1": false} {
				_, err := errorhandler.Open(name, map[string]string{prefix + ".webhookEnv": "CHAT_HOOK", key: value})
				if fine {
					require.NoError(t, err, key)
					continue
				}
				require.ErrorIs(t, err, core.ErrConfig)
				require.ErrorContains(t, err, "Props."+key+": is not a whole number of milliseconds from 1 to ")
			}
		}
	}
}
