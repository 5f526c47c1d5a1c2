package settings

import (
	"fmt"
	"net"
	"strings"

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

// An Address is one server as its user wrote it.
type Address struct {
	// Noun is what the configuration calls it, for errors.
	Noun string
	// Given is all of what was written, for errors.
	Given string
	// Host is the part of it that is host:port or host.
	Host string
}

// Complete returns host:port, with the default port when there is none.
func (a Address) Complete(defaultPort string) (string, error) {
	if a.Host == "" || strings.ContainsAny(a.Host, "/@ ") {
		return "", a.malformed("")
	}
	name, port, err := net.SplitHostPort(a.Host)
	if err != nil {
		name, port = strings.Trim(a.Host, "[]"), defaultPort
		if strings.Contains(name, ":") && a.Host == name {
			return "", a.malformed("; write an IPv6 address in brackets")
		}
	}
	if name == "" || port == "" {
		return "", a.malformed("")
	}
	return net.JoinHostPort(name, port), nil
}

func (a Address) malformed(hint string) error {
	return fmt.Errorf("%s %q is not host:port%s", a.Noun, a.Given, hint)
}
