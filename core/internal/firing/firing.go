package firing

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/barrier"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/core/internal/timer"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A Run is what a function is told of its item.
type Run struct {
	Instance string
	Epoch    int
	Total    int
	Item     int
	Due      time.Time
	Fence    registry.Revision
	// Missed is how many earlier fires it stands for.
	Missed int
	// MadeUp: it runs late, since nobody ran it when it was due. Redo: it runs again.
	MadeUp, Redo bool
	// Request is the number of the run that somebody asked for, with its Parameter; else 0.
	Request   int64
	Parameter string
	// Lost is the instance that died last while it ran, which Redo is for, Tries how many did.
	Lost  string
	Tries int
	// Fire is what runs together here.
	Fire *Fire
	// Refused is why the function is not called, and the item fails; nil lets it be.
	Refused error
	// Yield is closed when the leader wants the item back, and by Stop.
	Yield <-chan struct{}

	of *Firing // nil in one that no firing made
}

// Config is what a Firing works with.
type Config struct {
	Host    Host
	Job     layout.Job
	Session Session
	// Context is that of the runs; its cause is theirs.
	Context context.Context
	// Life is the context of the registry session's life.
	Life context.Context
	// Records runs the recorder.
	Records *workqueue.Pool
	Clock   *timer.Clock
	// Now is the wall clock.
	Now    func() time.Time
	Places *places.Places
	// Events is told events.
	Events *dispatch.Dispatcher
}

// A Host is the member whose items are fired.
type Host interface {
	// Call runs the job's function. Whoever waits for something before asks r.Over.
	Call(ctx context.Context, r *Run) error
	// Unknown is told that a record names a run of which it is not known whether it is open.
	Unknown()
	// Gone is told that the registration has ended, from outside.
	Gone(err error)
	// Changed is told that a state has changed which somebody may wait for.
	Changed()
	// FireEnded is told that everything of a fire has ended of which a function was called here.
	FireEnded(f *Fire)
	// Late is told that items waited in vain for the listener before their round.
	Late(r LateRound)
}

// A Session is one of the registry's that has a handler called with what a target shows, from
// Follow to Unfollow.
type Session interface {
	registry.Session
	Follow(path string, scope registry.Scope, handle func(registry.Event))
	Unfollow(path string, scope registry.Scope)
}

// A Start is what a firing begins with.
type Start struct {
	// Place is the registration's.
	Place execution.Place
	// Ledger was read from Node.
	Ledger *ledger.Ledger
	Node   registry.Node
	// Settings and Up are what the machine starts with.
	Settings items.Settings
	Up       time.Time
}

// A Firing belongs to one registration after another of one session.
type Firing struct {
	cfg   Config
	rec   *execution.Recorder
	timer *timer.Timer

	mu       sync.Mutex
	wall     timer.Wall
	id       string
	machine  *items.Machine
	stopping bool
	closed   bool         // the nodes by which operators disable items are not watched any more
	seen     map[int]bool // item → disabled, while the watch of that is not synced
	fires    map[int64]*Fire
	runs     map[int]*run // what places have of each item
	asked    map[int64]*asked
	kills    map[kill]string // who asks for it
	barrier  barrier.Barrier
	waits    *time.Timer // when the next wait at the barrier is over; nil: nobody waits
	armed    []*run      // runs whose begins are recorded and which are not due yet, or were dropped
	first    time.Time   // no armed run is due before; zero: none is armed
	wake     time.Time   // what the timer is set to; zero when it is not
	next     time.Time   // when the schedule fires next
	never    bool
	lastFire time.Time
	lastErr  error
	spare    spare
}

// New returns a firing of a registration, to be told what it goes by. It begins nothing before Own.
func New(c Config, s Start) *Firing {
	f := &Firing{
		cfg: c, wall: timer.NewWall(c.Now), id: s.Place.ID,
		machine: items.New(items.Config{Settings: s.Settings, Up: s.Up, Blocked: c.Places.Running(), Places: c.Places.Limit(), Spread: spread(c.Job.Name())}),
	}
	f.timer = c.Clock.Timer(f.tick)
	f.rec = execution.NewRecorder(execution.Config{
		Session: c.Session, Context: c.Life, Pool: c.Records, Spare: c.Clock.Spare, Now: c.Now, Nodes: c.Job, Locks: locks,
	}, f, s.Place, s.Node, s.Ledger)
	return f
}

// Own has it fire what the ledger holds that it was made with.
func (f *Firing) Own(l *ledger.Ledger) { f.Changed(l) }

