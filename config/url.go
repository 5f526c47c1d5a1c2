package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

// Schemes are those of the adapters that come with Elasticron, sorted. A program may import others.
func Schemes() []string { return []string{"embedded", "etcd", "memory", "postgres", "zookeeper"} }

// checkText refuses what registry.Open does, before it looks for a URL.
func checkText(address string) error {
	if strings.TrimSpace(address) != address {
		return errors.New("has space at its ends; remove it")
	}
	scheme, rest, _ := strings.Cut(address, "/")
	host, _, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	for _, r := range scheme + host {
		if plain, wide := field.Narrow(r); wide {
			return fmt.Errorf("holds the full-width character %q; write %q", r, plain)
		}
	}
	return nil
}

// checkOwn finds what an adapter of Elasticron's own would refuse in its URL, so that a file can be checked where the
// registry is not. What other adapters know nobody knows here.
func checkOwn(u *url.URL, query url.Values) error {
	known := settingsOfURL(u.Scheme)
	switch {
	case u.Scheme == "memory" && len(query) > 0:
		return errors.New("has settings, and memory knows none; write memory://name/shop")
	case u.Scheme == "memory":
		return checkPath(u)
	case len(known) == 0:
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch near := nearest(name, known); {
		case !slices.Contains(known, name) && near != "":
			return fmt.Errorf("has the setting %q, which %s does not know; did you mean %s?", name, u.Scheme, near)
		case !slices.Contains(known, name):
			return fmt.Errorf("has the setting %q, which %s does not know; there are: %s", name, u.Scheme, strings.Join(known, ", "))
		case len(query[name]) > 1:
			return fmt.Errorf("has the setting %s %d times; leave one", name, len(query[name]))
		}
		if err := checkSetting(name, query.Get(name)); err != nil {
			return err
		}
	}
	if u.Scheme == "embedded" {
		return checkEmbedded(u, query)
	}
	return checkPath(u)
}

// checkSetting finds a value that no adapter takes.
func checkSetting(name, value string) error {
	if name == "tls" {
		if _, err := strconv.ParseBool(value); err != nil {
			return fmt.Errorf("has the setting tls=%s, which is neither true nor false; write tls=true", value)
		}
		return nil
	}
	i := slices.IndexFunc(urlSettings, func(s settingOf) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	if problem := urlSettings[i].refuses(value); problem != "" {
		return fmt.Errorf("has the setting %s=%s, which %s; write %s=%s", name, value, problem, name, urlSettings[i].example)
	}
	return nil
}

func checkEmbedded(u *url.URL, query url.Values) error {
	switch {
	case u.Host != "":
		return errors.New("names a folder that is not written from the root; write embedded:///folder?namespace=shop, with three slashes")
	case query.Get("namespace") == "":
		return errors.New("has no namespace; write embedded:///folder?namespace=shop")
	}
	return checkNamespace(query.Get("namespace"))
}

// checkPath finds what is wrong with scheme://host/namespace, or with the database before it.
func checkPath(u *url.URL) error {
	example, namespace := "scheme://host:port/shop", strings.Trim(u.Path, "/")
	if u.Scheme == "postgres" {
		example = "postgres://host:5432/database/shop"
		_, namespace, _ = strings.Cut(namespace, "/")
	}
	if u.Scheme == "memory" {
		example = "memory://name/shop"
	}
	switch {
	case u.Fragment != "":
		return fmt.Errorf("has a fragment (#…); write %s", example)
	case u.Host == "":
		return fmt.Errorf("has no host; write %s", example)
	case namespace == "":
		return fmt.Errorf("has no namespace; name one, as in %s", example)
	}
	return checkNamespace(namespace)
}

// checkNamespace refuses names that all adapters do.
func checkNamespace(name string) error {
	if first, _, _ := strings.Cut(name, "/"); first == "elasticron" {
		return errors.New("has the namespace elasticron, which is reserved for Elasticron's own state; choose another name")
	}
	if registry.ValidatePath("/"+name) != nil {
		return errors.New("has a namespace that cannot be a path of the registry; write a name such as shop, or team/shop")
	}
	return nil
}

func anything(string) string { return "" }

func durationIn(least, most time.Duration) func(string) string {
	return func(value string) string {
		switch d, err := time.ParseDuration(value); {
		case err != nil || d <= 0:
			return "is no positive duration"
		case d < least:
			return "is shorter than " + shortly(least)
		case d > most:
			return "is longer than " + shortly(most)
		}
		return ""
	}
}

// shortly is 10m for 10m0s.
func shortly(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		return strings.TrimSuffix(text, "0s")
	}
	return text
}

func countFrom(least int) func(string) string {
	return func(value string) string {
		if n, err := strconv.Atoi(value); err != nil || n < least {
			return fmt.Sprintf("is no whole number from %d on", least)
		}
		return ""
	}
}

// aChroot is a node for ZooKeeper's whole tree; those below /zookeeper are the server's own.
func aChroot(value string) string {
	trimmed := strings.TrimRight(value, "/")
	switch first, _, _ := strings.Cut(strings.TrimPrefix(trimmed, "/"), "/"); {
	case trimmed != "" && registry.ValidatePath(trimmed) != nil:
		return "is no path from the root"
	case first == "zookeeper":
		return "belongs to ZooKeeper itself"
	}
	return ""
}

// settingsOfURL are the settings that a scheme knows, sorted; none for one that is not in the reference.
func settingsOfURL(scheme string) []string {
	var names []string
	for _, s := range urlSettings {
		if slices.Contains(strings.Split(s.schemes, ", "), scheme) {
			names = append(names, s.name)
		}
	}
	if names != nil && scheme != "embedded" { // which has no login
		names = append(names, blockSettings...)
	}
	slices.Sort(names)
	return names
}
