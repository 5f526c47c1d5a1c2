package execution

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/registry"
)

const (
	// never is the pause before runs are shown that shall not be.
	never time.Duration = -1
	// showTimeout bounds one attempt at showing what runs: nothing depends on it.
	showTimeout = time.Second
)

// A run is one that the ledger records, with what is known of its running node: a picture
// for tools, unless a member looks at it that knows no ledgers.
type run struct {
	is     look
	from   time.Time // when it is to be shown, or looked at again
	before time.Time // when the run before it began
	again  bool      // a node says that it runs again
}

type look uint8

const (
	unseen look = iota // there is none yet
	maybe              // one may stand, or may come: as long as the ledger is not set
	shown              // one stands
	hidden             // none of ours stands, and none is made
)

// pictures are the running nodes of a ledger.
type pictures struct {
	runs   map[int]run
	after  time.Duration // how long a run lasts until it is shown; never
	strict bool          // running nodes are locks: made with the begin
	swept  []int         // items whose nodes may stand though they do not run
	warned bool
	timer  *time.Timer
	at     time.Time // when timer fires, zero when it does not
}

// Show says how long a run lasts until it is shown as a running node; negative is for
// ever. With strict the node is a lock: it is made with the begin, and what runs already
// is shown before anything begins.
func (r *Recorder) Show(after time.Duration, strict bool) {
	r.mu.Lock()
	p := &r.show
	later := after - p.after
	if after < 0 {
		after = never
	}
	if p.after == after && p.strict == strict {
		r.mu.Unlock()
		return
	}
	for n, x := range p.runs {
		switch {
		case strict:
			x.from = time.Time{}
		case p.after >= 0 && after >= 0 && x.is == unseen && !x.from.IsZero():
			x.from = x.from.Add(later)
		default:
			x.from = time.Now()
		}
		p.runs[n] = x
	}
	p.after, p.strict = after, strict
	p.disarm()
	r.mu.Unlock()
	r.task.Poke()
}

func (r *Recorder) strict() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.show.strict
}

// ops is how many operations an entry's commit needs for the running node.
func (p *pictures) ops(e *entry) int {
	switch {
	case e.Step().over() && failpoint.Mutant(failpoint.PictureKept):
	case e.Step() == BeginsAgain && !e.plain && (p.strict || p.after >= 0):
		return 2
	case e.Step().begins() && p.strict:
		return 1
	case e.Step().over() && p.runs[e.Item()].is == shown && p.runs[e.Item()].again:
		return 2
	case e.Step().over() && p.runs[e.Item()].is == shown:
		return 1
	}
	return 0
}

// add appends them.
func (p *pictures) add(ops []registry.Op, e *entry, c Config, id string) []registry.Op {
	e.shows = false
	paths := []string{c.Running(e.Item()), c.Failover(e.Item())}[:p.ops(e)]
	for _, path := range paths {
		if e.shows = e.Step().begins(); e.shows {
			ops = append(ops, registry.CreateEphemeral(path, []byte(id)))
		} else {
			ops = append(ops, registry.Delete(path, registry.AnyVersion))
		}
	}
	return ops
}

// note takes an entry into account that is committed. The caller holds mu.
func (r *Recorder) note(e *entry) {
	p := &r.show
	switch e.Step() {
	case Begins, BeginsAgain:
		x := run{from: time.Now(), before: e.before, again: e.shows && e.Step() == BeginsAgain && !e.plain}
		switch {
		case e.shows:
			x.is = shown
		case !p.strict && p.after >= 0:
			x.from = x.from.Add(p.after)
			r.arm(x.from)
		case p.strict:
			r.arm(x.from)
		}
		p.runs[e.Item()] = x
	case Ends, EndsFailed, Undoes:
		if p.runs[e.Item()].is == maybe {
			p.swept = append(p.swept, e.Item())
		}
		delete(p.runs, e.Item())
	case Other:
	}
}

// mark notes what is known of the nodes of items that run.
func (r *Recorder) mark(is look, items ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range items {
		if x, runs := r.show.runs[n]; runs {
			x.is = is
			r.show.runs[n] = x
		}
	}
}

// pending reports whether something runs that is not known to be shown.
func (p *pictures) pending() bool {
	for _, x := range p.runs {
		if x.is < shown {
			return true
		}
	}
	return false
}

// due returns the items that are to be shown now, and when the next one is; zero is never.
// The caller holds mu.
func (r *Recorder) due(now time.Time) (items []int, next time.Time) {
	if r.show.after < 0 && !r.show.strict {
		return nil, next
	}
	for n, x := range r.show.runs {
		if rec, owned := r.led.Get(n); x.is >= shown || !owned || !rec.Running() {
			continue
		}
		switch {
		case !x.from.After(now):
			items = append(items, n)
		case next.IsZero() || x.from.Before(next):
			next = x.from
		}
	}
	slices.Sort(items)
	return items, next
}

// arm has the next items shown. The caller holds mu.
func (r *Recorder) arm(at time.Time) {
	p := &r.show
	if !p.at.IsZero() && !p.at.After(at) {
		return
	}
	p.at = at
	if p.timer == nil {
		p.timer = time.AfterFunc(time.Until(at), r.wakeToShow)
	} else {
		p.timer.Reset(time.Until(at))
	}
}

