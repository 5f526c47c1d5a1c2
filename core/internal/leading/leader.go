package leading

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// Facts are what the assignment depends on, besides what the registry is asked for.
type Facts struct {
	// Total is the sharding total count that is configured; Configured is when that was written.
	Total      int
	Configured registry.Revision
	// Rule is the schedule that is configured.
	Rule layout.Rule
	// ZoneOpen: nobody has chosen the zone in Rule. One that is in force stays.
	ZoneOpen bool
	// Monitor and Delayed are as in the configuration.
	Monitor, Delayed bool
	// Failover: what a dead owner ran runs again; Window is how late that may be where no
	// instance was up meanwhile.
	Failover bool
	Window   time.Duration
	// Static: items stay with the instances that have them, over their restarts.
	Static bool
	// Triggered are the nodes of instances in which ElasticJob 2's word TRIGGER stands.
	Triggered []registry.Node
	// Asked: there are requests, or runs that were asked for. Disabled: the job is.
	Asked, Disabled bool
	// MakesUp: fires that were missed are made up.
	MakesUp bool
	// Clocks: instances compare their clocks with the leader's.
	Clocks bool
	// Up is since when the job has had a live instance, as this one has registered it.
	Up time.Time
	// Lives and Instances are the ids whose nodes the watches have shown.
	Lives, Instances []string
	// Stands returns the revision at which the life of an id was made, where the watches show it and its instance's
	// node. 0: the registry is to be asked.
	Stands func(id string) registry.Revision
	// Eligible reports whether an id may be given items.
	Eligible func(id string) bool
	// Listens are the lives that listen to rounds, and to what. Empty where there are no
	// rounds: without monitoring, with a fixed delay.
	Listens map[string]layout.Listens
	// Assign is the sharding strategy. It fails where that has no answer: items stay where they are then.
	Assign func(ids []string, total int, previous map[string][]int) (map[string][]int, error)
}

// Config is what a Leader works with.
type Config struct {
	Host    Host
	Session Session
	// Context ends with the session.
	Context context.Context
	// Pool runs the leader's tasks.
	Pool *workqueue.Pool
	Job  layout.Job
	// ID is the instance's own.
	ID string
	// Now is the wall clock.
	Now func() time.Time
	// Memory is what the process has seen of what is in force, in whichever session.
	Memory *Memory
}

// A Host is the member that leads.
type Host interface {
	// Facts returns what is known now.
	Facts() Facts
	// Emit tells an event.
	Emit(e event.Event)
	// Waits says what the job waits for, "" for nothing.
	Waits(what string)
	// Changed is told that the leader has stepped down.
	Changed()
}

// A Session is one of the registry's that has a handler called with what a target shows, from
// Follow to Unfollow.
type Session interface {
	registry.Session
	// Names are those of a node's children; none where it does not stand.
	Names(ctx context.Context, path string) ([]string, error)
	Follow(path string, scope registry.Scope, handle func(registry.Event))
	Unfollow(path string, scope registry.Scope)
}

