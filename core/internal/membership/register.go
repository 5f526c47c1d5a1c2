package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/leading"
	"github.com/elasticron/elasticron/core/internal/ownership"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

// register makes the server, the instance, its life, notice and ledger in one commit. A
// former registration of this session goes with the same commit, and what its ledger
// holds stands in the new one.
func (m *Member) register(ctx context.Context) error {
	if err := m.refuseJava(); err != nil {
		return err
	}
	id, err := m.identify()
	if err != nil {
		return err
	}
	old, err := m.inherit(ctx)
	if err != nil {
		return err
	}
	is, err := layout.ParseInstanceID(id)
	if err != nil {
		return settings.Named(m.name(), err)
	}
	value, err := layout.MarshalInstance(is)
	if err != nil {
		return settings.Named(m.name(), err)
	}
	begin := append(m.serverOps(), registry.CreateEphemeral(m.cfg.Job.Life(id), m.life()))
	m.mu.Lock()
	leaves := m.shutDown && m.sure
	m.mu.Unlock()
	if !leaves { // else it registers only to end what runs, and is given nothing
		begin = append(begin, registry.CreateEphemeral(m.cfg.Job.Instance(id), value))
	}
	begin = append(begin, registry.CreateEphemeral(m.cfg.Job.Notice(id), nil))
	ops, fits := m.succeed(id, old, begin)
	if !fits {
		m.cfg.Session.GiveUp(fmt.Errorf("core: register: %w: %w", errTooLarge, registry.ErrSessionLost))
		return nil
	}
	marker := slices.IndexFunc(ops, func(op registry.Op) bool { return op.Path == m.cfg.Job.Life(id) })
	failpoint.Hit(failpoint.BeforeRegister)
	done, err := settle.Commit{
		Store: m.cfg.Session, Ops: ops, Marker: marker, Shows: func(n registry.Node) bool { return n.Owned },
	}.Run(ctx, m.hindered)
	failpoint.Hit(failpoint.AfterRegister)
	failed, refused := errors.AsType[*registry.CommitError](err)
	switch {
	case err == nil, refused && failed.Index == marker && errors.Is(err, registry.ErrExists):
		// Applied, now or by an attempt before.
	case refused && failed.Index > marker && errors.Is(err, registry.ErrExists):
		m.breakOff(errLifeGone) // applied by an attempt before, and the life was deleted since: that registration is over
		return nil
	case errors.Is(err, registry.ErrNoParent), errors.Is(err, registry.ErrEphemeralParent),
		refused && errors.Is(err, registry.ErrNotFound) && ops[failed.Index].Path == m.cfg.Job.Config():
		m.partly = true
		m.reach(stagePreparing)
		return err
	case errors.Is(err, registry.ErrNotEmpty):
		m.mu.Lock()
		if m.former != nil {
			m.former.below++
		}
		m.mu.Unlock()
		return err
	default:
		return err // what it was made of has changed, or the registry is away: once more
	}
	m.mu.Lock()
	cause := error(nil)
	if m.former != nil {
		cause = m.former.cause
	}
	m.made = m.ledgerOf(id, ops[len(ops)-1], done, err)
	m.stage = stageRegistered
	m.java.joins = true // one that comes now comes later
	m.tellJava()
	m.mu.Unlock()
	if cause != nil {
		m.warn("the registration was removed from outside; the instance has registered again as "+id, cause)
	}
	return nil
}

// ledgerOf is the ledger's node as the last operation of a registration has made it: zero where it has pages, or others
// may have written it before the outcome was known.
func (m *Member) ledgerOf(id string, last registry.Op, done settle.Outcome, err error) registry.Node {
	if err != nil || done.Uncertain || last.Path != m.cfg.Job.Ledger(id) {
		return registry.Node{}
	}
	return registry.Node{Path: last.Path, Value: last.Value, Created: done.Revision, Modified: done.Revision}
}

// errTooLarge: what runs, and what its ledger says, cannot change over to another registration in one
// commit. At the end of the session others take it over piece by piece.
var errTooLarge = errors.New("the ledger does not fit the commit of another registration")

// An heirloom is what a former registration of the session leaves to the next one.
type heirloom struct {
	led *ledger.Ledger
	// root is the node of the old ledger, and remove what deletes it with its pages. It is whole
	// where that was read: where it is gone, replaced or garbage, others may have been given its items.
	root   registry.Node
	remove []registry.Op
	whole  bool
	// rest is what removes everything else of it.
	rest []registry.Op
}

// succeed returns the commit that takes a former registration's place. Where that is too large, and
// nothing runs, the old ledger is left to the leader, as that of an instance which is gone.
func (m *Member) succeed(id string, old heirloom, begin []registry.Op) (ops []registry.Op, fits bool) {
	path := m.cfg.Job.Ledger(id)
	ops = slices.Concat(old.remove, old.rest, begin)
	if ops, fits = m.create(path, old.led, ops); fits || old.led.Running() > 0 || !old.whole {
		return ops, fits
	}
	ops = slices.Concat([]registry.Op{registry.Check(old.root.Path, old.root.Version)}, old.rest, begin)
	empty := ledger.New(old.led.Epoch, old.led.Total)
	empty.Seq = old.led.Seq
	return m.create(path, empty, ops)
}

// create returns operations and those that make a ledger with its pages, and whether that fits a commit.
func (m *Member) create(path string, led *ledger.Ledger, ops []registry.Op) ([]registry.Op, bool) {
	limits := m.cfg.Session.Limits()
	left := limits.MaxBytes - len(path)
	for _, op := range ops {
		left -= len(op.Path) + len(op.Value)
	}
	led.Anew()
	w := led.Write(0, ledger.Room{Value: limits.MaxValue, Ops: limits.MaxOps - len(ops) - 1, Bytes: left})
	ops = append(ops, registry.Create(path, w.Root))
	for _, p := range w.Pages {
		ops = append(ops, pages.Op(path, p))
		left -= len(p.Node(path))
	}
	return ops, led.Len() == 0 || len(ops) <= limits.MaxOps && w.Longest() <= limits.MaxValue && w.Bytes() <= left
}

// get reads until it has the answer.
func (m *Member) get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	return settle.Get(ctx, m.cfg.Session, m.hindered, paths...)
}

// identify returns the id of this registration: the same over all attempts, since an
// uncertain one is settled by the next.
func (m *Member) identify() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.id != "" {
		return m.id, nil
	}
	id, err := layout.NewInstanceID(m.cfg.IP, m.cfg.Name)
	if err != nil {
		return "", &field.Error{Job: m.name(), Field: "instance", Problem: err.Error(), Err: err}
	}
	m.id = id.String()
	return m.id, nil
}

// life is the value of the life's node. Up is the earliest that any live instance knows.
func (m *Member) life() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	if m.up.IsZero() {
		m.up = now
		for _, l := range m.lives.All() {
			if !l.Up.IsZero() && l.Up.Before(m.up) {
				m.up = l.Up
			}
		}
	}
	return layout.MarshalLife(layout.Life{Up: m.up, At: now, Zone: settings.LocalZone(), Host: m.cfg.HostName, Listens: m.cfg.Listens})
}

// serverOps write the server's node where it is missing, and else demand that it stands: nobody removes the server of
// an instance that registers. One that was disabled with its job is enabled with it; else an operator has said so. None
// is made disabled under a configuration that was replaced: whoever enables the job finds all that were.
func (m *Member) serverOps() []registry.Op {
	m.mu.Lock()
	defer m.mu.Unlock()
	path, begins := m.cfg.Job.Server(m.cfg.IP), !m.set.Stored.Disabled
	s, known := m.servers.Get(m.cfg.IP)
	switch {
	case !known && !begins:
		config := registry.Check(m.cfg.Job.Config(), m.stored.version)
		return []registry.Op{config, registry.Create(path, []byte(layout.ServerStatus(false)))}
	case !known:
		return []registry.Op{registry.Create(path, []byte(layout.ServerStatus(true)))}
	case begins && s.withItsJob:
		return []registry.Op{registry.Set(path, []byte(layout.ServerStatus(true)), 0)}
	}
	return []registry.Op{registry.Check(path, registry.AnyVersion)}
}

// remakeServer makes the node of this server again, as it was: a server that has none is taken as disabled.
func (m *Member) remakeServer(ctx context.Context, was *server) error {
	path, id := m.cfg.Job.Server(m.cfg.IP), m.registration()
	remake := settle.Commit{
		Store: m.cfg.Session, Marker: 2,
		Ops: []registry.Op{
			registry.Check(m.cfg.Job.Life(id), registry.AnyVersion),
			registry.Check(m.cfg.Job.Instance(id), registry.AnyVersion), // else its tools remove this instance
			registry.Create(path, []byte(was.status)),
		},
		Shows: func(n registry.Node) bool { return n.Exists() },
	}
	_, err := remake.Run(ctx, m.hindered)
	if errors.Is(err, registry.ErrNoParent) {
		if err := registry.EnsurePath(ctx, m.cfg.Session, m.cfg.Job.Servers()); err != nil {
			return err
		}
		_, err = remake.Run(ctx, m.hindered)
	}
	failed, refused := errors.AsType[*registry.CommitError](err)
	switch {
	case refused && failed.Index < 2 && errors.Is(err, registry.ErrNotFound):
		err = nil // the registration is over; another one makes it
	case refused && errors.Is(err, registry.ErrExists):
		err = nil // another instance of this server was first
	case err == nil:
		m.warn("the node "+path+" was deleted from outside; it is made again", nil)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deletedServer == was { // else it has been deleted again
		m.deletedServer = nil
	}
	return nil
}

// removeStrays removes registrations of this session that are not the present one. The commit of a registration whose
// answer was lost can be applied late: after another attempt has made it, and the instance has registered anew. Such a
// registration would live as long as the session, and be given items that nobody runs. What its ledger holds the leader
// gives to others, as it does for an instance that is gone.
func (m *Member) removeStrays(ctx context.Context) error {
	m.mu.Lock()
	ids := slices.Collect(maps.Keys(m.strays))
	m.mu.Unlock()
	for _, id := range ids {
		job := m.cfg.Job
		nodes, err := m.get(ctx, job.Ledger(id), job.Life(id), job.Instance(id), job.Notice(id))
		if err != nil {
			return err
		}
		if ops := ofSession(nodes[1:]); len(ops) > 0 {
			if _, err := m.cfg.Session.Commit(ctx, ops...); err != nil {
				return fmt.Errorf("core: remove the registration %s, which came late: %w", id, err)
			}
			m.warn("the registration "+id+" of this session came into being late, by a commit whose answer was lost; it is removed", nil)
			m.removeUnused(ctx, nodes[0])
		}
		m.mu.Lock()
		delete(m.strays, id)
		m.mu.Unlock()
	}
	return nil
}

// ofSession returns what deletes those of the nodes that this session owns.
func ofSession(nodes []registry.Node) (ops []registry.Op) {
	for _, n := range nodes {
		if n.Exists() && n.Owned {
			ops = append(ops, registry.Delete(n.Path, n.Version))
		}
	}
	return ops
}

// removeUnused removes a ledger without items, of which the leader may never have seen the life. It makes one attempt:
// the leader removes what is left of it at its next reconciliation.
func (m *Member) removeUnused(ctx context.Context, node registry.Node) {
	if led, err := ledger.Decode(node.Value); node.Exists() && err == nil && led.Len() == 0 && len(led.Pages()) == 0 {
		_, _ = m.cfg.Session.Commit(ctx, registry.Delete(node.Path, node.Version))
	}
}

// inherit returns what a registration starts with, and what removes the one before it: all of its
// nodes, the leader's and the term included.
func (m *Member) inherit(ctx context.Context) (h heirloom, err error) {
	m.mu.Lock()
	old := m.former
	m.mu.Unlock()
	if old == nil {
		return heirloom{led: ledger.New(0, 0)}, nil
	}
	job := m.cfg.Job
	nodes, err := settle.Get(ctx, m.cfg.Session, m.hindered,
		job.Ledger(old.id), job.Life(old.id), job.Notice(old.id), job.Instance(old.id), job.Rounds(old.id), job.Leader(), job.Term())
	if err != nil {
		return h, err
	}
	h.led = old.ledger
	if nodes[0].Exists() {
		if err := m.inheritLedger(ctx, &h, old, nodes[0]); err != nil {
			return h, err
		}
	}
	h.led = h.led.Clone()
	if !h.whole {
		if h.rest, err = m.disown(ctx, old.id, h.led, nodes[len(nodes)-1]); err != nil {
			return h, err
		}
	}
	for n, rec := range h.led.All() {
		if rec.Running() {
			rec.Leaving = true // the leader decides anew
			h.led.Set(n, rec)
		}
	}
	h.rest = append(h.rest, ofSession(nodes[1:])...)
	if failpoint.Mutant(failpoint.OldRegistrationKept) {
		h.remove, h.rest = nil, nil
	}
	if failpoint.Mutant(failpoint.RunsForgotten) {
		h.led = ledger.New(h.led.Epoch, h.led.Total)
	}
	return h, nil
}

// inheritLedger reads the old ledger that stands, and what is below it.
func (m *Member) inheritLedger(ctx context.Context, h *heirloom, old *former, node registry.Node) error {
	found, err := pages.Read(ctx, m.get, nil, node)
	if err != nil {
		return err
	}
	is := found[0]
	if errors.Is(is.Err, ledger.ErrTorn) || !is.Node.Exists() {
		return fmt.Errorf("core: register: the ledger before: %w", ledger.ErrTorn)
	}
	if is.Err == nil && (old.created == 0 || is.Node.Created == old.created) {
		h.led = is.Ledger // the leader, or a commit in flight, may have written it since
		h.whole = true
	}
	h.root = is.Node
	switch {
	case is.Err != nil, len(is.Ledger.Pages()) > 0, old.below > 0:
		if err := m.inheritBelow(ctx, h, old, is); err != nil {
			return err
		}
	default:
		h.remove = []registry.Op{registry.Delete(is.Node.Path, is.Node.Version)}
	}
	return nil
}

// mostBelow is how often what stands below a ledger is deleted, until the ledger is left.
const mostBelow = 3

// inheritBelow finds what removes the old ledger, with what is below it. What somebody else has made there goes first, in
// commits of its own, since there may be any number of it. Where it cannot go the ledger stays, without an item: the
// leader knows that nobody lives there.
func (m *Member) inheritBelow(ctx context.Context, h *heirloom, old *former, is pages.Found) error {
	at := is.Node.Path
	below, err := leading.Below(ctx, m.cfg.Session, at)
	if err != nil {
		return fmt.Errorf("core: register: the ledger before: %w", err)
	}
	var own []int
	if is.Err == nil {
		own = is.Ledger.Pages()
	}
	var strays []registry.Op
	for _, p := range below {
		if root, page, isPage := ledger.ParsePath(p); isPage && root == at && slices.Contains(own, page) {
			h.remove = append(h.remove, registry.Delete(p, registry.AnyVersion))
		} else {
			strays = append(strays, registry.Delete(p, registry.AnyVersion))
		}
	}
	whole := registry.Check(at, is.Node.Version) // else they may be pages by now
	left := old.below > mostBelow
	for some := range slices.Chunk(strays, m.cfg.Session.Limits().MaxOps-1) {
		if left {
			break
		}
		_, err := m.cfg.Session.Commit(ctx, append([]registry.Op{whole}, some...)...)
		left = errors.Is(err, registry.ErrDenied)
		if err != nil && !left {
			return fmt.Errorf("core: register: what is below the ledger before: %w", err)
		}
	}
	if left {
		none := ledger.New(0, 0)
		if h.whole {
			none = ledger.New(h.led.Epoch, h.led.Total)
		}
		h.remove = []registry.Op{registry.Set(at, none.Encode(), is.Node.Version)}
		return nil
	}
	h.remove = append(h.remove, registry.Delete(at, is.Node.Version))
	return nil
}

// disown takes the items out of a ledger that others have been given since: where the old one was dropped, or could not
// be read, its owner may have been taken for dead. It returns what keeps the leader from giving away more: each of its
// commits sets the term at the version that it has read, so that one which was planned without this registration is
// refused.
func (m *Member) disown(ctx context.Context, old string, led *ledger.Ledger, term registry.Node) ([]registry.Op, error) {
	ids, err := m.cfg.Session.Names(ctx, m.cfg.Job.Ledgers())
	if err != nil {
		return nil, fmt.Errorf("core: register: %w", err)
	}
	var paths []string
	for _, id := range ids {
		if id != old { // what stands in its place is no other's
			paths = append(paths, m.cfg.Job.Ledger(id))
		}
	}
	nodes, err := m.get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	found, err := pages.Read(ctx, m.get, nil, nodes...)
	if err != nil {
		return nil, err
	}
	for _, other := range found {
		if errors.Is(other.Err, ledger.ErrTorn) {
			return nil, other.Err
		}
		if other.Ledger == nil || other.Ledger.Epoch != led.Epoch {
			continue
		}
		for item := range other.Ledger.All() {
			led.Delete(item)
		}
	}
	if !term.Exists() || term.Owned {
		return nil, nil
	}
	return []registry.Op{registry.Set(term.Path, term.Value, term.Version)}, nil
}

// open starts firing, or goes on, with the ledger that the registration has made.
func (m *Member) open(ctx context.Context) error {
	m.mu.Lock()
	id, f, made := m.id, m.firing, m.made
	m.made = registry.Node{}
	m.mu.Unlock()
	first := f == nil
	if !made.Exists() {
		nodes, err := m.cfg.Session.Get(ctx, m.cfg.Job.Ledger(id))
		if err != nil {
			return fmt.Errorf("core: open: %w", err)
		}
		made = nodes[0]
	}
	place := execution.Place{ID: id, Life: m.cfg.Job.Life(id), Ledger: m.cfg.Job.Ledger(id)}
	found, err := pages.Read(ctx, m.cfg.Session.Get, nil, made)
	if err != nil {
		return fmt.Errorf("core: open: %w", err)
	}
	node, led := found[0].Node, found[0].Ledger
	switch {
	case errors.Is(found[0].Err, ledger.ErrTorn):
		return found[0].Err
	case led == nil:
		m.Gone(fmt.Errorf("core: the new ledger is not there: %w", errors.Join(found[0].Err, registry.ErrNotFound)))
		return nil
	case !first:
		f.Resume(id, place, node, led)
	default:
		f = firing.New(m.firingConfig(), m.firingStart(place, node, led))
	}
	m.mu.Lock()
	m.firing, m.former = f, &former{id: id, created: node.Created}
	m.stage = stageFiring
	asked := len(m.asks) > 0 || led.Asked() > 0
	paused, every := m.paused, m.set.Reconcile
	m.leader = m.newLeader(id)
	h := m.rounds
	m.mu.Unlock()
	m.putInForce()
	if first { // it knows what it goes by: who is listened to, whether its server is enabled, whose clock counts
		f.Own(led)
	}
	m.cfg.Session.Follow(m.cfg.Job.Notice(id), registry.Self, m.onNotice)
	if paused { // Stop came meanwhile, or somebody shut the instance down
		f.Stop()
		return nil
	}
	f.Relieve()
	if asked {
		m.runs.Poke()
	}
	m.cfg.Session.Follow(m.cfg.Job.Leader(), registry.Self, m.onLeader)
	m.arm(every)
	m.cfg.Host.Running(id)
	m.look()
	h.poke()
	return nil
}

func (m *Member) firingConfig() firing.Config {
	return firing.Config{
		Host: m, Job: m.cfg.Job, Session: m.cfg.Session, Context: m.ctx, Life: m.cfg.Session.Context,
		Records: m.cfg.Session.Records, Clock: m.cfg.Clock, Now: m.cfg.Now, Places: m.cfg.Places, Events: m.cfg.Events,
	}
}

func (m *Member) firingStart(p execution.Place, node registry.Node, led *ledger.Ledger) firing.Start {
	m.mu.Lock()
	defer m.mu.Unlock()
	return firing.Start{Place: p, Node: node, Ledger: led, Settings: m.itemSettings(), Up: m.up}
}

// Call implements firing.Host.
func (m *Member) Call(ctx context.Context, r *firing.Run) error {
	m.mu.Lock()
	set := m.set
	m.mu.Unlock()
	return m.cfg.Host.Call(ctx, set, r, m.ownership(r))
}

// FireEnded implements firing.Host.
func (m *Member) FireEnded(f *firing.Fire) { m.cfg.Host.FireEnded(f) }

// Unknown implements firing.Host.
func (m *Member) Unknown() { m.runs.Poke() }

// ownership is the hold of a run on its item, over all registrations of the session.
func (m *Member) ownership(r *firing.Run) *ownership.Ownership {
	return &ownership.Ownership{
		Store: m.cfg.Session, Job: m.cfg.Job, Epoch: r.Epoch, Item: r.Item, Due: r.Due, Recorded: r.Fence != 0,
		Registration: m.registration, Now: m.cfg.Now,
	}
}

// registration is the id of the present one, "" while there is none.
func (m *Member) registration() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stage < stageRegistered || m.stage == stageLeft {
		return ""
	}
	return m.id
}

// newLeader makes the leading part of a registration. The caller holds mu.
func (m *Member) newLeader(id string) *leading.Leader {
	return leading.New(leading.Config{
		Host: m, Session: m.cfg.Session, Context: m.cfg.Session.Context, Pool: m.cfg.Session.Control, Job: m.cfg.Job, ID: id, Now: m.cfg.Now,
		Memory: m.cfg.Memory,
	})
}

// Emit implements leading.Host.
func (m *Member) Emit(e event.Event) { dispatch.Emit(m.cfg.Events, e) }

// Waits implements leading.Host.
func (m *Member) Waits(what string) { m.cfg.Host.Waits(what) }

// Gone implements firing.Host, and is called where a watch shows that somebody deleted a node of the registration.
func (m *Member) Gone(err error) {
	if m.cfg.Session.Context.Err() != nil || m.cfg.Session.Err() != nil {
		return // the whole session has
	}
	m.mu.Lock()
	if m.broken == nil && m.stage >= stageRegistered && m.stage < stageLeft {
		m.broken = err
	}
	m.mu.Unlock()
	m.task.Poke()
}

// breakOff ends the work under a registration whose nodes are gone. What runs goes on.
func (m *Member) breakOff(cause error) {
	m.mu.Lock()
	f, l, id, old := m.firing, m.leader, m.id, m.former
	m.leader = nil
	m.mu.Unlock()
	if l != nil {
		l.Close()
	}
	m.cfg.Session.Unfollow(m.cfg.Job.Notice(id), registry.Self)
	m.cfg.Session.Unfollow(m.cfg.Job.Leader(), registry.Self)
	next := &former{id: id, ledger: ledger.New(0, 0), cause: cause}
	if old != nil && old.id == id {
		next.created = old.created
	}
	if f != nil {
		next.ledger = f.Suspend()
	}
	m.mu.Lock()
	m.former, m.broken = next, nil
	m.shutDown = m.shutDown && m.sure // else more than the instance is gone
	m.id = ""
	m.stage = stageWatching
	m.mu.Unlock()
	m.cfg.Host.Again()
}

