package firing

import (
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
	for len(actions) > 0 {
		a := actions[0]
		actions = actions[1:]
		switch a.Kind {
		case items.Run:
			if a.Ahead && f.hold(a) {
				continue
			}
			runs = append(runs, f.newRun(a))
		case items.Drop:
			if f.disarm(a.Item) {
				actions = append(slices.Clone(f.machine.Dropped(a.Item, a.Due)), actions...)
				continue
			}
			if f.cfg.Places.Drop(a.Item) || f.barrier.Leave(a.Item) {
				if r := f.runs[a.Item]; r != nil {
					r.over()
				}
				f.forgetRun(a.Due)
				actions = append(slices.Clone(f.machine.Dropped(a.Item, a.Due)), actions...)
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

// launch hands runs to their functions.
func (f *Firing) launch(runs []*run) {
	for len(runs) > 0 {
		first := runs[0]
		of := make([]int, 0, len(runs))
		var rest []*run
		alike := func(r *run) bool {
			return r.Due.Equal(first.Due) && r.MadeUp == first.MadeUp && r.Redo == first.Redo && r.Request == first.Request
		}
		for _, r := range runs {
			if alike(r) {
				of = append(of, r.Run.Item)
			} else {
				rest = append(rest, r)
			}
		}
		slices.Sort(of)
		x := f.begunFire(first, of)
		dispatch.Emit(f.cfg.Events, event.FireBegun{
			Job: f.cfg.Job.Name(), Instance: f.id, Epoch: f.machine.Epoch(), Total: f.machine.Total(), Due: first.Due, Items: of,
			Late: f.wall.Last().Sub(first.Due), MadeUp: first.MadeUp, Redo: first.Redo, Request: first.Request,
		})
		for _, r := range runs {
			if alike(r) {
				r.Fire = x
				f.submit(r)
			}
		}
		runs = rest
	}
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
	r := &run{f: f, ctx: f.cfg.Context, yield: yield, Run: Run{
		Instance: f.id, Epoch: f.machine.Epoch(), Total: f.machine.Total(), Item: a.Item, Due: a.Due, Fence: a.Fence,
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
	f      *Firing
	ctx    context.Context
	cancel context.CancelCauseFunc
	yield  chan struct{} // closed with asked
	asked  bool          // guarded by the firing's lock
	held   bool          // until it is due; guarded by the firing's lock
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
	if r.f.runs[r.Run.Item] == r {
		delete(r.f.runs, r.Run.Item)
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
	return r.f.entered(r)
}

func (f *Firing) entered(r *run) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	over := f.cfg.Context.Err() != nil || !time.Now().Before(f.cfg.Session.Deadline()) // with mu: to wait for it takes time
	if over || !f.machine.Entered(r.Run.Item, r.Due) {
		return false
	}
	r.Fire.called = r.Fire.called || r.Refused == nil
	return true
}

// Call implements places.Run.
func (r *run) Call() error {
	err := r.f.cfg.Host.Call(r.ctx, &r.Run)
	if killed, is := errors.AsType[*request.KilledError](context.Cause(r.ctx)); is && errors.Is(err, context.Canceled) {
		return killed // it says more
	}
	return err
}

// Left implements places.Run.
func (r *run) Left(err error, took time.Duration) {
	failpoint.Hit(failpoint.Returned)
	r.f.left(r, err, took)
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
		c.epoch, c.total, c.took, c.err = r.Epoch, r.Total, x.took, x.err
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
func (r *run) Dropped() { r.f.dropped(r) }

func (f *Firing) dropped(r *run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.over()
	f.forgetRun(r.Due)
	f.perform(f.machine.Dropped(r.Run.Item, r.Due))
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
	if x.called {
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
		told.add(n, c.told())
		switch c.Kind {
		case items.Begin:
			actions = append(actions, f.machine.Begun(n, c.Due, rev)...)
		case items.Record:
		case items.End:
			if rev == 0 || c.unknown { // the item is another's by now: this end is recorded nowhere
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
