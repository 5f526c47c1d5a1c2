package execution

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

const (
	// never is the pause before runs are shown that shall not be.
	never time.Duration = -1
	// showTimeout bounds one attempt at showing what runs: nothing depends on it.
	showTimeout = time.Second
	// missedAfter is how long a fire is owed until it is shown that the item misses it.
	missedAfter = time.Second
	// sweepAgain is the pause before what the registry did not let go is looked for again.
	sweepAgain = 10 * time.Second
	// aside is how long after an instant at which fires come due a run is shown that has begun at one:
	// they go first.
	aside = time.Millisecond
)

// A run is one that the ledger records, with what is known of its running node: a picture
// for tools, unless a member looks at it that knows no ledgers.
type run struct {
	is     look
	from   time.Time // when it is to be shown, or looked at again
	missed look      // the node that says that a fire came due meanwhile
	misses time.Time // when that is to be shown, or looked at again; zero is never
	before time.Time // when the run before it began
	again  bool      // a node says that it runs again
}

// A picture is one of the nodes of a run.
type picture struct {
	item   int
	missed bool
}

// of returns what is known of a node, and when it is to be shown.
func (x *run) of(missed bool) (is *look, at *time.Time) {
	if missed {
		return &x.missed, &x.misses
	}
	return &x.is, &x.from
}

