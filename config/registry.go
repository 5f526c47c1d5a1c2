package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/retry"
)

// A Registry says which registry is used and how to log in. It holds no secret. The
// zero value lacks Address, which has no default.
type Registry struct {
	// Address is the URL without what the fields below add to it.
	Address string
	// Username logs in; "" leaves it to the adapter's own environment variables.
	Username string
	// PasswordFile is the file that holds the password.
	PasswordFile string
	// PasswordEnv is the name of the environment variable that holds the password.
	PasswordEnv string
	// TLS secures the connection.
	TLS TLS
	// Retry repeats what the registry refuses for the moment (package retry). The zero value
	// leaves it to the adapter.
	Retry retry.Config
}

// TLS says how the connection is secured. The zero value is without TLS.
type TLS struct {
	// Enabled switches TLS on. Without it the files mean nothing.
	Enabled bool
	// CA, Cert and Key are PEM files: the authority that signed the servers (the
	// system's when empty), and the certificate shown to them with its key.
	CA, Cert, Key string
}

var errSecret = errors.New("holds a password, which does not belong in a URL; put it in a file that passwordFile names, or in an environment variable that passwordEnv names")

// URL is what registry.Open takes: Address with the other fields as settings. The
// error is one line and never repeats Address.
func (r Registry) URL() (string, error) {
	u, query, err := parseAddress(r.Address)
	if err != nil {
		return "", err
	}
	settings := [][2]string{{"username", r.Username}, {"password-file", r.PasswordFile}, {"password-env", r.PasswordEnv}}
	if r.TLS.Enabled {
		settings = append(settings, [][2]string{{"ca", r.TLS.CA}, {"cert", r.TLS.Cert}, {"key", r.TLS.Key}, {"tls", "true"}}...)
	}
	changed := false
	for _, s := range settings {
		switch {
		case s[1] == "":
			continue
		case query.Has(s[0]):
			return "", fmt.Errorf("the setting %s stands in the URL and beside it; leave one", s[0])
		}
		query.Set(s[0], s[1])
		changed = true
	}
	if !changed {
		return r.Address, nil
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// parseAddress reads a URL that holds no secret.
func parseAddress(address string) (*url.URL, url.Values, error) {
	if address == "" {
		return nil, nil, errors.New("is missing; write scheme://host:port/namespace, for example etcd://127.0.0.1:2379/shop")
	}
	if err := checkText(address); err != nil {
		return nil, nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Opaque != "" || !strings.Contains(address, "://") {
		return nil, nil, errors.New("is not a URL; write scheme://host:port/namespace, for example etcd://127.0.0.1:2379/shop")
	}
	if u.User != nil || strings.Contains(u.Host, "@") {
		if _, password := u.User.Password(); !password && u.User != nil {
			return nil, nil, errors.New("holds a user, which does not belong in a URL; give it as username, and the password in a file that passwordFile names or a variable that passwordEnv names")
		}
		return nil, nil, errSecret
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		_, port, found := strings.Cut(host[strings.LastIndexByte(host, ']')+1:], ":")
		if n, err := strconv.Atoi(port); found && (err != nil || n < 1 || n > 65535) {
			return nil, nil, errors.New("has a port that is none; write host:port with a port of 1 to 65535")
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, errors.New("has settings that cannot be read; write ?name=value&name=value")
	}
	for name := range query {
		if n := normal(name); strings.Contains(n, "password") && n != "passwordfile" && n != "passwordenv" {
			return nil, nil, errSecret
		}
	}
	return u, query, checkOwn(u, query)
}

// String is the URL, or that there is none.
func (r Registry) String() string {
	s, err := r.URL()
	if err != nil {
		return "registry (the URL " + err.Error() + ")"
	}
	return s
}

// Format writes String for every verb of fmt.
func (r Registry) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, r.String()) }

// LogValue is String.
func (r Registry) LogValue() slog.Value { return slog.StringValue(r.String()) }

// open opens the URL, with the retries that are asked for.
func (r Registry) open(ctx context.Context, url string) (registry.Registry, error) {
	if r.Retry == (retry.Config{}) {
		return registry.Open(ctx, url)
	}
	return retry.Open(ctx, url, r.Retry)
}