// A Leader is one registration's part in leading.
type Leader struct {
	cfg  Config
	work *workqueue.Task
	tidy *workqueue.Task

	mu      sync.Mutex
	over    bool               // Close was called
	busy    int                // tasks at work
	ctx     context.Context    // of theirs; nil while none is
	cancel  context.CancelFunc // of ctx
	node    registry.Node      // leader/election/instance, as seen last
	follows bool               // the term is watched
	led     bool               // this registration has held the term
	able    bool
	look    bool
	viewing bool     // lead is under way
	left    []string // instances that have gone since: it may have taken them to stand
	untidy  bool
	off     bool // failover was switched off: nodes of it may stand
	mend    bool // the items' instance nodes are to be compared with the ledgers
	java    bool // an instance of ElasticJob led last, as far as was seen
	waiting bool
	away    bool // items are bound to instances that are not there
	wary    bool // a look is to come, whatever happens
	later   bool // likewise, where nobody has looked until then
	tidies  bool // the later look tidies too, after a leader that has died
	asked   bool // requests or runs are to be looked at
	fresh   bool // its term has not looked at rounds yet
	back    bool // others are to be elected first
	weary   bool // it has handed over: likewise, until somebody is elected
	flags   map[string]bool
	retry   *workqueue.Retry // nil: the task has not failed
	retidy  *workqueue.Retry // of tidy, likewise
	// obstacles are nodes of ours by which the leader was refused, by path.
	obstacles map[string]obstacle
	watched   map[target]bool
	triggers  map[string]registry.Node  // of ElasticJob's tools, by instance; while this one leads
	results   map[int64]bool            // runs whose results are watched
	bell      *time.Timer               // the next look at them
	base      registry.Node             // as the last view had it; without a path: this term has had none
	seen      *snapshot                 // the last view, until the items' instance nodes were compared with it
	paged     map[string]*ledger.Ledger // those with pages in the last view, by path
	rounds    *rounds                   // nil until somebody listens to them, or has
	clocks    clocks
	owners    []string  // of items, as the latest plan has left them
	present   []string  // who was not dead then
	looked    inForce   // by which that plan was made
	shown     inForce   // as the watch has shown it during a look
	bereft    bool      // since nobody leads any more nobody has looked, and items may have no owner
	former    string    // who led before nobody did
	vacant    time.Time // since when it waits for others, zero while somebody leads
	stood     time.Time // when it last stood for election; zero: the outcome is known

	// Of the work task alone:
	stamp     int                   // of this leader's commits
	knows     bool                  // the latest plan was carried out: what holds items is in owners
	refused   int                   // commits in a row that met a change of a ledger
	contended []string              // whose ledgers the last of them would have written
	stilled   map[string]bool       // who was asked for stillness, and not told since that it is over
	damaged   map[string]damage     // pages that somebody has made or deleted, as they say, by their ledger's path
	warned    map[string]bool       // foreign nodes that were told
	closed    map[int64]time.Time   // since when it knows that runs are
	kills     map[string]time.Time  // since when it knows of them, by the names of their nodes
	told      map[sharding.Cut]bool // notes of the dead that still stand
	bound     *sharding.Plan        // the latest, where items are bound to instances that are not there
	undecided error                 // why the strategy had no answer for the latest plan
	floor     time.Time             // until when ElasticJob led, where it did before this term

	overtaken bool // of the tidy task alone: its latest commit was refused by another's that came before
}

type target struct {
	path  string
	scope registry.Scope
}

// New returns a leader that follows. It does nothing until it is able (SetAble).
func New(c Config) *Leader {
	l := &Leader{cfg: c}
	l.work = c.Pool.Task(l.step)
	l.tidy = c.Pool.Task(l.tidyUp)
	return l
}

// SetAble says whether this instance may lead.
func (l *Leader) SetAble(able bool) {
	l.mu.Lock()
	changed := l.able != able
	l.able = able
	l.mu.Unlock()
	if changed {
		l.work.Poke()
	}
}

// Look makes the leader compare what is with what should be.
func (l *Leader) Look() {
	l.mu.Lock()
	l.look = true
	l.mu.Unlock()
	l.work.Poke()
}

// Gone says that an instance's node, or its life, is not there any more. Where it had items, this job goes before
// those in which it had none.
func (l *Leader) Gone(id string) {
	l.mu.Lock()
	if l.viewing {
		l.left = append(l.left, id)
		l.mu.Unlock()
		return // lead tells it again
	}
	known, waits := slices.Contains(l.present, id), slices.Contains(l.owners, id)
	l.look = l.look || waits
	l.mu.Unlock()
	switch {
	case waits:
		l.work.Press()
	case known: // else the latest plan has taken it to be dead
		l.LookLater()
	}
}

