package membership

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A Round is what a listener is called for.
type Round struct {
	Phase    layout.Phase
	Instance string
	Due      time.Time
	// Merged is how many fires since the round before have no call of their own.
	Merged int
	// Attempt is 2 where the instance that was called first has died.
	Attempt int
}

// hearings are what a member does about rounds. The member's mu guards them.
type hearings struct {
	claim   layout.Claim
	claimed registry.Node // of claim
	of      [layout.Phases]hearing
}

// A hearing is the call of a listener for one phase after another.
type hearing struct {
	task  *workqueue.Task
	heard layout.Cursor // called, or being called
	busy  bool
	// Once it has returned: whether it has refused the round, and the claim that says so, or that it is over.
	failed   bool
	answered stamp
}

// listened reports whether somebody listens to rounds, and there are any: without records
// nobody knows of them, and with a fixed delay no two items share a fire. The caller holds mu.
func (m *Member) listened() bool {
	if !m.set.Monitor || m.rule.delayed {
		return false
	}
	for l := range m.listens() {
		if l != (layout.Listens{}) {
			return true
		}
	}
	return false
}

// listens are the listeners of each life. Those of one's own count before the life is seen.
// The caller holds mu.
func (m *Member) listens() iter.Seq[layout.Listens] {
	return func(yield func(layout.Listens) bool) {
		if m.stage >= stageRegistered && m.id != "" && !yield(m.cfg.Listens) {
			return
		}
		for _, l := range m.lives.All() {
			if !yield(l.Listens) {
				return
			}
		}
	}
}

// hears reports whether a listener is being called. The caller holds mu.
func (m *Member) hears() bool {
	return m.rounds != nil && slices.ContainsFunc(m.rounds.of[:], func(x hearing) bool { return x.busy })
}

// onClaim follows which rounds listeners are called for.
func (m *Member) onClaim(n registry.Node) func() {
	c, err := layout.UnmarshalClaim(n.Value)
	read := n.Exists() && err == nil
	if m.rounds == nil {
		m.rounds = m.newHearings()
	}
	h, l := m.rounds, m.leader
	h.claimed = n
	switch {
	case read:
		h.claim = c
		m.cfg.Memory.SawClaim(n)
	case n.Exists():
		m.warn("the claim of rounds cannot be read; the last one stays, and the leader makes it again", err)
	}
	return func() {
		if l != nil {
			l.OnClaim(n, c, read)
		}
		m.putClaim()
		h.poke()
	}
}

func (m *Member) newHearings() *hearings {
	h := &hearings{}
	for p := range layout.Phases {
		h.of[p].task = m.cfg.Session.Calls.Task(func() { m.hear(h, p) })
	}
	return h
}

// poke has the listeners called for whom the claim says so. There may be no claim yet.
func (h *hearings) poke() {
	if h == nil {
		return
	}
	for p := range h.of { // a copy would read what mu guards
		h.of[p].task.Poke()
	}
}

// started is the claim of the beginning of a round, which items wait for. The caller holds mu.
func (m *Member) started() layout.Cursor {
	if m.rounds == nil {
		return layout.Cursor{}
	}
	return m.rounds.claim.Started
}

// putClaim gives the items the claim: it changes with each round, and nothing else with it.
func (m *Member) putClaim() {
	m.putting.Lock()
	defer m.putting.Unlock()
	m.mu.Lock()
	f, claim, left := m.firing, m.started(), m.stage == stageLeft
	m.mu.Unlock()
	if f != nil && !left {
		f.SetClaim(claim)
	}
}

