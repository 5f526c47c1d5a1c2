package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A FieldError is one thing that is wrong in a file.
type FieldError struct {
	// File is the name that was given to Load or Parse.
	File string
	// Line and Column count from 1; 0 is the file as a whole.
	Line, Column int
	// Field is the path of the key, such as "jobs.hello.cron"; "" is the file.
	Field string
	// Problem says what is wrong and what to do, in one line.
	Problem string
	// Err is the cause, for example a *core.ConfigError, or nil.
	Err error
}

// Error is one line: file:line:column: field: problem.
func (p *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Problem)
	return b.String()
}

// Unwrap returns Err.
func (p *FieldError) Unwrap() error { return p.Err }

// An Error holds all that is wrong in a file.
type Error struct {
	// Problems are sorted by line and column. There is at least one.
	Problems []*FieldError
}

// Error has one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// asError sorts problems and makes an error of them, nil of none.
func asError(problems []*FieldError) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b *FieldError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: problems}
}

const maxShown = 60

// clip shows a key of the file in a message.
func clip(s string) string {
	if cut := []rune(s); len(cut) > maxShown {
		s = string(cut[:maxShown]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// join is the path of a key: as it is written where it is one word, else quoted.
func join(path, key string) string {
	word := key != "" && len(key) <= maxShown && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if !word {
		key = clip(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// oneLine keeps what comes from elsewhere to one line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}