// OnInForce follows the base and the schedule in force. The leader looks, unless its latest plan was made by this very
// state: it has written most of them itself.
func (l *Leader) OnInForce(n registry.Node) {
	l.mu.Lock()
	during, known := l.viewing && n.Exists(), n.Exists() && n.Modified == *l.looked.of(l.cfg.Job, n.Path)
	if during {
		*l.shown.of(l.cfg.Job, n.Path) = n.Modified // lead compares
	}
	l.mu.Unlock()
	if !during && !known {
		l.Look()
	}
}

// An inForce says which state of the base and of the schedule in force something is.
type inForce struct{ base, schedule registry.Revision }

func (f *inForce) of(job layout.Job, path string) *registry.Revision {
	if path == job.Base() {
		return &f.base
	}
	return &f.schedule
}

// unhurried is how long jobs with items that wait for an owner have, before the others are looked at, spread over
// twice that time.
const unhurried = 5 * time.Second

// LookLater is Look for what nobody waits for.
func (l *Leader) LookLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.look = true; l.led { // else whoever is elected looks
		l.putOff()
	}
}

// putOff has the leader do later what nobody waits for. The caller holds mu.
func (l *Leader) putOff() {
	if l.later {
		return
	}
	l.later = true
	spread := time.Duration(l.cfg.Job.ElectionOrder(l.cfg.ID) % uint64(2*unhurried))
	time.AfterFunc(unhurried+spread, func() {
		l.mu.Lock()
		tidies := l.tidies
		l.later, l.tidies = false, false
		l.mu.Unlock()
		if tidies {
			l.Reconcile()
		} else {
			l.work.Poke()
		}
	})
}

// Tidy makes the leader remove what nobody needs any more.
func (l *Leader) Tidy() {
	l.mu.Lock()
	l.untidy, l.mend = true, true
	l.forgive()
	l.mu.Unlock()
	l.tidy.Poke()
}

// Reconcile is Look and Tidy in one: what is tidied goes by the same view.
func (l *Leader) Reconcile() {
	l.mu.Lock()
	l.look, l.untidy, l.mend = true, true, true
	l.forgive()
	l.mu.Unlock()
	l.work.Poke()
	l.tidy.Poke()
}

// FailoverOff makes the leader remove what ElasticJob keeps of failovers: nobody takes it.
func (l *Leader) FailoverOff() {
	l.mu.Lock()
	l.off = true
	l.mu.Unlock()
	l.Tidy()
}

// OnLeader follows the leader's node.
func (l *Leader) OnLeader(n registry.Node) {
	l.mu.Lock()
	was := string(l.node.Value)
	l.node, l.vacant = n, time.Time{}
	if n.Exists() || was != "" {
		l.stood = time.Time{}
	}
	now := string(n.Value)
	self := n.Owned && now == l.cfg.ID
	follow, unfollow, compares := self && !l.follows, !self && l.follows, !self && l.clocks.watched
	if l.follows = self; !self {
		clear(l.triggers)
		l.flags = nil
		l.owners, l.present, l.looked = nil, nil, inForce{}
	}
	if follow {
		l.seen, l.paged, l.base = nil, nil, registry.Node{} // of a term before
	}
	if follow || n.Exists() && !self {
		l.weary = false
	}
	switch {
	case self:
		l.led, l.look = true, true
		l.fresh = l.fresh || follow
		if l.bereft && !l.java { // items may wait for an owner; for what is to be tidied nobody does
			l.tidies = true
			l.putOff()
		} else {
			l.untidy, l.mend = true, true
		}
	case n.Exists():
		l.bereft = false
		l.java = n.Ephemeral && layout.IsJava(now)
	case was != "":
		l.bereft, l.former = true, was
	}
	hurry := l.bereft
	l.mu.Unlock()
	switch {
	case follow:
		for _, t := range l.ofTerm() {
			l.cfg.Session.Follow(t.path, t.scope, t.handle)
		}
	case unfollow:
		for _, t := range l.ofTerm() {
			l.cfg.Session.Unfollow(t.path, t.scope)
		}
	}
	if compares {
		l.forgetClocks()
	}
	if was != now {
		l.cfg.Host.Emit(event.LeaderChanged{Job: l.cfg.Job.Name(), Leader: now, Self: self})
	}
	if hurry {
		l.work.Press()
	} else {
		l.work.Poke()
	}
	l.tidy.Poke()
}

