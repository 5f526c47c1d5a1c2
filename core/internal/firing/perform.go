package firing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// perform does what the machine wants. The caller holds mu.
func (f *Firing) perform(actions []items.Action) {
	if len(actions) == 0 {
		return
	}
	var changes []execution.Change
	var runs []*run
	var told skips
	var later [][]items.Action // what comes once the actions that followed from a drop are through
	for len(actions)+len(later) > 0 {
		if len(actions) == 0 {
			actions, later = later[len(later)-1], later[:len(later)-1]
			continue
		}
		a := actions[0]
		actions = actions[1:]
		switch a.Kind {
		case items.Run:
			if !a.Ahead || !f.hold(a) {
				runs = append(runs, f.newRun(a))
			}
		case items.Drop:
			if f.drop(a) {
				later = append(later, actions)
				actions = f.machine.Dropped(a.Item, a.Due)
			}
		case items.Tell:
			told.add(a.Item, a.Skips)
			told.add(a.Item, f.notes(a))
		default:
			changes = append(changes, f.change(a))
		}
	}
	f.tell(told)
	f.launch(runs)
	f.rec.Submit(changes...)
}

// drop takes an item out that waits until it is due, for the listener before its round or for a place. It reports
// whether it did.
func (f *Firing) drop(a items.Action) bool {
	if f.disarm(a.Item) {
		return true
	}
	if !f.cfg.Places.Drop(a.Item) && !f.barrier.Leave(a.Item) {
		return false
	}
	if r := f.runs[a.Item]; r != nil {
		r.over()
	}
	f.forgetRun(a.Due)
	return true
}

func (f *Firing) change(a items.Action) *change {
	c := &change{
		Action: a, now: f.cfg.Now, delayed: f.machine.Delayed(), stopping: f.stopping, instance: f.id,
		epoch: f.machine.Epoch(), total: f.machine.Total(), failover: f.machine.Failover(),
		closed: f.machine.Closed(),
	}
	if x := f.asked[a.Request]; x != nil && a.Kind == items.Begin {
		c.further = x.open
	}
	switch {
	case a.Kind == items.Begin || a.Kind == items.Record:
		c.misses = f.machine.Misses(a.Due)
	case !a.Next.IsZero():
		c.misses = f.machine.Misses(a.Next)
	}
	return c
}

// notes tells what was cut, and returns what was skipped.
func (f *Firing) notes(a items.Action) (skipped []items.Skip) {
	for _, n := range a.Notes {
		if n.Instance == "" {
			skipped = append(skipped, items.Skip{First: n.First, Last: n.Due, Count: n.Count, Reason: event.SkipReason(n.Reason), Into: n.Into})
			continue
		}
		dispatch.Emit(f.cfg.Events, event.ItemCut{
			Job: f.cfg.Job.Name(), Epoch: f.machine.Epoch(), Item: a.Item, Due: n.Due, Instance: n.Instance, Reason: event.CutReason(n.Reason),
		})
	}
	return skipped
}

// skips groups what was skipped in the same way over items.
type skips map[items.Skip][]int

func (s *skips) add(item int, skipped []items.Skip) {
	if *s == nil && len(skipped) > 0 {
		*s = skips{}
	}
	for _, x := range skipped {
		x.First, x.Last, x.Into = x.First.UTC().Round(0), x.Last.UTC().Round(0), x.Into.UTC().Round(0)
		(*s)[x] = append((*s)[x], item)
	}
}

func (f *Firing) tell(told skips) {
	if len(told) == 0 {
		return
	}
	order := make([]items.Skip, 0, len(told))
	for x := range told {
		order = append(order, x)
	}
	slices.SortFunc(order, func(a, b items.Skip) int {
		if c := a.First.Compare(b.First); c != 0 {
			return c
		}
		return slices.Compare(told[a], told[b])
	})
	for _, x := range order {
		slices.Sort(told[x])
		if !x.Into.IsZero() {
			dispatch.Emit(f.cfg.Events, event.ItemsFolded{
				Job: f.cfg.Job.Name(), Instance: f.id, Epoch: f.machine.Epoch(), Items: told[x], First: x.First, Last: x.Last, Count: x.Count, Into: x.Into,
			})
			continue
		}
		dispatch.Emit(f.cfg.Events, event.ItemsSkipped{
			Job: f.cfg.Job.Name(), Instance: f.id, Epoch: f.machine.Epoch(), Items: told[x], First: x.First, Due: x.Last,
			Count: x.Count, Reason: x.Reason, Detail: x.Detail,
		})
	}
}

// launch hands runs to their functions. The caller holds mu.
func (f *Firing) launch(runs []*run) {
	waits := false
	for rest := gather(runs); len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].manner() == rest[0].manner() {
			n++
		}
		waits = f.launchFire(rest[:n]) || waits
		rest = rest[n:]
	}
	if waits && f.waits == nil { // else it comes no later: all wait for as long, and these have just come
		f.armBarrier(time.Now())
	}
}

