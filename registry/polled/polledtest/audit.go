package polledtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

const (
	auditPath    = "/polledtest"
	auditTimeout = 7 * time.Second
)

// An auditor tries what the suite cannot see, on a store that nobody else uses.
// Where many clients are at work, a revision that did not rise is covered by
// that of another commit, and a heartbeat that saves its session at the last moment
// is rare.
type auditor struct {
	polled.Store

	ctx context.Context
	err error // the first
}

// audit returns what the store does otherwise than polled.Store says. It leaves
// nothing behind but a higher revision.
func audit(ctx context.Context, store polled.Store) error {
	a := &auditor{Store: store, ctx: ctx}
	session := a.begin()
	a.counter(session)
	last := a.notInTime(session)
	a.ended(session, last)
	a.must("End of a session that has ended", store.End(ctx, session, polled.AnyBeat), true, "")
	for _, try := range []func(){a.keepsNothing, a.readsOneMoment, a.endsAndCommits, a.rings} {
		if a.err == nil {
			try()
		}
	}
	return a.err
}

// must notes what is wrong with a method, unless something was wrong before.
func (a *auditor) must(method string, err error, ok bool, format string, args ...any) {
	switch {
	case a.err != nil:
	case err != nil:
		a.err = fmt.Errorf("%s: %w", method, err)
	case !ok:
		a.err = fmt.Errorf("%s: %s", method, fmt.Sprintf(format, args...))
	}
}

func (a *auditor) begin() (session string) {
	session = rand.Text()
	a.must("Begin", a.Begin(a.ctx, session, auditTimeout), true, "")
	return session
}

func (a *auditor) beat(session string) registry.Revision {
	rev, err := a.Beat(a.ctx, session)
	a.must("Beat", err, true, "")
	return rev
}

func (a *auditor) exists() bool {
	nodes, err := a.Read(a.ctx, []string{auditPath}, nil)
	a.must("Read", err, len(nodes) < 2, "%d nodes at one path: %+v", len(nodes), nodes)
	return len(nodes) > 0
}

// row returns that of the session, and whether there is one.
func (a *auditor) row(session string) (polled.Session, bool) {
	all, err := a.Sessions(a.ctx)
	a.must("Sessions", err, true, "")
	for _, row := range all {
		if row.ID == session {
			return row, true
		}
	}
	return polled.Session{}, false
}

func (a *auditor) counter(session string) {
	for want := int64(1); want < 4; want++ {
		row, found := a.row(session)
		a.must("Sessions", nil, found && row.Beat == want && row.Timeout == auditTimeout,
			"%+v after Begin with %v and %d heartbeats; want that timeout, and a counter of %d", row, auditTimeout, want-1, want)
		a.beat(session)
	}
}

// notInTime is an End just after a heartbeat. It returns the session's counter.
func (a *auditor) notInTime(session string) int64 {
	rev, err := a.Commit(a.ctx, session, []registry.Op{registry.CreateEphemeral(auditPath, nil)})
	a.must("Commit", err, rev > 0, "the revision is %d", rev)
	now := a.beat(session)
	a.must("Beat", nil, now >= rev, "the revision is %d; a commit before was %d", now, rev)
	row, _ := a.row(session)
	a.must("End", a.End(a.ctx, session, row.Beat-1), true, "")
	_, found := a.row(session)
	a.must("End", nil, found && a.exists(), "it removed a session whose counter had moved on, or its node")
	return row.Beat
}

func (a *auditor) ended(session string, last int64) {
	before := a.beat(session)
	a.must("End", a.End(a.ctx, session, last+1), true, "")
	_, found := a.row(session)
	a.must("End", nil, !found && !a.exists(), "it left a session whose counter stood where it was asked to, or its node")
	a.must("End of a session that has ended", a.End(a.ctx, session, last+1), true, "")
	_, err := a.Beat(a.ctx, session)
	a.must("Beat", nil, errors.Is(err, registry.ErrSessionLost), "error %v for a session that has ended; want registry.ErrSessionLost", err)

	next := a.begin()
	after := a.beat(next)
	a.must("End of the last session", a.End(a.ctx, next, polled.AnyBeat), true, "")
	a.must("End", nil, after > before, "the revision is %d after an ephemeral node went, as it was before: nobody would look", after)
}
