package layout

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/elasticron/elasticron/internal/field"
)

// maxKey is the longest key that readers of YAML must take: SnakeYAML's and Go's take
// 1,024 characters with the quotes and escapes around it.
const maxKey = 122

// A yamlWriter writes a block mapping that readers of YAML 1.1 and 1.2 read the same:
// each text in one line, and in quotes unless it is sure to be text without. It goes on
// after an error, to find them all.
type yamlWriter struct {
	out  []byte
	errs []error
}

func (w *yamlWriter) done() ([]byte, error) {
	if err := errors.Join(w.errs...); err != nil {
		return nil, err
	}
	return w.out, nil
}

func (w *yamlWriter) raw(s string) { w.out = append(w.out, s...) }

func (w *yamlWriter) text(key, value string) {
	w.check(key, value)
	w.raw(key + ": " + quoted(value) + "\n")
}

func (w *yamlWriter) int(key string, value int) { w.raw(key + ": " + strconv.Itoa(value) + "\n") }

func (w *yamlWriter) verbatim(key, text string) {
	if text != "" {
		w.raw(key + ":" + text)
	}
}

// check refuses what YAML text cannot hold or would change: Java writes the
// first as base64 and reads the second back as something else.
func (w *yamlWriter) check(key, value string) {
	if !utf8.ValidString(value) {
		w.errs = append(w.errs, &field.Error{Field: key, Problem: "is not UTF-8; encode it"})
		return
	}
	for _, r := range value {
		if !printable(r) {
			w.errs = append(w.errs, field.Errorf(key, "holds the character %U, which YAML cannot hold; remove it", r))
			return
		}
	}
}

func printable(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || (r >= 0x20 && r <= 0x7e):
		return true
	case r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff:
		return false
	}
	return r >= 0xa0
}

func (w *yamlWriter) checkKey(parent, key string) {
	w.check(parent, key)
	if key == "" || strings.Contains(key, "\n") || utf8.RuneCountInString(key) > maxKey {
		w.errs = append(w.errs, field.Errorf(parent, "has the key %s, want one line of 1 to %d characters", clip(key), maxKey))
	}
}

// plainText begins and ends with a letter, a digit or one of few signs, and holds nothing
// between that means something wherever it stands.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_/.$]([A-Za-z0-9_/.*?=+$():@ ,-]*[A-Za-z0-9_/.*?=+$()-])?$`)

// elsewhere is what is text to YAML 1.1, and a number or a date to Go's reader.
var elsewhere = regexp.MustCompile(`^(?:0o[0-7]+|[0-9]{4}-.*)$`)

func isPlain(text string) bool {
	return plainText.MatchString(text) && !strings.Contains(text, ": ") &&
		resolve(text) == kindString && !zeroNumber.MatchString(text) && !elsewhere.MatchString(text)
}

// quoted is the text as a scalar: as it is where nobody can take it for anything but this
// text, else in single quotes; with line breaks or tabs in double quotes.
func quoted(text string) string {
	switch {
	case strings.ContainsAny(text, "\t\r\n"):
		return `"` + escapes.Replace(text) + `"`
	case isPlain(text):
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`, "\r", `\r`, "\n", `\n`)
