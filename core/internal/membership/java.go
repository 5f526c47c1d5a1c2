package membership

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/leading"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A java is what a member knows of ElasticJob's own instances. The member's mu guards it.
type java struct {
	live  map[string]bool // ids of those that are registered
	told  map[string]bool // those of them that were told
	led   string          // who of them led last; "" once one of ours leads
	joins bool            // the member joins, or has joined, beside them
}

// leads says why nothing begins.
func (j java) leads() string {
	return "ElasticJob's instance " + j.led + " leads the job, or led it last"
}

// javaLeader is the id of ElasticJob's instance that leads, "" where none does.
func javaLeader(n registry.Node) string {
	if id := string(n.Value); n.Ephemeral && layout.IsJava(id) {
		return id
	}
	return ""
}

// besideJava reports whether an instance is there that knows no ledgers. The caller holds mu.
func (m *Member) besideJava() bool {
	for id := range m.instances.All() {
		if layout.IsJava(id) {
			return true
		}
	}
	return m.java.led != ""
}

// besideError refuses to join a job that ElasticJob runs.
func (m *Member) besideError(at, does string) error {
	return &field.Error{Job: m.name(), Field: at, Problem: does + ", and nothing keeps its members and Elasticron's from running an item twice: " +
		"stop ElasticJob's instances of this job and start again, or join all the same with core.WithElasticJob"}
}

// checkJavaLeads refuses a job that ElasticJob leads.
func (m *Member) checkJavaLeads(leader registry.Node) error {
	m.mu.Lock()
	joins := m.java.joins
	m.mu.Unlock()
	if id := javaLeader(leader); id != "" && !joins {
		return m.besideError(leader.Path, "ElasticJob's instance "+id+" leads this job")
	}
	return nil
}

// checkJava refuses a job that ElasticJob runs, before anything is written to it.
func (m *Member) checkJava(ctx context.Context) error {
	m.mu.Lock()
	joins := m.java.joins
	m.mu.Unlock()
	if joins {
		return nil
	}
	ids, err := m.cfg.Session.Names(ctx, m.cfg.Job.Instances())
	if err != nil {
		return fmt.Errorf("core: prepare: %w", err)
	}
	var paths []string
	for _, id := range ids {
		if layout.IsJava(id) {
			paths = append(paths, m.cfg.Job.Instance(id))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	nodes, err := m.cfg.Session.Get(ctx, paths...)
	if err != nil {
		return fmt.Errorf("core: prepare: %w", err)
	}
	for _, n := range nodes {
		if n.Ephemeral {
			return m.besideError(m.cfg.Job.Instances(), "ElasticJob's instance "+path.Base(n.Path)+" is registered")
		}
	}
	return nil
}

// refuseJava is checkJava with what the watches have shown since.
func (m *Member) refuseJava() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.java.joins || len(m.java.live) == 0 {
		return nil
	}
	return m.besideError(m.cfg.Job.Instances(), "ElasticJob's instance "+slices.Min(slices.Collect(maps.Keys(m.java.live)))+" is registered")
}

// onJava follows the instances of ElasticJob. The caller holds mu.
func (m *Member) onJava(id string, live bool) {
	if !live {
		delete(m.java.live, id)
		delete(m.java.told, id)
		return
	}
	lazymap.Set(&m.java.live, id, true)
	if m.stage >= stageRegistered {
		m.tellJava()
	}
}

// tellJava tells of the instances of ElasticJob beside which this one is registered, each
// once. The caller holds mu.
func (m *Member) tellJava() {
	for _, id := range slices.Sorted(maps.Keys(m.java.live)) {
		if !m.java.told[id] {
			lazymap.Set(&m.java.told, id, true)
			m.warn("ElasticJob's instance "+id+" is registered for this job: it gets no items while an instance of Elasticron leads, "+
				"and while one of ElasticJob leads nothing begins here; stop it, or these", nil)
		}
	}
}

// javaGone has the leader see to what an instance of ElasticJob may have left.
func (m *Member) javaGone() {
	m.putInForce()
	m.tellLeader((*leading.Leader).Reconcile)
}

// onJavaLeader follows whether ElasticJob leads: nothing begins here then, until an
// instance of ours leads again. While nobody does, what ElasticJob's last leader assigned
// still runs.
func (m *Member) onJavaLeader(n registry.Node) {
	id := javaLeader(n)
	m.mu.Lock()
	before := m.java.led
	if id != "" || n.Exists() {
		m.java.led = id
	}
	after := m.java.led
	m.mu.Unlock()
	if before == after {
		return
	}
	if after != "" {
		m.warn("ElasticJob's instance "+after+" leads the job: nothing begins here, and what comes due is skipped, until an instance of Elasticron leads; "+
			"stop ElasticJob's instances of this job", nil)
	}
	m.putInForce()
}
