package schedule

import (
	"fmt"
	"strconv"

	wrong "github.com/elasticron/elasticron/internal/field"
)

// Names of the fields of a Config in errors: those of the registry.
const (
	cronField    = "cron"
	zoneField    = "timeZone"
	gapField     = "gap"
	overlapField = "overlap"
)

// fault is an error of a field of Config. fix, which may be empty, says what to write.
func fault(name, problem, fix string) error {
	if fix != "" {
		problem += "; " + fix
	}
	return &wrong.Error{Field: name, Problem: problem}
}

func faultf(name, fix, format string, args ...any) error {
	return fault(name, fmt.Sprintf(format, args...), fix)
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
