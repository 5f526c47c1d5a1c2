package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxSize bounds a file.
const maxSize = 1 << 20

// document returns the one document of data, or what is wrong with its syntax.
func document(data []byte) (*yaml.Node, *FieldError) {
	if p := encoding(data); p != nil {
		return nil, p
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, &FieldError{Problem: "cannot be read as YAML"}
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) != 1 {
		return nil, &FieldError{Problem: "is empty; write the blocks registry and jobs"}
	} else if err != nil {
		return nil, syntaxProblem(data, err)
	}
	if err := loader.Load(&more); err == nil {
		return nil, &FieldError{Line: max(more.Line, 1), Column: max(more.Column, 1), Problem: "a second document begins (---); keep one in a file"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(data, err)
	}
	return doc.Content[0], nil
}

// encoding finds what no YAML text holds.
func encoding(data []byte) *FieldError {
	switch {
	case len(data) > maxSize:
		return &FieldError{Problem: fmt.Sprintf("is larger than %d KiB; it holds something else, or should be several files", maxSize>>10)}
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return &FieldError{Line: 1, Column: 1, Problem: "is UTF-16; save it as UTF-8"}
	}
	for rest := data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		at := len(data) - len(rest)
		if r == utf8.RuneError && n == 1 {
			line, column := position(data, at)
			return &FieldError{Line: line, Column: column, Problem: "is not UTF-8 from here on; save the file as UTF-8"}
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			line, column := position(data, at)
			return &FieldError{Line: line, Column: column, Problem: fmt.Sprintf("the control character %U stands here; remove it", r)}
		}
		rest = rest[n:]
	}
	return nil
}

func position(data []byte, at int) (line, column int) {
	before := data[:at]
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// advice puts the parser's messages, by a part of each, into the user's words. Its
// own are never shown: some repeat the text, which may be a secret.
var advice = []struct{ message, text string }{
	{"tab", "the line is indented with a tab; use spaces"},
	{"alphabetic or numeric character", star},
	{"unknown anchor", star},
	{"mapping values are not allowed", `a second ":" on the line, or a wrong indentation; put a value that holds ": " in quotes, or line the key up with its neighbours`},
	{"expected key", "the line does not line up with those above; correct its indentation"},
	{"'-' indicator", "the line does not line up with the list above; correct its indentation"},
	{"could not find expected ':'", `the line is not "key: value"; correct it`},
	{"unexpected end of stream", open},
	{"',' or ']'", "a list in brackets is not closed, or lacks a comma; write [a, b]"},
	{"',' or '}'", "a mapping in braces is not closed, or lacks a comma; write {a: 1, b: 2}, and put a value that holds braces in quotes"},
	{"escape", `a "\" in double quotes begins an escape that YAML does not have; use single quotes`},
}

// star is what a cron expression without quotes meets, where "*/5 *" begins an alias.
const star = "a value cannot begin with * or &; put it in quotes"

// open is told at the quote, where the parser names the end of the file.
const open = "a quote is opened here and never closed; close it"

// wide finds punctuation of Chinese and Japanese keyboards on a line that is no YAML, or
// on the one before it, which the parser took for a part of it.
func wide(data []byte, at int) *FieldError {
	for _, n := range []int{at, at - 1} {
		if n < 1 {
			continue
		}
		for i, r := range lineOf(data, n) {
			if strings.ContainsRune("：，｛｝［］＂＇", r) {
				return &FieldError{Line: n, Column: i + 1, Problem: fmt.Sprintf("the full-width character %q stands here; write %q", r, r-'！'+'!')}
			}
		}
	}
	return nil
}

func syntaxProblem(data []byte, err error) *FieldError {
	p := &FieldError{Problem: `is not YAML; correct the syntax here (put a value in quotes that begins with a sign or holds ": ")`}
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return p
	}
	p.Line, p.Column = max(load.Mark.Line, 1), max(load.Mark.Column, 1)
	line := lineOf(data, p.Line)
	if w := wide(data, p.Line); w != nil {
		return w
	}
	for _, a := range advice {
		if strings.Contains(load.Message, a.message) {
			p.Problem = a.text
			if a.text == open && load.ContextMark.Line > 0 {
				p.Line, p.Column = load.ContextMark.Line, max(load.ContextMark.Column, 1)
			}
			if a.text == star {
				p.Column = firstStar(line, p.Column)
			}
			return p
		}
	}
	switch {
	case !strings.Contains(load.Message, "cannot start any token") || p.Column > len(line):
	case line[p.Column-1] == '\t':
		p.Problem = "the line is indented with a tab; use spaces"
	default:
		p.Problem = fmt.Sprintf("a value cannot begin with %q; put it in quotes", line[p.Column-1])
	}
	return p
}

// firstStar is the column of the first value of a line that begins with * or &.
func firstStar(line []rune, otherwise int) int {
	for i := 1; i < min(len(line), otherwise); i++ {
		if (line[i] == '*' || line[i] == '&') && line[i-1] == ' ' {
			return i + 1
		}
	}
	return otherwise
}

// lineOf returns a line of the file.
func lineOf(data []byte, line int) []rune {
	for range line - 1 {
		_, data, _ = bytes.Cut(data, []byte{'\n'})
	}
	data, _, _ = bytes.Cut(data, []byte{'\n'})
	return []rune(string(data))
}
