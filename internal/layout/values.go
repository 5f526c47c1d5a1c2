package layout

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/internal/field"
)

func wrong(key string, n *yaml.Node, problem string) error {
	return &field.Error{Field: key, Line: n.Line, Problem: problem}
}

// plain reports whether a scalar was written without quotes, as its type is then
// read off its text.
func plain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

func tagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && plain(n) && !tagged(n) && resolve(n.Value) == kindNull
}

// readString takes any scalar as it is written: a name 007 stays 007.
func readString(key string, n *yaml.Node) (string, error) {
	if isNull(n) {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode {
		return "", wrong(key, n, "is a list or a mapping, want text")
	}
	return n.Value, nil
}

func readBool(key string, n *yaml.Node) (bool, error) {
	if n.Kind == yaml.ScalarNode {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on":
			return true, nil
		case "false", "no", "off":
			return false, nil
		}
	}
	return false, wrong(key, n, "is not a boolean, want true or false")
}

func readInt(key string, n *yaml.Node) (int, error) {
	if n.Kind == yaml.ScalarNode && resolve(n.Value) == kindInt {
		if v := parseInt(n.Value); v.IsInt64() && v.Int64() >= math.MinInt32 && v.Int64() <= math.MaxInt32 {
			return int(v.Int64()), nil
		}
	}
	return 0, wrong(key, n, "is not a whole number of 32 bits, want for example 3")
}

// parseInt reads an integer of YAML 1.1: signs, underscores, 0b, 0x, octal with
// a leading 0, and base 60 (1:30 is 90).
func parseInt(text string) *big.Int {
	digits := strings.ReplaceAll(text, "_", "")
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimLeft(digits, "+-")
	sum := new(big.Int)
	if strings.Contains(digits, ":") {
		for part := range strings.SplitSeq(digits, ":") {
			n, _ := new(big.Int).SetString(part, 10)
			sum.Mul(sum, big.NewInt(60))
			sum.Add(sum, n)
		}
	} else {
		base := 10
		switch {
		case strings.HasPrefix(digits, "0b"):
			base, digits = 2, digits[2:]
		case strings.HasPrefix(digits, "0x"):
			base, digits = 16, digits[2:]
		case len(digits) > 1 && digits[0] == '0':
			base, digits = 8, digits[1:]
		}
		sum.SetString(digits, base)
	}
	if negative {
		sum.Neg(sum)
	}
	return sum
}

func readList(key string, n *yaml.Node) ([]string, error) {
	if isNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, wrong(key, n, "is not a list, want one line \"- TYPE\" for each")
	}
	var list []string
	for _, item := range n.Content {
		s, err := readString(key, resolveAlias(item))
		if err != nil {
			return nil, err
		}
		if s != "" {
			list = append(list, s)
		}
	}
	return list, nil
}

func (r *configReader) readProps(n *yaml.Node) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return wrong("props", n, "is not a mapping, want one line \"key: value\" for each")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolveAlias(n.Content[i]), resolveAlias(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			return wrong("props", key, "has a key that is not text")
		}
		name := "props." + key.Value
		if _, twice := r.config.Props[key.Value]; twice {
			return wrong(name, key, "is given twice; leave one")
		}
		if value.Kind != yaml.ScalarNode || isNull(value) {
			return wrong(name, value, "is not text; give a value in quotes")
		}
		r.setProp(key.Value, javaString(value))
	}
	return nil
}

func (r *configReader) setProp(key, value string) {
	if r.config.Props == nil {
		r.config.Props = map[string]string{}
	}
	r.config.Props[key] = value
}

// javaString is what Java makes of a value in props: it reads it by its type and
// turns that into text. A date stays as it is written.
func javaString(n *yaml.Node) string {
	switch kind := resolve(n.Value); {
	case !tagged(n) && !plain(n):
		return n.Value
	case tagged(n) && n.ShortTag() == "!!float" && kind == kindInt:
		return javaFloat(n.Value)
	case tagged(n) && n.ShortTag() != typeTags[kind]:
		return n.Value
	case kind == kindInt:
		return parseInt(n.Value).String()
	case kind == kindFloat:
		return javaFloat(n.Value)
	case kind == kindBool:
		b, _ := readBool("", n)
		return strconv.FormatBool(b)
	}
	return n.Value
}

var typeTags = map[scalarKind]string{kindInt: "!!int", kindFloat: "!!float", kindBool: "!!bool"}

// javaFloat is Double.toString of a float of YAML 1.1.
func javaFloat(text string) string {
	s := strings.ToLower(strings.ReplaceAll(text, "_", ""))
	switch strings.TrimLeft(s, "+-") {
	case ".inf":
		if s[0] == '-' {
			return "-Infinity"
		}
		return "Infinity"
	case ".nan":
		return "NaN"
	}
	f, ok := parseFloat(s)
	if !ok {
		return text
	}
	return formatDouble(f)
}

func parseFloat(s string) (float64, bool) {
	if !strings.Contains(s, ":") {
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil || math.IsInf(f, 0)
	}
	sign := 1.0
	if s[0] == '-' {
		sign = -1
	}
	sum := 0.0
	for part := range strings.SplitSeq(strings.TrimLeft(s, "+-"), ":") {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, false
		}
		sum = sum*60 + f
	}
	return sign * sum, true
}

func formatDouble(f float64) string {
	switch size := math.Abs(f); {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case size != 0 && (size < 1e-3 || size >= 1e7):
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		n, _ := strconv.Atoi(exponent)
		return withPoint(mantissa) + "E" + strconv.Itoa(n)
	}
	return withPoint(strconv.FormatFloat(f, 'f', -1, 64))
}

func withPoint(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	return digits + ".0"
}
