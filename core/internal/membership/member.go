package membership

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/leading"
	"github.com/elasticron/elasticron/core/internal/ownership"
	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/core/internal/session"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/core/internal/sortedmap"
	"github.com/elasticron/elasticron/core/internal/timer"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/strategy"
)

// A Host is the job as the scheduler knows it, over all sessions.
type Host interface {
	// Running is told that the job is registered as id and fires.
	Running(id string)
	// Again is told that it registers anew.
	Again()
	// Failed is told that the job cannot run.
	Failed(err error)
	// ShutDown is told that the instance was shut down from outside and has left.
	ShutDown(id string)
	// Withdrawn is told that it has left as Member.Withdraw asked.
	Withdrawn(id string)
	// Waits says what the job waits for, "" for nothing.
	Waits(what string)
	// Call runs the job's function.
	Call(ctx context.Context, s *settings.Settings, r *firing.Run, own *ownership.Ownership) error
	// FireEnded is told that everything of a fire has ended of which a function was called here.
	FireEnded(f *firing.Fire)
	// Hear calls the listener to a round. It returns when that has, or, unanswered, when it is not waited
	// for any longer.
	Hear(ctx context.Context, r Round) (unanswered bool, err error)
	// Changed is told that a state has changed which somebody may wait for.
	Changed()
}

// A Process is what all members of one have in common.
type Process struct {
	Clock  *timer.Clock
	Now    func() time.Time
	Events *dispatch.Dispatcher
	// Strategies are the program's own.
	Strategies map[string]strategy.Strategy
	// IP and Name are the stable part of the instance's id.
	IP, Name string
	// Named: the program gave Name, which is the host's otherwise.
	Named bool
	// HostName is for people.
	HostName string
}

// Config is what a member works with.
type Config struct {
	*Process
	Host    Host
	Session *session.Part
	Job     layout.Job
	// Local is the configuration that the program gave, as it is stored. It never changes.
	Local *layout.Config
	// Overwrite: Local replaces the one in the registry, as it is when the member joins.
	Overwrite bool
	// Class is the Java class of the job, "" for none.
	Class string
	// Beside: it joins although an instance of ElasticJob is registered, or leads.
	Beside bool
	Places *places.Places
	// Memory is what the process has seen of what is in force, in whichever session.
	Memory *Memory
	// Listens says which listeners to rounds the program has.
	Listens layout.Listens
}

// A Memory is what a process has seen of what is in force of a job.
type Memory = leading.Memory

// A Member is a job in one session.
type Member struct {
	cfg   Config
	ctx   context.Context // of the job's runs
	stop  context.CancelCauseFunc
	task  *workqueue.Task
	runs  *workqueue.Task // reads which runs are open
	check *timer.Timer    // the next reconciliation

	partly bool // some of the job's nodes may be missing, so that each is looked at; the task's

	putting sync.Mutex // held while what the items go by is put in force
	looking sync.Mutex // held while the leader is told whether it may lead

	mu        sync.Mutex
	set       *settings.Settings // of the configuration in force; never changed
	stored    stamp              // of the configuration in force
	seen      registry.Node      // the configuration as the watch showed it last; its value until it is in force
	rule      timing             // the schedule in force
	floor     time.Time          // of it, as it stands in the registry
	watches   bool               // what it decides by is watched
	unsynced  uint8              // of that, a bit for each that has not been shown as a whole
	stage     stage
	broken    error // this registration is over; the next one follows
	removed   bool  // an operator has removed the job, and the mark of that is watched; for the task alone
	shutDown  bool  // somebody deleted the instance: leave for good
	sure      bool  // its life stood then, so it was the instance that was meant
	paused    bool
	withdraws bool             // its instance is to be removed, since a stop waits for what runs
	withdrew  bool             // it was
	retry     *workqueue.Retry // of task; nil: it has not failed
	reread    *workqueue.Retry // of runs, likewise

	id            string // of the registration, or of the one that is being made; "" while there is none
	up            time.Time
	servers       sortedmap.Map[string, server]
	deletedServer *server                  // what the node of this server held, where somebody has deleted it
	triggered     map[string]registry.Node // instances that ElasticJob 2's word asks to run
	asks          map[string]bool          // nodes of requests, runs and kills
	kills         map[string]layout.Kill   // by their nodes' names
	halted        map[string]bool          // stable names that an operator has paused
	toldOff       string                   // what was told last of a switch that keeps this instance from beginning anything
	instances     sortedmap.Map[string, struct{}]
	lives         sortedmap.Map[string, life]
	java          java
	clock         *comparison // nil as long as the configuration has never bounded how far it may be off
	firing        *firing.Firing
	leader        *leading.Leader
	rounds        *hearings   // nil until the first round is claimed
	late          *lateRounds // nil until there is the first one
	former        *former
	strays        map[string]bool // lives of this session that are not the registration's, as the watch has shown them
	made          registry.Node   // the ledger as the registration has made it; zero: it must be read
	misassigned   string          // what is wrong with the strategy's latest answer; "" for nothing
}

