package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/alarm"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/lane"
	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A member is a job in one registration: one instance, one life. Its task does
// everything that needs the registry but begins and ends, one step at a time;
// watches and alarms only note what they saw and poke it.
type member struct {
	job   *job
	life  *life
	path  layout.Job
	ctx   context.Context // of the job's runs
	stop  context.CancelCauseFunc
	task  *lane.Task
	alarm *alarm.Alarm // the next fire
	check *alarm.Alarm // the next reconciliation
	id    layout.InstanceID
	rec   *execution.Recorder

	mu       sync.Mutex
	set      settings.Settings
	stored   registry.Node     // config, as last seen
	adopted  settings.Settings // as prepared; of the task alone
	unsynced int
	stage    stage
	dead     error // this registration is over; the next one follows
	evicted  bool  // somebody deleted the instance: leave for good
	stopping bool
	retry    time.Duration

	servers       map[string]string
	instances     map[string]bool
	lives         map[string]lifeNote
	leader        string
	led           bool // this life has held the term
	flags         map[string]bool
	serverEnabled bool
	reshard       bool
	tidy          bool
	waitFor       map[int]bool // items whose running nodes the leader watches

	notices int // commits that this leader has numbered; its task's own

	firing bool
	total  int
	items  map[int]*item
	fires  map[int64]*fire
	ticked time.Time
	next   time.Time
	never  bool
}

type stage uint8

const (
	stageNew stage = iota
	stagePrepared
	stageWatching
	stageRegistered
	stageOpen
	stageLeft
)

// A lifeNote is the value of a life's node.
type lifeNote struct {
	// Up is since when the job has had a live instance without a break.
	Up time.Time `json:"up"`
}

func newMember(l *life, j *job) *member {
	m := &member{
		job: j, life: l, path: j.path(),
		servers: map[string]string{}, instances: map[string]bool{}, lives: map[string]lifeNote{}, flags: map[string]bool{},
		waitFor: map[int]bool{}, items: map[int]*item{}, fires: map[int64]*fire{},
	}
	m.ctx, m.stop = context.WithCancelCause(l.ctx)
	m.task = l.control.Task(m.step)
	m.alarm = l.scheduler.clock.Alarm(m.tick)
	m.check = l.scheduler.clock.Alarm(m.reconcile)
	l.watch(m.path.Config(), registry.Self, m.sawConfig)
	return m
}

func (m *member) name() string           { return m.job.local.Name }
func (m *member) paths() layout.Job      { return m.path }
func (m *member) now() time.Time         { return m.life.scheduler.opts.now() }
func (m *member) emit(e event.Event)     { dispatch.Emit(m.life.scheduler.events, e) }
func (m *member) warn(s string, e error) { m.emit(event.Warning{Job: m.name(), Problem: s, Err: e}) }

// step does what the state asks for. It runs on the control lane.
func (m *member) step() {
	if m.life.ctx.Err() != nil {
		return
	}
	err := m.advance(m.life.ctx)
	if err == nil {
		m.mu.Lock()
		m.retry = 0
		m.mu.Unlock()
		return
	}
	if m.life.ctx.Err() != nil || errors.Is(err, registry.ErrSessionLost) {
		return // the life's owner sees Done
	}
	if errors.Is(err, registry.ErrInvalid) {
		err = &ConfigError{Job: m.name(), Field: "configuration", Problem: "the registry cannot hold it: " + err.Error(), Err: err}
	}
	if errors.Is(err, ErrConfig) {
		m.fail(err)
		return
	}
	m.again(err)
}

// again pokes the task after a pause that grows with each failure in a row.
func (m *member) again(err error) {
	m.mu.Lock()
	m.retry = min(max(2*m.retry, 50*time.Millisecond), 2*time.Second)
	pause := m.retry
	m.mu.Unlock()
	if pause >= time.Second {
		m.Hindered(err)
	}
	time.AfterFunc(pause, m.task.Poke)
}

// Hindered implements execution.Owner.
func (m *member) Hindered(err error) { m.warn("registry request failed; trying again", err) }

func (m *member) fail(err error) {
	m.job.enter(PhaseFailed, err)
	m.emit(event.Stopped{Job: m.name(), Reason: event.StopFailed, Err: err})
}

