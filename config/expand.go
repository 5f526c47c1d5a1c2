package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// errUnset is within the error of a variable that is not set.
var errUnset = errors.New("is not set")

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME}, ${NAME:-default} and $$. The error never repeats what
// stands in a variable or in the text.
func expand(s string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		switch {
		case !found:
			return b.String(), nil
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			s = rest[1:]
			continue
		case !strings.HasPrefix(rest, "{"):
			return "", fmt.Errorf("has a lone $; write ${NAME} for an environment variable, or $$ for a dollar")
		}
		inner, after, closed := strings.Cut(rest[1:], "}")
		if !closed {
			return "", fmt.Errorf("has a ${ without its }; write ${NAME} or ${NAME:-default}")
		}
		value, err := variable(inner, lookup)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		s = after
	}
}

// variable is the value of NAME or NAME:-default.
func variable(inner string, lookup func(string) (string, bool)) (string, error) {
	name, fallback, hasDefault := strings.Cut(inner, ":-")
	if !variableName.MatchString(name) {
		return "", fmt.Errorf("has a ${…} that does not name a variable; write ${NAME} or ${NAME:-default}")
	}
	if strings.Contains(fallback, "${") {
		return "", fmt.Errorf("has a ${…} within the default of %s; write plain text there", name)
	}
	value, set := lookup(name)
	switch {
	case hasDefault && value == "":
		return strings.ReplaceAll(fallback, "$$", "$"), nil
	case set:
		return value, nil
	}
	return "", fmt.Errorf("the environment variable %s %w; set it, or give a default: ${%s:-value}", name, errUnset, name)
}
