package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Login is a name and a password, or the file that holds it.
type Login struct {
	Username, Password, PasswordFile string
}

// FromEnvironment fills in what the URL leaves open.
func (l Login) FromEnvironment(usernameEnv, passwordEnv string) Login {
	if l.Username == "" {
		l.Username = os.Getenv(usernameEnv)
	}
	if l.Username != "" && l.Password == "" && l.PasswordFile == "" {
		l.Password = os.Getenv(passwordEnv)
	}
	return l
}

// Check reports half a login, and one that says its password twice.
func (l Login) Check(passwordEnv string) error {
	switch {
	case l.Username == "" && (l.Password != "" || l.PasswordFile != ""):
		return errors.New("a password without a username; give the username too")
	case l.Username != "" && l.Password == "" && l.PasswordFile == "":
		return errors.New("a username without a password; give one in a file or in " + passwordEnv)
	case l.Password != "" && l.PasswordFile != "":
		return errors.New("a password and a password file; give one of them")
	}
	return nil
}

// Resolve returns the password, from the file when only that is given; a line
// break at the file's end is dropped.
func (l Login) Resolve() (string, error) {
	if l.Password != "" || l.PasswordFile == "" {
		return l.Password, nil
	}
	raw, err := os.ReadFile(l.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("password file: %w", err)
	}
	password := strings.TrimRight(string(raw), "\r\n")
	if password == "" {
		return "", fmt.Errorf("password file %s is empty", l.PasswordFile)
	}
	return password, nil
}

// Certificates are PEM files: the authority that signed the servers, and the
// certificate shown to them with its key. An empty name is none.
type Certificates struct {
	CAFile, CertFile, KeyFile string
}

// Check reports a certificate without its key, and a key without its certificate.
func (c Certificates) Check() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("a certificate needs its key; give both the cert and the key file")
	}
	return nil
}

// Resolve returns base with what the files hold. base is cloned; nil without any
// file stays nil, which is no TLS.
func (c Certificates) Resolve(base *tls.Config) (*tls.Config, error) {
	base = base.Clone()
	if c.CAFile == "" && c.CertFile == "" {
		return base, nil
	}
	if base == nil {
		base = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		base.RootCAs = x509.NewCertPool()
		if !base.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s holds no certificate in PEM form", c.CAFile)
		}
	}
	if c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", c.CertFile, c.KeyFile, err)
		}
		base.Certificates = []tls.Certificate{cert}
	}
	return base, nil
}
