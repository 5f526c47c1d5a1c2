package layout

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/elasticron/elasticron/internal/field"
)

const (
	// foldColumn is where SnakeYAML starts to fold: at the first single space
	// past it. Columns count UTF-16 units, as Java does.
	foldColumn = 80
	// maxKey is the longest key that SnakeYAML writes as "key: value".
	maxKey = 122
)

// A yamlWriter writes a block mapping as SnakeYAML 2.2 does with its default
// options. It goes on after an error, to find them all.
type yamlWriter struct {
	out    []byte
	column int
	errs   []error
}

func (w *yamlWriter) done() ([]byte, error) {
	if err := errors.Join(w.errs...); err != nil {
		return nil, err
	}
	return w.out, nil
}

func (w *yamlWriter) raw(s string) {
	w.out = append(w.out, s...)
	w.column += len(s)
	if strings.HasSuffix(s, "\n") {
		w.column = 0
	}
}

// put writes part of a scalar; it never ends within a surrogate pair.
func (w *yamlWriter) put(units []uint16) {
	for _, r := range utf16.Decode(units) {
		w.out = utf8.AppendRune(w.out, r)
	}
	w.column += len(units)
}

func (w *yamlWriter) breakLine(indent int) {
	w.raw("\n")
	w.raw(strings.Repeat(" ", indent))
}

func (w *yamlWriter) text(key, value string) {
	w.check(key, value)
	w.raw(key + ":")
	w.scalar(value, 2)
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
	if key == "" || strings.Contains(key, "\n") || len(utf16.Encode([]rune(key))) > maxKey {
		w.errs = append(w.errs, field.Errorf(parent, "has the key %s, want one line of 1 to %d characters", clip(key), maxKey))
	}
}

// key writes the key of a mapping, which is never folded, and its colon.
func (w *yamlWriter) key(key string) {
	units := utf16.Encode([]rune(key))
	const never = -1
	switch analyze(key).style(key) {
	case stylePlain:
		w.folded(units, never, false)
	case styleSingle:
		w.quoted(units, never)
	default:
		w.escaped(units, never)
	}
	w.raw(":")
}

// scalar writes a space, the text in the style that SnakeYAML chooses, and the
// end of the line.
func (w *yamlWriter) scalar(value string, indent int) {
	units := utf16.Encode([]rune(value))
	w.raw(" ")
	switch analyze(value).style(value) {
	case stylePlain:
		w.folded(units, indent, false)
	case styleSingle:
		w.quoted(units, indent)
	case styleLiteral:
		w.literal(value, indent)
		return
	default:
		w.escaped(units, indent)
	}
	w.raw("\n")
}

func (w *yamlWriter) quoted(units []uint16, indent int) {
	w.raw("'")
	w.folded(units, indent, true)
	w.raw("'")
}

// folded writes text that has no line breaks; single spaces past the fold column
// become line breaks, if indent is not negative.
func (w *yamlWriter) folded(text []uint16, indent int, quote bool) {
	for i := 0; i < len(text); {
		j := i
		switch {
		case text[i] == ' ':
			for j < len(text) && text[j] == ' ' {
				j++
			}
			if j-i == 1 && w.column > foldColumn && indent >= 0 && i > 0 && j < len(text) {
				w.breakLine(indent)
			} else {
				w.put(text[i:j])
			}
		case quote && text[i] == '\'':
			w.raw("''")
			j++
		default:
			for j < len(text) && text[j] != ' ' && (!quote || text[j] != '\'') {
				j++
			}
			w.put(text[i:j])
		}
		i = j
	}
}

// literal writes text with line breaks as a block.
func (w *yamlWriter) literal(text string, indent int) {
	w.raw("|")
	if text[0] == '\n' || text[0] == ' ' {
		w.raw("2")
	}
	body := strings.TrimSuffix(text, "\n")
	switch {
	case body == text:
		w.raw("-")
	case body == "" || strings.HasSuffix(body, "\n"):
		w.raw("+")
	}
	w.raw("\n")
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			w.raw(strings.Repeat(" ", indent))
		}
		w.raw(line + "\n")
	}
}

// escaped writes text in double quotes. Where it breaks a line, a backslash
// stands at the end, and before a space that begins the next one.
func (w *yamlWriter) escaped(text []uint16, indent int) {
	w.raw(`"`)
	start := 0
	for end := 0; end <= len(text); end++ {
		space := end < len(text) && text[end] == ' '
		if end == len(text) || needsEscape(text[end]) {
			w.put(text[start:end])
			start = end
			if end < len(text) {
				end += w.escape(text[end:]) - 1
				start = end + 1
			}
		}
		atGap := space || start >= end
		if end == 0 || end >= len(text)-1 || !atGap || indent < 0 || w.column+end-start <= foldColumn {
			continue
		}
		if start < end {
			w.put(text[start:end])
			start = end
		}
		w.raw(`\`)
		w.breakLine(indent)
		if text[start] == ' ' {
			w.raw(`\`)
		}
	}
	w.raw(`"`)
}

func needsEscape(u uint16) bool { return u == '"' || u == '\\' || u < 0x20 || u > 0x7e }

// escape writes the first character and returns how many units it has.
func (w *yamlWriter) escape(text []uint16) int {
	short := map[uint16]string{'\t': `\t`, '\n': `\n`, '\r': `\r`, '"': `\"`, '\\': `\\`, 0xa0: `\_`}
	if s, ok := short[text[0]]; ok {
		w.raw(s)
		return 1
	}
	n := 1
	if utf16.IsSurrogate(rune(text[0])) {
		n = 2
	}
	w.put(text[:n])
	return n
}
