package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/alarm"
	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/lane"
	"github.com/elasticron/elasticron/core/internal/ledger"
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
	set      settings
	stored   registry.Node // config, as last seen
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
func (m *member) emit(e Event)           { m.life.scheduler.events.emit(e) }
func (m *member) warn(s string, e error) { m.emit(Warning{Job: m.name(), Problem: s, Err: e}) }

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
		m.warn("registry request failed; trying again", err)
	}
	time.AfterFunc(pause, m.task.Poke)
}

func (m *member) fail(err error) {
	m.job.enter(PhaseFailed, err)
	m.emit(Stopped{Job: m.name(), Err: err})
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

// prepare makes the job's nodes, and writes or adopts its configuration.
func (m *member) prepare(ctx context.Context) error {
	for {
		done, err := m.scaffold(ctx)
		if err != nil || done {
			return err
		}
	}
}

// scaffold reports true when everything stands. It is repeated when others make
// the same nodes at the same time.
func (m *member) scaffold(ctx context.Context) (bool, error) {
	wanted := m.path.Scaffold()
	nodes, err := m.life.session.Get(ctx, append(wanted, m.path.Config())...)
	if err != nil {
		return false, err
	}
	config := nodes[len(nodes)-1]
	var ops []registry.Op
	for _, n := range nodes[:len(wanted)] {
		if !n.Exists() {
			ops = append(ops, registry.Create(n.Path, nil))
		} else if n.Path == m.path.Root() {
			if err := m.checkClass(n); err != nil {
				return false, err
			}
		}
		if n.Exists() && n.Ephemeral {
			return false, &ConfigError{Job: m.name(), Field: n.Path, Problem: "is an ephemeral node of somebody else; delete it or choose another namespace"}
		}
	}
	write, err := m.setUp(config)
	if err != nil {
		return false, err
	}
	ops = append(ops, write...)
	if len(ops) == 0 {
		m.reach(stagePrepared)
		return true, nil
	}
	fits := m.life.session.Limits().MaxOps
	_, err = m.life.session.Commit(ctx, ops[:min(len(ops), fits)]...)
	if errors.Is(err, registry.ErrExists) || errors.Is(err, registry.ErrNoParent) || errors.Is(err, registry.ErrVersion) || errors.Is(err, registry.ErrNotFound) {
		err = nil
	}
	return false, err
}

// checkClass refuses a job that belongs to another Java class.
func (m *member) checkClass(root registry.Node) error {
	class := string(root.Value)
	if class == "" || class == m.job.local.Class {
		return nil
	}
	return &ConfigError{Job: m.name(), Field: "Class", Problem: fmt.Sprintf("the registry holds this job for class %q; set Class to join it, or use another name", class)}
}

// setUp decides whose configuration counts, and returns what writes it, if anything.
func (m *member) setUp(node registry.Node) ([]registry.Op, error) {
	local, err := store(m.job.local)
	if err != nil {
		return nil, err
	}
	if !node.Exists() {
		text, err := layout.MarshalConfig(local)
		if err != nil {
			return nil, &ConfigError{Job: m.name(), Field: "configuration", Problem: err.Error(), Err: err}
		}
		return []registry.Op{registry.Create(m.path.Config(), text)}, nil
	}
	stored, err := m.path.UnmarshalConfig(node.Value)
	if m.job.local.Overwrite && (err != nil || len(differences(local, stored)) > 0) {
		if err == nil {
			local.JobExtraConfigurations = stored.JobExtraConfigurations
		}
		text, err := layout.MarshalConfig(local)
		if err != nil {
			return nil, &ConfigError{Job: m.name(), Field: "configuration", Problem: err.Error(), Err: err}
		}
		return []registry.Op{registry.Set(m.path.Config(), text, node.Version)}, nil
	}
	if err != nil {
		return nil, &ConfigError{Job: m.name(), Field: m.path.Config(), Problem: err.Error() + "; repair the node, or start once with Overwrite", Err: err}
	}
	set, err := parse(m.name(), stored)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.set, m.stored = set, node
	m.mu.Unlock()
	if fields := differences(local, stored); len(fields) > 0 {
		m.emit(ConfigChanged{Job: m.name(), Fields: fields, Adopted: true})
	}
	m.warnInactive(stored)
	return nil, nil
}

// warnInactive tells of settings that are stored but have no effect yet.
func (m *member) warnInactive(c layout.Config) {
	if c.Failover {
		m.warn("Failover is set but not active yet: an item whose instance dies while it runs waits for its next fire", nil)
	}
	if c.StaticSharding {
		m.warn("StaticSharding is set but not active yet: items move when instances change", nil)
	}
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
			return &ConfigError{Job: m.name(), Field: "instance", Problem: err.Error(), Err: err}
		}
		m.mu.Lock()
		m.id = id // kept over attempts: an uncertain one is settled by the next
		m.mu.Unlock()
	}
	id := m.id.String()
	value, err := layout.MarshalInstance(m.id)
	if err != nil {
		return &ConfigError{Job: m.name(), Field: "instance", Problem: err.Error(), Err: err}
	}
	m.mu.Lock()
	note, err := json.Marshal(lifeNote{Up: m.up()})
	server, known := m.servers[m.id.IP]
	disable := m.set.stored.Disabled
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
		registry.Create(m.path.Ledger(id), ledger.New(0).Encode()))
	_, err = m.life.session.Commit(ctx, ops...)
	var failed *registry.CommitError
	switch {
	case err == nil, errors.As(err, &failed) && failed.Op.Path == m.path.Life(id):
		// Applied, now or by the attempt before.
	case errors.Is(err, registry.ErrNoParent):
		m.reach(stageNew)
		return err
	default:
		return err
	}
	m.reach(stageRegistered)
	m.life.watch(m.path.Ledger(id), registry.Self, m.sawLedger)
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
	if m.set.reconcile > 0 {
		m.check.Set(m.now().Add(m.set.reconcile))
	}
	m.job.enter(PhaseRunning, nil)
	m.emit(Started{Job: m.name(), Instance: m.id.String()})
}

