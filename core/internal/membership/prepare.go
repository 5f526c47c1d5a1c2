package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// prepare makes the job's nodes, and writes or adopts its configuration.
func (m *Member) prepare(ctx context.Context) error {
	made := false
	for {
		done, err := m.scaffold(ctx, &made)
		if err != nil || done {
			return err
		}
	}
}

// scaffold reports true when everything stands. It is repeated when others make the same
// nodes at the same time. made is set once this member has made the job.
func (m *Member) scaffold(ctx context.Context, made *bool) (bool, error) {
	wanted := m.cfg.Job.Scaffold()
	nodes, err := m.cfg.Session.Get(ctx, append(wanted, m.cfg.Job.Config(), m.cfg.Job.Leader())...)
	if err != nil {
		return false, fmt.Errorf("core: prepare: %w", err)
	}
	config, leader := nodes[len(wanted)], nodes[len(wanted)+1]
	if config.Exists() && !*made {
		if err := m.checkJava(ctx, leader); err != nil {
			return false, err
		}
	}
	var ops, guard []registry.Op
	for _, n := range nodes[:len(wanted)] {
		root := n.Path == m.cfg.Job.Root()
		switch {
		case !n.Exists() && root:
			ops = append(ops, registry.Create(n.Path, []byte(m.cfg.Class)))
		case !n.Exists():
			ops = append(ops, registry.Create(n.Path, nil))
		case n.Ephemeral:
			return false, &field.Error{Job: m.name(), Field: n.Path, Problem: "is an ephemeral node of somebody else; delete it or choose another namespace"}
		case root:
			if err := m.checkClass(n); err != nil {
				return false, err
			}
			if !config.Exists() && string(n.Value) != m.cfg.Class { // somebody made the directory, nobody the job
				ops = append(ops, registry.Set(n.Path, []byte(m.cfg.Class), n.Version))
			}
		case n.Path == m.cfg.Job.OwnRoot():
			if err := m.checkRemoved(n); err != nil {
				return false, err
			}
			guard = []registry.Op{registry.Check(n.Path, n.Version)}
		}
	}
	write, err := m.configure(config)
	if err != nil {
		return false, err
	}
	ops = append(ops, write...)
	if len(ops) == 0 {
		m.reach(stagePrepared)
		return true, nil
	}
	ops = slices.Concat(guard, ops) // nothing is made any more once the job is removed
	fits := m.cfg.Session.Limits().MaxOps
	_, err = m.cfg.Session.Commit(ctx, ops[:min(len(ops), fits)]...)
	*made = *made || (err == nil && !config.Exists())
	if errors.Is(err, registry.ErrExists) || errors.Is(err, registry.ErrNoParent) || errors.Is(err, registry.ErrVersion) || errors.Is(err, registry.ErrNotFound) {
		err = nil
	}
	return false, err
}

// checkRemoved refuses a job that an operator has removed.
func (m *Member) checkRemoved(own registry.Node) error {
	t, removed := layout.UnmarshalTombstone(own.Value)
	if !removed {
		return nil
	}
	return &field.Error{Job: m.name(), Field: "Name", Problem: fmt.Sprintf(
		"an operator removed this job at %s; readmit it (package admin), or use another name", t.Removed.Format(time.RFC3339))}
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
func (m *Member) configure(node registry.Node) ([]registry.Op, error) {
	if !node.Exists() {
		text, err := m.marshal(settings.ToWrite(m.cfg.Local, nil))
		return []registry.Op{registry.Create(m.cfg.Job.Config(), text)}, err
	}
	stored, err := m.cfg.Job.UnmarshalConfig(node.Value)
	if m.cfg.Overwrite && (err != nil || len(settings.Adopted(m.cfg.Local, stored)) > 0) {
		before := &stored
		if err != nil {
			before = nil
		}
		text, err := m.marshal(settings.ToWrite(m.cfg.Local, before))
		return []registry.Op{registry.Set(m.cfg.Job.Config(), text, node.Version)}, err
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
	first := !m.stored.Exists()
	m.set, m.stored = set, node
	m.mu.Unlock()
	if first {
		m.tellConfig(set, stored)
	}
	return nil, nil
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
	if changes := settings.Adopted(m.cfg.Local, stored); len(changes) > 0 {
		m.cfg.Emit(event.ConfigChanged{Job: m.name(), Changes: changes, Adopted: true})
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
	if set.Stored.Disabled {
		m.warn(settings.DisabledReason(set.Stored)+"; nothing begins until it says disabled: false", nil)
	}
}