// A followed is a target with its handler.
type followed struct {
	target

	handle func(registry.Event)
}

// ofTerm are the targets that are followed while this instance leads.
func (l *Leader) ofTerm() []followed {
	job := l.cfg.Job
	return []followed{
		{target{job.Term(), registry.Self}, l.onTerm},
		{target{job.Trigger(), registry.Children}, l.onTrigger},
		{target{job.ShardingState(), registry.Children}, l.onFlag},
	}
}

// onTerm follows the leader's own term: without it nothing can be written.
func (l *Leader) onTerm(e registry.Event) {
	if !e.Synced && layout.UnmarshalTerm(e.Node.Value).Leader != l.cfg.ID {
		l.Look()
	}
}

// onFlag follows the nodes by which Java members learn that items are assigned.
func (l *Leader) onFlag(e registry.Event) {
	if e.Synced {
		return
	}
	name, exists := path.Base(e.Node.Path), e.Node.Exists()
	l.mu.Lock()
	if exists {
		lazymap.Set(&l.flags, name, true)
	} else {
		delete(l.flags, name)
	}
	l.look = l.look || exists
	l.mu.Unlock()
	if exists {
		l.work.Poke()
	}
}

// Leading returns who leads, "" for nobody.
func (l *Leader) Leading() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.node.Value)
}

// Settled reports whether this registration holds neither the leader's node nor a term.
func (l *Leader) Settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.led && !l.node.Owned && l.stood.IsZero()
}

// enter returns a context for a task, which ends with Close, or when all tasks have left. There is none while
// no task is at work: with what requests leave behind in it, it takes more than most leaders do.
func (l *Leader) enter() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy++; l.ctx == nil {
		l.ctx, l.cancel = context.WithCancel(l.cfg.Context)
	}
	if l.over {
		l.cancel()
	}
	return l.ctx
}

func (l *Leader) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy--; l.busy == 0 {
		l.cancel()
		l.ctx, l.cancel = nil, nil
	}
}

// Close ends what the tasks do, and stops watching.
func (l *Leader) Close() {
	l.mu.Lock()
	l.over = true
	if l.cancel != nil {
		l.cancel()
	}
	follows := l.follows
	l.follows = false
	l.mu.Unlock()
	if follows {
		for _, t := range l.ofTerm() {
			l.cfg.Session.Unfollow(t.path, t.scope)
		}
	}
	l.rest()
}

// rest ends what only the leader follows, and waits for. What its term follows ends with that.
func (l *Leader) rest() {
	l.mu.Lock()
	var targets []target
	for t := range l.watched {
		targets = append(targets, t)
	}
	for n := range l.results {
		targets = append(targets, target{l.cfg.Job.RunResults(n), registry.Children})
	}
	l.watched, l.results = nil, nil
	if l.bell != nil {
		l.bell.Stop()
		l.bell = nil
	}
	clocks, waits := l.clocks.watched, l.waiting || l.away
	l.waiting, l.away = false, false
	l.mu.Unlock()
	for _, t := range targets {
		l.cfg.Session.Unfollow(t.path, t.scope)
	}
	l.deafen()
	if clocks {
		l.forgetClocks()
	}
	if waits {
		l.cfg.Host.Waits("") // the next leader says it
	}
}

