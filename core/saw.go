package core

import (
	"encoding/json"
	"errors"
	"path"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// seen wraps the handler of a target that must be synced before the member
// registers. note is called with m.mu held and says whether the leader should look.
func (m *member) seen(note func(registry.Node) bool) func(registry.Event) {
	return func(e registry.Event) {
		m.mu.Lock()
		if e.Synced {
			m.unsynced--
		} else if note(e.Node) {
			m.reshard = true
		}
		poke := m.unsynced <= 0
		m.mu.Unlock()
		if poke {
			m.task.Poke()
		}
	}
}

func (m *member) sawServer(n registry.Node) bool {
	ip := path.Base(n.Path)
	if !n.Exists() {
		delete(m.servers, ip)
	} else {
		m.servers[ip] = string(n.Value)
	}
	m.serverEnabled = m.enabled(m.ip())
	return true
}

func (m *member) ip() string { return m.life.scheduler.opts.ip }

// enabled reports whether instances of the server may own items.
func (m *member) enabled(ip string) bool {
	status, known := m.servers[ip]
	on, err := layout.ServerEnabled(status)
	if err != nil {
		m.warn("server "+ip+" is taken as disabled", err)
	}
	return known && err == nil && on
}

func (m *member) sawInstance(n registry.Node) bool {
	id := path.Base(n.Path)
	had := m.instances[id]
	if n.Exists() {
		m.instances[id] = true
	} else {
		delete(m.instances, id)
		// Ours is gone while our life stands: somebody shut this instance down.
		if had && (m.stage == stageRegistered || m.stage == stageOpen) && id == m.id.String() {
			m.evicted = true
		}
	}
	return had != n.Exists()
}

func (m *member) sawLife(n registry.Node) bool {
	id := path.Base(n.Path)
	if !n.Exists() {
		delete(m.lives, id)
		return true
	}
	var note lifeNote
	if err := json.Unmarshal(n.Value, &note); err != nil {
		m.warn("foreign node "+n.Path+" among the lives", err)
	}
	m.lives[id] = note
	return true
}

func (m *member) sawFlag(n registry.Node) bool {
	name := path.Base(n.Path)
	had := m.flags[name]
	if n.Exists() {
		m.flags[name] = true
	} else {
		delete(m.flags, name)
	}
	return !had && n.Exists()
}

func (m *member) sawLeader(n registry.Node) bool {
	was := m.leader
	m.leader = ""
	if n.Exists() {
		m.leader = string(n.Value)
	}
	if was == m.leader {
		return false
	}
	self := m.leader != "" && m.leader == m.id.String()
	m.emit(event.LeaderChanged{Job: m.name(), Leader: m.leader, Self: self})
	m.life.scheduler.bump()
	if self {
		m.led, m.tidy = true, true
	}
	return true
}

// sawNotice has the recorder read the ledger that the leader has written.
func (m *member) sawNotice(e registry.Event) {
	if e.Synced || (e.Node.Exists() && e.Node.Version == 0) {
		return
	}
	m.mu.Lock()
	rec := m.rec
	if !e.Node.Exists() && !m.stopping && m.dead == nil {
		m.dead = errNoticeGone
		m.task.Poke()
	}
	m.mu.Unlock()
	if rec != nil {
		rec.Refresh()
	}
}

var errNoticeGone = errors.New("the instance's notice was deleted from outside")

// sawConfig puts a changed configuration in force.
func (m *member) sawConfig(e registry.Event) {
	if e.Synced {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := e.Node
	if m.stage < stagePrepared {
		if m.stored.Exists() || n.Exists() {
			m.task.Poke() // a failed start is tried again when the node changes
		}
		return
	}
	if n.Created == m.stored.Created && n.Version <= m.stored.Version {
		return
	}
	if !n.Exists() {
		m.warn("the configuration was deleted; the last one stays in force", nil)
		return
	}
	m.stored = n
	c, err := m.path.UnmarshalConfig(n.Value)
	var set settings.Settings
	if err == nil {
		set, err = settings.Parse(m.name(), c, m.life.scheduler.opts.strategies)
	}
	if err != nil {
		m.warn("the configuration in the registry is refused; the last good one stays in force", err)
		return
	}
	m.reconfigure(set)
}

func (m *member) reconfigure(set settings.Settings) {
	changes := settings.Differences(m.set.Stored, set.Stored)
	if len(changes) == 0 {
		return
	}
	fire := settings.Refires(changes)
	m.tidy = m.tidy || m.set.Stored.ShardingTotalCount != set.Stored.ShardingTotalCount
	m.set = set
	m.reshard = true
	m.emit(event.ConfigChanged{Job: m.name(), Changes: changes})
	m.warnInactive(set)
	if m.firing {
		if fire {
			m.ticked = m.now()
			m.arm(m.ticked)
		}
		for _, it := range m.items {
			m.catchUp(it)
		}
		m.launch()
	}
	m.task.Poke()
}