func (p *pictures) disarm() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.at = time.Time{}
}

// wakeToShow is called by the timer.
func (r *Recorder) wakeToShow() {
	r.mu.Lock()
	r.show.at = time.Time{}
	items, next := r.due(time.Now())
	if len(items) == 0 && !next.IsZero() {
		r.arm(next)
	}
	r.mu.Unlock()
	if len(items) > 0 {
		r.task.Poke()
	}
}

// showDue shows items that have run for a while, as long as the ledger is as it is known.
// It reports false when there are none.
func (r *Recorder) showDue(ctx context.Context) bool {
	r.mu.Lock()
	now := time.Now()
	if r.show.at.After(now) {
		r.mu.Unlock()
		return false
	}
	items, next := r.due(now)
	if len(items) == 0 && !next.IsZero() {
		r.arm(next)
	}
	ops := []registry.Op{registry.Check(r.place.Ledger, r.version)}
	items = items[:min(len(items), r.cfg.Session.Limits().MaxOps-len(ops))]
	for _, n := range items {
		ops = append(ops, registry.CreateEphemeral(r.cfg.Running(n), []byte(r.place.ID)))
	}
	r.mu.Unlock()
	if len(items) == 0 {
		return false
	}
	failpoint.Hit(failpoint.BeforeShow)
	once, cancel := context.WithTimeout(ctx, showTimeout)
	_, err := r.cfg.Session.Commit(once, ops...)
	cancel()
	failpoint.Hit(failpoint.AfterShow)
	failed, refused := errors.AsType[*registry.CommitError](err)
	denied := errors.Is(err, registry.ErrDenied)
	switch {
	case err == nil:
		r.mark(shown, items...)
	case denied || errors.Is(err, registry.ErrInvalid):
		r.giveUp(err, items)
	case !refused: // it may have been applied, or may be yet
		r.postpone(items)
	case failed.Index == 0:
		r.mu.Lock()
		r.stale = true
		r.mu.Unlock()
	default:
		r.findHindrance(ctx, items[failed.Index-1], failed)
	}
	return true
}

// findHindrance finds out why an item cannot be shown.
func (r *Recorder) findHindrance(ctx context.Context, n int, failed *registry.CommitError) {
	if errors.Is(failed, registry.ErrNoParent) && r.repair(ctx, failed.Op.Path) {
		return
	}
	if !errors.Is(failed, registry.ErrExists) {
		r.mark(hidden, n)
		return
	}
	nodes, err := settle.Get(ctx, r.cfg.Session, r.owner.Hindered, failed.Op.Path)
	switch {
	case err != nil || !nodes[0].Exists():
	case nodes[0].Owned:
		r.mark(shown, n)
	case r.cfg.Locks(nodes[0].Value):
		r.mark(hidden, n)
	default:
		r.remove(ctx, nodes[0])
	}
}

// giveUp shows nothing of the items: nothing depends on it, but where nodes are locks.
func (r *Recorder) giveUp(err error, items []int) {
	r.mu.Lock()
	strict, warned := r.show.strict, r.show.warned
	r.show.warned = true
	r.mu.Unlock()
	if strict {
		r.postpone(items)
		r.owner.Hindered(err)
		return
	}
	r.mark(hidden, items...)
	if !warned {
		r.owner.Unshown(err)
	}
}

// postpone tries again to show items, after a pause. They may be shown already.
func (r *Recorder) postpone(items []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now().Add(again)
	for _, n := range items {
		if x, runs := r.show.runs[n]; runs {
			x.is, x.from = maybe, at
			r.show.runs[n] = x
		}
	}
	r.arm(at)
}

// sweep looks for the nodes of items that have ended while it was not known if they are
// shown, and removes them. It reports false when the session, or the registration, has ended.
func (r *Recorder) sweep(ctx context.Context) bool {
	for {
		r.mu.Lock()
		var paths []string
		if items := r.show.swept; len(items) > 0 && r.show.runs[items[0]].is != shown { // else it runs again
			paths = []string{r.cfg.Running(items[0]), r.cfg.Failover(items[0])}
		}
		none := len(r.show.swept) == 0
		r.mu.Unlock()
		if none {
			return true
		}
		for _, path := range paths {
			if !r.eraseNode(ctx, path) {
				return false
			}
		}
		r.mu.Lock()
		r.show.swept = r.show.swept[1:]
		r.mu.Unlock()
	}
}

// eraseNode removes a node of this session. It reports false when the session, or the
// registration, has ended.
func (r *Recorder) eraseNode(ctx context.Context, path string) bool {
	nodes, err := settle.Get(ctx, r.cfg.Session, r.owner.Hindered, path)
	if err != nil || !nodes[0].Owned {
		return err == nil
	}
	return r.remove(ctx, nodes[0])
}

// remove deletes a node as it was read. It reports false as eraseNode does.
func (r *Recorder) remove(ctx context.Context, node registry.Node) bool {
	_, err := settle.Commit{
		Store: r.cfg.Session, Ops: []registry.Op{registry.Delete(node.Path, node.Version)},
		Shows: func(n registry.Node) bool { return !n.Exists() },
	}.Run(ctx, r.owner.Hindered)
	_, refused := errors.AsType[*registry.CommitError](err)
	return err == nil || refused
}