// hear calls the listener to a phase where the claim says so, and says that it has returned.
func (m *Member) hear(h *hearings, p layout.Phase) {
	m.mu.Lock()
	x := &h.of[p]
	c, id := *h.claim.Of(p), m.id
	mine := c.Open() && c.Caller == id && m.stage == stageFiring && m.cfg.Session.Context.Err() == nil
	fresh := mine && !x.heard.Same(c)
	// The claim was made again as it was before the answer, which somebody has deleted with it.
	again := mine && !fresh && later(stampOf(h.claimed), x.answered)
	if fresh {
		x.heard, x.busy = c, true
	}
	x.busy = x.busy || again
	failed := x.failed
	r := Round{Phase: p, Instance: id, Due: c.Due, Attempt: c.Attempt}
	if !c.Since.IsZero() && m.rule.fires != nil {
		r.Merged = misfire.Count(m.rule.fires, c.Since, c.Due.Add(-1)).Count
	}
	m.mu.Unlock()
	if !fresh && !again {
		return
	}
	if fresh {
		failed = m.call(r, c)
	}
	answered := m.heard(m.cfg.Session.Context, h, p, c, failed)
	m.mu.Lock()
	x.busy, x.failed, x.answered = false, failed, answered
	m.mu.Unlock()
	m.Changed()
}

// call calls the listener, and reports whether it has refused the round.
func (m *Member) call(r Round, c layout.Cursor) (failed bool) {
	failpoint.Hit(failpoint.BeforeHear)
	begun := time.Now()
	unanswered, err := m.cfg.Host.Hear(m.ctx, r)
	dispatch.Emit(m.cfg.Events, event.RoundHeard{
		Job: m.name(), Phase: phaseOf(r.Phase), Due: c.Due, Merged: r.Merged, Attempt: c.Attempt, Took: time.Since(begun), Err: err,
	})
	failpoint.Hit(failpoint.AfterHear)
	return err != nil && (!unanswered || c.Fail)
}

// later reports whether one state of a node came after another; any did after none.
func later(a, b stamp) bool {
	return a.created > b.created || a.created == b.created && a.version > b.version
}

func phaseOf(p layout.Phase) event.RoundPhase {
	if p == layout.Started {
		return event.RoundStarted
	}
	return event.RoundCompleted
}

// heard says that the listener has returned for c, unless it is another's by now. It returns the state of the claim in
// which that is said, or with which nothing was left to say.
func (m *Member) heard(ctx context.Context, h *hearings, p layout.Phase, c layout.Cursor, failed bool) (answered stamp) {
	m.mu.Lock()
	node := h.claimed
	m.mu.Unlock()
	pause := firstPause
	for answered = stampOf(node); ctx.Err() == nil; answered = stampOf(node) {
		now, err := layout.UnmarshalClaim(node.Value)
		at := now.Of(p)
		if !node.Exists() || err != nil || !at.Same(c) || at.Done { // one that is destroyed is made again
			return answered
		}
		at.Done, at.Failed = true, failed
		op := registry.Set(m.cfg.Job.Claim(), layout.MarshalClaim(now), node.Version)
		_, err = settle.Commit{
			Store: m.cfg.Session, Marker: 1,
			Ops: []registry.Op{registry.Check(m.cfg.Job.Life(c.Caller), registry.AnyVersion), op},
			Shows: func(n registry.Node) bool {
				is, err := layout.UnmarshalClaim(n.Value)
				return err == nil && (!is.Of(p).Same(c) || is.Of(p).Done)
			},
		}.Run(ctx, m.hindered)
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case err == nil:
			answered.version++
			return answered
		case errors.Is(err, registry.ErrSessionLost), errors.Is(err, registry.ErrInvalid):
			return answered
		case refused && failed.Index == 0 && !errors.Is(err, registry.ErrDenied):
			return answered // the registration is over, and the leader sees it
		case errors.Is(err, registry.ErrDenied) || !refused:
			if !settle.Pause(ctx, time.Second) {
				return answered
			}
		}
		nodes, err := settle.Get(ctx, m.cfg.Session, m.hindered, m.cfg.Job.Claim())
		if err != nil {
			return answered
		}
		if refused && stampOf(nodes[0]) == stampOf(node) { // it is shown as it was, by a server that lacks a change
			if !settle.Pause(ctx, pause) {
				return answered
			}
			pause = min(2*pause, lastPause)
		}
		node = nodes[0]
	}
	return answered
}

// Pauses before what is refused again, since it goes by what is shown as it was before: ever longer.
const firstPause, lastPause = 10 * time.Millisecond, time.Second
