package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

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
		m.adopt()
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
	local, err := m.job.local.stored()
	if err != nil {
		return nil, err
	}
	if !node.Exists() {
		text, err := layout.MarshalConfig(settings.ToWrite(local, nil))
		if err != nil {
			return nil, settings.Named(m.name(), err)
		}
		return []registry.Op{registry.Create(m.path.Config(), text)}, nil
	}
	stored, err := m.path.UnmarshalConfig(node.Value)
	if m.job.local.Overwrite && (err != nil || len(settings.Adopted(local, stored)) > 0) {
		before := &stored
		if err != nil {
			before = nil
		}
		text, err := layout.MarshalConfig(settings.ToWrite(local, before))
		if err != nil {
			return nil, settings.Named(m.name(), err)
		}
		return []registry.Op{registry.Set(m.path.Config(), text, node.Version)}, nil
	}
	if err == nil {
		m.adopted, err = settings.Parse(m.name(), stored, m.life.scheduler.opts.strategies)
	}
	if err != nil {
		return nil, field.Adapt(err, func(e *field.Error) {
			e.Job, e.File, e.Problem = m.name(), m.path.Config(), e.Problem+"; repair the node, or start once with Overwrite"
		})
	}
	m.mu.Lock()
	m.set, m.stored = m.adopted, node
	m.mu.Unlock()
	return nil, nil
}

// adopt tells, once all stands, how the registry's configuration differs from the local
// one, and what of it has no effect.
func (m *member) adopt() {
	local, _ := m.job.local.stored() // checked by Add
	if changes := settings.Adopted(local, m.adopted.Stored); len(changes) > 0 {
		m.emit(event.ConfigChanged{Job: m.name(), Changes: changes, Adopted: true})
	}
	m.warnInactive(m.adopted)
}

// warnInactive tells of settings that are stored but have no effect yet.
func (m *member) warnInactive(set settings.Settings) {
	for _, line := range settings.Inactive(set.Stored) {
		m.warn(line, nil)
	}
	if line := set.ZoneWarning(); line != "" {
		m.warn(line, nil)
	}
}
