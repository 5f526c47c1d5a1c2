package membership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// prepare makes the job's nodes, and writes or adopts its configuration.
func (m *Member) prepare(ctx context.Context) error {
	var so preparation
	for {
		done, err := m.scaffold(ctx, &so)
		if done {
			m.partly = false
		}
		if err != nil || done {
			return err
		}
	}
}

// A preparation is what has been done so far.
type preparation struct {
	made     bool           // this member has made the job
	replaces []event.Change // what its own configuration changes in the registry's, where it was told to
}

// scaffold reports true when everything stands. It is repeated when others make the same
// nodes at the same time.
func (m *Member) scaffold(ctx context.Context, so *preparation) (bool, error) {
	job := m.cfg.Job
	nodes, err := m.cfg.Session.Get(ctx, job.Root(), job.OwnRoot(), job.Config(), job.Leader())
	if err != nil {
		return false, fmt.Errorf("core: prepare: %w", err)
	}
	root, own, config, leader := nodes[0], nodes[1], nodes[2], nodes[3]
	others := config.Exists() && !so.made // not ours alone
	if others {
		if err := m.checkJavaLeads(leader); err != nil {
			return false, err
		}
	}
	ops, err := m.lacks(ctx, root, own, config)
	if err != nil {
		return false, err
	}
	write, err := m.configure(config, so)
	if err != nil {
		return false, err
	}
	ops = append(ops, write...)
	if len(ops) == 0 {
		m.reach(stagePrepared)
		m.adoptConfig() // it may have been shown before, changed since it was read
		return true, nil
	}
	if others {
		if err := m.checkJava(ctx); err != nil {
			return false, err
		}
	}
	if own.Exists() { // nothing is made any more once the job is removed
		ops = slices.Concat([]registry.Op{registry.Check(own.Path, own.Version)}, ops)
	}
	fits := m.cfg.Session.Limits().MaxOps
	_, err = m.cfg.Session.Commit(ctx, ops[:min(len(ops), fits)]...)
	so.made = so.made || (err == nil && !config.Exists())
	m.partly = m.partly || err != nil || len(ops) > fits
	if errors.Is(err, registry.ErrExists) || errors.Is(err, registry.ErrNoParent) || errors.Is(err, registry.ErrVersion) || errors.Is(err, registry.ErrNotFound) {
		err = nil
	}
	return false, err
}

// lacks returns what makes the nodes that the job lacks. Where its directories and its configuration stand, all
// of them do, and where both directories are missing, nothing is below them: only of a job that may stand in part
// is each node looked at.
func (m *Member) lacks(ctx context.Context, root, own, config registry.Node) (ops []registry.Op, err error) {
	if err := m.checkClass(root); err != nil {
		return nil, err
	}
	if err := m.checkRemoved(own); err != nil {
		return nil, err
	}
	wanted := m.cfg.Job.Scaffold()
	stand := map[string]registry.Node{root.Path: root, own.Path: own}
	switch all := root.Exists() && own.Exists() && config.Exists() && !root.Ephemeral && !own.Ephemeral; {
	case all && !m.partly:
		return nil, nil
	case !root.Exists() && !own.Exists() && !m.partly: // and the namespace stands, or it is looked at next
		wanted = slices.DeleteFunc(wanted, func(p string) bool {
			return strings.HasPrefix(root.Path, p+"/") || strings.HasPrefix(own.Path, p+"/")
		})
	default:
		nodes, err := m.cfg.Session.Get(ctx, wanted...)
		if err != nil {
			return nil, fmt.Errorf("core: prepare: %w", err)
		}
		for _, n := range nodes {
			stand[n.Path] = n
		}
	}
	for _, p := range wanted {
		switch n := stand[p]; {
		case !n.Exists() && p == root.Path:
			ops = append(ops, registry.Create(p, []byte(m.cfg.Class)))
		case !n.Exists():
			ops = append(ops, registry.Create(p, nil))
		case n.Ephemeral:
			return nil, &field.Error{Job: m.name(), Field: p, Problem: "is an ephemeral node of somebody else; delete it or choose another namespace"}
		case p == root.Path && !config.Exists() && string(n.Value) != m.cfg.Class: // somebody made the directory, nobody the job
			ops = append(ops, registry.Set(p, []byte(m.cfg.Class), n.Version))
		}
	}
	return ops, nil
}

// checkRemoved refuses a job that an operator has removed.
func (m *Member) checkRemoved(own registry.Node) error {
	t, removed := layout.UnmarshalTombstone(own.Value)
	if !removed {
		return nil
	}
	if !m.removed {
		m.removed = true
		m.cfg.Session.Follow(own.Path, registry.Self, m.onReadmitted)
	}
	return &field.Error{Job: m.name(), Field: "Name", Problem: fmt.Sprintf(
		"an operator removed this job at %s; readmit it (package admin), or use another name", t.Removed.Format(time.RFC3339))}
}

