package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A process is one scheduler of the cluster, with all that can happen to it.
type process struct {
	world    *world
	name     string // its own; the instance name may be that of one before it
	stable   string
	ip       string
	link     *memory.Registry
	engine   engine
	tasks    sync.WaitGroup
	dead     chan struct{}             // closed when it is killed
	ended    chan struct{}             // closed when Stop has returned for good
	instance map[string]string         // by job, as it was told last; the listener's own
	owned    map[string]history.Record // what it told last of that in this session
	giveUp   context.CancelFunc        // ends a Start that still waits

	mu        sync.Mutex
	held      []*step // while it stands still
	stopping  bool
	opened    int
	session   *session // the latest
	watchers  []*watcher
	sessions  map[string]*session
	resume    chan struct{} // not nil while it stands still
	ahead     time.Duration // of the true time
	frozen    time.Time     // not zero: its clock stands still too
	slow      int           // times the usual latency
	slowUntil time.Time     // what was sent meanwhile is under way until then
	denied    string        // commits of paths that hold this are denied; "" none
	deaf      string        // the same for watches
	hits      int           // of the faults above
}

func (p *process) tell(source string, r history.Record) {
	if closed(p.dead) {
		return
	}
	r.Who, r.Wall = p.name, p.now()
	p.world.log.tell(source, r)
}

func (p *process) draw(name string) *rand.Rand { return p.world.dice.of(p.name + " " + name) }

// now is the wall clock of the process.
func (p *process) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.frozen.IsZero() {
		return p.frozen
	}
	return time.Now().Add(p.ahead).Round(0).UTC()
}

// latency is the time that a request or an answer takes.
func (p *process) latency(key string) time.Duration {
	r := p.world.dice.of(key)
	d := between(r, p.world.quickest, p.world.slowest)
	if chance(r, 150) {
		d = between(r, p.world.slowest, 300*time.Millisecond)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow > 0 {
		p.hits++
		d *= time.Duration(p.slow)
		if at := time.Now().Add(d); at.After(p.slowUntil) {
			p.slowUntil = at
		}
	}
	return d
}

func (p *process) request(key string) time.Duration { return p.latency(key) }
func (p *process) answer(key string) time.Duration  { return p.latency(key) }

// still reports whether the process stands still.
func (p *process) still() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resume != nil
}

// moves waits until the process does not stand still.
func (p *process) moves() {
	for {
		p.mu.Lock()
		resume := p.resume
		p.mu.Unlock()
		if resume == nil {
			return
		}
		select {
		case <-resume:
		case <-p.dead:
			return
		}
	}
}

// deny is the error of a commit that the service does not allow.
func (p *process) deny(ops []registry.Op) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, op := range ops {
		if p.denied != "" && op.Kind != registry.OpCheck && strings.Contains(op.Path, p.denied) {
			p.hits++
			return &registry.CommitError{Index: i, Op: op, Err: errDenied}
		}
		if path.Base(path.Dir(op.Path)) != "lives" {
			continue
		}
		id, job := path.Base(op.Path), path.Base(path.Dir(path.Dir(op.Path)))
		switch op.Kind {
		case registry.OpDelete:
			p.world.log.tell("", history.Record{Kind: history.Leaving, Who: p.name, Job: job, Instance: id})
		case registry.OpCreateEphemeral:
			p.sessions[id] = p.session
			p.world.log.tell("", history.Record{
				Kind: history.Registered, Who: p.name, Job: job, Instance: id, Session: p.session.id,
			})
		}
	}
	return nil
}

func (p *process) denyWatch(target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf == "" || !strings.Contains(target, p.deaf) {
		return false
	}
	p.hits++
	return true
}

// has reports whether the latest session is this one of memory's.
func (p *process) has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session != nil && p.session.inner.ID() == id
}

// count is how often faults of the process itself have hit.
func (p *process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits + p.link.Hits()
}

// launch starts the scheduler.
func (p *process) launch(jobs []*job) {
	var rounds []core.Option
	for _, j := range jobs {
		if j.listened && !j.unmonitored && !j.delayed {
			rounds = append(rounds, hearing(j, p.hear))
		}
	}
	p.engine = newEngine(client{p}, p.stable, p.ip, p.now, p.listen, rounds...)
	for _, j := range jobs {
		if err := p.engine.add(j, p.run); err != nil {
			panic(err) // the simulation's jobs are sound
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	p.giveUp = cancel
	p.tasks.Go(func() {
		defer cancel()
		// What the engine starts has the label too: failpoints know by it who comes.
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("process", p.name)))
		if err := p.engine.Start(ctx); err != nil {
			p.tell("", history.Record{Kind: history.Note, Reason: "start failed", Err: err.Error()})
		}
	})
}

