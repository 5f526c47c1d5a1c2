package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
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
	if failed, ok := errors.AsType[*registry.CommitError](err); ok && failed.Op.Path == m.path.Term() && ours {
		_, err = m.life.session.Commit(ctx, ops[0], ops[2]) // somebody deleted the term
	}
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
	if !errors.Is(err, errNotLeader) {
		return err
	}
	m.mu.Lock()
	still := m.leader == m.id.String()
	m.mu.Unlock()
	if still { // without its term: let all elect
		return m.abdicate(ctx, true)
	}
	return nil // the watch has told who is
}

var errNotLeader = errors.New("not the leader any more")

// share derives the assignment from the ledgers and writes the difference.
func (m *member) share(ctx context.Context) error {
	begun := time.Now()
	for {
		view, notified, err := m.view(ctx)
		if err != nil {
			return err
		}
		plan := sharding.Derive(view)
		moves, commits, err := m.write(ctx, plan, notified)
		m.report(plan, view, event.Resharded{Job: m.name(), Total: view.Total, Moves: moves, Commits: commits, Took: time.Since(begun)})
		if errors.Is(err, errStale) {
			continue // a member wrote its ledger meanwhile
		}
		if err != nil {
			return err
		}
		return m.await(plan)
	}
}

var errStale = errors.New("the state has changed")

// view reads the ledgers and lives. A ledger is made with its life, and is listed
// before the lives are read: a life that is missing then is over. notified says
// which of the instances have a notice.
func (m *member) view(ctx context.Context) (v sharding.View, notified map[string]bool, err error) {
	ids, err := m.life.session.Children(ctx, m.path.Ledgers())
	if err != nil {
		return v, nil, err
	}
	paths := make([]string, 0, 3*len(ids))
	for _, id := range ids {
		paths = append(paths, m.path.Ledger(id), m.path.Life(id), m.path.Notice(id))
	}
	nodes, err := m.life.session.Get(ctx, paths...)
	if err != nil {
		return v, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v = sharding.View{Total: m.set.Stored.ShardingTotalCount, Up: m.lives[m.id.String()].Up, Assign: m.assign(m.set.Strategy)}
	notified = map[string]bool{}
	for i, id := range ids {
		notified[id] = nodes[3*i+2].Exists()
		led, live := nodes[3*i], nodes[3*i+1].Exists()
		if !led.Exists() {
			continue
		}
		l, err := ledger.Decode(led.Value)
		if err != nil {
			m.warn("foreign node "+led.Path+" among the ledgers", err)
			continue
		}
		v.Members = append(v.Members, sharding.Member{
			// Without its notice a member would not hear of what it is given; it registers anew.
			ID: id, Live: live, Eligible: live && notified[id] && m.eligible(id), Ledger: l, Version: led.Version,
		})
	}
	return v, notified, nil
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

// report tells of what was moved, and of the fires that were lost with a former owner.
func (m *member) report(p *sharding.Plan, v sharding.View, done event.Resharded) {
	if len(done.Moves) == 0 {
		return
	}
	slices.SortFunc(done.Moves, func(a, b event.Move) int { return a.Item - b.Item })
	m.emit(done)
	for _, mv := range done.Moves {
		if due, cut := p.Orphans[mv.Item]; cut {
			m.emit(event.ItemCut{Job: m.name(), Item: mv.Item, Due: due, Instance: mv.From})
		}
	}
	m.mu.Lock()
	sched := m.set.Schedule
	m.mu.Unlock()
	if _, fixed := sched.Delay(); fixed {
		return
	}
	for _, mv := range done.Moves {
		n := mv.Item
		from, cold := p.Cold[n]
		if !cold {
			continue
		}
		count, last := 0, time.Time{}
		for t, ok := sched.Next(from); ok && !t.After(v.Up) && count < 10_000; t, ok = sched.Next(t) {
			count, last = count+1, t
		}
		if count > 0 {
			e := skipped(m.name(), []int{n}, last, event.SkipDown, "")
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
	total, waiting := m.set.Stored.ShardingTotalCount, len(m.waitFor) > 0
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