// launchFire hands runs to their functions that begin in one manner. It reports whether any waits at the barrier.
func (f *Firing) launchFire(runs []*run) (waits bool) {
	first, of := runs[0], make([]int, len(runs))
	for i, r := range runs {
		of[i] = r.Run.Item
	}
	slices.Sort(of)
	x := f.begunFire(first, of)
	dispatch.Emit(f.cfg.Events, event.FireBegun{
		Job: f.cfg.Job.Name(), Instance: f.id, Epoch: f.machine.Epoch(), Total: f.machine.Total(), Due: first.Due, Items: of,
		Late: f.wall.Last().Sub(first.Due), MadeUp: first.MadeUp, Redo: first.Redo, Request: first.Request,
	})
	for _, r := range runs {
		r.Fire = x
		waits = f.submit(r) || waits
	}
	return waits
}

// A manner is how a run begins: those that have one are told together.
type manner struct {
	due          int64
	madeUp, redo bool
	request      int64
}

func (r *run) manner() manner { return manner{r.Due.UnixNano(), r.MadeUp, r.Redo, r.Request} }

// gather returns runs so that those of one manner follow each other, where the first of them stood. Mostly all have the
// same; with a fixed delay each may have its own.
func gather(runs []*run) []*run {
	if len(runs) < 3 || !slices.ContainsFunc(runs, func(r *run) bool { return r.manner() != runs[0].manner() }) {
		return runs
	}
	place := make(map[manner]int) // among the manners
	var next []int                // first how many have each, then where the next one of it goes
	for _, r := range runs {
		m := r.manner()
		i, known := place[m]
		if !known {
			i = len(next)
			place[m], next = i, append(next, 0)
		}
		next[i]++
	}
	at := 0
	for i, n := range next {
		next[i] = at
		at += n
	}
	gathered := make([]*run, len(runs))
	for _, r := range runs {
		i := place[r.manner()]
		gathered[next[i]] = r
		next[i]++
	}
	return gathered
}

// begunFire is the fire of a run, which begins with items.
func (f *Firing) begunFire(r *run, of []int) *Fire {
	x := f.fires[r.Due.UnixNano()]
	if x == nil {
		if x = r.Fire; x == nil {
			x = newFire(f, r.Due)
		}
		x.instance, x.begun, x.epoch, x.total = f.id, time.Now(), f.machine.Epoch(), f.machine.Total()
		lazymap.Set(&f.fires, r.Due.UnixNano(), x)
	}
	x.items = append(x.items, of...)
	x.pending += len(of)
	if r.Due.After(f.lastFire) {
		f.lastFire = r.Due
	}
	return x
}

// newRun makes a run of an action. The caller holds mu.
func (f *Firing) newRun(a items.Action) *run {
	yield := make(chan struct{})
	r := &run{ctx: f.cfg.Context, yield: yield, Run: Run{
		of: f, Instance: f.id, Epoch: f.machine.Epoch(), Total: f.machine.Total(), Item: a.Item, Due: a.Due, Fence: a.Fence,
		Missed: a.Folded, MadeUp: a.MadeUp, Redo: a.Redo, Lost: a.Lost, Tries: a.Tries, Yield: yield, Request: a.Request,
	}}
	if x := f.asked[a.Request]; x != nil {
		r.Parameter, r.MadeUp = x.parameter, a.MadeUp || x.madeUp
	}
	lazymap.Set(&f.runs, a.Item, r)
	if f.stopping || f.machine.Wanted(a.Item) {
		r.askBack()
	}
	r.ctx, r.cancel = context.WithCancelCause(r.ctx)
	f.killWanted(r)
	return r
}

// askBack closes Yield of the runs whose items are wanted elsewhere, of all when f stops.
// The caller holds mu.
func (f *Firing) askBack() {
	for n, r := range f.runs {
		if f.stopping || f.machine.Wanted(n) {
			r.askBack()
		}
	}
}

// A run is one item in the hands of places, or held until it is due.
type run struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	yield  chan struct{} // closed with asked
	asked  bool          // guarded by the firing's lock
	held   bool          // until it is due; guarded by the firing's lock
	said   *string       // how the error reads of one that was asked for, once it has returned
	Run
}

func (r *run) askBack() {
	if !r.asked {
		r.asked = true
		close(r.yield)
	}
}

// over forgets the run. The caller holds mu.
func (r *run) over() {
	r.cancel(nil)
	if r.of.runs[r.Run.Item] == r {
		delete(r.of.runs, r.Run.Item)
	}
}

// Item implements places.Run.
func (r *run) Item() int { return r.Run.Item }

