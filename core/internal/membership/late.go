package membership

import (
	"context"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/barrier"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/layout/pages"
)

// lateWait bounds the requests that find out for whom items have waited.
const lateWait = 5 * time.Second

// lateRounds are those of which nobody was told yet. The member's mu guards them.
type lateRounds struct {
	task   *workqueue.Task // tells of them
	untold []firing.LateRound
}

// before is what those want who listen before rounds: the longest wait, and to fail where any
// of them says so. The caller holds mu.
func (m *Member) before() (r barrier.Rule) {
	if !m.listened() {
		return r
	}
	for l := range m.listens() {
		if l.Before {
			r.On, r.Wait, r.Fail = true, max(r.Wait, l.Wait), r.Fail || l.Fail
		}
	}
	return r
}

// Late implements firing.Host.
func (m *Member) Late(r firing.LateRound) {
	m.mu.Lock()
	if m.late == nil {
		m.late = &lateRounds{task: m.cfg.Session.Calls.Task(func() { m.tellLateRounds(m.cfg.Session.Context) })}
	}
	l := m.late
	l.untold = append(l.untold, r)
	m.mu.Unlock()
	l.task.Poke()
}

// tellLateRounds tells of rounds that were late, and for whom they waited. It runs on a task,
// since it asks the registry. Once ctx has ended it asks no more, and tells all the same.
func (m *Member) tellLateRounds(ctx context.Context) {
	m.mu.Lock()
	var late []firing.LateRound
	if m.late != nil {
		late, m.late.untold = m.late.untold, nil
	}
	id := m.id
	m.mu.Unlock()
	for _, r := range late {
		e := event.RoundLate{
			Job: m.name(), Instance: id, Due: r.Due, Items: r.Items, Waited: r.Waited, Caller: r.Caller, Failed: r.Failed,
		}
		if r.Caller == "" {
			e.Missing = m.missing(ctx, r)
		}
		dispatch.Emit(m.cfg.Events, e)
	}
}

// missing are the instances that have not begun all their items of a round, as far as that can
// be found out.
func (m *Member) missing(ctx context.Context, r firing.LateRound) (ids []string) {
	ctx, cancel := context.WithTimeout(ctx, lateWait)
	defer cancel()
	lives, err := m.cfg.Session.Names(ctx, m.cfg.Job.Lives())
	if err != nil {
		return nil
	}
	paths := make([]string, len(lives))
	for i, id := range lives {
		paths[i] = m.cfg.Job.Ledger(id)
	}
	nodes, err := settle.Get(ctx, m.cfg.Session, func(error) {}, paths...)
	if err != nil {
		return nil
	}
	found, err := pages.Read(ctx, m.cfg.Session.Get, nil, nodes...)
	if err != nil {
		return nil
	}
	for i, of := range found {
		if of.Ledger != nil && of.Ledger.Rounds().Started.Before(r.Due) {
			ids = append(ids, lives[i])
		}
	}
	slices.Sort(ids)
	return ids
}