// advance takes the next steps until one has to wait for an event.
func (m *member) advance(ctx context.Context) error {
	for {
		m.mu.Lock()
		at, dead, evicted, ready := m.stage, m.dead, m.evicted, m.unsynced == 0
		m.mu.Unlock()
		var err error
		switch {
		case dead != nil:
			m.replace(dead)
			return nil
		case evicted:
			return m.leave(ctx)
		case at == stageNew:
			err = m.prepare(ctx)
		case at == stagePrepared:
			m.watchAll()
		case at == stageWatching && ready:
			err = m.register(ctx)
		case at == stageRegistered:
			err = m.openLedger(ctx)
		case at == stageOpen:
			return m.govern(ctx)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (m *member) reach(s stage) {
	m.mu.Lock()
	m.stage = s
	m.mu.Unlock()
}

// watchAll follows what the member decides by.
func (m *member) watchAll() {
	m.mu.Lock()
	m.stage, m.unsynced = stageWatching, 5
	m.mu.Unlock()
	m.life.watch(m.path.Servers(), registry.Children, m.seen(m.sawServer))
	m.life.watch(m.path.Instances(), registry.Children, m.seen(m.sawInstance))
	m.life.watch(m.path.Lives(), registry.Children, m.seen(m.sawLife))
	m.life.watch(m.path.ShardingState(), registry.Children, m.seen(m.sawFlag))
	m.life.watch(m.path.Leader(), registry.Self, m.seen(m.sawLeader))
}

// register makes the server, the instance, its life and its ledger.
func (m *member) register(ctx context.Context) error {
	s := m.life.scheduler
	if m.id.Life == "" {
		id, err := layout.NewInstanceID(s.opts.ip, s.opts.name)
		if err != nil {
			return settings.Named(m.name(), err)
		}
		m.mu.Lock()
		m.id = id // kept over attempts: an uncertain one is settled by the next
		m.mu.Unlock()
	}
	id := m.id.String()
	value, err := layout.MarshalInstance(m.id)
	if err != nil {
		return settings.Named(m.name(), err)
	}
	m.mu.Lock()
	note, err := json.Marshal(lifeNote{Up: m.up()})
	server, known := m.servers[m.id.IP]
	disable := m.set.Stored.Disabled
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("core: life: %w", err)
	}
	var ops []registry.Op
	switch {
	case !known:
		ops = append(ops, registry.Create(m.path.Server(m.id.IP), []byte(layout.ServerStatus(!disable))))
	case disable && server != layout.ServerStatus(false):
		ops = append(ops, registry.Set(m.path.Server(m.id.IP), []byte(layout.ServerStatus(false)), registry.AnyVersion))
	}
	ops = append(ops,
		registry.CreateEphemeral(m.path.Life(id), note),
		registry.CreateEphemeral(m.path.Instance(id), value),
		registry.CreateEphemeral(m.path.Notice(id), nil),
		registry.Create(m.path.Ledger(id), ledger.New(0).Encode()))
	_, err = m.life.session.Commit(ctx, ops...)
	var failed *registry.CommitError
	switch {
	case err == nil, errors.As(err, &failed) && failed.Op.Path == m.path.Life(id) && errors.Is(err, registry.ErrExists):
		// Applied, now or by the attempt before.
	case errors.Is(err, registry.ErrNoParent):
		m.reach(stageNew)
		return err
	default:
		return err
	}
	m.reach(stageRegistered)
	return nil
}

// openLedger reads the ledger and follows what the leader makes of it.
func (m *member) openLedger(ctx context.Context) error {
	id := m.id.String()
	nodes, err := m.life.session.Get(ctx, m.path.Ledger(id))
	if err != nil {
		return err
	}
	m.mu.Lock()
	if m.stage == stageRegistered {
		m.stage = stageOpen
	}
	if !m.stopping {
		m.open(nodes[0])
	}
	m.mu.Unlock()
	m.life.watch(m.path.Notice(id), registry.Self, m.sawNotice)
	return nil
}

// up is since when the job has been alive, as the lives of others know it.
func (m *member) up() time.Time {
	up := m.now().UTC()
	for _, note := range m.lives {
		if !note.Up.IsZero() && note.Up.Before(up) {
			up = note.Up
		}
	}
	return up
}

// open starts firing, once the ledger is known.
func (m *member) open(node registry.Node) {
	cfg := execution.Config{
		Session: m.life.session, Context: m.life.ctx, Pool: m.life.records,
		Life: m.path.Life(m.id.String()), Ledger: m.path.Ledger(m.id.String()),
		Running: m.path.Running, Instance: m.id.String(),
	}
	rec, err := execution.NewRecorder(cfg, m, node)
	if err != nil {
		m.warn("own ledger is unreadable", err)
		m.dead = err
		m.task.Poke()
		return
	}
	m.rec, m.firing = rec, true
	m.ticked = m.now()
	m.arm(m.ticked)
	if m.never {
		m.warn("the schedule never fires again", nil)
	}
	if m.set.Reconcile > 0 {
		m.check.Set(m.now().Add(m.set.Reconcile))
	}
	m.job.enter(PhaseRunning, nil)
	m.emit(event.Started{Job: m.name(), Instance: m.id.String()})
	m.own(rec.Owned())
}

// reconcile makes the leader compare the whole state with what it should be.
func (m *member) reconcile(due time.Time) {
	m.mu.Lock()
	m.reshard, m.tidy = true, true
	every := m.set.Reconcile
	m.mu.Unlock()
	if every > 0 {
		m.check.Set(due.Add(every))
	}
	m.task.Poke()
}
