package layout

import (
	"fmt"
	"strings"
)

// A FieldError says in one line which field is wrong, why, and what to do. It
// never repeats a value of props or of jobExtraConfigurations.
type FieldError struct {
	// Field is the name as it is written in the registry, for example
	// "shardingTotalCount" or "props.http.uri"; empty when the whole is meant.
	Field string
	// Line counts from 1 in the text that was read; 0 when there is none.
	Line int
	// Problem is what is wrong and the fix.
	Problem string
	// Err is the cause, or nil.
	Err error
}

func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Field)
	if e.Line > 0 {
		if e.Field != "" {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "(line %d)", e.Line)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(e.Problem)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }
