package leading

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// rounds are what the leader knows of rounds while somebody listens to them. All of it can
// be derived again.
type rounds struct {
	watched bool
	heard   bool                     // something was told since the last look
	surely  bool                     // look at the ledgers, whatever was told
	waits   bool                     // a look is to come, whatever happens
	told    map[string]ledger.Rounds // by life
	owners  map[string]ledger.Rounds // by life, as their ledgers said when they were read last
	begun   []time.Time              // rounds of which an item has begun, ascending
	claim   layout.Claim
	version registry.Version
	created registry.Revision
}

// listened returns what is known of rounds, since somebody listens to them. The caller holds mu.
func (l *Leader) listened() *rounds {
	if l.rounds == nil {
		l.rounds = &rounds{}
	}
	return l.rounds
}

// maxBegun bounds how many rounds are remembered until they are claimed.
const maxBegun = 1_000

// OnClaim follows the claim's node, which holds c; with read false, none: somebody has deleted it, or written
// nonsense to it, or it was never made.
func (l *Leader) OnClaim(n registry.Node, c layout.Claim, read bool) {
	l.mu.Lock()
	r := l.listened()
	switch {
	case !read:
		r.surely = r.surely || n.Exists() || r.created != 0
	case n.Created > r.created || (n.Created == r.created && n.Version > r.version):
		r.claim, r.version, r.created, r.heard = c, n.Version, n.Created, true
	}
	l.mu.Unlock()
	l.work.Poke()
}

// onRounds follows how far the owners are.
func (l *Leader) onRounds(e registry.Event) {
	if e.Synced {
		return
	}
	id := path.Base(e.Node.Path)
	is, err := ledger.DecodeRounds(e.Node.Value)
	l.mu.Lock()
	switch r := l.rounds; {
	case !e.Node.Exists():
		delete(r.told, id)
	case err != nil: // a wait goes on without it
	default:
		lazymap.Set(&r.told, id, is)
		r.heard = true
		r.begin(is.Begun)
	}
	l.mu.Unlock()
	l.work.Poke()
}

// begin notes that a round has begun.
func (r *rounds) begin(due time.Time) {
	if due.IsZero() {
		return
	}
	at, known := slices.BinarySearchFunc(r.begun, due, time.Time.Compare)
	if !known {
		r.begun = slices.Insert(r.begun, at, due)
	}
	if len(r.begun) > maxBegun {
		r.begun = r.begun[1:]
	}
}

// reached returns the latest round after a cursor that has begun and that all owners have
// reached; false when there is none.
func (r *rounds) reached(p layout.Phase, owners map[string]ledger.Rounds) (due time.Time, ok bool) {
	all := ledger.Always
	for _, is := range owners {
		at := is.Completed
		if p == layout.Started {
			at = is.Started
		}
		if at.Before(all) {
			all = at
		}
	}
	for _, d := range slices.Backward(r.begun) {
		if !d.After(all) {
			return d, d.After(r.claim.Of(p).Due)
		}
	}
	return time.Time{}, false
}

// due reports whether a claim may be made, by what was told.
func (r *rounds) due(f Facts) bool {
	owners := map[string]ledger.Rounds{}
	for id, is := range r.owners {
		if told := r.told[id]; told.Seq > is.Seq {
			is = told
		}
		owners[id] = is
	}
	for p := range layout.Phases {
		c := *r.claim.Of(p)
		if c.Open() {
			if !slices.Contains(f.Lives, c.Caller) {
				return true
			}
			continue
		}
		if _, ok := r.reached(p, owners); ok && len(owners) > 0 && len(listeners(f, p)) > 0 {
			return true
		}
	}
	return false
}