// First implements places.Run: what runs again goes before what waits for a place.
func (r *run) First() bool { return r.Redo }

// Enter implements places.Run. A function does not start once somebody else could own
// the item, however long it waited for its place.
func (r *run) Enter() bool {
	failpoint.Hit(failpoint.BeforeEnter)
	return r.of.entered(r)
}

func (f *Firing) entered(r *run) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over() || !f.machine.Entered(r.Run.Item, r.Due) { // with mu: to wait for it takes time
		return false
	}
	if r.Refused == nil {
		r.Fire.called++
	}
	return true
}

// over reports whether somebody else could own the items, or nothing is to be called any more.
func (f *Firing) over() bool {
	return f.cfg.Context.Err() != nil || !time.Now().Before(f.cfg.Session.Deadline())
}

// An uncalled error is why a function is not called though its item was let in.
type uncalled struct{ error }

// Over is for whoever has waited for something since Call was called: why the function is not to be called any more,
// which Call returns as it is; nil lets it be. Where it is that somebody else could own the item, or that all is to end,
// the begin is given back. ctx is that of Call.
func (r *Run) Over(ctx context.Context) error {
	if f := r.of; f != nil && f.over() {
		return &uncalled{cmp.Or(context.Cause(f.cfg.Context), registry.ErrSessionLost)}
	}
	return context.Cause(ctx)
}

// Call implements places.Run.
func (r *run) Call() error {
	err := r.of.cfg.Host.Call(r.ctx, &r.Run)
	if killed, is := errors.AsType[*request.KilledError](context.Cause(r.ctx)); is && canceled(err) {
		err = killed // it says more
	} else if cause := context.Cause(r.ctx); cause != nil && err == r.ctx.Err() { //nolint:errorlint // that alone, and no user's
		err = &ended{error: err, cause: cause}
	}
	r.say(err)
	return err
}

// An ended error is that of a function which has returned the error of its context, with why that ended.
type ended struct {
	error
	cause error
}

func (e *ended) Error() string { return e.error.Error() + ": " + e.cause.Error() }

func (e *ended) Unwrap() []error { return []error{e.error, e.cause} }

// canceled is errors.Is for an error that may be the user's, with methods that panic or come to no end.
func canceled(err error) bool {
	return dispatch.Find(err, func(err error) bool {
		x, is := err.(interface{ Is(target error) bool })
		return err == context.Canceled || is && x.Is(context.Canceled) //nolint:errorlint // Find unwraps
	})
}

// say keeps how the error reads of a run that was asked for: whoever asked is told. The error may be the user's, so it
// is asked while the item still runs, and with no lock held.
func (r *run) say(err error) {
	if err != nil && r.Request != 0 && r.said == nil {
		text := clip(dispatch.Text(err), maxTexts)
		r.said = &text
	}
}

// Left implements places.Run.
func (r *run) Left(err error, took time.Duration) {
	if _, is := err.(*uncalled); is { //nolint:errorlint // what Over has returned, as it is
		r.of.dropped(r, true)
		return
	}
	failpoint.Hit(failpoint.Returned)
	r.say(err) // where Call has not returned
	r.of.left(r, err, took)
}

func (f *Firing) left(r *run, err error, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := returned{r, err, took, f.now()}
	if !f.machine.Delayed() && f.later() { // the end of a delay is to be known
		f.spare.returned = append(f.spare.returned, x)
		return
	}
	f.takeBack(x)
	f.cfg.Host.Changed()
}

// takeBack goes on with an item whose function has returned. The caller holds mu.
func (f *Firing) takeBack(x returned) {
	r := x.run
	r.over()
	if x.err != nil {
		f.lastErr = x.err
	}
	actions := f.machine.Returned(r.Run.Item, r.Due, x.at) // what came due since is no overrun
	end := slices.IndexFunc(actions, func(a items.Action) bool { return a.Kind == items.End })
	if end < 0 { // nothing is recorded of it
		f.ended(r.Run, x.took, x.err)
	} else {
		c := f.change(actions[end])
		c.epoch, c.total, c.took, c.err, c.said = r.Epoch, r.Total, x.took, x.err, r.said
		if r.Request != 0 {
			c.further = f.resultsOf(r.Request)
		}
		f.rec.Submit(c)
		actions = slices.Delete(actions, end, end+1)
	}
	f.perform(actions)
	if f.machine.Delayed() {
		f.arm()
	}
}

// Dropped implements places.Run.
func (r *run) Dropped() { r.of.dropped(r, false) }

// dropped gives an item back of which no function is called, though it may have been let in.
func (f *Firing) dropped(r *run, entered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.over()
	if entered {
		r.Fire.called--
	}
	f.forgetRun(r.Due)
	if entered {
		f.perform(f.machine.Uncalled(r.Run.Item, r.Due))
	} else {
		f.perform(f.machine.Dropped(r.Run.Item, r.Due))
	}
	f.cfg.Host.Changed()
}

