package leading

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

var (
	// errNotLeader: the term is another's, or gone.
	errNotLeader = errors.New("not the leader any more")
	// errJava: ElasticJob has assigned items since the last commit of a leader of ours.
	errJava = errors.New("an instance of ElasticJob led before")
	// errStale: what the plan was derived from has changed.
	errStale = errors.New("the state has changed")
)

// lead makes what is into what should be. It reports whether this instance leads still, and has done so: what fails then
// is in nobody's way.
func (l *Leader) lead(ctx context.Context) (leads bool, err error) {
	l.mu.Lock()
	l.look, l.viewing = false, true
	java := l.java
	l.java = false
	l.mu.Unlock()
	l.followClocks()
	if java {
		l.floor = l.cfg.Now()
	}
	plan, err := l.reshard(ctx)
	if leads = err == nil; leads {
		if err = l.answer(ctx, plan); err == nil {
			err = l.undecided
		}
	}
	l.mu.Lock()
	left := l.left
	l.viewing, l.left = false, nil
	news := l.shown.base > l.looked.base || l.shown.schedule > l.looked.schedule
	if err != nil || news {
		l.look = true
	}
	l.shown = inForce{}
	mend := leads && l.mend
	if leads {
		l.bereft = false
	}
	if leads && !mend {
		l.seen = nil // nobody goes by it, and it holds all records
	}
	l.mu.Unlock()
	if news && leads {
		l.work.Poke() // somebody has written there since
	}
	if mend {
		l.tidy.Poke()
	}
	for _, id := range left {
		l.Gone(id)
	}
	if errors.Is(err, errNotLeader) {
		return false, l.abdicate(ctx)
	}
	return leads, err
}

// orAbdicate steps down where the term is another's: let all elect.
func (l *Leader) orAbdicate(ctx context.Context, err error) error {
	if errors.Is(err, errNotLeader) {
		return l.abdicate(ctx)
	}
	return err
}

// reshard derives and writes until nothing is left to write now. It returns the last plan.
func (l *Leader) reshard(ctx context.Context) (*sharding.Plan, error) {
	begun := l.cfg.Now()
	pause := 5 * time.Millisecond
	assigned := false
	nodes := map[string]registry.Node{} // of items, as they were read, or made, here
	for {
		l.mu.Lock()
		l.look = false // what was to be looked at until now is
		l.mu.Unlock()
		s, plan, again, err := l.plan(ctx, nodes)
		if plan != nil {
			l.knows = false
			l.tellNotes(plan)
			var done event.Resharded
			done, err = l.write(ctx, plan, &s, nodes)
			done.Took = l.cfg.Now().Sub(begun)
			l.report(plan, done)
			if err == nil {
				l.refused, l.contended, l.stilled, l.damaged, l.told, l.bound = 0, nil, nil, nil, nil, nil
				if len(plan.Away) > 0 {
					l.bound = plan
				}
				l.await(plan)
				assigned = assigned || (plan.Base != nil && plan.Base.Assigned)
			}
			again = plan.Base != nil || plan.Noted
		}
		switch {
		case errors.Is(err, errJava):
			l.floor = l.cfg.Now() // and once more
		case errors.Is(err, errStale):
			if err = l.goOn(ctx, s, &pause, err); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case !again:
			l.knows = true
			l.mu.Lock()
			l.owners, l.present, l.looked = plan.Owners(), s.present(), inForce{s.base.Modified, s.schedule.Modified}
			l.mu.Unlock()
			if assigned { // an epoch's items: those of the one before may go
				l.Tidy()
			}
			return plan, nil
		}
	}
}

// plan derives what is to be written from a new view; no plan where something else had to be written first, and again
// says so.
func (l *Leader) plan(ctx context.Context, nodes map[string]registry.Node) (s snapshot, plan *sharding.Plan, again bool, err error) {
	if s, err = l.view(ctx, nodes); err != nil {
		return s, nil, false, err
	}
	if again, err = l.schedule(ctx, &s); again || err != nil {
		return s, nil, again, err
	}
	if plan, err = l.derive(ctx, &s); err != nil {
		return s, nil, false, err
	}
	if s.unlisted && plan.Final() {
		return s, nil, false, errStale // of what is not known nothing is given up
	}
	plan.Drop = slices.DeleteFunc(plan.Drop, func(id string) bool { return l.isLeft(l.cfg.Job.Ledger(id)) })
	return s, plan, false, nil
}

