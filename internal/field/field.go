package field

import (
	"errors"
	"fmt"
	"strings"
)

// ErrWrong is matched by every *Error.
var ErrWrong = errors.New("invalid configuration")

// An Error is one field that is wrong. It never repeats a value that may be a secret.
type Error struct {
	// Job is the name of the job, "" when none is meant or its name is what is wrong.
	Job string
	// File is the file, or the node of the registry, that holds the field; "" is neither.
	File string
	// Line and Column count from 1; 0 is unknown, or the file as a whole.
	Line, Column int
	// Field is the name of the field where it stands: "Cron" in a core.JobConfig,
	// "jobs.hello.cron" in a file, "cron" in the registry. "" is the whole.
	Field string
	// Problem says what is wrong and what to do, in one line.
	Problem string
	// Err is the cause, or nil. Its text is part of Problem where it matters.
	Err error
}

// Error is one line: file:line:column: field: problem, or job "name": field: problem.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.File != "":
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		if e.Line > 0 && e.Column > 0 {
			fmt.Fprintf(&b, ":%d", e.Column)
		}
		b.WriteString(": ")
	case e.Job != "":
		fmt.Fprintf(&b, "job %q: ", e.Job)
	}
	if e.File == "" && e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Is reports whether target is ErrWrong.
func (e *Error) Is(target error) bool { return target == ErrWrong }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is an *Error of a field. A cause among args is kept, as with fmt.Errorf.
func Errorf(field, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Field: field, Problem: err.Error(), Err: errors.Unwrap(err)}
}

// All returns the outermost *Errors of err, in their order: those of a join, or one.
func All(err error) []*Error {
	if e := (*Error)(nil); errors.As(err, &e) && e == err { //nolint:errorlint // is it this one, not one that it wraps
		return []*Error{e}
	}
	var all []*Error
	switch w := err.(type) { //nolint:errorlint // each layer in its turn
	case interface{ Unwrap() error }:
		return All(w.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range w.Unwrap() {
			all = append(all, All(inner)...)
		}
	}
	return all
}

// Adapt returns err with a change made to a copy of each of its *Errors, joined when
// there are several. An err that holds none is returned as it is.
func Adapt(err error, change func(*Error)) error {
	found := All(err)
	if len(found) == 0 {
		return err
	}
	adapted := make([]error, len(found))
	for i, e := range found {
		c := *e
		change(&c)
		adapted[i] = &c
	}
	if len(adapted) == 1 {
		return adapted[0]
	}
	return errors.Join(adapted...)
}

// Narrow returns the plain form of a full-width character, as an input method for Chinese writes it in the place of one
// from ! to ~; false where r is none.
func Narrow(r rune) (plain rune, wide bool) {
	if r < '\uff01' || r > '\uff5e' {
		return 0, false
	}
	return r - '\uff01' + '!', true
}