// locks reports whether a running node with a value is no picture: no Go member made it.
func locks(value []byte) bool {
	id, err := layout.ParseInstanceID(string(value))
	return err != nil || id.Life == ""
}

// now is the time for the machine, which hears first that the clock was set: an end that came
// before the clock was looked at by others must not count a delay from an instant that moves.
func (f *Firing) now() time.Time {
	now, by := f.wall.Look()
	if by != 0 {
		f.machine.ClockSet(by, now)
	}
	return now
}

// tick is called by the timer.
func (f *Firing) tick(time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	f.takeAllBack()
	if f.release(now) < max(f.machine.Size(), 1) { // else no item is left that could begin
		f.perform(f.machine.Tick(now))
	}
	if f.later() {
		f.spare.unset, f.spare.since, f.wake = true, now, time.Time{}
		return
	}
	f.setTimer(now)
}

// arm sets the timer to when the machine wants to be asked next. What came due and is still
// to be called by the timer is not put off.
func (f *Firing) arm() {
	now := f.now()
	f.release(now)
	if due := f.wake; f.spare.unset || (!due.IsZero() && !due.After(now)) {
		f.perform(f.machine.Tick(now))
	}
	f.setTimer(now)
}

// setTimer sets the timer to what comes next as of now. What is due already has the clock call at once.
func (f *Firing) setTimer(now time.Time) {
	f.spare.unset = false
	fire, fires := f.machine.NextFire(now)
	f.next, f.never = fire, !fires && !f.machine.Delayed()
	next, ok := f.machine.Next(now)
	if !f.first.IsZero() && (!ok || f.first.Before(next)) {
		next, ok = f.first, true
	}
	f.wake = next
	if ok {
		f.timer.Set(next)
	} else {
		f.timer.Clear()
	}
}

// Configure puts settings in force, where they are others.
func (f *Firing) Configure(s items.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s == f.machine.Settings() {
		return
	}
	f.perform(f.machine.Change(s, f.now()))
	f.arm()
}

// Show says how long a run lasts until tools see it, and whether a member is there that
// goes by what it sees.
func (f *Firing) Show(after time.Duration, beside bool) { f.rec.Show(after, beside) }

// Listen says whether somebody listens to rounds.
func (f *Firing) Listen(listen bool) { f.rec.Listen(listen) }

// SetServer says whether this instance's server is enabled.
func (f *Firing) SetServer(enabled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perform(f.machine.Server(enabled, f.now()))
	f.arm()
}

// SetStill says whether the clock cannot be trusted.
func (f *Firing) SetStill(still bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perform(f.machine.Still(still, f.now()))
	f.arm()
}

// SetForeign says whether an instance of ElasticJob leads.
func (f *Firing) SetForeign(leads bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perform(f.machine.Foreign(leads, f.now()))
	f.arm()
}

// Unblock says that a function has returned that a session before left behind.
func (f *Firing) Unblock(item int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.machine.Blocked(item) || f.cfg.Places.Runs(item) { // who told has returned, and not who blocks it
		return
	}
	f.perform(f.machine.Unblock(item, f.now()))
	f.arm()
}

// Relieve unblocks the items of functions which have returned after New asked places what runs, and before the caller
// could reach f with Unblock.
func (f *Firing) Relieve() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perform(f.machine.UnblockBut(f.cfg.Places.Running(), f.now()))
	f.arm()
}

// ClockSet says that the wall clock was set: it is looked at, and the timer set anew.
func (f *Firing) ClockSet() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perform(f.machine.Tick(f.now()))
	f.arm()
}

// Ahead returns the items whose records are after an instant.
func (f *Firing) Ahead(of time.Time) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machine.Ahead(of)
}

// Reset sets records back that are after an instant, to now.
func (f *Firing) Reset(of time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perform(f.machine.Reset(of, f.now()))
	f.arm()
}

// Refresh takes over the ledger, which the leader has written: it is read, unless the notice says what was written.
func (f *Firing) Refresh(n layout.Notice) {
	f.rec.Take(n.Still, execution.Written{Version: n.Version, Value: []byte(n.Ledger)})
}

// Stop begins nothing more. What runs goes on and is recorded; what has not been called
// yet is given back, and what is owed stays owed.
func (f *Firing) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	f.timer.Clear()
	f.perform(f.machine.Stop())
	f.askBack()
}

// Suspend ends the recording under the present registration, and returns the ledger as
// it is known, for the next. Resume goes on.
func (f *Firing) Suspend() *ledger.Ledger {
	f.rec.Suspend()
	return f.rec.Ledger()
}