// goOn makes ready for another view after a refusal, which it returns where there is to be none: it pauses, ever longer,
// but where it asks for stillness for the first time, and asks for that.
func (l *Leader) goOn(ctx context.Context, s snapshot, pause *time.Duration, refusal error) error {
	if l.refused++; l.refused >= mostStale {
		return refusal
	}
	if l.refused != patience || len(l.contended) == 0 {
		if !settle.Pause(ctx, *pause) {
			return refusal
		}
		*pause = min(2**pause, 200*time.Millisecond)
	}
	if err := l.hush(ctx, s); err != nil && !errors.Is(err, errStale) {
		return err
	}
	return nil
}

// hush asks the owners whose commits have come before the leader's again and again to
// commit nothing for a moment. What they have committed until they heard of it must be read.
func (l *Leader) hush(ctx context.Context, s snapshot) error {
	contended := l.contended
	l.contended = nil
	if l.refused < patience {
		return nil
	}
	var ops []registry.Op
	for _, id := range contended {
		if s.notified[id] && len(ops) < l.cfg.Session.Limits().MaxOps-guardOps {
			ops = append(ops, l.notice(id, layout.Notice{Still: true}))
			lazymap.Set(&l.stilled, id, true)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	begun := time.Now()
	if err := l.commit(ctx, s, ops); err != nil {
		return err
	}
	settle.Pause(ctx, min(max(hearing, time.Since(begun)), mostHearing))
	return nil
}

// derive makes the plan. One that takes it that records are lost, or that an epoch is
// over, is made again of what the notices show besides: of a registration that runs
// something nothing else may be left.
func (l *Leader) derive(ctx context.Context, s *snapshot) (*sharding.Plan, error) {
	l.undecided = nil
	plan := sharding.Derive(s.View)
	if !plan.Final() {
		return plan, nil
	}
	ids, err := l.cfg.Session.Names(ctx, l.cfg.Job.Notices())
	if err != nil {
		return nil, fmt.Errorf("core: notices: %w", err)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		_, read := s.notified[id]
		return read
	})
	if len(ids) == 0 {
		return plan, nil
	}
	nodes, err := l.cfg.Session.Get(ctx, l.paths(ids...)...)
	if err != nil {
		return nil, fmt.Errorf("core: notices: %w", err)
	}
	if err := l.add(ctx, s, ids, nodes); err != nil {
		return nil, err
	}
	l.undecided = nil
	return sharding.Derive(s.View), nil
}

// A snapshot is what the registry says, with the versions that a commit needs.
type snapshot struct {
	sharding.View
	term     registry.Node
	base     registry.Node
	schedule registry.Node
	claim    registry.Node
	first    []registry.Op   // the first schedule, made with the first base
	notified map[string]bool // who has a notice
	unlisted bool            // the ledgers are those of whom the leader knew
}

// bereaved returns whose ledgers may hold items, where an owner has gone since the latest plan: its items wait, and no
// list of the ledgers is needed. Since that plan no leader has given items away, and whoever registers anew takes them
// from a ledger that is found missing. False: no owner has gone, or the latest plan was not carried out.
func (l *Leader) bereaved(lives []string) (ids []string, known bool) {
	if l.refused > 0 || !l.knows {
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.owners {
		known = known || !slices.Contains(lives, id) && slices.Contains(l.present, id)
	}
	if !known {
		return nil, false
	}
	ids = slices.Concat(l.owners, l.present)
	slices.Sort(ids)
	return slices.Compact(ids), true
}

// view reads the ledgers, lives and notices. A ledger is made with its life, and is
// listed before the lives are read: a life that is missing then is over. To items it adds the nodes of items that will
// move, where there are few: somebody waits for them.
func (l *Leader) view(ctx context.Context, items map[string]registry.Node) (s snapshot, err error) {
	job := l.cfg.Job
	f := l.cfg.Host.Facts()
	names, known := l.bereaved(f.Lives)
	if !known {
		if names, err = l.cfg.Session.Names(ctx, job.Ledgers()); err != nil {
			return s, fmt.Errorf("core: ledgers: %w", err)
		}
		f = l.cfg.Host.Facts() // not older than the list
	}
	ids := names
	for _, id := range append(f.Lives, f.Instances...) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	paths := []string{job.Term(), job.Base(), job.Schedule(), job.Runs(), job.Config()}
	listened := len(f.Listens) > 0
	if listened {
		paths = append(paths, job.Claim())
	}
	fixed := len(paths)
	paths = append(paths, l.likelyItems(f, items)...)
	nodes, of, err := l.read(ctx, paths, ids, f.Stands)
	if err != nil {
		return s, fmt.Errorf("core: ledgers: %w", err)
	}
	for _, n := range nodes[fixed:] {
		items[n.Path] = n
	}
	// A registration that was listed, or seen, and is gone by now may stand under another
	// id, which was not: its owner has registered anew in between. So it may be where a ledger is missing
	// and the watch alone says that its life stands: all is read then.
	for i, id := range ids {
		led, life := of[each*i], of[each*i+1]
		gone := !led.Exists() && (!life.Exists() || life.Path == "")
		if gone && (i < len(names) || slices.Contains(f.Lives, id)) {
			return s, fmt.Errorf("core: ledgers: %w", errStale)
		}
	}
	s.term, s.base, s.schedule, s.notified, s.unlisted = nodes[0], nodes[1], nodes[2], map[string]bool{}, known
	if listened {
		s.claim = nodes[5]
	}
	if !s.term.Owned || layout.UnmarshalTerm(s.term.Value).Leader != l.cfg.ID {
		return s, errNotLeader
	}
	l.mu.Lock()
	l.base = s.base
	l.mu.Unlock()
	s.View = sharding.View{
		Total: f.Total, Monitor: f.Monitor, Delayed: f.Delayed, Failover: f.Failover, Window: f.Window, Static: f.Static, Now: l.cfg.Now(), Up: f.Up,
		Base: l.readBase(s.base), Known: l.cfg.Memory.lastBase,
		Asked: max(Counted(nodes[3]), l.cfg.Memory.lastRun()),
	}
	s.Assign = l.assigned(f)
	if s.Base != nil && nodes[4].Modified > f.Configured {
		s.Total = s.Base.To // no epoch ends by what was configured before: the watch will show what is now
	}
	if err := l.add(ctx, &s, ids, of); err != nil {
		return s, err
	}
	seen, paged := s, map[string]*ledger.Ledger(nil)
	for _, m := range s.Members {
		if m.Ledger != nil && len(m.Ledger.Pages()) > 0 {
			lazymap.Set(&paged, job.Ledger(m.ID), m.Ledger)
		}
	}
	l.mu.Lock()
	l.seen, l.paged = &seen, paged
	l.mu.Unlock()
	return s, nil
}

// assigned returns the strategy, and notes why it has no answer.
func (l *Leader) assigned(f Facts) func(ids []string, total int, previous map[string][]int) map[string][]int {
	return func(ids []string, total int, previous map[string][]int) map[string][]int {
		assigned, err := f.Assign(ids, total, previous)
		if err != nil {
			l.undecided = undecidedError{err}
			return nil
		}
		return assigned
	}
}

// present are those that are not dead.
func (s *snapshot) present() (ids []string) {
	for _, m := range s.Members {
		if m.State != sharding.Dead {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// fewItems are so few that all of their nodes are read with the ledgers, where the plan is likely to move one.
const fewItems = 8

// likelyItems are the nodes of the items, and the flags, where there are few items and the plan is likely to move one:
// an owner has gone, or nobody has led before. Else they are read once there is a plan. What items says of the flags is
// forgotten.
func (l *Leader) likelyItems(f Facts, items map[string]registry.Node) (paths []string) {
	for _, flag := range l.flagPaths() {
		delete(items, flag)
	}
	l.mu.Lock()
	first := len(l.present) == 0 && l.former == ""
	gone := slices.ContainsFunc(l.owners, func(id string) bool { return !slices.Contains(f.Lives, id) })
	l.mu.Unlock()
	if items == nil || !gone && !first || f.Total > fewItems {
		return nil
	}
	for n := range f.Total {
		if item := l.cfg.Job.Item(n); gone || items[item].Path == "" {
			paths = append(paths, item, l.cfg.Job.ItemInstance(n))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return append(paths, l.flagPaths()...)
}

// read reads nodes, and those of ids, each of them as paths has them. Of an id that the watches show to stand the
// ledger alone is read, and the others are as they were shown: where one is gone since, its watch will say so, or
// the commit that writes to it is refused. Then all are read.
func (l *Leader) read(ctx context.Context, fixed, ids []string, stands func(id string) registry.Revision) (nodes, of []registry.Node, err error) {
	paths, shown := slices.Clone(fixed), make([]registry.Revision, len(ids))
	for i, id := range ids {
		p := l.paths(id)
		if shown[i] = stands(id); l.refused > 0 {
			shown[i] = 0
		}
		if shown[i] > 0 {
			p = p[:1]
		}
		paths = append(paths, p...)
	}
	nodes, err = l.cfg.Session.Get(ctx, paths...)
	if err != nil {
		return nil, nil, err
	}
	rest := nodes[len(fixed):]
	for _, made := range shown {
		if made > 0 {
			n := registry.Node{Created: made, Ephemeral: true}
			of, rest = append(of, rest[0], n, n, n), rest[1:]
		} else {
			of, rest = append(of, rest[:each]...), rest[each:]
		}
	}
	return nodes[:len(fixed)], of, nil
}

// each is how many nodes are read of an id.
const each = 4

// paths are those of what is read of each id.
func (l *Leader) paths(ids ...string) []string {
	job := l.cfg.Job
	paths := make([]string, 0, each*len(ids))
	for _, id := range ids {
		paths = append(paths, job.Ledger(id), job.Life(id), job.Notice(id), job.Instance(id))
	}
	return paths
}

// add takes what was read of ids into the snapshot, and reads the pages of their ledgers.
func (l *Leader) add(ctx context.Context, s *snapshot, ids []string, nodes []registry.Node) error {
	eligible := l.cfg.Host.Facts().Eligible
	roots := make([]registry.Node, len(ids))
	for i := range ids {
		roots[i] = nodes[each*i]
	}
	ledgers, err := pages.Read(ctx, l.cfg.Session.Get, l.known(), roots...)
	if err != nil {
		return fmt.Errorf("core: ledgers: %w", err)
	}
	for i, id := range ids {
		if errors.Is(ledgers[i].Err, ledger.ErrTorn) {
			return fmt.Errorf("core: ledgers: %w: %w", errStale, ledgers[i].Err)
		}
		if led := ledgers[i].Ledger; led != nil {
			for p, stands := range l.damaged[roots[i].Path] {
				led.Lacks(p, stands)
			}
		}
		of := nodes[each*i:]
		if m, known := l.member(id, ledgers[i], of[1], of[2], of[3]); known {
			m.Eligible = m.State == sharding.Alive && eligible(id)
			s.Members = append(s.Members, m)
		}
		s.notified[id] = of[2].Exists()
	}
	return nil
}

// known are the ledgers with pages as they were when the leader looked last, by path.
func (l *Leader) known() map[string]*ledger.Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paged
}

func (l *Leader) readBase(n registry.Node) *layout.Base {
	if !n.Exists() {
		return nil
	}
	b, err := baseOf(n.Value)
	if err != nil {
		l.warn("the node "+n.Path+" holds no epoch; it is made again", err)
		return nil
	}
	l.cfg.Memory.SawBase(n, b)
	return &b
}

// member is what the nodes of one id say; false when there is nothing of it.
func (l *Leader) member(id string, led pages.Found, life, notice, instance registry.Node) (sharding.Member, bool) {
	m := sharding.Member{ID: id, Version: led.Node.Version}
	if life.Exists() && !life.Ephemeral {
		l.foreign(life.Path, "lives", nil)
	}
	switch {
	case life.Ephemeral && notice.Ephemeral:
		m.State = sharding.Alive
	case life.Ephemeral || notice.Ephemeral || instance.Ephemeral:
		m.State = sharding.Astray
	default:
		m.State = sharding.Dead
	}
	if led.Node.Exists() && (!life.Ephemeral || led.Node.Created == life.Created) {
		if m.Ledger = led.Ledger; led.Err != nil {
			l.foreign(led.Node.Path, "ledgers", led.Err)
		}
	}
	return m, m.State != sharding.Dead || m.Ledger != nil
}

// foreign warns of a node that is none of ours, once.
func (l *Leader) foreign(path, among string, err error) {
	if !l.warned[path] {
		lazymap.Set(&l.warned, path, true)
		l.warn("foreign node "+path+" among the "+among, err)
	}
}

// schedule puts the configured schedule in force, where it is not. It reports whether
// it wrote. The first one is left to the commit that makes the first base.
func (l *Leader) schedule(ctx context.Context, s *snapshot) (bool, error) {
	f := l.cfg.Host.Facts()
	rule := f.Rule
	was, stands := remembered(l, s.schedule, &l.cfg.Memory.schedule, "schedule", layout.UnmarshalSchedule)
	known := was.Number > 0
	if f.ZoneOpen && known && was.Zone != "" {
		rule.Zone = was.Zone
	}
	same := known && was.Rule == rule
	if stands && same && !l.floor.After(was.Floor) {
		return false, nil
	}
	next := layout.Schedule{Number: max(was.Number+1, 1), Rule: rule, Floor: was.Floor}
	if l.floor.After(next.Floor) {
		next.Floor = l.floor
	}
	switch {
	case same:
		next.Number, next.Since, next.Before = was.Number, was.Since, was.Before
	case known:
		next.Since = l.since(*s, was.Since)
		next.Before = past(was, l.owed(*s))
	}
	op := registry.Create(l.cfg.Job.Schedule(), nil)
	if s.schedule.Exists() {
		op = registry.Set(l.cfg.Job.Schedule(), nil, s.schedule.Version)
	}
	op.Value = layout.MarshalSchedule(next)
	if !s.schedule.Exists() && !s.base.Exists() {
		s.first = []registry.Op{op}
		return false, nil
	}
	if err := l.commit(ctx, *s, []registry.Op{op}); err != nil {
		return true, err
	}
	l.cfg.Memory.wrote(&l.cfg.Memory.schedule, op.Value)
	return true, nil
}

// pastRules bounds how many schedules before are kept, however far an item lags.
const pastRules = 8

// past are the schedules under which fires due after an instant may still be decided.
func past(was layout.Schedule, owed time.Time) []layout.Past {
	rules := append([]layout.Past{{Rule: was.Rule, Since: was.Since}}, was.Before...)
	for i, r := range rules {
		if i+1 == pastRules || !r.Since.After(owed) {
			return rules[:i+1]
		}
	}
	return rules
}

// owed is the earliest instant from which on an item may owe fires.
func (l *Leader) owed(s snapshot) time.Time {
	earliest := s.Now
	for _, m := range s.Members {
		if m.Ledger == nil {
			continue
		}
		if t := m.Ledger.Earliest(); !t.IsZero() && t.Before(earliest) {
			earliest = t
		}
	}
	return earliest
}

// since is from when on a new schedule counts: what any record says was decided under
// the one before, and that one counted from was on.
func (l *Leader) since(s snapshot, was time.Time) time.Time {
	since := s.Now
	if was.After(since) && was.Before(s.Now.Add(ledger.Believable)) {
		since = was
	}
	if s.Base != nil && s.Base.Through.After(since) {
		since = s.Base.Through
	}
	for _, m := range s.Members {
		if m.Ledger == nil {
			continue
		}
		for _, rec := range m.Ledger.All() {
			for _, t := range []time.Time{rec.Through, rec.Run} {
				if t.After(since) && t.Before(s.Now.Add(ledger.Believable)) {
					since = t
				}
			}
		}
	}
	return since
}

// report tells of what was moved.
func (l *Leader) report(p *sharding.Plan, done event.Resharded) {
	if len(done.Moves) > 0 {
		slices.SortFunc(done.Moves, func(a, b event.Move) int { return a.Item - b.Item })
		l.cfg.Host.Emit(done)
	}
	if len(p.Lost) > 0 && (len(done.Moves) > 0 || (p.Base != nil && done.Commits > 0)) {
		l.warn(fmt.Sprintf("items %s stood in no ledger: their records are lost, and nobody knows which fires until now they ran; they go on from here",
			ledger.FormatRange(p.Lost)), nil)
	}
}

// await watches for what the plan waits for, and says so.
func (l *Leader) await(p *sharding.Plan) {
	want := map[target]bool{}
	for _, id := range p.Ending {
		want[target{l.cfg.Job.Rounds(id), registry.Self}] = true
	}
	for _, id := range slices.Concat(p.Held, p.Nudge) { // whoever is told mends its ledger, or registers anew
		want[target{l.cfg.Job.Ledger(id), registry.Self}] = true
	}
	for _, id := range slices.Concat(p.Astray, p.Nudge) { // or its session ends
		if id != l.cfg.ID { // whose own is watched, and which would not lead
			want[target{l.cfg.Job.Notice(id), registry.Self}] = true
		}
	}
	byPath := func(a, b target) int { return strings.Compare(a.path, b.path) }
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	add, remove := difference(l.watched, want, byPath)
	l.watched = want
	waits, away := len(want)+len(p.Astray) > 0, len(p.Away) > 0
	over := (l.waiting || l.away) && !waits && !away
	l.waiting, l.away = waits, away
	l.mu.Unlock()
	if waits {
		l.lookAgain()
	}
	for _, t := range remove {
		l.cfg.Session.Unfollow(t.path, t.scope)
	}
	for _, t := range add {
		l.cfg.Session.Follow(t.path, t.scope, l.onAwaited)
	}
	switch {
	case len(p.Waiting) > 0:
		l.cfg.Host.Waits("items " + ledger.FormatRange(p.Waiting) + " to end, before they can be assigned anew")
	case len(p.Held) > 0:
		l.cfg.Host.Waits("instances " + strings.Join(p.Held, ", ") + " to account for the sharding total count that ends")
	case len(p.Astray) > 0:
		l.cfg.Host.Waits("instances " + strings.Join(p.Astray, ", ") + ", of whose nodes somebody has deleted some, to register anew, or their sessions to end")
	case away:
		l.cfg.Host.Waits("the instances to which items " + ledger.FormatRange(p.Away) + " are bound (static sharding)")
	case over:
		l.cfg.Host.Waits("")
	}
}

// difference is what comes to a set and what goes from it, each in order.
func difference[T comparable](had, want map[T]bool, order func(a, b T) int) (add, remove []T) {
	for t := range want {
		if !had[t] {
			add = append(add, t)
		}
	}
	for t := range had {
		if !want[t] {
			remove = append(remove, t)
		}
	}
	slices.SortFunc(add, order)
	slices.SortFunc(remove, order)
	return add, remove
}

// wary is how long a wait goes on until the leader looks by itself: the node that it
// watches may have been deleted from outside.
const wary = 5 * time.Second

// lookAgain looks after a while, once for however many waits.
func (l *Leader) lookAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wary {
		return
	}
	l.wary = true
	time.AfterFunc(wary, func() {
		l.mu.Lock()
		l.wary = false
		look := l.waiting
		l.mu.Unlock()
		if look {
			l.Look()
		}
	})
}

// onAwaited looks again when an item has ended that is leaving, or a held ledger has
// changed; once, too, when the watch begins, since that may have happened before. Of a notice, which the leader sets
// itself, only the end counts: its session's, and then items wait for an owner.
func (l *Leader) onAwaited(e registry.Event) {
	notice := path.Dir(e.Node.Path) == l.cfg.Job.Notices()
	if e.Synced || notice && e.Node.Exists() {
		return
	}
	l.mu.Lock()
	l.look = true
	l.mu.Unlock()
	if notice {
		l.work.Press()
	} else {
		l.work.Poke()
	}
}
