package membership

import (
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/leading"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/strategy"
)

const (
	// targets is how many watchAll follows.
	targets = 4
	// inForceBit is the bit in unsynced of what is in force.
	inForceBit = 1 << 3
)

// watchAll follows what the member decides by.
func (m *Member) watchAll() {
	m.mu.Lock()
	m.stage = stageWatching
	again := m.watches // prepared once more; the watches go on
	if !again {
		m.watches, m.unsynced = true, 1<<targets-1
	}
	m.mu.Unlock()
	if again {
		return
	}
	job, watch := m.cfg.Job, m.cfg.Session.Follow
	watch(job.Servers(), registry.Children, m.noting(1<<0, (*Member).onServer))
	watch(job.Instances(), registry.Children, m.noting(1<<1, (*Member).onInstance))
	watch(job.Lives(), registry.Children, m.noting(1<<2, (*Member).onLife))
	watch(job.InForce(), registry.Children, m.noting(inForceBit, (*Member).onInForce))
}

// noting wraps the handler of a target that must be synced before the member registers, with its bit in unsynced.
// note is called with mu held; what it returns is called without.
func (m *Member) noting(bit uint8, note func(*Member, registry.Node) func()) func(registry.Event) {
	return func(e registry.Event) {
		var then func()
		m.mu.Lock()
		switch {
		case !e.Synced:
			then = note(m, e.Node)
		default:
			m.unsynced &^= bit
		}
		ready, joins := m.unsynced == 0, m.stage < stageFiring
		m.mu.Unlock()
		if then != nil {
			then()
		}
		switch {
		case ready && joins:
			m.task.Press()
		case ready:
			m.task.Poke()
		}
	}
}

// A server is what the node of one holds.
type server struct {
	status     string
	withItsJob bool // it is disabled only since its job was when it was registered
}

func (m *Member) onServer(n registry.Node) func() {
	ip := path.Base(n.Path)
	status := string(n.Value)
	was, known := m.servers.Get(ip)
	if n.Exists() {
		m.servers.Set(ip, server{status, layout.RegisteredDisabled(n)})
	} else {
		m.servers.Delete(ip)
	}
	switch own := ip == m.cfg.IP; {
	case own && n.Exists():
		m.deletedServer = nil
	case own && known:
		m.deletedServer = &was // the task makes it again
	}
	if _, err := layout.ServerEnabled(status); err != nil {
		m.warn("server "+ip+" is taken as disabled", err)
	}
	return m.switched
}

// switched follows whether this server may begin anything, and lead.
func (m *Member) switched() {
	m.putInForce()
	m.look()
}

// putInForce gives the items what they go by now. Who comes later has seen more: each
// looks and puts while no other does.
func (m *Member) putInForce() {
	m.putting.Lock()
	defer m.putting.Unlock()
	m.mu.Lock()
	f, begins, set, left := m.firing, m.begins(), m.itemSettings(), m.stage == stageLeft
	after, beside, foreign := m.set.ShowAfter, m.besideJava(), m.java.led != ""
	listened, before, claim := m.listened(), m.before(), m.started()
	kills, still := slices.Collect(maps.Values(m.kills)), m.still()
	off, told := m.switchedOff(), m.toldOff
	m.toldOff = off
	m.mu.Unlock()
	if f == nil || left {
		return
	}
	if off != "" && off != told {
		m.warn(off, nil)
	}
	f.SetStill(still)
	f.SetKills(kills)
	f.Show(after, beside)
	f.SetForeign(foreign)
	f.SetServer(begins)
	f.Listen(listened)
	f.SetClaim(claim)
	f.SetBefore(before)
	f.Configure(set)
}

// switchedOff says which operator's switch keeps this instance from beginning anything, "" for none. A disabled job is
// told with its configuration, and so is a server that was disabled only because its job was.
func (m *Member) switchedOff() string {
	s, known := m.servers.Get(m.cfg.IP)
	switch {
	case m.stage != stageFiring || m.set.Stored.Disabled:
		return ""
	case known && !s.withItsJob && !m.enabled(m.cfg.IP):
		return "the server " + m.cfg.IP + " is disabled; nothing begins here until somebody enables it (package admin, Enable)"
	case m.halted[m.cfg.Name]:
		return "the instance " + m.cfg.Name + " is paused; nothing begins here until somebody resumes it (package admin, Resume)"
	}
	return ""
}

