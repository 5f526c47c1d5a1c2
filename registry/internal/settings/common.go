package settings

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
)

const (
	defaultSessionTimeout = 6 * time.Second
	defaultDialTimeout    = 5 * time.Second
)

// Common points at what the configurations of all adapters have, and says what an adapter calls
// it, so that one place reads it from a URL, checks and completes it.
type Common struct {
	// Adapter is its name and the scheme of its URLs.
	Adapter string
	// Example is a URL with a namespace, for errors.
	Example string
	// Address completes one of Hosts, as HostPort does.
	Address func(given string) (string, error)
	// Hosts, and Database where the path of a URL begins with one; else it is nil.
	Hosts     *[]string
	Database  *string
	Namespace *string

	SessionTimeout, DialTimeout *time.Duration

	Username, Password, PasswordFile *string
	// Trusts says that a username without a password will do.
	Trusts bool

	TLS                       **tls.Config
	CAFile, CertFile, KeyFile *string
}

func (c Common) variable(what string) string {
	return "ELASTICRON_" + strings.ToUpper(c.Adapter) + "_" + what
}

// Complete reports what is wrong, fills in defaults, and reads the files that are named.
func (c Common) Complete() error {
	if *c.DialTimeout < 0 {
		return fmt.Errorf("dial timeout %v is negative; give a positive duration", *c.DialTimeout)
	}
	if err := cmp.Or(
		SessionTimeout(*c.SessionTimeout), c.checkCertificate(), c.checkLogin(), Namespace(*c.Namespace, c.Example),
	); err != nil {
		return err
	}
	*c.SessionTimeout = cmp.Or(*c.SessionTimeout, defaultSessionTimeout)
	*c.DialTimeout = cmp.Or(*c.DialTimeout, defaultDialTimeout)
	hosts := make([]string, len(*c.Hosts))
	for i, given := range *c.Hosts {
		complete, err := c.Address(given)
		if err != nil {
			return err
		}
		hosts[i] = complete
	}
	*c.Hosts = hosts
	return cmp.Or(c.readPassword(), c.readCertificates())
}

// common are the settings that the URLs of all adapters have.
var common = map[string]func(c Common, v string) error{
	"session-timeout": func(c Common, v string) error { return Duration(c.SessionTimeout, v) },
	"dial-timeout":    func(c Common, v string) error { return Duration(c.DialTimeout, v) },
	"username":        func(c Common, v string) error { return Text(c.Username, v) },
	"password-file":   func(c Common, v string) error { return Text(c.PasswordFile, v) },
	"password-env":    func(c Common, v string) error { return Secret(c.Password, v) },
	"ca":              func(c Common, v string) error { return Text(c.CAFile, v) },
	"cert":            func(c Common, v string) error { return Text(c.CertFile, v) },
	"key":             func(c Common, v string) error { return Text(c.KeyFile, v) },
	"tls":             func(c Common, v string) error { return TLS(c.TLS, v) },
}

// URLs are those of one adapter, whose configuration is C.
type URLs[C any] struct {
	Common func(*C) Common
	// Own are the settings that other adapters do not have.
	Own Table[C]
}

// Parse reads scheme://host:port,host:port/namespace?setting=value. What it leaves open of the
// login comes from the environment.
func (a URLs[C]) Parse(u *url.URL) (cfg C, err error) {
	c := a.Common(&cfg)
	if *c.Hosts, *c.Namespace, err = Split(u); err != nil {
		return cfg, err
	}
	if c.Database != nil {
		*c.Database, *c.Namespace, _ = strings.Cut(*c.Namespace, "/")
	}
	all := maps.Clone(a.Own)
	for name, set := range common {
		all[name] = func(cfg *C, v string) error { return set(a.Common(cfg), v) }
	}
	if err := all.Apply(&cfg, u.RawQuery, c.variable("PASSWORD")); err != nil {
		return cfg, err
	}
	c.loginFromEnvironment()
	return cfg, nil
}