// step does what the state asks for. It runs on the work task.
func (l *Leader) step() {
	ctx := l.enter()
	defer l.leave()
	if ctx.Err() != nil {
		return
	}
	err := l.act(ctx)
	if err == nil {
		l.mu.Lock()
		l.retry = nil
		l.mu.Unlock()
		return
	}
	if ctx.Err() != nil || errors.Is(err, registry.ErrSessionLost) {
		return // whoever holds the session sees Done
	}
	l.mu.Lock()
	if l.retry == nil {
		l.retry = &workqueue.Retry{}
	}
	tell, row := l.retry.Failed(l.work, err), l.retry.Row()
	l.mu.Unlock()
	if tell {
		l.hindered(err)
	}
	if (row >= mostRefusals || l.refused >= mostStale) && refused(err) {
		l.handOver(err)
	}
}

func (l *Leader) hindered(err error) {
	if u, is := errors.AsType[undecidedError](err); is {
		l.warn("the items stay where they are; trying again", u.error)
		return
	}
	l.warn("the leader's request failed; trying again", err)
}

// An undecidedError is why the strategy has no answer.
type undecidedError struct{ error }

func (l *Leader) warn(problem string, err error) {
	l.cfg.Host.Emit(event.Warning{Job: l.cfg.Job.Name(), Problem: problem, Err: err})
}

// act elects, leads, or steps down.
func (l *Leader) act(ctx context.Context) error {
	l.mu.Lock()
	node, led, able := l.node, l.led, l.able
	ours := node.Owned && string(node.Value) == l.cfg.ID
	weary, stood := l.weary, !l.stood.IsZero()
	work, asked, heard := l.look || len(l.flags) > 0, l.asked, l.rounds != nil && l.rounds.heard
	l.mu.Unlock()
	switch {
	case ours && !able, ours && weary, led && !ours, stood && !able:
		return l.abdicate(ctx)
	case node.Owned && !ours: // somebody wrote another name into our node
		return l.abdicate(ctx)
	case !able:
		return nil
	case !node.Exists():
		if l.standsBack() || l.awaitsElection() {
			return nil
		}
		return l.elect(ctx)
	case !node.Ephemeral:
		if made := fmt.Sprint(node.Path, " ", node.Created); !l.warned[made] {
			lazymap.Set(&l.warned, made, true)
			l.warn("the leader's node was made by no instance; it is removed", nil)
		}
		return l.remove(ctx, node)
	case ours && work:
		leads, err := l.lead(ctx)
		if !leads {
			return err
		}
		if rounds := l.followRounds(ctx, true); err == nil {
			err = rounds
		}
		return err
	case ours && (asked || heard):
		var err error
		if asked {
			err = l.orAbdicate(ctx, l.answer(ctx, nil))
		}
		if err != nil || !heard {
			return err
		}
		return l.followRounds(ctx, false)
	}
	return nil
}

// life is the check of this registration, which every commit has.
func (l *Leader) life() registry.Op {
	return registry.Check(l.cfg.Job.Life(l.cfg.ID), registry.AnyVersion)
}

// awaitsElection reports whether this instance has stood for election, and the watch has yet to show who was elected. If
// that one is gone by then, it may show nothing: after a turn this instance may stand again.
func (l *Leader) awaitsElection() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := turn - time.Since(l.stood)
	if l.stood.IsZero() || left <= 0 {
		return false
	}
	time.AfterFunc(left, l.work.Poke)
	return true
}

// stand notes when this instance stood for election. Zero: it is known that it was not elected.
func (l *Leader) stand(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stood = at
}

// elect tries to become the leader. Who wins is seen by the watch.
func (l *Leader) elect(ctx context.Context) error {
	err := l.compete(ctx)
	if _, refused := errors.AsType[*registry.CommitError](err); !refused || !errors.Is(err, registry.ErrNoParent) {
		return err
	}
	if err := registry.EnsurePath(ctx, l.cfg.Session, l.cfg.Job.LeaderElection()); err != nil {
		return err
	}
	return l.compete(ctx) // and once more, since no watch will show anything
}

