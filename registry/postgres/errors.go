package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/elasticron/elasticron/registry"
)

// errUnreplicated: the server gave up waiting for its synchronous standby.
var errUnreplicated = errors.New("applied, but a synchronous standby has not confirmed it")

// undecided is of several servers, some of which refuse who asks: the one that takes writes may be another.
type undecided struct{ error }

func (u undecided) Unwrap() error { return u.error }

// refused is what servers have against who asks, or against what he asks for: ErrDenied or ErrInvalid; nil: nothing.
func refused(err error) error {
	err = classify(err)
	if errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrInvalid) {
		return err
	}
	return nil
}

// classify marks the errors after which certainly nothing was applied.
func classify(err error) error {
	e, said := errors.AsType[*pgconn.PgError](err)
	_, open := errors.AsType[undecided](err)
	switch {
	case err == nil:
		return nil
	case open:
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	case !said && pgconn.SafeToRetry(err): // nothing was sent
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	case !said:
		return err
	case is(e, "28", "42501"): // who asks, what he may
		return fmt.Errorf("%w: %w", registry.ErrDenied, err)
	case is(e, "3D000"): // no such database
		return fmt.Errorf("%w: %w", registry.ErrInvalid, err)
	case e.SeverityUnlocalized == "ERROR" && !is(e, "08"):
		// An ERROR has rolled the statement back. FATAL is the connection's end, at whatever
		// moment, and class 08 what a pooler says of a server that it has lost.
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	}
	return err
}

// flat is an error of the client's on one line: one that names several servers has a line for each.
type flat struct{ error }

func (f flat) Error() string { return lines.Replace(f.error.Error()) }

// Unwrap returns the client's error.
func (f flat) Unwrap() error { return f.error }

var lines = strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ")

// readOnly reports whether a server has become a standby.
func readOnly(err error) bool {
	e, said := errors.AsType[*pgconn.PgError](err)
	return said && is(e, "25006")
}

// broken reports whether another connection may do better.
func broken(err error) bool {
	e, said := errors.AsType[*pgconn.PgError](err)
	return !said || is(e, "25006", "57P", "08")
}

// is compares the code of an error, or its class.
func is(e *pgconn.PgError, codes ...string) bool {
	for _, code := range codes {
		if strings.HasPrefix(e.Code, code) {
			return true
		}
	}
	return false
}

// reasons are those of function step in schema.sql.
var reasons = map[string]error{
	"exists": registry.ErrExists, "no parent": registry.ErrNoParent, "ephemeral parent": registry.ErrEphemeralParent,
	"not found": registry.ErrNotFound, "version": registry.ErrVersion, "not empty": registry.ErrNotEmpty,
}

// refusal is what function step has refused.
func refusal(index int, reason string) error {
	if reason == "session" {
		return registry.ErrSessionLost
	}
	if err := reasons[reason]; err != nil {
		return &registry.CommitError{Index: index, Err: err}
	}
	return fmt.Errorf("the function elasticron.step refuses operation %d with %q, which is unknown here", index, reason)
}