// A stamp says which state of a node something is, or that there is none.
type stamp struct {
	created, modified registry.Revision
	version           registry.Version
}

func stampOf(n registry.Node) stamp { return stamp{n.Created, n.Modified, n.Version} }

// A former registration of the same session, of which the next one is made.
type former struct {
	id      string
	created registry.Revision // of its ledger; 0: it ended before that was read
	ledger  *ledger.Ledger    // as it was known last
	cause   error
	below   int // how often nodes stood below its ledger that it does not list
}

type stage uint8

const (
	stagePreparing stage = iota
	stagePrepared
	stageWatching
	stageRegistered
	stageFiring
	stageLeft
)

// New returns a member that does nothing before Join.
func New(c Config) *Member {
	m := &Member{cfg: c, set: &settings.Settings{}, java: java{joins: c.Beside}}
	m.ctx, m.stop = context.WithCancelCause(c.Session.Context)
	m.task = c.Session.Control.Task(m.step)
	m.runs = c.Session.Control.Task(m.readRuns)
	m.check = c.Clock.Timer(m.reconcile)
	return m
}

// Join registers the job as soon as the registry lets it.
func (m *Member) Join() {
	m.cfg.Session.Follow(m.cfg.Job.Config(), registry.Self, m.onConfig)
	m.task.Press() // before the leaders look, so that they find more instances registered
}

func (m *Member) name() string { return m.cfg.Job.Name() }

func (m *Member) warn(problem string, err error) {
	dispatch.Emit(m.cfg.Events, event.Warning{Job: m.name(), Problem: problem, Err: err})
}

// step does what the state asks for. It runs on the task.
func (m *Member) step() {
	ctx := m.cfg.Session.Context
	if ctx.Err() != nil {
		return
	}
	err := m.advance(ctx)
	if err == nil {
		m.mu.Lock()
		m.retry = nil
		m.mu.Unlock()
		return
	}
	if ctx.Err() != nil || errors.Is(err, registry.ErrSessionLost) {
		return // the scheduler sees Done
	}
	if errors.Is(err, registry.ErrInvalid) {
		err = &field.Error{Job: m.name(), Field: "configuration", Problem: "the registry cannot hold it: " + err.Error(), Err: err}
	}
	if errors.Is(err, field.ErrWrong) {
		m.cfg.Host.Failed(err)
		return
	}
	m.again(&m.retry, m.task, err)
}

// again has a task run again that has failed.
func (m *Member) again(r **workqueue.Retry, t *workqueue.Task, err error) {
	m.mu.Lock()
	if *r == nil {
		*r = &workqueue.Retry{}
	}
	tell := (*r).Failed(t, err)
	m.mu.Unlock()
	if tell {
		m.hindered(err)
	}
}

func (m *Member) hindered(err error) { m.warn("a request to the registry failed; trying again", err) }