func (p *process) listen(e event.Event) {
	p.moves()
	if _, over := e.(event.SessionLost); over {
		clear(p.owned)
	}
	r, ok := recordOf(e)
	switch {
	case !ok:
		return
	case r.Kind == history.Started:
		p.instance[r.Job] = r.Instance
		if owned, same := p.owned[r.Job]; same {
			// Registered anew in one session: what it owned it owns, unless it tells otherwise.
			p.tell("", r)
			r = owned
			r.Instance = p.instance[r.Job]
		}
	case r.Kind == history.Owns:
		r.Instance = p.instance[r.Job]
		p.owned[r.Job] = r
	}
	p.tell("", r)
}

// hear is the listener to rounds.
func (p *process) hear(ctx context.Context, c called) error {
	r := history.Record{Kind: history.Called, Job: c.job, Due: c.due.UTC(), Instance: c.instance, Reason: c.phase, Count: c.attempt}
	p.mu.Lock()
	if ses := p.sessions[c.instance]; ses != nil {
		r.Session = ses.id
	}
	p.mu.Unlock()
	key := fmt.Sprintf("%s/%s %s %d", c.job, c.phase, c.due.UTC().Format(time.RFC3339Nano), c.attempt)
	p.tell(key, r)
	p.moves()
	d := p.draw("hear " + key)
	takes := between(d, time.Millisecond, 200*time.Millisecond)
	n := d.IntN(100)
	if n < 5 && !p.world.brief {
		takes = between(d, hearingTimeout/2, 2*hearingTimeout)
	}
	fixed := func(string) time.Duration { return takes }
	over := ctx
	if n%2 == 0 { // ignores its context
		ctx = context.Background()
	}
	switch p.pass(ctx, "hearing of "+key, fixed, nil) {
	case dead:
		return errDead
	case gaveUp:
		p.moves()
		return p.hasHeard(over, key, r, context.Cause(ctx))
	}
	switch {
	case n < 10:
		return p.hasHeard(over, key, r, errWork)
	case n < 12:
		_ = p.hasHeard(over, key, r, errors.New("it panics"))
		panic("by the simulation")
	case n < 13:
		_ = p.hasHeard(over, key, r, errors.New("it ends its goroutine"))
		runtime.Goexit()
	}
	return p.hasHeard(over, key, r, nil)
}

// hasHeard writes down that a listener returns, from the call that r is.
func (p *process) hasHeard(ctx context.Context, key string, r history.Record, err error) error {
	r.Kind, r.Err, r.Slow = history.Answered, text(err), ctx.Err() != nil
	p.tell("answer of "+key, r)
	return err
}

// run is the function of every item.
func (p *process) run(ctx context.Context, s shard) error {
	r := history.Record{
		Kind: history.Entered, Job: s.job, Epoch: s.epoch, Total: s.total, Item: s.item, Due: s.due.UTC(),
		Fence: int64(s.fence), Instance: s.instance, Redo: s.redo, Request: s.request,
	}
	p.mu.Lock()
	ses := p.sessions[s.instance]
	p.mu.Unlock()
	if ses != nil {
		r.Session, r.Deadline = ses.id, p.world.common(ses.inner.Deadline())
	}
	key := fmt.Sprintf("%s/%d/%d %s", s.job, s.epoch, s.item, s.due.UTC().Format(time.RFC3339Nano))
	// An engine that enters a function while its process stands still has entered it just
	// before: it has looked at the Deadline.
	p.tell(key, r)
	p.moves()
	plan := p.world.behaviour(p.draw("run " + key))
	err := plan.err
	switch p.pass(ctx, "return of "+key, plan.takes, nil) {
	case dead:
		return errDead
	case gaveUp:
		p.moves()
		cause := context.Cause(ctx)
		cancelled := r
		cancelled.Kind, cancelled.Err = history.Cancelled, text(cause)
		p.tell(key, cancelled)
		if p.pass(context.Background(), "late return of "+key, plan.lingers, nil) == dead {
			return errDead
		}
		err = cause
	}
	if o := p.world.offsets; o != nil && !p.world.brief && o.set(ctx, s) {
		return errDead
	}
	r.Kind, r.Err = history.Returned, text(err)
	p.tell(key, r)
	switch {
	case err == nil && plan.panics:
		panic("by the simulation")
	case err == nil && plan.exits:
		runtime.Goexit()
	}
	return err
}