// onReadmitted prepares a removed job again, once its mark is gone.
func (m *Member) onReadmitted(e registry.Event) {
	if _, removed := layout.UnmarshalTombstone(e.Node.Value); removed || e.Synced {
		return
	}
	m.mu.Lock()
	preparing := m.stage < stagePrepared
	m.mu.Unlock()
	if preparing {
		m.task.Poke()
	}
}

// checkClass refuses a job that belongs to another Java class.
func (m *Member) checkClass(root registry.Node) error {
	class := string(root.Value)
	if class == "" || class == m.cfg.Class {
		return nil
	}
	return &field.Error{Job: m.name(), Field: "Class", Problem: fmt.Sprintf("the registry holds this job for class %q; set Class to join it, or use another name", class)}
}

// configure decides whose configuration counts, and returns what writes it, if anything.
func (m *Member) configure(node registry.Node, so *preparation) ([]registry.Op, error) {
	if !node.Exists() {
		text, err := m.marshal(settings.ToWrite(*m.cfg.Local, nil))
		return []registry.Op{registry.Create(m.cfg.Job.Config(), text)}, err
	}
	stored, err := m.read(node.Value)
	if m.cfg.Overwrite {
		if ops, err := m.overwrite(node, stored, err, so); err != nil || len(ops) > 0 {
			return ops, err
		}
	}
	var set settings.Settings
	if err == nil {
		set, err = settings.Parse(m.name(), stored, m.cfg.Strategies)
	}
	if err != nil {
		return nil, field.Adapt(err, func(e *field.Error) {
			e.Job, e.File = m.name(), m.cfg.Job.Config()
			e.Problem += "; repair the node, or start once with Overwrite"
		})
	}
	m.mu.Lock()
	first := m.stored.created == 0
	m.set, m.stored = &set, stampOf(node)
	m.mu.Unlock()
	if first {
		if len(so.replaces) > 0 {
			dispatch.Emit(m.cfg.Events, event.ConfigChanged{Job: m.name(), Changes: so.replaces, Overwrote: true})
		}
		m.tellConfig(set, stored)
	}
	return nil, nil
}

// overwrite returns what puts this program's configuration in the place of the one that stands, unless it does so
// already. unread is why that one cannot be read.
func (m *Member) overwrite(node registry.Node, stored layout.Config, unread error, so *preparation) ([]registry.Op, error) {
	before := &stored
	if unread != nil {
		before = nil
		m.warn("the configuration in the registry cannot be read, and this program's replaces it, since Overwrite is set", unread)
	} else if changes := settings.Replaced(stored, *m.cfg.Local); len(changes) == 0 {
		return nil, nil
	} else {
		so.replaces = changes
	}
	text, err := m.marshal(settings.Overwritten(*m.cfg.Local, before))
	return []registry.Op{registry.Set(m.cfg.Job.Config(), text, node.Version)}, err
}

// read is UnmarshalConfig, which costs more than to see that this program's own stands as it would write it.
func (m *Member) read(text []byte) (layout.Config, error) {
	own := settings.ToWrite(*m.cfg.Local, nil)
	if would, err := layout.MarshalConfig(own); err == nil && bytes.Equal(would, text) {
		return own, nil
	}
	return m.cfg.Job.UnmarshalConfig(text)
}

func (m *Member) marshal(c layout.Config) ([]byte, error) {
	text, err := layout.MarshalConfig(c)
	if err != nil {
		return nil, settings.Named(m.name(), err)
	}
	return text, nil
}

// tellConfig tells what a user should know of the configuration that counts.
func (m *Member) tellConfig(set settings.Settings, stored layout.Config) {
	// Where Overwrite is set what differs was switched or changed after that, and told then.
	if changes := settings.Adopted(*m.cfg.Local, stored); len(changes) > 0 && !m.cfg.Local.Overwrite {
		dispatch.Emit(m.cfg.Events, event.ConfigChanged{Job: m.name(), Changes: changes, Adopted: true})
	}
	m.tellSettings(set)
}

// tellSettings warns of what is set and does not do what it says.
func (m *Member) tellSettings(set settings.Settings) {
	if line := settings.Inactive(set.Stored, m.cfg.Local.Props); line != "" {
		m.warn(line, nil)
	}
	if line := set.ZoneWarning(); line != "" {
		m.warn(line, nil)
	}
	if _, delayed := set.Schedule.Delay(); m.cfg.Listens != (layout.Listens{}) && (delayed || !set.Monitor) {
		m.warn("there are no rounds to listen to: the configuration in the registry has a fixed delay, or no monitoring", nil)
	}
	if set.Stored.StaticSharding && !m.cfg.Named {
		m.warn("static sharding binds items to this instance's name, and that is the host's; where a restart changes it, as in a "+
			"Deployment of Kubernetes, nobody runs them any more: give it a name that stays (core.WithInstanceName)", nil)
	}
	if set.Stored.Disabled {
		m.warn(set.Stored.DisabledReason()+"; nothing begins until it says disabled: false", nil)
	}
}