// Withdraw has others take over what does not run here, while a stop waits for what does: like an instance that was
// shut down from outside it is given nothing any more, and leaves when what it runs has ended.
func (m *Member) Withdraw() {
	m.mu.Lock()
	m.withdraws = true
	m.mu.Unlock()
	m.task.Poke()
}

// withdraw removes the instance; the watch shows that it is gone.
func (m *Member) withdraw(ctx context.Context) error {
	m.mu.Lock()
	id := m.id
	m.mu.Unlock()
	_, err := settle.Commit{
		Store: m.cfg.Session, Ops: []registry.Op{registry.Delete(m.cfg.Job.Instance(id), registry.AnyVersion)},
		Shows: func(n registry.Node) bool { return !n.Exists() },
	}.Run(ctx, m.hindered)
	if _, refused := errors.AsType[*registry.CommitError](err); err != nil && !refused {
		return err
	}
	m.mu.Lock()
	m.withdraws, m.withdrew = false, err == nil // else somebody has shut it down before
	m.mu.Unlock()
	return nil
}

// leave ends this instance alone, after what runs has ended.
func (m *Member) leave(ctx context.Context) error {
	m.mu.Lock()
	f, l, id, sure, withdrew := m.firing, m.leader, m.id, m.sure, m.withdrew
	m.mu.Unlock()
	if !sure {
		nodes, err := settle.Get(ctx, m.cfg.Session, m.hindered, m.cfg.Job.Life(id), m.cfg.Job.Instance(id))
		if err != nil {
			return err
		}
		lives := nodes[0].Exists()
		m.mu.Lock()
		m.sure = lives && !nodes[1].Exists() // else it was made anew, with all others, since it was seen to be gone
		m.shutDown = m.sure
		m.mu.Unlock()
		switch {
		case !lives:
			m.Gone(errLifeGone)
			return nil
		case nodes[1].Exists():
			return nil
		}
	}
	m.Pause()
	m.mu.Lock()
	hears := m.hears()
	m.mu.Unlock()
	if !f.Quiet() || !m.cfg.Places.Idle() || !l.Settled() || hears {
		return nil // their ends poke again
	}
	ops := []registry.Op{
		registry.Delete(m.cfg.Job.Life(id), registry.AnyVersion),
		registry.Delete(m.cfg.Job.Notice(id), registry.AnyVersion),
	}
	paths := []string{m.cfg.Job.Rounds(id)}
	m.mu.Lock()
	if m.clock != nil && m.clock.node != "" {
		paths = append(paths, m.clock.node)
	}
	m.mu.Unlock()
	nodes, err := settle.Get(ctx, m.cfg.Session, m.hindered, paths...)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Exists() {
			ops = append(ops, registry.Delete(n.Path, registry.AnyVersion))
		}
	}
	failpoint.Hit(failpoint.BeforeLeave)
	_, err = settle.Commit{
		Store: m.cfg.Session, Ops: ops,
		Shows: func(n registry.Node) bool { return !n.Exists() },
	}.Run(ctx, m.hindered)
	if failed, refused := errors.AsType[*registry.CommitError](err); refused && errors.Is(failed, registry.ErrNotFound) {
		m.Gone(failed) // registers once more, and leaves then
		return nil
	}
	if err != nil {
		return err
	}
	m.reach(stageLeft)
	m.Close(errShutDown)
	l.Close()
	m.unfollow(id)
	if withdrew {
		m.cfg.Host.Withdrawn(id)
	} else {
		m.cfg.Host.ShutDown(id)
	}
	return nil
}

// unfollow ends every watch of a member that has left.
func (m *Member) unfollow(id string) {
	job, unfollow := m.cfg.Job, m.cfg.Session.Unfollow
	for _, p := range []string{job.Servers(), job.Instances(), job.Lives(), job.InForce()} {
		unfollow(p, registry.Children)
	}
	for _, p := range []string{job.Config(), job.OwnRoot(), job.Notice(id), job.Leader(), job.Clock(id)} {
		unfollow(p, registry.Self)
	}
}

// errShutDown is the cause of contexts of an instance that was shut down from outside.
var errShutDown = errors.New("the instance was shut down from outside")
