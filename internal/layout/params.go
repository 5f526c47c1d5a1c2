package layout

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/elasticron/elasticron/internal/field"
)

const paramsField = "shardingItemParameters"

// otherSeparators are written in the place of the comma, which alone separates parameters.
const otherSeparators = "，；;、"

// ParseItemParams reads the parameters of items: "0=Beijing,1=Shanghai". Space
// around items and parameters is dropped, a comma may end the list, an empty
// string is no parameters. The error has a *field.Error, which names the item, for
// each that is wrong. Whether an item is below the total is for the caller to say.
func ParseItemParams(s string) (map[int]string, error) {
	params := map[int]string{}
	if s == "" {
		return params, nil
	}
	var errs []error
	for pair := range strings.SplitSeq(strings.TrimRight(s, ","), ",") {
		item, value, err := parseItemParam(trim(pair))
		if _, twice := params[item]; err == nil && twice {
			err = paramsError("gives item %d twice; leave one", item)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		params[item] = value
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return params, nil
}

func parseItemParam(pair string) (int, string, error) {
	key, value, found := strings.Cut(pair, "=")
	key, value = trim(key), trim(value)
	switch {
	case !found && strings.Contains(pair, "＝"):
		return 0, "", paramsError(`has %q, with the full-width character '＝'; write '='`, pair)
	case !found:
		return 0, "", paramsError(`has %q, want item=parameter, for example "0=a,1=b" (a parameter can hold no comma)`, pair)
	case value == "":
		return 0, "", paramsError("gives item %s an empty parameter; give one or leave the item out", clip(key))
	case strings.Contains(value, "=") && strings.ContainsAny(value, otherSeparators):
		first, _ := utf8.DecodeRuneInString(value[strings.IndexAny(value, otherSeparators):])
		return 0, "", paramsError(`gives item %s a parameter with %q and "=" in it; separate parameters by ','`, clip(key), first)
	case strings.Contains(value, "="):
		return 0, "", paramsError(`gives item %s a parameter with "=" in it; use another character`, clip(key))
	}
	item, err := strconv.ParseInt(key, 10, 32)
	if err != nil || item < 0 {
		return 0, "", paramsError("has the item %q, want a whole number from 0", key)
	}
	return int(item), value, nil
}

// FormatItemParams writes what ParseItemParams reads, in the order of items. A
// parameter can be neither empty nor hold a comma or "=", nor begin or end with
// space; the error has a *field.Error, which names the item, for each that is wrong.
func FormatItemParams(params map[int]string) (string, error) {
	var b strings.Builder
	var errs []error
	for _, item := range slices.Sorted(maps.Keys(params)) {
		value := params[item]
		if problem := itemParamProblem(item, value); problem != "" {
			errs = append(errs, paramsError("cannot hold the parameter of item %d: %s", item, problem))
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(item))
		b.WriteByte('=')
		b.WriteString(value)
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return b.String(), nil
}

func itemParamProblem(item int, value string) string {
	switch {
	case item < 0 || item > 1<<31-1:
		return "an item is a whole number from 0"
	case value == "":
		return "it is empty; leave the item out"
	case strings.ContainsAny(value, ",="):
		return `"," and "=" separate parameters; use another character`
	case trim(value) != value:
		return "space at its ends is lost; remove it"
	}
	return ""
}

// trim drops what Java's String.trim drops.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

func clip(s string) string {
	if len(s) > 20 {
		s = s[:20] + "…"
	}
	return strconv.Quote(s)
}

func paramsError(format string, args ...any) error {
	return field.Errorf(paramsField, format, args...)
}
