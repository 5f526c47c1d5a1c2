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
		got, err := Address{Noun: "server", Given: given, Host: given}.Complete("99")
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
		_, err := Address{Noun: "server", Given: given, Host: given}.Complete("99")
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

func TestLogin(t *testing.T) {
	t.Setenv("SETTINGS_USER", "eva")
	t.Setenv("SETTINGS_WORD", "env")
	from := func(l Login) Login { return l.FromEnvironment("SETTINGS_USER", "SETTINGS_WORD") }
	require.Equal(t, Login{Username: "eva", Password: "env"}, from(Login{}))
	require.Equal(t, Login{Username: "max", Password: "own"}, from(Login{Username: "max", Password: "own"}))
	require.Equal(t, Login{Username: "max", PasswordFile: "f"}, from(Login{Username: "max", PasswordFile: "f"}))

	require.NoError(t, Login{}.Check("ENV"))
	require.EqualError(t, Login{Password: "x"}.Check("ENV"), "a password without a username; give the username too")
	require.EqualError(t, Login{Username: "x"}.Check("ENV"), "a username without a password; give one in a file or in ENV")
	require.EqualError(t, Login{Username: "x", Password: "s3cret", PasswordFile: "f"}.Check("ENV"), "a password and a password file; give one of them")

	file := filepath.Join(t.TempDir(), "word")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\r\n"), 0o600))
	word, err := Login{Username: "eva", PasswordFile: file}.Resolve()
	require.NoError(t, err)
	require.Equal(t, "s3cret", word)
	word, err = Login{Username: "eva", Password: "own", PasswordFile: file}.Resolve()
	require.NoError(t, err)
	require.Equal(t, "own", word)
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err = Login{PasswordFile: file}.Resolve()
	require.EqualError(t, err, "password file "+file+" is empty")
	_, err = Login{PasswordFile: file + "x"}.Resolve()
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCertificates(t *testing.T) {
	none, err := Certificates{}.Resolve(nil)
	require.NoError(t, err)
	require.Nil(t, none, "no TLS")
	base := &tls.Config{ServerName: "x", MinVersion: tls.VersionTLS13}
	own, err := Certificates{}.Resolve(base)
	require.NoError(t, err)
	require.NotSame(t, base, own)
	require.Equal(t, "x", own.ServerName)

	file := filepath.Join(t.TempDir(), "pem")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err = Certificates{CAFile: file}.Resolve(nil)
	require.EqualError(t, err, "CA file "+file+" holds no certificate in PEM form")
	_, err = Certificates{CertFile: file, KeyFile: file}.Resolve(nil)
	require.ErrorContains(t, err, "certificate "+file+" with key "+file+": ")
	require.NoError(t, Certificates{CertFile: "a", KeyFile: "b"}.Check())
	require.Error(t, Certificates{CertFile: "a"}.Check())
	require.Error(t, Certificates{KeyFile: "b"}.Check())
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
