package layout

import (
	"regexp"
	"strings"
)

type scalarStyle uint8

const (
	stylePlain scalarStyle = iota
	styleSingle
	styleDouble
	styleLiteral
)

// An analysis says which styles can hold a text.
type analysis struct {
	plain, single, block bool
}

// style is SnakeYAML's choice for a string.
func (a analysis) style(text string) scalarStyle {
	switch {
	case strings.Contains(text, "\n"):
		if a.block {
			return styleLiteral
		}
		return styleDouble
	case a.plain && resolve(text) == kindString:
		return stylePlain
	case a.single:
		return styleSingle
	}
	return styleDouble
}

// analyze follows SnakeYAML's analysis, whose odd corners are kept: what it
// writes is what members compare.
func analyze(text string) analysis {
	if text == "" {
		return analysis{single: true}
	}
	s := []rune(text)
	last := len(s) - 1
	a := analysis{
		plain:  !strings.HasPrefix(text, "---") && !strings.HasPrefix(text, "...") && !zeroNumber.MatchString(text),
		single: true,
		block:  s[last] != ' ',
	}
	if edge(s[0]) || edge(s[last]) {
		a.plain = false
	}
	for i, r := range s {
		if indicator(s, i) {
			a.plain = false
		}
		if r == ' ' && i > 0 && s[i-1] == '\n' {
			a.plain, a.single = false, false
		}
		if (r < 0x20 && r != '\n') || (r == '\n' && i > 0 && s[i-1] == ' ') {
			return analysis{}
		}
	}
	return a
}

func edge(r rune) bool { return r == ' ' || r == '\n' }

// indicator reports whether s[i] would mean something in a plain scalar.
func indicator(s []rune, i int) bool {
	r := s[i]
	switch {
	case i == 0 && strings.ContainsRune("#,[]{}&*!|>'\"%@`", r):
		return true
	case i == 0 && (r == '?' || r == ':' || r == '-'):
		return len(s) == 1 || strings.ContainsRune(" \t\r\n\x00", s[1])
	case i > 0 && r == ':':
		return i == len(s)-1 || strings.ContainsRune(" \t\x00", s[i+1]) || s[i-1] == '\n'
	case i > 0 && r == '#':
		return strings.ContainsRune(" \t\n\x00", s[i-1])
	}
	return false
}

// A scalarKind is what YAML 1.1 takes a plain scalar for.
type scalarKind uint8

const (
	kindString scalarKind = iota
	kindBool
	kindInt
	kindFloat
	kindMerge
	kindNull
	kindTime
)

// The implicit types of YAML 1.1, in the order and with the limits of
// SnakeYAML's resolver.
var resolvers = []struct {
	kind    scalarKind
	first   string // characters that a value may begin with; "" for any
	limit   int
	pattern *regexp.Regexp
}{
	{kindBool, "yYnNtTfFoO", 10, regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)},
	{kindInt, "-+0123456789", 1024, regexp.MustCompile(`^(?:[-+]?0b_*[01][01_]*|[-+]?0_*[0-7][0-7_]*|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x_*[0-9a-fA-F][0-9a-fA-F_]*|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)},
	{kindFloat, "-+0123456789.", 1024, regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)},
	{kindMerge, "<", 10, regexp.MustCompile(`^<<$`)},
	{kindNull, "", 10, regexp.MustCompile(`^(?:~|null|Null|NULL| |)$`)},
	{kindTime, "0123456789", 50, regexp.MustCompile(`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{2}?-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`)},
}

// zeroNumber is decimal with a leading zero, which readers take for octal or not.
var zeroNumber = regexp.MustCompile(`^0[0-9_]+$`)

func resolve(text string) scalarKind {
	for _, r := range resolvers {
		if r.first != "" && (text == "" || !strings.ContainsRune(r.first, rune(text[0]))) {
			continue
		}
		if len(text) <= r.limit && r.pattern.MatchString(text) {
			return r.kind
		}
	}
	return kindString
}