// Resume goes on under another registration, whose ledger was made of the present one's.
func (f *Firing) Resume(id string, p execution.Place, node registry.Node, led *ledger.Ledger) {
	f.mu.Lock()
	f.id = id
	f.mu.Unlock()
	f.Changed(led) // before the recorder, whose the ledger is then, goes on with it
	f.rec.Resume(p, node, led)
}

// Close ends the timer and the watches. Functions that run are not waited for.
func (f *Firing) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	f.timer.Clear()
	for _, r := range f.armed {
		f.disarm(r.Run.Item)
	}
	f.armed = nil
	f.machine.Stop()
	f.askBack()
	f.let(f.barrier.End(time.Now())) // places drop them
	if f.closed {
		return
	}
	f.closed = true
	for _, n := range f.machine.Numbers() {
		f.cfg.Session.Unfollow(f.cfg.Job.Disabled(n), registry.Self)
	}
}

// Quiet reports whether no item is in hand.
func (f *Firing) Quiet() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machine.Quiet()
}

// RunsUnrecorded reports whether an item runs of which the record says nothing.
func (f *Firing) RunsUnrecorded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machine.RunsUnrecorded()
}

// A State is what a firing is doing now.
type State struct {
	Total                 int
	Items, Lent, Disabled []int
	Next                  time.Time
	Never                 bool
	LastFire              time.Time
	LastErr               error
}

// State costs no request.
func (f *Firing) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return State{
		Total: f.machine.Total(), Items: f.machine.Numbers(), Lent: f.machine.Lent(), Disabled: f.machine.Disabled(),
		Next: f.next, Never: f.never, LastFire: f.lastFire, LastErr: f.lastErr,
	}
}

// own takes over what the ledger says that this instance owns, and follows the nodes by
// which operators disable items.
func (f *Firing) own(l *ledger.Ledger) {
	before := f.machine.Numbers()
	total := f.machine.Total()
	f.perform(f.machine.Own(l, f.now()))
	f.askBack()
	if l.Asked() > f.machine.AskedUpTo() {
		f.cfg.Host.Unknown()
	}
	after := f.machine.Numbers()
	if slices.Equal(before, after) && total == f.machine.Total() {
		return
	}
	for _, n := range after {
		if _, had := slices.BinarySearch(before, n); !had && !f.closed {
			f.cfg.Session.Follow(f.cfg.Job.Disabled(n), registry.Self, func(e registry.Event) { f.onDisabled(n, e) })
		}
	}
	for _, n := range before {
		if _, has := slices.BinarySearch(after, n); !has {
			lazymap.Delete(&f.seen, n)
			f.cfg.Session.Unfollow(f.cfg.Job.Disabled(n), registry.Self)
		}
	}
	if !slices.Equal(before, after) {
		dispatch.Emit(f.cfg.Events, event.ItemsChanged{Job: f.cfg.Job.Name(), Items: after, Total: f.machine.Total()})
	}
	f.cfg.Host.Changed()
}

// onDisabled follows the node by which an operator disables an item.
func (f *Firing) onDisabled(n int, e registry.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.machine.Holds(n) {
		return
	}
	disabled, syncing := f.seen[n]
	switch {
	case e.Synced && !syncing && f.machine.IsKnown(n): // shown once more, as it changes
		return
	case e.Synced:
		lazymap.Delete(&f.seen, n)
		f.perform(f.machine.Known(n, disabled, f.now()))
	case syncing || !f.machine.IsKnown(n):
		lazymap.Set(&f.seen, n, e.Node.Exists())
		return
	default:
		f.perform(f.machine.Known(n, e.Node.Exists(), f.now()))
	}
	if f.machine.Delayed() {
		f.arm()
	}
}

// Changed implements execution.Owner.
func (f *Firing) Changed(l *ledger.Ledger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own(l)
	f.arm()
}

// Hindered implements execution.Owner.
func (f *Firing) Hindered(err error) {
	dispatch.Emit(f.cfg.Events, event.Warning{Job: f.cfg.Job.Name(), Problem: "runs cannot be recorded; trying again", Err: err})
}

// Unshown implements execution.Owner.
func (f *Firing) Unshown(err error) {
	dispatch.Emit(f.cfg.Events, event.Warning{Job: f.cfg.Job.Name(), Problem: "what runs cannot be shown to tools; it runs all the same", Err: err})
}

// Gone implements execution.Owner.
func (f *Firing) Gone(err error) { f.cfg.Host.Gone(err) }