func (c Config) path(p picture) string {
	if p.missed {
		return c.Nodes.Misfire(p.item)
	}
	return c.Nodes.Running(p.item)
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
	sweep  time.Time     // when they are looked for, after the registry has not let one be; zero is at once
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

// nodes are those of a run that an entry's commit makes, or deletes.
func (p *pictures) nodes(e *entry, c Config) (paths []string) {
	n, x := e.Item(), p.runs[e.Item()]
	switch {
	case e.Step().over() && failpoint.Mutant(failpoint.PictureKept):
	case e.Step() == BeginsAgain && !e.plain && (p.strict || p.after >= 0):
		return []string{c.Nodes.Running(n), c.Nodes.Failover(n)}
	case e.Step().begins() && p.strict:
		return []string{c.Nodes.Running(n)}
	case e.Step().over():
		if x.is == shown {
			paths = append(paths, c.Nodes.Running(n))
			if x.again {
				paths = append(paths, c.Nodes.Failover(n))
			}
		}
		if x.missed == shown {
			paths = append(paths, c.Nodes.Misfire(n))
		}
	}
	return paths
}

// add appends the operations for them.
func (p *pictures) add(ops []registry.Op, e *entry, c Config, id string) []registry.Op {
	e.shows = false
	for _, path := range p.nodes(e, c) {
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
	switch e.Step() {
	case Begins, BeginsAgain:
		r.noteBegin(e)
	case Ends, EndsFailed, Undoes:
		if r.noteEnd(e); e.Follows() {
			r.noteBegin(e)
		}
	case Other:
	}
}

// noteEnd notes that an item runs no more.
func (r *Recorder) noteEnd(e *entry) {
	p := &r.show
	if x := p.runs[e.Item()]; x.is == maybe || x.missed == maybe {
		p.swept = append(p.swept, e.Item())
	}
	delete(p.runs, e.Item())
}

// noteBegin notes what runs from now on, or when it comes due.
func (r *Recorder) noteBegin(e *entry) {
	p, wall := &r.show, r.cfg.Now()
	begins := e.Step().begins()
	x := run{from: time.Now(), before: e.before, again: begins && e.shows && e.Step() == BeginsAgain && !e.plain}
	if !p.strict && ledger.Soon(e.due, wall) {
		x.from = x.from.Add(e.due.Sub(wall) + aside)
	}
	switch {
	case begins && e.shows:
		x.is = shown
	case !p.strict && p.after >= 0:
		x.from = x.from.Add(p.after)
		r.arm(x.from)
	case p.strict:
		r.arm(x.from)
	}
	if at := e.Misses(); !at.IsZero() && p.after >= 0 {
		past := wall.Sub(wall.Truncate(time.Second)) // not at an instant at which fires come due: they go first
		x.misses = time.Now().Add(max(at.Sub(wall), 0) + missedAfter + past)
		r.arm(x.misses)
	}
	lazymap.Set(&p.runs, e.Item(), x)
}

// mark notes what is known of the nodes of items that run.
func (r *Recorder) mark(is look, nodes ...picture) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range nodes {
		if x, runs := r.show.runs[n.item]; runs {
			of, _ := x.of(n.missed)
			*of = is
			r.show.runs[n.item] = x
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

// due returns what is to be shown now, and when the next one is; zero is never. The caller
// holds mu.
func (r *Recorder) due(now time.Time) (nodes []picture, next time.Time) {
	if r.show.after < 0 && !r.show.strict {
		return nil, next
	}
	for n, x := range r.show.runs {
		if x.is >= shown && (x.missed >= shown || x.misses.IsZero()) {
			continue
		}
		if rec, owned := r.led.Get(n); !owned || !rec.Running() {
			continue
		}
		for _, missed := range []bool{false, true} {
			switch is, at := x.of(missed); {
			case *is >= shown, missed && at.IsZero():
			case !at.After(now):
				nodes = append(nodes, picture{n, missed})
			case next.IsZero() || at.Before(next):
				next = *at
			}
		}
	}
	slices.SortFunc(nodes, func(a, b picture) int {
		return cmp.Or(boolInt(a.missed)-boolInt(b.missed), cmp.Compare(a.item, b.item))
	})
	return nodes, next
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
	now := time.Now()
	nodes, next := r.due(now)
	if len(nodes) == 0 && !next.IsZero() {
		r.arm(next)
	}
	sweeps := len(r.show.swept) > 0 && !r.sweepsLater(now)
	r.mu.Unlock()
	if len(nodes) > 0 || sweeps {
		r.task.Poke()
	}
}

// sweepsLater reports whether nothing is to be looked for now, though something is, and has it be looked for then. The
// caller holds mu.
func (r *Recorder) sweepsLater(now time.Time) bool {
	if !r.show.sweep.After(now) {
		return false
	}
	r.arm(r.show.sweep)
	return true
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
	nodes, next := r.due(now)
	if len(nodes) == 0 && !next.IsZero() {
		r.arm(next)
	}
	ops := []registry.Op{registry.Check(r.place.Ledger, r.version)}
	nodes = nodes[:min(len(nodes), r.cfg.Session.Limits().MaxOps-len(ops))]
	for _, n := range nodes {
		ops = append(ops, registry.CreateEphemeral(r.cfg.path(n), []byte(r.place.ID)))
	}
	r.mu.Unlock()
	if len(nodes) == 0 {
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
		r.mark(shown, nodes...)
	case denied || errors.Is(err, registry.ErrInvalid):
		r.giveUp(err, nodes)
	case !refused: // it may have been applied, or may be yet
		r.postpone(nodes)
	case failed.Index == 0:
		r.mu.Lock()
		r.stale, r.refused = true, errors.Is(failed, registry.ErrVersion) // where it is shown unchanged there is a pause
		r.mu.Unlock()
	default:
		r.findHindrance(ctx, nodes[failed.Index-1], failed)
	}
	return true
}

// findHindrance finds out why something of an item cannot be shown.
func (r *Recorder) findHindrance(ctx context.Context, n picture, failed *registry.CommitError) {
	if errors.Is(failed, registry.ErrNoParent) && r.repair(ctx, failed.Op.Path) {
		return
	}
	if !errors.Is(failed, registry.ErrExists) {
		r.mark(hidden, n)
		return
	}
	node, err := r.look(ctx, failed.Op.Path)
	switch {
	case errors.Is(err, registry.ErrDenied):
		r.giveUp(err, []picture{n})
	case err != nil || !node.Exists():
	case node.Owned:
		r.mark(shown, n)
	case r.cfg.Locks(node.Value):
		r.mark(hidden, n)
	default:
		alive, err := r.remove(ctx, node)
		switch {
		case errors.Is(err, registry.ErrDenied):
			r.giveUp(err, []picture{n})
		case alive && err != nil: // whoever takes it for a lock sees one
			r.mark(hidden, n)
			r.unshown(err)
		}
	}
}

// giveUp shows none of them: nothing depends on it, but where nodes are locks.
func (r *Recorder) giveUp(err error, nodes []picture) {
	if r.strict() {
		r.postpone(nodes)
		r.owner.Hindered(err)
		return
	}
	r.mark(hidden, nodes...)
	r.unshown(err)
}

// unshown tells that pictures are given up, once.
func (r *Recorder) unshown(err error) {
	r.mu.Lock()
	warned := r.show.warned
	r.show.warned = true
	r.mu.Unlock()
	if !warned {
		r.owner.Unshown(err)
	}
}

// postpone tries again to show them, after a pause. They may be shown already.
func (r *Recorder) postpone(nodes []picture) {
	r.mu.Lock()
	defer r.mu.Unlock()
	later := time.Now().Add(again)
	for _, n := range nodes {
		if x, runs := r.show.runs[n.item]; runs {
			is, at := x.of(n.missed)
			*is, *at = maybe, later
			r.show.runs[n.item] = x
		}
	}
	r.arm(later)
}

// sweep looks for the nodes of items that have ended while it was not known if they are
// shown, and removes them. What the registry does not let go is looked for later. It reports false when the session, or
// the registration, has ended.
func (r *Recorder) sweep(ctx context.Context) bool {
	var left []int
	for {
		n, paths, some := r.sweeps()
		if !some {
			break
		}
		var denied error
		for _, path := range paths {
			alive, err := r.eraseNode(ctx, path)
			if !alive {
				return false
			}
			denied = cmp.Or(denied, err)
		}
		if denied != nil {
			left = append(left, n)
			r.unshown(denied)
		}
		r.mu.Lock()
		r.show.swept = r.show.swept[1:]
		r.mu.Unlock()
	}
	if len(left) > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.show.swept, r.show.sweep = append(r.show.swept, left...), time.Now().Add(sweepAgain)
		r.arm(r.show.sweep)
	}
	return true
}

// sweeps returns the next item that is to be looked for now, if there is one, and what may stand of it.
func (r *Recorder) sweeps() (n int, paths []string, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.show.swept) == 0 || r.sweepsLater(time.Now()) {
		return 0, nil, false
	}
	n = r.show.swept[0]
	x := r.show.runs[n] // where it runs again
	if x.is != shown {
		paths = append(paths, r.cfg.Nodes.Running(n), r.cfg.Nodes.Failover(n))
	}
	if x.missed != shown {
		paths = append(paths, r.cfg.Nodes.Misfire(n))
	}
	return n, paths, true
}

// eraseNode removes a node of this session. err is why the registry does not let it go. It reports alive as false when
// the session, or the registration, has ended.
func (r *Recorder) eraseNode(ctx context.Context, path string) (alive bool, err error) {
	node, err := r.look(ctx, path)
	if err != nil || !node.Owned {
		return err == nil || errors.Is(err, registry.ErrDenied), err
	}
	return r.remove(ctx, node)
}

// look reads a picture. That the registry denies it is an error: nothing depends on it, so nobody waits for it.
func (r *Recorder) look(ctx context.Context, path string) (registry.Node, error) {
	once, cancel := context.WithTimeout(ctx, showTimeout)
	nodes, err := r.cfg.Session.Get(once, path)
	cancel()
	if err != nil && !errors.Is(err, registry.ErrDenied) {
		nodes, err = settle.Get(ctx, r.cfg.Session, r.owner.Hindered, path)
	}
	if err != nil {
		return registry.Node{}, err
	}
	return nodes[0], nil
}

// remove deletes a node as it was read; one that is another by now stays. err is why it cannot be removed. It reports
// alive as false where that is since the session, or the registration, has ended.
func (r *Recorder) remove(ctx context.Context, node registry.Node) (alive bool, err error) {
	_, err = settle.Commit{
		Store: r.cfg.Session, Ops: []registry.Op{registry.Delete(node.Path, node.Version)},
		Shows: func(n registry.Node) bool { return !n.Exists() },
	}.Run(ctx, r.owner.Hindered)
	if errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrVersion) {
		err = nil
	}
	_, refused := errors.AsType[*registry.CommitError](err)
	return err == nil || refused || errors.Is(err, registry.ErrDenied), err
}
