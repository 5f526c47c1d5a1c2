package membership

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/leading"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// onAsked follows requests, which the leader answers, and runs that were asked for. It
// reports false for a node of another kind. The caller holds mu.
func (m *Member) onAsked(n registry.Node) (then func(), is bool) {
	name := path.Base(n.Path)
	_, isRequest := layout.RequestID(name)
	number, isRun := layout.RunNumber(name)
	isKill := layout.IsKill(name)
	if !isRequest && !isRun && !isKill {
		return nil, false
	}
	if n.Exists() {
		lazymap.Set(&m.asks, name, true)
	} else {
		delete(m.asks, name)
	}
	switch {
	case isRequest:
		m.cfg.Memory.SawRequest(n, m.unsynced&inForceBit == 0)
		return m.answer, true
	case isKill:
		return m.onKill(name, n), true
	}
	if r, err := layout.UnmarshalRun(n.Value); n.Exists() && err == nil && r.Number == number {
		m.cfg.Memory.SawRun(number)
	}
	return func() {
		m.runs.Poke()
		m.answer()
	}, true
}

// onKill follows the runs that somebody wants to end. The caller holds mu.
func (m *Member) onKill(name string, n registry.Node) func() {
	delete(m.kills, name)
	if n.Exists() {
		k, err := layout.UnmarshalKill(n.Value)
		if err != nil {
			m.warn("foreign value in "+n.Path, err)
			return m.answer
		}
		lazymap.Set(&m.kills, name, k)
	}
	return func() {
		m.putInForce()
		m.answer()
	}
}

// answer has the leader see to requests and to what was asked for.
func (m *Member) answer() {
	m.mu.Lock()
	l := m.leader
	m.mu.Unlock()
	if l != nil {
		l.Answer()
	}
}

// readRuns reads which runs are open: all at once, since an item begins them in their order,
// and its record is about all up to a number. It runs on its own task.
func (m *Member) readRuns() {
	ctx := m.cfg.Session.Context
	m.mu.Lock()
	f := m.firing
	m.mu.Unlock()
	if f == nil || ctx.Err() != nil {
		return // open asks for it again
	}
	known, open, err := m.listRuns(ctx)
	switch {
	case err == nil:
		m.mu.Lock()
		m.reread = nil
		m.mu.Unlock()
		f.SetAsked(open, known)
	case ctx.Err() != nil || errors.Is(err, registry.ErrSessionLost):
	default:
		m.again(&m.reread, m.runs, err)
	}
}

// listRuns returns the open runs, and up to which number every other one is closed: the
// counter is read first, and each run up to it was made before.
func (m *Member) listRuns(ctx context.Context) (known int64, open []firing.Asked, err error) {
	job := m.cfg.Job
	nodes, err := m.cfg.Session.Get(ctx, job.Runs())
	if err != nil {
		return 0, nil, fmt.Errorf("core: runs: %w", err)
	}
	known = leading.Counted(nodes[0])
	m.cfg.Memory.SawRun(known)
	names, err := m.cfg.Session.Names(ctx, job.InForce())
	if err != nil {
		return 0, nil, fmt.Errorf("core: runs: %w", err)
	}
	var numbers []int64
	for _, name := range names {
		if n, is := layout.RunNumber(name); is && leading.Believable(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	paths := make([]string, len(numbers))
	for i, n := range numbers {
		paths[i] = job.Run(n)
	}
	if nodes, err = m.cfg.Session.Get(ctx, paths...); err != nil {
		return 0, nil, fmt.Errorf("core: runs: %w", err)
	}
	for i, n := range nodes {
		r, err := layout.UnmarshalRun(n.Value)
		switch {
		case !n.Exists():
			continue // whoever deletes one has counted on
		case err != nil || r.Number != numbers[i]:
			m.warn("foreign value in "+n.Path, err)
			continue
		case r.Closed.IsZero():
			open = append(open, firing.Asked{Run: r, Node: n})
		}
		known = max(known, numbers[i])
	}
	return known, open, nil
}
