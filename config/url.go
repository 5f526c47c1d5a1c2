package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Schemes are those of the adapters that come with Elasticron, sorted. A program may import others.
func Schemes() []string { return []string{"embedded", "etcd", "memory", "postgres", "zookeeper"} }

// checkOwn finds what an adapter of Elasticron's own would refuse in its URL, so that a file can be checked where the
// registry is not. What other adapters know nobody knows here.
func checkOwn(u *url.URL, query url.Values) error {
	known := settingsOfURL(u.Scheme)
	if len(known) == 0 {
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
		if !strings.HasSuffix(name, "-timeout") {
			continue
		}
		if d, err := time.ParseDuration(query.Get(name)); err != nil || d <= 0 {
			return fmt.Errorf("has the setting %s=%s, which is no positive duration; write %[1]s=6s", name, query.Get(name))
		}
	}
	if u.Scheme != "embedded" && strings.Trim(u.Path, "/") == "" {
		return errors.New("has no namespace; name one, as in scheme://host:port/shop")
	}
	return nil
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
