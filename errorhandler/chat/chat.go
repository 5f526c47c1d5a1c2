package chat

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/errorhandler"
)

func init() {
	register(slack, "SLACK")
	register(dingTalk, "DINGTALK")
	register(weCom, "WECHAT", "WECOM")
	register(feishu, "FEISHU", "LARK")
}

func register(open func(*errorhandler.Settings) errorhandler.Sender, names ...string) {
	for _, name := range names {
		errorhandler.Register(name, func(s *errorhandler.Settings) errorhandler.Handler {
			return errorhandler.Notify(name, open(s), s.Limit())
		})
	}
}

// A chat posts what message makes of a text.
type chat struct {
	post errorhandler.Poster
	// message makes the value to send, and may change the address.
	message func(text string, to *url.URL) any
	// refused reads the answer where the service says there that it refused.
	refused func(answer []byte) error
}

func open(s *errorhandler.Settings, prefix string) errorhandler.Poster {
	return errorhandler.Posting(s, prefix, s.NeededSecret(prefix+".webhook"))
}

// Send implements errorhandler.Sender.
func (c chat) Send(ctx context.Context, _, text string, _ errorhandler.Failure) error {
	to, err := url.Parse(c.post.URL)
	if err != nil {
		return errors.New("the address is no URL")
	}
	body, err := json.Marshal(c.message(text, to))
	if err != nil {
		return err
	}
	c.post.URL = to.String()
	answer, err := c.post.Post(ctx, body, nil)
	if err != nil || c.refused == nil {
		return err
	}
	return c.refused(answer)
}

type content struct {
	Content string `json:"content"`
}

type message struct {
	Kind string  `json:"msgtype"`
	Text content `json:"text"`
}

func slack(s *errorhandler.Settings) errorhandler.Sender {
	return chat{post: open(s, "slack"), message: func(text string, _ *url.URL) any {
		return map[string]string{"text": slackEscapes.Replace(text)}
	}}
}

var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func weCom(s *errorhandler.Settings) errorhandler.Sender {
	return chat{post: open(s, "wechat"), message: func(text string, _ *url.URL) any {
		return message{Kind: "text", Text: content{Content: fit(text, 2048)}}
	}, refused: refusal("errcode", "errmsg")}
}

func dingTalk(s *errorhandler.Settings) errorhandler.Sender {
	secret, keyword := s.Secret("dingtalk.secret"), s.Text("dingtalk.keyword", "")
	return chat{post: open(s, "dingtalk"), message: func(text string, to *url.URL) any {
		if keyword != "" {
			text = keyword + ": " + text
		}
		if secret != "" {
			at := strconv.FormatInt(time.Now().UnixMilli(), 10)
			query := to.Query()
			query.Set("timestamp", at)
			query.Set("sign", signature([]byte(secret), at+"\n"+secret))
			to.RawQuery = query.Encode()
		}
		return message{Kind: "text", Text: content{Content: text}}
	}, refused: refusal("errcode", "errmsg")}
}

func feishu(s *errorhandler.Settings) errorhandler.Sender {
	secret := s.Secret("feishu.secret")
	type signed struct {
		At   string            `json:"timestamp,omitempty"`
		Sign string            `json:"sign,omitempty"`
		Kind string            `json:"msg_type"` //nolint:tagliatelle // Feishu's spelling
		Text map[string]string `json:"content"`
	}
	return chat{post: open(s, "feishu"), message: func(text string, _ *url.URL) any {
		m := signed{Kind: "text", Text: map[string]string{"text": text}}
		if secret != "" {
			m.At = strconv.FormatInt(time.Now().Unix(), 10)
			m.Sign = signature([]byte(m.At+"\n"+secret), "") // the text is the key, and nothing is signed
		}
		return m
	}, refused: refusal("code", "msg")}
}

func signature(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// refusal reads an answer that has a code, 0 for success, and says why not.
func refusal(code, why string) func([]byte) error {
	return func(answer []byte) error {
		var said map[string]any
		if err := json.Unmarshal(answer, &said); err != nil {
			return fmt.Errorf("its answer is not understood: %w", err)
		}
		if n, ok := said[code].(float64); !ok || n != 0 {
			return fmt.Errorf("it refused: %v %.200v", said[code], said[why])
		}
		return nil
	}
}

// fit keeps a text to a number of bytes.
func fit(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