// advance takes the next steps until one has to wait for an event.
func (m *Member) advance(ctx context.Context) error {
	for {
		m.mu.Lock()
		at, broken, shutDown, ready, deletedServer := m.stage, m.broken, m.shutDown, m.unsynced == 0, m.deletedServer
		withdraws, f := m.withdraws, m.firing
		strays := len(m.strays) > 0
		m.mu.Unlock()
		var err error
		switch {
		case at == stageLeft:
			return nil
		case broken != nil:
			m.breakOff(broken)
		case shutDown && at == stageFiring:
			return m.leave(ctx)
		case withdraws && at == stageFiring && !f.RunsUnrecorded(): // whoever takes that over would not know that it runs
			err = m.withdraw(ctx)
		case at == stagePreparing:
			err = m.prepare(ctx)
		case at == stagePrepared:
			m.watchAll()
		case at == stageWatching && ready:
			agrees, off := m.agrees()
			if off != nil || !agrees {
				return off
			}
			err = m.register(ctx)
		case at == stageRegistered:
			err = m.open(ctx)
		case at == stageFiring && deletedServer != nil:
			err = m.remakeServer(ctx, deletedServer)
		case at == stageFiring && strays:
			err = m.removeStrays(ctx)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (m *Member) reach(s stage) {
	m.mu.Lock()
	m.stage = s
	m.mu.Unlock()
}

// Pause begins nothing more; what runs goes on, what is owed stays owed.
func (m *Member) Pause() {
	m.mu.Lock()
	m.paused = true
	f, l := m.firing, m.leader
	m.stopComparing()
	m.mu.Unlock()
	m.check.Clear()
	if f != nil {
		f.Stop()
	}
	if l != nil {
		m.looking.Lock() // after those who looked before
		l.SetAble(false)
		m.looking.Unlock()
	}
}

// CancelRuns cancels the contexts of what runs.
func (m *Member) CancelRuns(cause error) { m.stop(cause) }

// Quiet reports whether no item is in hand.
func (m *Member) Quiet() bool {
	m.mu.Lock()
	f, left, hears := m.firing, m.stage == stageLeft, m.hears()
	m.mu.Unlock()
	return f == nil || left || m.cfg.Session.Context.Err() != nil || (f.Quiet() && !hears)
}

// Close ends what the session's end does not: timers and watches.
func (m *Member) Close(cause error) {
	m.Pause()
	m.stop(cause)
	m.mu.Lock()
	f, l := m.firing, m.leader
	m.mu.Unlock()
	if f != nil {
		f.Close()
	}
	if l != nil {
		m.cfg.Host.Waits("") // whoever leads next says for what
	}
	ended, cancel := context.WithCancel(m.cfg.Session.Context)
	cancel()
	m.tellLateRounds(ended) // what its task has not come to
}

// Unblock says that a function has returned, of whatever session.
func (m *Member) Unblock(item int) {
	m.mu.Lock()
	f := m.firing
	m.mu.Unlock()
	if f != nil {
		f.Unblock(item)
	}
	m.Changed()
}

// Changed implements firing.Host and leading.Host.
func (m *Member) Changed() {
	m.mu.Lock()
	leaving := m.shutDown || m.withdraws
	m.mu.Unlock()
	if leaving {
		m.task.Poke()
	}
	m.cfg.Host.Changed()
}

// ClockSet says that the wall clock was set.
func (m *Member) ClockSet() {
	m.mu.Lock()
	f, every := m.firing, m.set.Reconcile
	m.mu.Unlock()
	if f == nil {
		return
	}
	m.doubtClock()
	f.ClockSet()
	m.arm(every)
	m.believe()
}

// A State is what a member is doing now.
type State struct {
	ID        string
	Leader    string
	Instances []string
	// Disabled says why nothing begins here, "" when something may.
	Disabled string
	firing.State
}

// State costs no request. Whoever has left owns nothing and knows nobody.
func (m *Member) State() State {
	m.mu.Lock()
	var s State
	if m.stage == stageLeft || m.cfg.Session.Context.Err() != nil {
		f := m.firing
		m.mu.Unlock()
		if f != nil {
			last := f.State()
			s.LastFire, s.LastErr = last.LastFire, last.LastErr
		}
		return s
	}
	if m.id != "" && m.stage >= stageRegistered {
		s.ID = m.id
	}
	s.Instances = m.instances.Keys()
	switch {
	case m.stage < stageRegistered:
	case m.set.Stored.Disabled:
		s.Disabled = m.set.Stored.DisabledReason()
	case !m.enabled(m.cfg.IP):
		s.Disabled = "the server " + m.cfg.IP + " is disabled"
	case m.halted[m.cfg.Name]:
		s.Disabled = "the instance " + m.cfg.Name + " is paused"
	case m.java.led != "":
		s.Disabled = m.java.leads()
	case m.still():
		s.Disabled = cmp.Or(m.clock.off, "this host's clock was set, and is being compared with the leader's")
	}
	f, l := m.firing, m.leader
	m.mu.Unlock()
	if f != nil {
		s.State = f.State()
	}
	if l != nil {
		s.Leader = l.Leading()
	}
	return s
}
