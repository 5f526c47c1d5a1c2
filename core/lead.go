package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/strategy"
)

// leadOps are the operations of every commit of the leader: its life and its term.
const leadOps = 2

// govern does what falls to a registered member: electing, leading, stepping down.
func (m *member) govern(ctx context.Context) error {
	m.mu.Lock()
	id, leader, led := m.id.String(), m.leader, m.led
	able := m.serverEnabled && m.instances[id] && !m.stopping
	work := m.reshard || m.tidy || m.flags["necessary"] || m.flags["processing"]
	m.mu.Unlock()
	switch {
	case leader == id && !able:
		return m.abdicate(ctx, true)
	case leader != id && led:
		return m.abdicate(ctx, false)
	case leader == "" && able:
		return m.elect(ctx)
	case leader == id && work:
		return m.lead(ctx)
	}
	return nil
}

// elect tries to become the leader. Who wins is seen by the watch.
func (m *member) elect(ctx context.Context) error {
	id := m.id.String()
	_, err := m.life.session.Commit(ctx,
		registry.Check(m.path.Life(id), registry.AnyVersion),
		registry.CreateEphemeral(m.path.Leader(), []byte(id)),
		registry.CreateEphemeral(m.path.Term(), []byte(id)))
	var failed *registry.CommitError
	switch {
	case errors.As(err, &failed) && failed.Op.Path == m.path.Leader() && errors.Is(err, registry.ErrExists):
		return nil
	case errors.Is(err, registry.ErrNoParent):
		return registry.EnsurePath(ctx, m.life.session, m.path.LeaderElection())
	}
	return err // a term that stands belongs to a leader that is stepping down
}

// abdicate gives up the term, and the leader's node when it is still ours.
// Nothing of this leader is in flight any more: its task settles what it commits.
func (m *member) abdicate(ctx context.Context, ours bool) error {
	ops := []registry.Op{
		registry.Check(m.path.Life(m.id.String()), registry.AnyVersion),
		registry.Delete(m.path.Term(), registry.AnyVersion),
	}
	if ours {
		ops = append(ops, registry.Delete(m.path.Leader(), registry.AnyVersion))
	}
	_, err := m.life.session.Commit(ctx, ops...)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	m.mu.Lock()
	m.led = false
	m.mu.Unlock()
	return nil
}

// lead makes what is into what should be.
func (m *member) lead(ctx context.Context) error {
	m.mu.Lock()
	m.reshard = false
	tidy := m.tidy
	m.tidy = false
	m.mu.Unlock()
	err := m.share(ctx)
	if err == nil && tidy {
		err = m.tidyItems(ctx)
	}
	if err != nil {
		m.mu.Lock()
		m.reshard, m.tidy = true, m.tidy || tidy
		m.mu.Unlock()
	}
	if errors.Is(err, errNotLeader) {
		return nil // the watch tells who is
	}
	return err
}

var errNotLeader = errors.New("not the leader any more")

// share derives the assignment from the ledgers and writes the difference.
func (m *member) share(ctx context.Context) error {
	begun := time.Now()
	for {
		view, err := m.view(ctx)
		if err != nil {
			return err
		}
		plan := sharding.Derive(view)
		commits, err := m.write(ctx, plan)
		if errors.Is(err, errStale) {
			continue // a member wrote its ledger meanwhile
		}
		if err != nil {
			return err
		}
		m.report(plan, view, commits, time.Since(begun))
		return m.await(plan)
	}
}

var errStale = errors.New("the state has changed")

