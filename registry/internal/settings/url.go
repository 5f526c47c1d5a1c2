package settings

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Split reads scheme://host:port,host:port/namespace. No host at all yields no hosts, no path the namespace "".
func Split(u *url.URL) (hosts []string, namespace string, err error) {
	switch {
	case u.Opaque != "":
		return nil, "", fmt.Errorf("%[1]s: is not followed by //; write %[1]s://host:port/namespace", u.Scheme)
	case u.Fragment != "":
		return nil, "", fmt.Errorf("the URL has a fragment (#…); write %s://host:port/namespace", u.Scheme)
	}
	if u.Host != "" {
		hosts = strings.Split(u.Host, ",")
	}
	return hosts, strings.Trim(u.Path, "/"), nil
}

// A Table holds the settings of a URL by name, and how each one enters C.
type Table[C any] map[string]func(c *C, value string) error

// Apply enters the settings of a query into c. A password is refused with the
// places where it belongs; passwordEnv is one of them, "" where there is no login.
func (t Table[C]) Apply(c *C, rawQuery, passwordEnv string) error {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return errors.New("the URL's settings cannot be read; write ?name=value&name=value")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		set, known := t[name]
		switch values := query[name]; {
		case name == "password" && passwordEnv != "":
			return fmt.Errorf("a password does not belong in a URL; use password-file or %s", passwordEnv)
		case !known:
			return fmt.Errorf("unknown setting %q; known: %s", name, strings.Join(slices.Sorted(maps.Keys(t)), " "))
		case len(values) > 1:
			return fmt.Errorf("setting %q occurs %d times", name, len(values))
		default:
			if err := set(c, values[0]); err != nil {
				return fmt.Errorf("setting %s%s: %w", name, shown(name, values[0]), err)
			}
		}
	}
	return nil
}

// shown is a value as errors may show it. Who mistakes password-env for the password itself must not find it in a log.
func shown(name, value string) string {
	if strings.HasPrefix(name, "password") {
		return ""
	}
	return fmt.Sprintf("=%q", value)
}

// Duration enters a positive duration.
func Duration(d *time.Duration, v string) error {
	parsed, err := time.ParseDuration(v)
	if err != nil || parsed <= 0 {
		return errors.New("not a positive duration such as 6s")
	}
	*d = parsed
	return nil
}

// Count enters a positive number.
func Count(n *int, v string) error {
	parsed, err := strconv.Atoi(v)
	if err != nil || parsed <= 0 {
		return errors.New("not a positive number")
	}
	*n = parsed
	return nil
}

// Text enters what is given as it is.
func Text(s *string, v string) error {
	*s = v
	return nil
}

// TLS switches TLS on, or leaves it as it is.
func TLS(c **tls.Config, v string) error {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return errors.New("not true or false")
	}
	if on {
		*c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

// Secret enters the value of the environment variable that v names.
func Secret(s *string, v string) error {
	if *s = os.Getenv(v); *s == "" {
		return errors.New("there is no environment variable of that name, or it is empty")
	}
	return nil
}
