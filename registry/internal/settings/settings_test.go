package settings

import (
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type config struct {
	wait  time.Duration
	count int
	text  string
	tls   *tls.Config
	word  string
}

var table = Table[config]{
	"wait":         func(c *config, v string) error { return Duration(&c.wait, v) },
	"count":        func(c *config, v string) error { return Count(&c.count, v) },
	"text":         func(c *config, v string) error { return Text(&c.text, v) },
	"tls":          func(c *config, v string) error { return TLS(&c.tls, v) },
	"password-env": func(c *config, v string) error { return Secret(&c.word, v) },
}

func TestTableApplies(t *testing.T) {
	t.Setenv("SETTINGS_TEST", "s3cret")
	var c config
	require.NoError(t, table.Apply(&c, "wait=3s&count=7&text=a%20b&tls=true&password-env=SETTINGS_TEST", "ENV"))
	require.Equal(t, config{wait: 3 * time.Second, count: 7, text: "a b", tls: &tls.Config{MinVersion: tls.VersionTLS12}, word: "s3cret"}, c)
	require.NoError(t, table.Apply(&c, "", "ENV"))
	require.NoError(t, table.Apply(&c, "tls=false", "ENV"))
}

func TestTableRefuses(t *testing.T) {
	t.Setenv("SETTINGS_TEST", "")
	for query, want := range map[string]string{
		"a;b":                        `the URL's settings cannot be read; write ?name=value&name=value`,
		"waits=3s":                   `unknown setting "waits"; known: count password-env text tls wait`,
		"wait=3s&wait=4s":            `setting "wait" occurs 2 times`,
		"wait=-3s":                   `setting wait="-3s": not a positive duration such as 6s`,
		"count=0":                    `setting count="0": not a positive number`,
		"tls=maybe":                  `setting tls="maybe": not true or false`,
		"password=s3cret":            `a password does not belong in a URL; use password-file or ENV`,
		"password-env=SETTINGS_TEST": `setting password-env: there is no environment variable of that name, or it is empty`,
		"password-env=hunter2":       `setting password-env: there is no environment variable of that name, or it is empty`, // it may be the password
		"zoo=1&ape=2":                `unknown setting "ape"; known: count password-env text tls wait`,                      // the same one every time
	} {
		require.EqualError(t, table.Apply(&config{}, query, "ENV"), want, query)
	}
}

func TestSplit(t *testing.T) {
	for raw, want := range map[string]struct {
		hosts     []string
		namespace string
	}{
		"x://a:1,b:2/team/shop/?y=z": {[]string{"a:1", "b:2"}, "team/shop"},
		"x:///shop":                  {nil, "shop"},
		"x://a":                      {[]string{"a"}, ""},
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		hosts, namespace, err := Split(u)
		require.NoError(t, err)
		require.Equal(t, want.hosts, hosts, raw)
		require.Equal(t, want.namespace, namespace, raw)
	}
	for raw, want := range map[string]string{
		"x:a/shop":     `x: is not followed by //; write x://host:port/namespace`,
		"x://a/shop#y": `the URL has a fragment (#…); write x://host:port/namespace`,
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		_, _, err = Split(u)
		require.EqualError(t, err, want)
	}
}

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"a": "a:99", "a:1": "a:1", "[::1]": "[::1]:99", "[::1]:2": "[::1]:2", "10.0.0.1": "10.0.0.1:99",
	} {
		got, err := Address("server", given, given, "99")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for given, want := range map[string]string{
		"":      `server "" is not host:port`,
		":99":   `server ":99" is not host:port`,
		"a:":    `server "a:" is not host:port`,
		"a b":   `server "a b" is not host:port`,
		"e:x@a": `server "…@a" has a login, which is set elsewhere; write host:port`,
		"::1":   `server "::1" is not host:port; write an IPv6 address in brackets`,
	} {
		_, err := Address("server", given, given, "99")
		require.EqualError(t, err, want)
	}
}

