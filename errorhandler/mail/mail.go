package mail

import (
	"context"
	"fmt"
	"net/mail"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/elasticron/elasticron/errorhandler"
)

func init() {
	errorhandler.Register("EMAIL", func(s *errorhandler.Settings) errorhandler.Handler {
		return errorhandler.Notify("EMAIL", open(s), s.Limit())
	})
}

// A letterbox sends mail by one server.
type letterbox struct {
	host          string
	options       []gomail.Option
	timeout       time.Duration
	from, subject string
	to, cc, bcc   []string
}

func open(s *errorhandler.Settings) *letterbox {
	b := &letterbox{
		host: s.Needed("email.host"), from: s.Needed("email.from"), to: list(s.Needed("email.to")),
		cc: list(s.Text("email.cc", "")), bcc: list(s.Text("email.bcc", "")),
		subject: s.Text("email.subject", "ElasticJob error message"),
		timeout: s.Timeout("email.timeoutMilliseconds", 10*time.Second),
	}
	text := s.Needed("email.port")
	port, err := strconv.Atoi(text)
	if text != "" && (err != nil || port < 1 || port > 65535) {
		s.Wrong("email.port", "is not a port; write a number from 1 to 65535")
	}
	b.options = []gomail.Option{gomail.WithTimeout(b.timeout), gomail.WithPort(port)}
	if s.Bool("email.useSsl", true) {
		b.options = append(b.options, gomail.WithSSL())
	} else {
		b.options = append(b.options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	}
	if user := s.Text("email.username", ""); user != "" {
		b.options = append(b.options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(user), gomail.WithPassword(s.NeededSecret("email.password")))
	}
	check(s, "email.from", b.from)
	check(s, "email.to", b.to...)
	check(s, "email.cc", b.cc...)
	check(s, "email.bcc", b.bcc...)
	if s.Err() != nil {
		return b
	}
	if _, err := gomail.NewClient(b.host, b.options...); err != nil {
		s.Wrong("email", "is not accepted: "+err.Error())
	}
	if _, err := b.letter(""); err != nil {
		s.Wrong("email", "is not accepted: "+err.Error())
	}
	return b
}

// check refuses what is no address. What is missing was told.
func check(s *errorhandler.Settings, key string, addresses ...string) {
	for _, a := range addresses {
		if _, err := mail.ParseAddress(a); a != "" && err != nil {
			s.Wrong(key, "holds what is not a mail address; write for example ops@example.org, with commas between several")
			return
		}
	}
}

func list(addresses string) []string {
	return strings.FieldsFunc(addresses, func(r rune) bool { return r == ',' || r == ' ' })
}

func (b *letterbox) letter(text string) (*gomail.Msg, error) {
	m := gomail.NewMsg()
	if err := m.From(b.from); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if err := m.To(b.to...); err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	if err := m.Cc(b.cc...); err != nil {
		return nil, fmt.Errorf("cc: %w", err)
	}
	if err := m.Bcc(b.bcc...); err != nil {
		return nil, fmt.Errorf("bcc: %w", err)
	}
	m.Subject(b.subject)
	m.SetBodyString(gomail.TypeTextPlain, text)
	return m, nil
}

// Send implements errorhandler.Sender.
func (b *letterbox) Send(ctx context.Context, _, text string, _ errorhandler.Failure) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	m, err := b.letter(text)
	if err != nil {
		return err
	}
	client, err := gomail.NewClient(b.host, b.options...) // one for each mail: it holds a connection
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, m)
}