// listeners are the lives that listen to a phase, in order.
func listeners(f Facts, p layout.Phase) (ids []string) {
	for id, to := range f.Listens {
		if to.To(p) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// followRounds claims the rounds that all items have reached, for somebody who listens. With surely
// the ledgers are read whatever was told.
func (l *Leader) followRounds(ctx context.Context, surely bool) error {
	f := l.cfg.Host.Facts()
	if len(f.Listens) == 0 {
		l.deafen()
		return nil
	}
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return nil
	}
	r := l.listened()
	watch := !r.watched
	surely = surely || r.surely
	r.watched, r.heard, r.surely = true, false, false
	idle := !surely && !r.due(f)
	l.mu.Unlock()
	if watch {
		l.cfg.Session.Follow(l.cfg.Job.RoundsDir(), registry.Children, l.onRounds)
	}
	l.followAgain(f)
	if idle {
		return nil
	}
	err := l.claim(ctx)
	switch {
	case errors.Is(err, errNotLeader):
		return l.abdicate(ctx)
	case err != nil:
		l.mu.Lock()
		l.rounds.heard, l.rounds.surely = true, true
		l.mu.Unlock()
	}
	return err
}

// deafen ends the watch of rounds.
func (l *Leader) deafen() {
	l.mu.Lock()
	watched := false
	if r := l.rounds; r != nil {
		watched = r.watched
		r.watched, r.heard, r.surely = false, false, false
		if watched {
			clear(r.told)
			r.begun = nil
		}
	}
	l.mu.Unlock()
	if watched {
		l.cfg.Session.Unfollow(l.cfg.Job.RoundsDir(), registry.Children)
	}
}

// followAgain looks at everything after a while, once for however many rounds are open: what
// tells of them may be late, or deleted from outside.
func (l *Leader) followAgain(f Facts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rounds.waits || !l.rounds.open(f) {
		return
	}
	l.rounds.waits = true
	time.AfterFunc(wary, func() {
		f := l.cfg.Host.Facts()
		l.mu.Lock()
		l.rounds.waits = false
		open := l.rounds.open(f)
		l.look = l.look || open
		l.mu.Unlock()
		if open {
			l.work.Poke()
		}
	})
}

// open reports whether a round has begun and is not claimed, or somebody is being called.
func (r *rounds) open(f Facts) bool {
	for p := range layout.Phases {
		c := r.claim.Of(p)
		if c.Open() || (len(r.begun) > 0 && r.begun[len(r.begun)-1].After(c.Due) && len(listeners(f, p)) > 0) {
			return true
		}
	}
	return false
}

// claim reads how far all are, and claims what they have reached.
func (l *Leader) claim(ctx context.Context) error {
	s, err := l.view(ctx, nil)
	if err != nil {
		return err
	}
	f := l.cfg.Host.Facts()
	was, stands := remembered(l, s.claim, &l.cfg.Memory.claim, "claim", layout.UnmarshalClaim)
	owners, known := s.Rounds()
	l.mu.Lock()
	r := l.rounds
	r.claim, r.version, r.created = was, s.claim.Version, s.claim.Created
	r.owners = owners
	if l.fresh && known {
		l.fresh = false
		r.recall(s)
	}
	r.see(s)
	reset := r.believe(s.Now)
	next, tell := l.next(s, f, known)
	l.mu.Unlock()
	if next == was && (stands || was == layout.Claim{}) {
		return nil
	}
	op := registry.Create(l.cfg.Job.Claim(), layout.MarshalClaim(next))
	if s.claim.Exists() {
		op = registry.Set(op.Path, op.Value, s.claim.Version)
	}
	if failpoint.Mutant(failpoint.ClaimUnversioned) && s.claim.Exists() {
		op.Version = registry.AnyVersion
		_, err = l.cfg.Session.Commit(ctx, op)
	} else {
		err = l.commit(ctx, s, []registry.Op{op})
	}
	if err != nil {
		return err
	}
	l.cfg.Memory.wrote(&l.cfg.Memory.claim, op.Value)
	if reset {
		l.warn("a claim of rounds was ahead of the clock and is set back; let the clocks of all instances agree", nil)
	}
	l.mu.Lock()
	if r.version == s.claim.Version && r.created == s.claim.Created { // else the watch has shown it already, or what followed
		r.claim = next
		if s.claim.Exists() {
			r.version++
		}
	}
	r.forget(f)
	l.mu.Unlock()
	for _, e := range tell {
		l.cfg.Host.Emit(e)
	}
	return nil
}

// believe forgets rounds that are far ahead of the clock, and sets cursors back that are: to
// wait for those would leave out the rounds of years. It reports whether it did the latter.
func (r *rounds) believe(now time.Time) (reset bool) {
	limit := now.Add(ledger.Believable)
	r.begun = slices.DeleteFunc(r.begun, func(d time.Time) bool { return d.After(limit) })
	for p := range layout.Phases {
		if c := r.claim.Of(p); !c.Open() && c.Due.After(limit) {
			*c, reset = layout.Cursor{}, true
		}
	}
	return reset
}

// see notes the rounds of what runs, and of what is to run again: who has begun them may be too late to tell, or dead.
func (r *rounds) see(s snapshot) {
	for _, m := range s.Members {
		if m.Ledger == nil {
			continue
		}
		for _, rec := range m.Ledger.All() {
			switch {
			case rec.Request != 0:
			case rec.Running():
				r.begin(rec.Run)
			case rec.Redo.Owed():
				r.begin(rec.Redo.Due)
			}
		}
	}
}

// recall finds rounds that have begun before this term, and of which nobody is left to tell.
func (r *rounds) recall(s snapshot) {
	last := r.claim.Completed
	if last.Due.IsZero() {
		return
	}
	for _, m := range s.Members {
		if m.Ledger == nil {
			continue
		}
		for _, rec := range m.Ledger.All() {
			if rec.Last.Began.After(last.At) && rec.Through.After(last.Due) {
				r.begin(rec.Through)
			}
		}
	}
}

// forget drops rounds that are claimed as completed. Where nobody listens to that there are no
// such claims: then it is those that have begun.
func (r *rounds) forget(f Facts) {
	upTo := r.claim.Completed.Due
	if started := r.claim.Started.Due; started.After(upTo) && len(listeners(f, layout.Completed)) == 0 {
		upTo = started
	}
	r.begun = slices.DeleteFunc(r.begun, func(d time.Time) bool { return !d.After(upTo) })
}

// next is what the claim should be, and what is told then. The caller holds mu.
func (l *Leader) next(s snapshot, f Facts, known bool) (next layout.Claim, tell []event.Event) {
	next = l.rounds.claim
	for p := range layout.Phases {
		c := next.Of(p)
		if c.Open() {
			if stands(s.Members, c.Caller) {
				continue
			}
			tell = append(tell, event.RoundLost{Job: l.cfg.Job.Name(), Phase: phases[p], Due: c.Due, Instance: c.Caller, Attempt: c.Attempt})
			if to := l.caller(s, f, p); to != "" && c.Again && c.Attempt < maxAttempts {
				c.Caller, c.Attempt, c.At, c.Fail = to, c.Attempt+1, s.Now, f.Listens[to].Fail
				continue
			}
			c.Done, c.Lost, c.Failed = true, true, c.Fail
		}
		to := l.caller(s, f, p)
		due, ok := l.rounds.reached(p, l.rounds.owners)
		if !known || to == "" || !ok {
			continue
		}
		*c = layout.Cursor{Due: due, Since: c.Due, At: s.Now, Caller: to, Attempt: 1, Again: f.Listens[to].Again, Fail: f.Listens[to].Fail, Refused: c.Refusals()}
	}
	return next, tell
}

// maxAttempts is how often somebody is called for a round.
const maxAttempts = 2

// phases are how the phases are told.
var phases = [layout.Phases]event.RoundPhase{layout.Started: event.RoundStarted, layout.Completed: event.RoundCompleted}

// caller is who is called for the next round of a phase: this instance where it listens. ""
// is nobody.
func (l *Leader) caller(s snapshot, f Facts, p layout.Phase) (id string) {
	for _, to := range listeners(f, p) {
		if alive(s.Members, to) && (id == "" || to == l.cfg.ID) {
			id = to
		}
	}
	return id
}

func alive(members []sharding.Member, id string) bool {
	return slices.ContainsFunc(members, func(m sharding.Member) bool { return m.ID == id && m.State == sharding.Alive })
}

// stands reports whether anything of an instance stands.
func stands(members []sharding.Member, id string) bool {
	return slices.ContainsFunc(members, func(m sharding.Member) bool { return m.ID == id && m.State != sharding.Dead })
}