// Register makes an adapter known to registry.Open by its scheme.
func Register[C any, R registry.Registry](urls URLs[C], open func(context.Context, C) (R, error)) {
	name := urls.Common(new(C)).Adapter
	registry.Register(name, func(ctx context.Context, u *url.URL) (registry.Registry, error) {
		cfg, err := urls.Parse(u)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", name, registry.ErrInvalid, err)
		}
		r, err := open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return r, nil
	})
}

// HostPort completes addresses that are host:port or host; noun is what they are called.
func HostPort(noun, defaultPort string) func(given string) (string, error) {
	return func(given string) (string, error) {
		return Address(noun, given, given, defaultPort)
	}
}

// Limits reports what cannot be a limit.
func Limits(l registry.Limits) error {
	if l.MaxOps < 0 || l.MaxBytes < 0 || l.MaxValue < 0 {
		return fmt.Errorf("limits %+v are negative; leave a field at zero for its default", l)
	}
	return nil
}

// FillLimits fills in the zero fields of l.
func FillLimits(l, from registry.Limits) registry.Limits {
	l.MaxOps, l.MaxBytes = cmp.Or(l.MaxOps, from.MaxOps), cmp.Or(l.MaxBytes, from.MaxBytes)
	l.MaxValue = cmp.Or(l.MaxValue, min(from.MaxValue, l.MaxBytes))
	return l
}

// loginFromEnvironment fills in what the URL leaves open.
func (c Common) loginFromEnvironment() {
	if *c.Username == "" {
		*c.Username = os.Getenv(c.variable("USERNAME"))
	}
	if *c.Username != "" && *c.Password == "" && *c.PasswordFile == "" {
		*c.Password = os.Getenv(c.variable("PASSWORD"))
	}
}

// checkLogin reports half a login, and one that says its password twice.
func (c Common) checkLogin() error {
	given := *c.Password != "" || *c.PasswordFile != ""
	switch {
	case *c.Username == "" && given:
		return errors.New("a password without a username; give the username too")
	case *c.Username != "" && !given && !c.Trusts:
		return errors.New("a username without a password; give one in a file or in " + c.variable("PASSWORD"))
	case *c.Password != "" && *c.PasswordFile != "":
		return errors.New("a password and a password file; give one of them")
	}
	return nil
}

// readPassword takes it from the file when only that is given; a line break at the file's end is dropped.
func (c Common) readPassword() error {
	if *c.Password != "" || *c.PasswordFile == "" {
		return nil
	}
	raw, err := os.ReadFile(*c.PasswordFile)
	if err != nil {
		return fmt.Errorf("password file: %w", err)
	}
	if *c.Password = strings.TrimRight(string(raw), "\r\n"); *c.Password == "" {
		return fmt.Errorf("password file %s is empty", *c.PasswordFile)
	}
	return nil
}

// checkCertificate reports a certificate without its key, and a key without its certificate.
func (c Common) checkCertificate() error {
	if (*c.CertFile == "") != (*c.KeyFile == "") {
		return errors.New("a certificate needs its key; give both the cert and the key file")
	}
	return nil
}

// readCertificates clones TLS, and adds what the PEM files hold. nil without any file stays nil, which is no TLS.
func (c Common) readCertificates() error {
	cfg := (*c.TLS).Clone()
	if cfg == nil && (*c.CAFile != "" || *c.CertFile != "") {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	*c.TLS = cfg
	if *c.CAFile != "" {
		pem, err := os.ReadFile(*c.CAFile)
		if err != nil {
			return fmt.Errorf("CA file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("CA file %s holds no certificate in PEM form", *c.CAFile)
		}
	}
	if *c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(*c.CertFile, *c.KeyFile)
		if err != nil {
			return fmt.Errorf("certificate %s with key %s: %w", *c.CertFile, *c.KeyFile, err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return nil
}
