package config

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// quoted reports whether a scalar is text by its quotes or block style.
func quoted(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// raw takes a scalar as it is written: the label 007 stays 007.
func (r *reader) raw(m member) (string, bool) {
	switch {
	case m.value.Kind != yaml.ScalarNode:
		r.add(m.value, m.path, "%s, want text", nature(m.value))
	case null(m.value):
		r.add(m.value, m.path, "has no value; give one or remove the key")
	default:
		return m.value.Value, true
	}
	return "", false
}

// text takes a scalar with its variables replaced.
func (r *reader) text(m member) (string, bool) {
	s, ok := r.raw(m)
	if !ok {
		return "", false
	}
	s, err := expand(s, os.LookupEnv)
	if err != nil {
		r.addCause(m.value, m.path, err, "%v", err)
		return "", false
	}
	return s, true
}

// says reports whether a scalar is a word that stands for something else than its kind.
func (r *reader) says(m member, word string) bool {
	if m.value.Kind != yaml.ScalarNode {
		return false
	}
	s, err := expand(m.value.Value, os.LookupEnv)
	return err == nil && s == word
}

// isText reports whether a scalar is text by its quotes, and not because it holds a variable.
func isText(n *yaml.Node) bool { return quoted(n) && !strings.Contains(n.Value, "${") }

func (r *reader) bool(m member) (value, ok bool) {
	s, ok := r.text(m)
	if !ok {
		return false, false
	}
	return r.parseBool(m, s, isText(m.value))
}

func (r *reader) parseBool(m member, s string, quoted bool) (value, ok bool) {
	switch word := strings.ToLower(s); {
	case quoted && (word == "true" || word == "false"):
		r.add(m.value, m.path, "is text, want true or false without quotes")
	case word == "true" || word == "false":
		return word == "true", true
	case word == "yes" || word == "on":
		r.add(m.value, m.path, "want true or false; write true")
	case word == "no" || word == "off":
		r.add(m.value, m.path, "want true or false; write false")
	default:
		r.add(m.value, m.path, "is neither true nor false; write one of them")
	}
	return false, false
}

var wholeNumber = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)$`)

func (r *reader) int(m member) (int, bool) {
	s, ok := r.text(m)
	if !ok {
		return 0, false
	}
	if isText(m.value) || !wholeNumber.MatchString(s) {
		r.add(m.value, m.path, "is not a whole number; write digits alone, such as 3, without quotes")
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		r.add(m.value, m.path, "does not fit 32 bits; give a smaller number")
		return 0, false
	}
	return int(v), true
}

// duration reads a positive duration with its unit. Zero says what to write for none.
func (r *reader) duration(m member, example, zero string) (time.Duration, bool) {
	s, ok := r.text(m)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	switch {
	case wholeNumber.MatchString(s):
		r.add(m.value, m.path, "has no unit; write for example %s", example)
	case err != nil:
		r.add(m.value, m.path, "is not a duration; write for example %s", example)
	case d <= 0:
		r.add(m.value, m.path, "is not positive; %s", zero)
	default:
		return d, true
	}
	return 0, false
}
