package core

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/registry"
)

// ledgerOps are the operations for a ledger that is written: itself and the notice.
const ledgerOps = 2

// write commits the plan step by step and returns what it moved, also when a later
// step fails, and how many commits that took. notified are the instances that have
// a notice.
func (m *member) write(ctx context.Context, p *sharding.Plan, notified map[string]bool) (moved []event.Move, commits int, err error) {
	nodes, err := m.itemNodes(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	flags := []string{m.path.Processing(), m.path.Necessary()}
	// Room for the flags, which only a plan of several commits needs.
	room := m.life.session.Limits().MaxOps - leadOps - len(flags)
	steps := p.Steps(room, ledgerOps, func(n int) int {
		if nodes[m.path.Item(n)].Exists() {
			return 1
		}
		return 2
	})
	for i, s := range steps {
		m.notices++
		ops := m.stepOps(s, nodes, notified)
		if len(steps) > 1 && i == 0 && !nodes[flags[0]].Exists() {
			ops = append(ops, registry.CreateEphemeral(flags[0], nil))
		}
		if len(steps) > 1 && i == 0 && !nodes[flags[1]].Exists() {
			ops = append(ops, registry.Create(flags[1], nil))
		}
		for _, f := range flags {
			if i == len(steps)-1 && (nodes[f].Exists() || i > 0) {
				ops = append(ops, registry.Delete(f, registry.AnyVersion))
			}
		}
		if err := m.commit(ctx, ops); err != nil {
			return moved, i, err
		}
		for _, mv := range s.Moves {
			moved = append(moved, event.Move(mv))
		}
	}
	if len(steps) == 0 {
		return nil, 0, m.clearFlags(ctx, nodes, flags)
	}
	return moved, len(steps), nil
}

// clearFlags removes what a leader before left behind.
func (m *member) clearFlags(ctx context.Context, nodes map[string]registry.Node, flags []string) error {
	var ops []registry.Op
	for _, f := range flags {
		if nodes[f].Exists() {
			ops = append(ops, registry.Delete(f, registry.AnyVersion))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return m.commit(ctx, append(m.guard(), ops...))
}

// itemNodes reads what stands of the items that move, and the flags.
func (m *member) itemNodes(ctx context.Context, p *sharding.Plan) (map[string]registry.Node, error) {
	m.mu.Lock()
	flagged := len(m.flags) > 0
	m.mu.Unlock()
	if len(p.Moves) == 0 && !flagged {
		return map[string]registry.Node{}, nil
	}
	paths := []string{m.path.Processing(), m.path.Necessary()}
	for _, mv := range p.Moves {
		paths = append(paths, m.path.Item(mv.Item), m.path.ItemInstance(mv.Item))
	}
	found, err := m.life.session.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]registry.Node, len(found))
	for _, n := range found {
		nodes[n.Path] = n
	}
	return nodes, nil
}

func (m *member) guard() []registry.Op {
	return []registry.Op{
		registry.Check(m.path.Life(m.id.String()), registry.AnyVersion),
		registry.Check(m.path.Term(), registry.AnyVersion),
	}
}

func (m *member) stepOps(s sharding.Step, nodes map[string]registry.Node, notified map[string]bool) []registry.Op {
	ops := m.guard()
	stamp := fmt.Appendf(nil, "%s %d", m.id, m.notices)
	for _, w := range s.Ledgers {
		ops = append(ops, registry.Set(m.path.Ledger(w.ID), w.Ledger.Encode(), w.Version))
		if notified[w.ID] { // else it is dead, or will register anew
			ops = append(ops, registry.Set(m.path.Notice(w.ID), stamp, registry.AnyVersion))
		}
	}
	for _, w := range s.Drop {
		ops = append(ops, registry.Delete(m.path.Ledger(w.ID), w.Version))
	}
	for _, mv := range s.Moves {
		owner := m.path.ItemInstance(mv.Item)
		switch {
		case nodes[owner].Exists():
			ops = append(ops, registry.Set(owner, []byte(mv.To), registry.AnyVersion))
		case nodes[m.path.Item(mv.Item)].Exists():
			ops = append(ops, registry.Create(owner, []byte(mv.To)))
		default:
			ops = append(ops, registry.Create(m.path.Item(mv.Item), nil), registry.Create(owner, []byte(mv.To)))
		}
	}
	return ops
}

// commit settles one commit of the leader, by submitting it until it is answered.
// A refusal after an attempt of unknown outcome may be that attempt's own doing.
func (m *member) commit(ctx context.Context, ops []registry.Op) error {
	pause := 50 * time.Millisecond
	for inFlight := false; ; inFlight = true {
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := m.life.session.Commit(once, ops...)
		cancel()
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, registry.ErrDenied) && !inFlight:
			return err
		case errors.Is(err, registry.ErrDenied): // an earlier attempt's outcome is still owed
			m.Hindered(err)
		case refused && failed.Index < leadOps:
			return fmt.Errorf("%w: %w", errNotLeader, err)
		case refused && inFlight:
			applied, settleErr := m.settle(ctx, ops)
			if applied || settleErr != nil {
				return settleErr
			}
			return fmt.Errorf("%w: %w", errStale, err)
		case refused:
			return fmt.Errorf("%w: %w", errStale, err)
		case ctx.Err() != nil, errors.Is(err, registry.ErrSessionLost), errors.Is(err, registry.ErrInvalid):
			return err
		}
		if !sleep(ctx, pause) {
			return err
		}
		pause = min(2*pause, time.Second)
	}
}

// settle finds out whether an earlier attempt of ops was applied, and if it was
// not, sees to it that it never will be. The notices tell the one: only the leader
// writes them, each commit a value of its own. A ledger's version that has moved on
// tells the other; where none has, one is moved.
func (m *member) settle(ctx context.Context, ops []registry.Op) (applied bool, err error) {
	guarded := ops[leadOps:]
	paths := make([]string, len(guarded))
	for i, op := range guarded {
		paths[i] = op.Path
	}
	pause := 50 * time.Millisecond
	for {
		nodes, err := m.life.session.Get(ctx, paths...)
		if err != nil {
			return false, err
		}
		var hold registry.Op
		moved := false
		for i, op := range guarded {
			switch {
			case path.Dir(op.Path) == m.path.Notices():
				if string(nodes[i].Value) == string(op.Value) {
					return true, nil
				}
			case op.Version == registry.AnyVersion || op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral:
			case !nodes[i].Exists() || nodes[i].Version != op.Version:
				moved = true
			default:
				hold = registry.Set(op.Path, nodes[i].Value, op.Version)
			}
		}
		if moved || hold.Path == "" {
			return false, nil
		}
		_, err = m.life.session.Commit(ctx, append(m.guard(), hold)...)
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case err == nil:
			continue
		case errors.Is(err, registry.ErrDenied): // it is still owed
			m.Hindered(err)
		case refused && failed.Index < leadOps:
			return false, fmt.Errorf("%w: %w", errNotLeader, err)
		case refused, errors.Is(err, registry.ErrUncertain), errors.Is(err, registry.ErrUnavailable):
		default:
			return false, err
		}
		if !sleep(ctx, pause) {
			return false, ctx.Err()
		}
		pause = min(2*pause, time.Second)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