// begins reports whether anything may begin here, by operators' wishes.
func (m *Member) begins() bool { return m.able() && !m.set.Stored.Disabled }

// able reports whether this instance may own items, and lead.
func (m *Member) able() bool { return m.enabled(m.cfg.IP) && !m.halted[m.cfg.Name] }

// enabled reports whether instances of the server may own items.
func (m *Member) enabled(ip string) bool {
	s, known := m.servers.Get(ip)
	on, err := layout.ServerEnabled(s.status)
	return known && err == nil && on
}

// A life is one that the watch has shown. What its node says for people is left out.
type life struct {
	layout.Life
	made registry.Revision // 0: it is of no session
}

func (m *Member) onInstance(n registry.Node) func() {
	id := path.Base(n.Path)
	had, pulled := m.instances.Has(id), false
	delete(m.triggered, id)
	if layout.IsJava(id) {
		m.onJava(id, n.Ephemeral)
	}
	if n.Exists() {
		m.instances.Set(id, struct{}{})
		if layout.Triggered(n.Value) {
			lazymap.Set(&m.triggered, id, n)
			pulled = true
		}
	} else {
		m.instances.Delete(id)
		// Ours is gone, seen before or not: if the life stands, somebody shut this instance down.
		if m.id != "" && id == m.id {
			m.shutDown = true
			return m.look
		}
	}
	switch {
	case pulled && !layout.IsJava(id):
		return m.look
	case had == n.Exists():
		return nil
	case layout.IsJava(id) && !n.Exists():
		return m.javaGone
	case layout.IsJava(id):
		return m.switched
	case !n.Exists():
		return m.gone(id)
	case !m.lives.Has(id):
		return nil // it is given nothing yet
	}
	return m.look
}

// gone tells the leader that the node of an instance, or its life, is not there any more. Whether this instance may
// lead does not depend on another.
func (m *Member) gone(id string) func() {
	return func() {
		m.mu.Lock()
		l := m.leader
		m.mu.Unlock()
		if l != nil {
			l.Gone(id)
		}
		m.Changed()
	}
}

func (m *Member) onLife(n registry.Node) func() {
	id := path.Base(n.Path)
	if !n.Exists() {
		was, had := m.lives.Get(id)
		m.lives.Delete(id)
		if had && m.stage >= stageRegistered && id == m.id {
			return func() { m.Gone(errLifeGone) }
		}
		if had && was.Listens != (layout.Listens{}) {
			return m.switched
		}
		return m.gone(id)
	}
	if n.Owned && id != m.id {
		lazymap.Set(&m.strays, id, true)
	}
	says, err := layout.UnmarshalLife(n.Value)
	if err != nil {
		m.warn("foreign value in "+n.Path, err)
		if was, had := m.lives.Get(id); had {
			says.Listens = was.Listens // as far as it is known
		}
	}
	says.Zone, says.Host = "", ""
	l := life{Life: says}
	if n.Ephemeral {
		l.made = n.Created
	}
	_, had := m.lives.Get(id)
	m.lives.Set(id, l)
	if own := m.cfg.Listens; id == m.id && m.stage >= stageRegistered && (err != nil || says.Listens != own) && own != (layout.Listens{}) {
		return func() { m.Gone(errLifeForged) } // nobody would call it any more
	}
	switch {
	case says.Listens != (layout.Listens{}):
		return m.switched
	case id == m.id && !had: // whatever this instance has looked at as the leader, it stood before
		return m.tellAble
	case !m.instances.Has(id): // it comes with it, or this one is given nothing
		return func() { m.tellLeader((*leading.Leader).LookLater) }
	}
	return m.look
}

var (
	errLifeForged = errors.New("the value of the instance's life was written from outside")
	errLifeGone   = errors.New("the instance's life was deleted from outside")
	errNoticeGone = errors.New("the instance's notice was deleted from outside")
)

