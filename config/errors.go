package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/elasticron/elasticron/core"
)

// A FieldError is one thing that is wrong in a file, the same type as core.ConfigError.
// File is the name that was given to Load or Parse, Field the path of the key, such as
// "jobs.hello.cron", or "" for the file as a whole.
type FieldError = core.ConfigError

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
	problems = toldOnce(problems)
	slices.SortStableFunc(problems, func(a, b *FieldError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: problems}
}

// toldOnce tells a problem of the block defaults once, and which jobs have it, unless all do.
func toldOnce(problems []*FieldError) []*FieldError {
	type same struct {
		line, column   int
		field, problem string
	}
	var out []*FieldError
	first, jobs := map[same]int{}, map[same][]string{}
	for _, p := range problems {
		k := same{p.Line, p.Column, p.Field, p.Problem}
		i, again := first[k]
		switch {
		case !strings.HasPrefix(p.Field, sharedBlock+"."):
		case !again:
			first[k] = len(out)
			jobs[k] = []string{p.Job}
		default:
			jobs[k] = append(jobs[k], p.Job)
			if p.Job == "" {
				out[i] = p
			}
			continue
		}
		out = append(out, p)
	}
	for k, i := range first {
		if slices.Contains(jobs[k], "") {
			continue
		}
		told := *out[i]
		told.Problem += " (job " + clip(jobs[k][0]) + ")"
		if more := len(jobs[k]) - 1; more > 0 {
			told.Problem = fmt.Sprintf("%s and %d more)", strings.TrimSuffix(told.Problem, ")"), more)
		}
		out[i] = &told
	}
	return out
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
