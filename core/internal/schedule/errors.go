package schedule

import (
	"fmt"
	"strconv"
)

// A ParseError says in one line which part of a Config is wrong and what to
// write instead. Parse returns no other error.
type ParseError struct {
	// Field is "cron" for the expression as a whole, "seconds", "minutes",
	// "hours", "day of month", "month", "day of week" or "year" for one field,
	// or "timeZone", "gap", "overlap".
	Field string
	// Value is the text of Field, cut off when long.
	Value string
	// Problem is what is wrong with Value.
	Problem string
	// Fix is what to write instead; it may be empty.
	Fix string
}

func (e *ParseError) Error() string {
	s := e.Field + ": " + e.Problem
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

func fault(field, value, problem, fix string) *ParseError {
	return &ParseError{Field: field, Value: clip(value), Problem: problem, Fix: fix}
}

func faultf(field, value, fix, format string, args ...any) *ParseError {
	return fault(field, value, fmt.Sprintf(format, args...), fix)
}

// maxShown bounds the user's text in a message, in bytes.
const maxShown = 60

func clip(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "..."
	}
	return s
}

// quote keeps a message on one line, whatever the user wrote.
func quote(s string) string { return strconv.Quote(clip(s)) }