// view reads the ledgers and lives. A ledger is made with its life, and is listed
// before the lives are read: a life that is missing then is over.
func (m *member) view(ctx context.Context) (sharding.View, error) {
	ids, err := m.life.session.Children(ctx, m.path.Ledgers())
	if err != nil {
		return sharding.View{}, err
	}
	paths := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		paths = append(paths, m.path.Ledger(id), m.path.Life(id))
	}
	nodes, err := m.life.session.Get(ctx, paths...)
	if err != nil {
		return sharding.View{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v := sharding.View{Total: m.set.stored.ShardingTotalCount, Up: m.lives[m.id.String()].Up, Assign: m.assign(m.set.strategy)}
	for i, id := range ids {
		led, live := nodes[2*i], nodes[2*i+1].Exists()
		if !led.Exists() {
			continue
		}
		l, err := ledger.Decode(led.Value)
		if err != nil {
			m.warn("foreign node "+led.Path+" among the ledgers", err)
			continue
		}
		v.Members = append(v.Members, sharding.Member{
			ID: id, Live: live, Eligible: live && m.eligible(id), Ledger: l, Version: led.Version,
		})
	}
	return v, nil
}

// eligible reports whether the instance may own items.
func (m *member) eligible(id string) bool {
	return m.instances[id] && m.enabled(ipOf(id))
}

func (m *member) assign(s strategy.Strategy) func([]string, int, map[string][]int) map[string][]int {
	return func(ids []string, total int, previous map[string][]int) map[string][]int {
		return s.Assign(strategy.Input{Job: m.name(), Instances: ids, Total: total, Previous: previous})
	}
}

// write commits the plan step by step and returns how many commits it took.
func (m *member) write(ctx context.Context, p *sharding.Plan) (int, error) {
	nodes, err := m.itemNodes(ctx, p)
	if err != nil {
		return 0, err
	}
	flags := []string{m.path.Processing(), m.path.Necessary()}
	// Room for the flags, which only a plan of several commits needs.
	room := m.life.session.Limits().MaxOps - leadOps - len(flags)
	steps := p.Steps(room, func(n int) int {
		if nodes[m.path.Item(n)].Exists() {
			return 1
		}
		return 2
	})
	for i, s := range steps {
		ops := m.stepOps(s, nodes)
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
			return i, err
		}
	}
	if len(steps) == 0 {
		return 0, m.clearFlags(ctx, nodes, flags)
	}
	return len(steps), nil
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

func (m *member) stepOps(s sharding.Step, nodes map[string]registry.Node) []registry.Op {
	ops := m.guard()
	for _, w := range s.Ledgers {
		ops = append(ops, registry.Set(m.path.Ledger(w.ID), w.Ledger.Encode(), w.Version))
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

// commit settles one commit of the leader. Each holds a ledger at its version,
// or a deletion, so that submitting it again decides an uncertain one.
func (m *member) commit(ctx context.Context, ops []registry.Op) error {
	pause := 50 * time.Millisecond
	for {
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := m.life.session.Commit(once, ops...)
		cancel()
		var failed *registry.CommitError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &failed) && failed.Index < leadOps:
			return fmt.Errorf("%w: %w", errNotLeader, err)
		case errors.As(err, &failed):
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

// report tells of what the plan did.
func (m *member) report(p *sharding.Plan, v sharding.View, commits int, took time.Duration) {
	if commits > 0 && len(p.Moves) > 0 {
		moves := make([]Move, len(p.Moves))
		for i, mv := range p.Moves {
			moves[i] = Move(mv)
		}
		m.emit(Resharded{Job: m.name(), Total: v.Total, Moves: moves, Commits: commits, Took: took})
	}
	for n, due := range p.Orphans {
		m.skip([]int{n}, due, SkipCrashed, "failover is not active")
	}
	m.mu.Lock()
	sched := m.set.schedule
	m.mu.Unlock()
	if _, fixed := sched.Delay(); fixed {
		return
	}
	for n, from := range p.Cold {
		count, last := 0, time.Time{}
		for t, ok := sched.Next(from); ok && !t.After(v.Up) && count < 10_000; t, ok = sched.Next(t) {
			count, last = count+1, t
		}
		if count > 0 {
			e := skipped(m.name(), []int{n}, last, SkipDown, "")
			e.Count = count
			m.emit(e)
		}
	}
}

// await watches the running nodes of the items that must end first, and says so.
func (m *member) await(p *sharding.Plan) error {
	m.mu.Lock()
	var add, remove []int
	for _, n := range p.Waiting {
		if !m.waitFor[n] {
			m.waitFor[n] = true
			add = append(add, n)
		}
	}
	for n := range m.waitFor {
		if !slices.Contains(p.Waiting, n) {
			delete(m.waitFor, n)
			remove = append(remove, n)
		}
	}
	m.mu.Unlock()
	for _, n := range remove {
		m.life.unwatch(m.path.Running(n), registry.Self)
	}
	for _, n := range add {
		m.life.watch(m.path.Running(n), registry.Self, m.sawRunning)
	}
	if len(p.Waiting) > 0 {
		m.job.waits("items " + ledger.FormatRange(slices.Compact(slices.Clone(p.Waiting))) + " to end, before they can be assigned anew")
	} else {
		m.job.waits("")
	}
	return nil
}

func (m *member) sawRunning(e registry.Event) {
	if e.Synced || e.Node.Exists() {
		return
	}
	m.mu.Lock()
	m.reshard = true
	m.mu.Unlock()
	m.task.Poke()
}

// tidyItems removes the nodes of items that the total does not have any more.
func (m *member) tidyItems(ctx context.Context) error {
	names, err := m.life.session.Children(ctx, m.path.Sharding())
	if err != nil {
		return err
	}
	m.mu.Lock()
	total, waiting := m.set.stored.ShardingTotalCount, len(m.waitFor) > 0
	m.tidy = m.tidy || waiting
	m.mu.Unlock()
	if waiting {
		return nil // items of the total before still run
	}
	for _, name := range names {
		n, ok := itemNumber(name)
		if !ok || n < total {
			continue
		}
		if err := registry.DeleteTree(ctx, m.life.session, m.path.Item(n)); err != nil {
			return err
		}
	}
	return nil
}