// reconcile makes the leader compare the whole state with what it should be.
func (m *member) reconcile(due time.Time) {
	m.mu.Lock()
	m.reshard, m.tidy = true, true
	every := m.set.reconcile
	m.mu.Unlock()
	if every > 0 {
		m.check.Set(due.Add(every))
	}
	m.task.Poke()
}

// Gone implements execution.Owner: this registration is over.
func (m *member) Gone(err error) {
	if m.life.ctx.Err() != nil || errors.Is(m.life.session.Err(), registry.ErrSessionLost) {
		return // the whole life is
	}
	m.mu.Lock()
	m.dead = err
	m.mu.Unlock()
	m.task.Poke()
}

// replace registers the job anew after its life or ledger was deleted from outside.
func (m *member) replace(cause error) {
	m.warn("the registration was removed from outside; registering again", cause)
	m.job.enter(PhaseStarting, nil)
	m.halt(registry.ErrSessionLost)
	m.unwatchAll()
	m.life.join(m.job)
}

// halt stops firing and cancels runs.
func (m *member) halt(cause error) {
	m.mu.Lock()
	m.stopping, m.firing = true, false
	rec := m.rec
	m.mu.Unlock()
	m.alarm.Clear()
	m.check.Clear()
	m.stop(cause)
	if rec != nil {
		rec.Drop(cause)
	}
}

func (m *member) unwatchAll() {
	for _, p := range []string{m.path.Servers(), m.path.Instances(), m.path.Lives(), m.path.ShardingState()} {
		m.life.unwatch(p, registry.Children)
	}
	for _, p := range []string{m.path.Config(), m.path.Leader(), m.path.Ledger(m.id.String())} {
		m.life.unwatch(p, registry.Self)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.items {
		m.life.unwatch(m.path.Disabled(n), registry.Self)
	}
	for n := range m.waitFor {
		m.life.unwatch(m.path.Running(n), registry.Self)
	}
}

// quiet reports whether no item is in hand.
func (m *member) quiet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, it := range m.items {
		if it.phase != itemIdle {
			return false
		}
	}
	return true
}

// pause begins nothing more; what runs goes on.
func (m *member) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = true
	m.alarm.Clear()
	m.check.Clear()
	for _, it := range m.items {
		it.backlog = nil
	}
}

// leave ends this instance alone, after what runs has ended.
func (m *member) leave(ctx context.Context) error {
	m.pause()
	id := m.id.String()
	m.mu.Lock()
	at, led, leader := m.stage, m.led, m.leader
	m.mu.Unlock()
	if at == stageLeft {
		return nil
	}
	if led {
		if err := m.abdicate(ctx, leader == id); err != nil {
			return err
		}
	}
	if !m.quiet() {
		return nil // Ended pokes again
	}
	_, err := m.life.session.Commit(ctx, registry.Delete(m.path.Life(id), registry.AnyVersion))
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	m.reach(stageLeft)
	m.halt(ErrStopped)
	m.unwatchAll()
	m.job.enter(PhaseStopped, nil)
	m.emit(Stopped{Job: m.name(), Instance: id})
	return nil
}
