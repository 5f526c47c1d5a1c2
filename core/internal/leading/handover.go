package leading

import (
	"errors"
	"slices"

	"github.com/elasticron/elasticron/registry"
)

// A leader that has been refused so often in a row lets others lead: some ten seconds, by the pauses of its attempts.
const (
	mostRefusals = 10
	mostStale    = 50 // of resharding, which tries again sooner, since owners write their ledgers all the time
)

// refused reports whether what the registry said to this instance may be said to none of the others: it has fewer
// rights than they, or is connected to a server that lacks a change (ZooKeeper's do now and then).
func refused(err error) bool {
	failed := (*registry.CommitError)(nil)
	return errors.As(err, &failed) || errors.Is(err, errStale) || errors.Is(err, registry.ErrDenied)
}

// handOver has this leader step down, and stand back while others may be elected, where there are any. It goes on
// where nobody is.
func (l *Leader) handOver(err error) {
	f := l.cfg.Host.Facts()
	if !slices.ContainsFunc(f.Lives, func(id string) bool { return id != l.cfg.ID && f.Eligible(id) }) {
		return
	}
	l.mu.Lock()
	leads := l.node.Owned && string(l.node.Value) == l.cfg.ID && !l.weary
	if leads {
		l.weary = true
		l.retry = nil // a former leader's
	}
	l.mu.Unlock()
	if leads {
		l.warn("the leader goes on being refused, and lets another one lead", err)
		l.work.Poke()
	}
}
