package layout

import (
	"regexp"
	"strings"
)

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