// ended tells the end of a run, and of its fire with the last one.
func (f *Firing) ended(r Run, took time.Duration, err error) {
	dispatch.Emit(f.cfg.Events, event.ItemEnded{
		Job: f.cfg.Job.Name(), Epoch: r.Epoch, Total: r.Total, Item: r.Item, Due: r.Due, Took: took, Err: err, Request: r.Request,
	})
	x := f.fires[r.Due.UnixNano()]
	if x == nil {
		return
	}
	if err != nil {
		if x.failed == nil {
			x.failed = map[int]error{}
		}
		x.failed[r.Item] = err
	}
	f.oneLess(x)
}

// forgetRun takes an item out of its fire that was begun and not called.
func (f *Firing) forgetRun(due time.Time) {
	if x := f.fires[due.UnixNano()]; x != nil {
		f.oneLess(x)
	}
}

func (f *Firing) oneLess(x *Fire) {
	if x.pending--; x.pending > 0 {
		return
	}
	delete(f.fires, x.due.UnixNano())
	is := x.now()
	dispatch.Emit(f.cfg.Events, event.FireEnded{
		Job: f.cfg.Job.Name(), Instance: f.id, Epoch: x.epoch, Due: x.due, Items: is.Items, Failed: len(is.Errs), Errs: is.Errs, Took: is.Took,
	})
	if x.called > 0 {
		f.cfg.Host.FireEnded(x)
	}
}

// Applied implements execution.Owner.
func (f *Firing) Applied(changes []execution.Change, rev registry.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	var told skips
	var actions []items.Action
	for _, x := range changes {
		c, _ := x.(*change) // the recorder has no others
		n := c.Action.Item
		if rev != 0 { // else the item is another's by now, and so is what becomes of its fires
			told.add(n, c.told())
		}
		switch c.Kind {
		case items.Begin:
			actions = append(actions, f.machine.Begun(n, c.Due, rev)...)
		case items.Record:
		case items.End:
			if rev == 0 || c.unknown { // this end is recorded nowhere
				f.forgetRun(c.Due)
				if !c.failover { // else the leader's record says whether it runs again
					dispatch.Emit(f.cfg.Events, event.ItemCut{Job: f.cfg.Job.Name(), Epoch: c.epoch, Item: n, Due: c.Due, Instance: c.instance})
				}
				actions = append(actions, f.machine.Committed(n, c.Through, now)...)
				continue
			}
			if r, is := c.further.(*results); is {
				r.committed(c)
			}
			f.ended(Run{Epoch: c.epoch, Total: c.total, Item: n, Due: c.Due, Request: c.Request}, c.took, c.err)
			if c.followed {
				actions = append(actions, f.machine.Followed(n, c.Through, c.Next, rev, now)...)
				continue
			}
			actions = append(actions, f.machine.Committed(n, c.Through, now)...)
		case items.CutRedo:
			dispatch.Emit(f.cfg.Events, event.ItemCut{Job: f.cfg.Job.Name(), Epoch: c.epoch, Item: n, Due: c.Due, Instance: c.Lost, Reason: c.Cut})
			actions = append(actions, f.machine.Committed(n, c.Through, now)...)
		default:
			if c.Reset {
				dispatch.Emit(f.cfg.Events, event.Warning{Job: f.cfg.Job.Name(), Problem: "the record of an item was ahead of the clock and is set back: " +
					"fires between are excused; let the clocks of all instances agree"})
			}
			actions = append(actions, f.machine.Committed(n, c.Through, now)...)
		}
	}
	f.tell(told)
	f.perform(actions)
	if f.machine.Delayed() {
		f.arm()
	}
	f.cfg.Host.Changed()
}

// Refused implements execution.Owner.
func (f *Firing) Refused(x execution.Change, why execution.Refusal, rec ledger.Item, detail string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, _ := x.(*change) // the recorder has no others
	reason := items.NotOwned
	switch {
	case why == execution.Overruled:
		reason = items.Shut
	case why == execution.Obstructed:
		reason = items.Elsewhere
	case c.Redo && why == execution.ByRecord && rec.Redo.Due.Equal(c.Due): // the leader holds it back
	case c.Request != 0 && why == execution.ByRecord && !rec.Redo.Owed() && rec.Asked < c.Request: // the same
	case why == execution.ByRecord && (rec.Running() || rec.Redo.Owed() || !c.Due.After(rec.Through) || c.overtaken(rec)):
		reason = items.Behind
	}
	f.perform(f.machine.Refused(c.Action.Item, c.Due, reason, rec, detail, f.now()))
	if f.machine.Delayed() {
		f.arm()
	}
	f.cfg.Host.Changed()
}