// onInForce follows the schedule by which everybody fires. The base is the leader's.
// Operators pause instances beside it.
func (m *Member) onInForce(n registry.Node) func() {
	if name, ok := layout.PausedName(path.Base(n.Path)); ok {
		if n.Exists() {
			lazymap.Set(&m.halted, name, true)
		} else {
			delete(m.halted, name)
		}
		return m.switched
	}
	if n.Path == m.cfg.Job.Claim() {
		return m.onClaim(n)
	}
	if then, is := m.onAsked(n); is {
		return then
	}
	if n.Path == m.cfg.Job.Base() {
		if b, err := layout.UnmarshalBase(n.Value); n.Exists() && err == nil {
			m.cfg.Memory.SawBase(n, b)
		}
		return func() { m.lookAt(n) }
	}
	if n.Path != m.cfg.Job.Schedule() || !n.Exists() {
		return m.look
	}
	s, err := layout.UnmarshalSchedule(n.Value)
	if err == nil {
		var t timing
		if t, err = timingOf(s); err == nil {
			t.floor = m.rule.floor
			if !s.Floor.Equal(m.floor) {
				t.floor = earlier(s.Floor, m.cfg.Now()) // another clock may be far ahead
			}
			m.cfg.Memory.SawSchedule(n)
			delayed := m.itemSettings().Delayed
			m.floor, m.rule = s.Floor, t
			if delayed != t.delayed { // which a plan depends on
				return func() { m.refire(); m.look() }
			}
			return func() { m.refire(); m.lookAt(n) }
		}
	}
	m.warn("the schedule in force cannot be read; the last one stays", err)
	return m.look
}

// refire puts the schedule in force.
func (m *Member) refire() {
	m.putInForce()
	m.mu.Lock()
	f := m.firing
	m.mu.Unlock()
	if f != nil {
		if st := f.State(); st.Never && !m.silent() {
			m.warn("the schedule never fires again", nil)
		}
	}
}

// lookAt tells the leader that a node which it may have written itself has changed.
func (m *Member) lookAt(n registry.Node) {
	m.tellLeader(func(l *leading.Leader) { l.OnInForce(n) })
}

// silent reports whether it is no news that the schedule has no next fire.
func (m *Member) silent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rule.delayed || m.rule.onRequest
}