// compete stands for election.
func (l *Leader) compete(ctx context.Context) error {
	failpoint.Hit(failpoint.BeforeElect)
	defer failpoint.Hit(failpoint.AfterElect)
	l.stand(time.Now())
	_, err := settle.Commit{
		Store: l.cfg.Session, Marker: 1,
		Ops: []registry.Op{
			l.life(),
			registry.CreateEphemeral(l.cfg.Job.Leader(), []byte(l.cfg.ID)),
			registry.CreateEphemeral(l.cfg.Job.Term(), layout.MarshalTerm(layout.Term{Leader: l.cfg.ID})),
		},
		Shows: func(n registry.Node) bool { return n.Owned && string(n.Value) == l.cfg.ID },
	}.Run(ctx, l.hindered)
	failed, refused := errors.AsType[*registry.CommitError](err)
	if err == nil || refused && failed.Index == 1 && errors.Is(err, registry.ErrExists) {
		return nil
	}
	if refused {
		l.stand(time.Time{})
	}
	switch {
	case refused && failed.Index == 2 && errors.Is(err, registry.ErrExists):
		if stray := l.strayTerm(ctx); stray != nil {
			return stray
		}
	case refused && failed.Index == 0:
		return nil // the registration is over, and the member sees it
	}
	return err
}

// strayTerm removes a term whose leader is gone, though its node is not: it was made, or
// kept, by somebody's hand. One whose leader lives belongs to a leader that steps down.
func (l *Leader) strayTerm(ctx context.Context) error {
	nodes, err := l.cfg.Session.Get(ctx, l.cfg.Job.Term())
	if err != nil || !nodes[0].Exists() {
		return err
	}
	holder := layout.UnmarshalTerm(nodes[0].Value).Leader
	if nodes[0].Ephemeral && holder != "" && holder != l.cfg.ID {
		lives, err := l.cfg.Session.Get(ctx, l.cfg.Job.Life(holder))
		if err != nil || lives[0].Exists() {
			return err
		}
	}
	return l.remove(ctx, nodes[0])
}

// remove deletes a node as it was seen, with what hangs below it. It fails where it has changed: the watch may have shown
// that before.
func (l *Leader) remove(ctx context.Context, n registry.Node) error {
	_, err := l.cfg.Session.Commit(ctx, l.life(), registry.Delete(n.Path, n.Version))
	if !errors.Is(err, registry.ErrNotEmpty) {
		return err
	}
	below, err := Below(ctx, l.cfg.Session, n.Path)
	if err == nil {
		err = l.erase(ctx, []registry.Op{l.life(), registry.Check(n.Path, n.Version)}, below)
	}
	if err == nil {
		_, err = l.cfg.Session.Commit(ctx, l.life(), registry.Delete(n.Path, n.Version))
	}
	return err
}

// abdicate gives up the term, and the leader's node when it is this session's. Nothing
// of this leader is in flight: its task settles what it commits.
func (l *Leader) abdicate(ctx context.Context) error {
	l.rest()
	nodes, err := settle.Get(ctx, l.cfg.Session, l.hindered, l.cfg.Job.Term(), l.cfg.Job.Leader())
	if err != nil {
		return err
	}
	ops := []registry.Op{l.life()}
	for _, n := range nodes {
		if n.Owned {
			ops = append(ops, registry.Delete(n.Path, n.Version))
		}
	}
	if len(ops) > 1 {
		_, err = settle.Commit{
			Store: l.cfg.Session, Ops: ops, Marker: 1, Shows: func(n registry.Node) bool { return !n.Exists() },
		}.Run(ctx, l.hindered)
		failed, refused := errors.AsType[*registry.CommitError](err)
		if err != nil && (!refused || failed.Index > 0) {
			return err // looked at again
		}
	}
	l.mu.Lock()
	led := l.led
	l.led, l.seen, l.paged, l.stood = false, nil, nil, time.Time{}
	l.forgive()
	l.mu.Unlock()
	l.floor, l.refused, l.stilled = time.Time{}, 0, nil
	l.cfg.Host.Changed()
	if led {
		l.work.Poke() // the node may have gone before: nobody else says that there is one to elect
	}
	return nil
}