func TestNamespace(t *testing.T) {
	require.NoError(t, Namespace("team/shop", "x://a/shop"))
	require.NoError(t, Namespace("elasticron2", "x://a/shop"))
	for ns, want := range map[string]string{
		"":             `no namespace; name one, for example x://a/shop`,
		"elasticron/a": `namespace "elasticron/a" is reserved for Elasticron's own state; choose another name`,
		"a//b":         `namespace "a//b" cannot be a path: invalid request: path "/a//b" has a segment that is empty`,
	} {
		require.EqualError(t, Namespace(ns, "x://a/shop"), want)
	}
}

// A fields is a configuration.
type fields struct {
	username, password, passwordFile string
	tls                              *tls.Config
	ca, cert, key                    string
}

func (f *fields) common() Common {
	return Common{
		Adapter: "x", Username: &f.username, Password: &f.password, PasswordFile: &f.passwordFile,
		TLS: &f.tls, CAFile: &f.ca, CertFile: &f.cert, KeyFile: &f.key,
	}
}

func TestLogin(t *testing.T) {
	t.Setenv("ELASTICRON_X_USERNAME", "eva")
	t.Setenv("ELASTICRON_X_PASSWORD", "env")
	for given, want := range map[fields]fields{
		{}:                                   {username: "eva", password: "env"},
		{username: "max", password: "own"}:   {username: "max", password: "own"},
		{username: "max", passwordFile: "f"}: {username: "max", passwordFile: "f"},
		{username: "max"}:                    {username: "max", password: "env"},
		{password: "own", passwordFile: "f"}: {username: "eva", password: "own", passwordFile: "f"},
	} {
		given.common().loginFromEnvironment()
		require.Equal(t, want, given)
	}

	for given, want := range map[fields]string{
		{password: "x"}:     "a password without a username; give the username too",
		{passwordFile: "x"}: "a password without a username; give the username too",
		{username: "x"}:     "a username without a password; give one in a file or in ELASTICRON_X_PASSWORD",
		{username: "x", password: "s3cret", passwordFile: "f"}: "a password and a password file; give one of them",
	} {
		require.EqualError(t, given.common().checkLogin(), want)
	}
	require.NoError(t, new(fields).common().checkLogin())
	trusted := (&fields{username: "x"}).common()
	trusted.Trusts = true
	require.NoError(t, trusted.checkLogin())

	file := filepath.Join(t.TempDir(), "word")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\r\n"), 0o600))
	f := fields{username: "eva", passwordFile: file}
	require.NoError(t, f.common().readPassword())
	require.Equal(t, "s3cret", f.password)
	f.password = "own"
	require.NoError(t, f.common().readPassword())
	require.Equal(t, "own", f.password)
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	f.password = ""
	require.EqualError(t, f.common().readPassword(), "password file "+file+" is empty")
	f.passwordFile += "x"
	require.ErrorIs(t, f.common().readPassword(), os.ErrNotExist)
}

func TestCertificates(t *testing.T) {
	var none fields
	require.NoError(t, none.common().readCertificates())
	require.Nil(t, none.tls, "no TLS")
	base := &tls.Config{ServerName: "x", MinVersion: tls.VersionTLS13}
	own := fields{tls: base}
	require.NoError(t, own.common().readCertificates())
	require.NotSame(t, base, own.tls)
	require.Equal(t, "x", own.tls.ServerName)

	file := filepath.Join(t.TempDir(), "pem")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	require.EqualError(t, (&fields{ca: file}).common().readCertificates(), "CA file "+file+" holds no certificate in PEM form")
	require.ErrorContains(t, (&fields{cert: file, key: file}).common().readCertificates(), "certificate "+file+" with key "+file+": ")
	require.NoError(t, (&fields{cert: "a", key: "b"}).common().checkCertificate())
	require.Error(t, (&fields{cert: "a"}).common().checkCertificate())
	require.Error(t, (&fields{key: "b"}).common().checkCertificate())
}

// Finding C 21.
func TestSessionTimeout(t *testing.T) {
	for _, d := range []time.Duration{0, 500 * time.Millisecond, 6 * time.Second, 10 * time.Minute} {
		require.NoError(t, SessionTimeout(d), d)
	}
	require.ErrorContains(t, SessionTimeout(-time.Second), "session timeout -1s is too short")
	require.ErrorContains(t, SessionTimeout(time.Millisecond), "session timeout 1ms is too short")
	require.ErrorContains(t, SessionTimeout(time.Hour), "session timeout 1h0m0s is too long")
}