// A timing is what a schedule in force means to the items.
type timing struct {
	fires   misfire.Fires // a misfire.Line; nil: none is in force
	delayed bool
	delay   time.Duration
	// onRequest: it has no fires.
	onRequest bool
	floor     time.Time
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func timingOf(s layout.Schedule) (timing, error) {
	now, err := settings.ParseSchedule(s.Cron, s.Zone, s.Gap, s.Overlap)
	if err != nil {
		return timing{}, err
	}
	line := misfire.Line{Since: s.Since, Now: now}
	before, err := lineOf(s.Before)
	if before.Now != nil {
		line.Before = before
	}
	t := timing{fires: line, onRequest: now.OnRequest()}
	t.delay, t.delayed = now.Delay()
	return t, err
}

// lineOf makes one line of the schedules that were in force, the latest first; one
// without Now of none. A fixed delay owes no fires of the past.
func lineOf(past []layout.Past) (line misfire.Line, err error) {
	if len(past) == 0 {
		return line, nil
	}
	was, err := settings.ParseSchedule(past[0].Cron, past[0].Zone, past[0].Gap, past[0].Overlap)
	if err != nil {
		return line, err
	}
	if _, delayed := was.Delay(); delayed {
		return line, nil
	}
	line.Since, line.Now = past[0].Since, was
	earlier, err := lineOf(past[1:])
	if earlier.Now != nil {
		line.Before = earlier
	}
	return line, err
}

// itemSettings are what the items go by now. The caller holds mu.
func (m *Member) itemSettings() items.Settings {
	t := m.rule
	if t.fires == nil { // nobody has put one in force yet, and nobody owns anything
		t.fires = misfire.Line{Now: m.set.Schedule}
		t.delay, t.delayed = m.set.Schedule.Delay()
	}
	ahead := m.set.Ahead
	if m.besideJava() || m.maxTimeDiff() > 0 {
		ahead = 0 // what runs is shown before it begins, and only what runs; and no clock that was set lets it in
	}
	return items.Settings{
		Ahead:   ahead,
		Monitor: m.set.Monitor, Delayed: t.delayed, Delay: t.delay, Fires: t.fires, Misfire: m.set.Misfire, Failover: m.set.Stored.Failover,
		Floor: t.floor, Rounds: m.listened(),
	}
}

// onLeader follows who leads.
func (m *Member) onLeader(e registry.Event) {
	m.mu.Lock()
	l := m.leader
	m.mu.Unlock()
	if e.Synced || l == nil {
		return
	}
	m.onJavaLeader(e.Node)
	l.OnLeader(e.Node)
	m.tellAble()
	m.mu.Lock()
	var c *comparison
	if m.maxTimeDiff() > 0 {
		c = m.comparing()
	}
	m.mu.Unlock()
	if c != nil {
		c.task.Poke() // with whoever leads now
	}
}

// look tells the leader that what the assignment depends on has changed.
func (m *Member) look() { m.tellLeader((*leading.Leader).Look) }

// tellAble tells the leader whether it may lead.
func (m *Member) tellAble() { m.tellLeader(func(*leading.Leader) {}) }

// tellLeader tells the leader whether it may lead, and has it look. Who comes later has seen more: each sees and
// tells while no other does.
func (m *Member) tellLeader(look func(*leading.Leader)) {
	m.looking.Lock()
	m.mu.Lock()
	l := m.leader
	able := l != nil && m.able() && m.instances.Has(m.id) && !m.paused && m.stage == stageFiring
	off := m.maxTimeDiff() > 0 && m.comparing().off != ""
	m.mu.Unlock()
	if l != nil {
		l.StandBack(off)
		l.SetAble(able)
		look(l)
	}
	m.looking.Unlock()
	m.Changed()
}

// onNotice takes over the ledger that the leader has written.
func (m *Member) onNotice(e registry.Event) {
	if e.Synced || (e.Node.Exists() && e.Node.Version == 0) {
		return
	}
	m.mu.Lock()
	f := m.firing
	m.mu.Unlock()
	if !e.Node.Exists() {
		m.Gone(errNoticeGone)
	} else if f != nil {
		f.Refresh(layout.UnmarshalNotice(e.Node.Value))
	}
}

// onConfig puts a changed configuration in force.
func (m *Member) onConfig(e registry.Event) {
	if e.Synced {
		return
	}
	m.mu.Lock()
	if !e.Node.Exists() && !m.seen.Exists() {
		m.mu.Unlock()
		return // as it was before somebody wrote it, which this member may know already
	}
	m.seen = e.Node
	preparing := m.stage < stagePrepared
	m.mu.Unlock()
	if preparing {
		m.task.Poke() // it may be what a failed start waits for
	}
	m.adoptConfig()
}

// adoptConfig puts in force what the watch has shown, unless preparation has taken it
// already or has not come that far.
func (m *Member) adoptConfig() {
	m.mu.Lock()
	n := m.seen
	early := m.stage < stagePrepared
	before := n.Exists() && n.Modified < m.stored.modified // of an incarnation before
	known := early || before || (n.Created == m.stored.created && n.Version <= m.stored.version) || n.Path == ""
	if known && !early {
		m.seen.Value = nil // it is in force, and long
	}
	m.mu.Unlock()
	if known {
		return
	}
	if !n.Exists() {
		m.warn("the configuration was deleted; the last one stays in force", nil)
		return
	}
	c, err := m.cfg.Job.UnmarshalConfig(n.Value)
	var set settings.Settings
	if err == nil {
		set, err = settings.Parse(m.name(), c, m.cfg.Strategies)
	}
	m.mu.Lock()
	if m.seen.Created != n.Created || m.seen.Version != n.Version {
		m.mu.Unlock()
		return // whoever saw the next one adopts that
	}
	m.stored, m.seen.Value = stampOf(n), nil
	was := m.set
	if err == nil {
		m.set = &set
	}
	f, l, beside := m.firing, m.leader, m.besideJava()
	m.mu.Unlock()
	defer m.look() // whatever came of it: a leader that has read of a newer configuration waits for this
	if err != nil {
		m.warn("the configuration in the registry is refused; the last good one stays in force", err)
		return
	}
	changes := settings.Differences(was.Stored, set.Stored)
	if len(changes) == 0 {
		return
	}
	dispatch.Emit(m.cfg.Events, event.ConfigChanged{Job: m.name(), Changes: changes})
	m.tellSettings(set)
	m.putInForce()
	if was.Stored.MaxTimeDiffSeconds != set.Stored.MaxTimeDiffSeconds {
		m.mu.Lock()
		c := m.comparing()
		m.mu.Unlock()
		c.task.Poke()
	}
	if f != nil {
		m.arm(set.Reconcile)
	}
	if l != nil && was.Stored.Failover && !set.Stored.Failover && !beside {
		l.FailoverOff()
	}
}

// Facts implements leading.Host.
func (m *Member) Facts() leading.Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	type fact struct {
		eligible bool
		stands   registry.Revision
	}
	facts := map[string]fact{}
	var instances []string
	for id := range m.instances.All() {
		if layout.IsJava(id) {
			continue // it has no ledger, and waits for none
		}
		instances = append(instances, id)
		l, _ := m.lives.Get(id)
		parsed, err := layout.ParseInstanceID(id)
		facts[id] = fact{err == nil && m.enabled(parsed.IP) && !m.halted[parsed.Stable()], l.made}
	}
	set := m.itemSettings()
	s := m.set
	f := leading.Facts{
		Total: s.Stored.ShardingTotalCount, Configured: m.stored.modified, Monitor: s.Monitor, Delayed: set.Delayed, Failover: s.Stored.Failover, Window: s.Misfire.Window, Static: s.Stored.StaticSharding, Up: m.up, Lives: m.lives.Keys(), Instances: instances,
		Rule: layout.Rule{
			Cron: s.Stored.Cron, Zone: s.Zone, Gap: s.Stored.Props[settings.PropGap], Overlap: s.Stored.Props[settings.PropOverlap],
		},
		Triggered: slices.Collect(maps.Values(m.triggered)), Asked: len(m.asks) > 0, Disabled: s.Stored.Disabled,
		Clocks: m.maxTimeDiff() > 0, MakesUp: s.Misfire.Policy != misfire.Skip,
		ZoneOpen: s.Stored.TimeZone == "" && s.Stored.Props[settings.PropZone] == "",
		Eligible: func(id string) bool { return facts[id].eligible }, Stands: func(id string) registry.Revision { return facts[id].stands },
	}
	if m.listened() {
		f.Listens = map[string]layout.Listens{}
		for id, l := range m.lives.All() {
			if l.Listens != (layout.Listens{}) {
				f.Listens[id] = l.Listens
			}
		}
	}
	f.Assign = func(ids []string, total int, previous map[string][]int) (map[string][]int, error) {
		return m.assign(s, strategy.Input{Job: m.name(), Instances: ids, Total: total, Previous: previous})
	}
	return f
}

