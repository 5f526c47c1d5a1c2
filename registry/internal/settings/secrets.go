package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

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

// readPassword takes it from the file when only that is given; a line break at the file's end is
// dropped.
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

// readCertificates clones TLS, and adds what the PEM files hold. nil without any file stays nil,
// which is no TLS.
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
