package settings

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// reserved is the namespace below which Elasticron keeps its own state.
const reserved = "elasticron"

// Namespace reports why ns cannot be one. example is a URL that has one.
func Namespace(ns, example string) error {
	switch first, _, _ := strings.Cut(ns, "/"); {
	case ns == "":
		return fmt.Errorf("no namespace; name one, for example %s", example)
	case first == reserved:
		return fmt.Errorf("namespace %q is reserved for Elasticron's own state; choose another name", ns)
	}
	if err := registry.ValidatePath("/" + ns); err != nil {
		return fmt.Errorf("namespace %q cannot be a path: %w", ns, err)
	}
	return nil
}

const (
	shortestSession = 500 * time.Millisecond
	longestSession  = 10 * time.Minute
)

// SessionTimeout reports a timeout with which no session lives well. Zero is the adapter's default.
func SessionTimeout(d time.Duration) error {
	switch {
	case d != 0 && d < shortestSession:
		return fmt.Errorf("session timeout %v is too short: a pause of the process would end the session; give at least %v",
			d, shortestSession)
	case d > longestSession:
		return fmt.Errorf("session timeout %v is too long: nobody takes over from an instance that has died until it is over; give at most %v",
			d, longestSession)
	}
	return nil
}

// Address completes host, which is host:port or host. For errors, noun is what the configuration
// calls it, and given all of what was written, of which they show no login.
func Address(noun, given, host, defaultPort string) (string, error) {
	malformed := func(hint string) error {
		if strings.Contains(given, "@") {
			return fmt.Errorf("%s %q has a login, which is set elsewhere; write host:port", noun, WithoutLogin(given))
		}
		return fmt.Errorf("%s %q is not host:port%s", noun, given, hint)
	}
	if host == "" || strings.ContainsAny(host, "/@ ") {
		return "", malformed("")
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), defaultPort
		if strings.Contains(name, ":") && host == name {
			return "", malformed("; write an IPv6 address in brackets")
		}
	}
	if name == "" || port == "" {
		return "", malformed("")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", malformed(" with a port of 1 to 65535")
	}
	return net.JoinHostPort(name, port), nil
}

// WithoutLogin is what was written as an address, less what stands before an @: it may
// hold a password, and errors show the rest.
func WithoutLogin(given string) string {
	scheme, rest, found := strings.Cut(given, "://")
	if !found {
		scheme, rest = "", given
	} else {
		scheme += "://"
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "…" + rest[at:]
	}
	return scheme + rest
}