// arm sets the next reconciliation.
func (m *Member) arm(every time.Duration) {
	if every > 0 {
		m.check.Set(m.cfg.Now().Add(every))
	} else {
		m.check.Clear()
	}
}

// reconcile makes the leader compare the whole state with what it should be.
func (m *Member) reconcile(time.Time) {
	m.mu.Lock()
	every, paused := m.set.Reconcile, m.paused
	m.mu.Unlock()
	if paused {
		return
	}
	m.arm(every)
	m.tellLeader((*leading.Leader).Reconcile)
	m.believe()
}

// believe sets records back that are far ahead of the clock, unless another instance's
// clock says that this one is behind: it registered at an instant that is still to come.
func (m *Member) believe() {
	now := m.cfg.Now()
	limit := now.Add(ledger.Believable)
	m.mu.Lock()
	f, own, paused := m.firing, m.id, m.paused || m.still()
	behind := ""
	for id, l := range m.lives.All() {
		if id != own && l.At.After(limit) {
			behind = id
		}
	}
	m.mu.Unlock()
	if f == nil || paused || len(f.Ahead(limit)) == 0 {
		return
	}
	if behind != "" {
		m.warn("fires are recorded that are far ahead of this clock, and so is the clock of "+behind+
			": which one is right cannot be known, so they wait; set the clocks right", nil)
		return
	}
	f.Reset(limit)
}