// A behaviour is what a run of an item does.
type behaviour struct {
	takes, lingers func(string) time.Duration
	err            error
	panics, exits  bool
}

var errWork = errors.New("the work failed")

func (w *world) behaviour(r *rand.Rand) behaviour {
	fixed := func(d time.Duration) func(string) time.Duration {
		return func(string) time.Duration { return d }
	}
	takes := between(r, time.Millisecond, 300*time.Millisecond)
	switch n := r.IntN(100); {
	case n < 4:
		takes = between(r, w.period, 4*w.period)
	case n < 15:
		takes = between(r, 0, w.period)
	}
	if w.brief {
		takes = between(r, 10*time.Microsecond, time.Millisecond)
	}
	b := behaviour{takes: fixed(takes), lingers: fixed(between(r, 10*time.Microsecond, 20*time.Millisecond))}
	if chance(r, 6) { // ignores its context
		b.lingers = fixed(between(r, 0, 4*time.Second))
	}
	switch n := r.IntN(100); {
	case n < 3:
		b.err = errWork
	case n < 5:
		b.panics = true
	case n < 6:
		b.exits = true
	}
	return b
}

// stop leaves in order; what does not end within patience is cancelled.
func (p *process) stop(patience time.Duration) {
	if !p.leaves() {
		return
	}
	p.tell("", history.Record{Kind: history.Stopping})
	p.tasks.Go(func() {
		defer close(p.ended)
		for {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			err := p.engine.Stop(ctx)
			cancel()
			if err == nil || closed(p.dead) {
				return
			}
			p.tell("", history.Record{Kind: history.Note, Reason: "stop returned", Err: err.Error()})
			patience = 10 * time.Second
		}
	})
}

// alive tells how far the session's Deadline has moved.
func (p *process) alive() {
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s != nil && s.Err() == nil {
		p.tell("", history.Record{Kind: history.Alive, Session: s.id, Deadline: p.world.common(s.inner.Deadline())})
	}
}

// leaves notes that the process ends, and reports whether that is new.
func (p *process) leaves() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.stopping
	p.stopping = true
	return first
}

// gone reports whether the process is dead or leaving.
func (p *process) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

// crash kills the process: nothing that it does has an effect any more.
func (p *process) crash() {
	p.alive()
	p.world.log.tell("", history.Record{Kind: history.Crashed, Who: "driver", Of: p.name})
	p.link.Refuse()
	close(p.dead)
	if !p.leaves() {
		return
	}
	p.tasks.Go(func() { // only to end its goroutines
		defer close(p.ended)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for err := errDead; err != nil; {
			err = p.engine.Stop(ctx)
		}
	})
}

// freeze makes the process stand still, as SIGSTOP does, until the end is called.
func (p *process) freeze(clockToo bool) (thaw func()) {
	p.world.log.tell("", history.Record{Kind: history.Paused, Who: "driver", Of: p.name})
	p.alive()
	now := p.now()
	p.mu.Lock()
	p.resume = make(chan struct{})
	if clockToo {
		p.frozen = now
	}
	p.mu.Unlock()
	heal := p.link.LoseRequests()
	return sync.OnceFunc(func() {
		p.world.log.tell("", history.Record{Kind: history.Resumed, Who: "driver", Of: p.name})
		heal()
		p.mu.Lock()
		close(p.resume)
		p.resume, p.frozen = nil, time.Time{}
		held := p.held
		p.held = nil
		p.hits += len(held)
		p.mu.Unlock()
		for _, s := range held {
			s.wait = func(key string) time.Duration { return between(p.world.dice.of("thaw "+key), 0, 2*time.Millisecond) }
			p.world.driver.add(s)
		}
	})
}

// hold keeps a step until the process goes on, and reports whether it stands still.
func (p *process) hold(s *step) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resume == nil {
		return false
	}
	p.held = append(p.held, s)
	return true
}
