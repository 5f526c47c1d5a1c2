package membership

import (
	"bytes"
	"context"
	"errors"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/registry"
)

// Disable disables the job in its configuration, for all members, and says why. A job that is
// disabled already keeps the reason that it has.
func (m *Member) Disable(ctx context.Context, reason string) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		// Somebody who changes the configuration at the same time does not hinder it.
		if err := m.disable(ctx, reason); !errors.Is(err, registry.ErrVersion) || !settle.Pause(ctx, pause) {
			return err
		}
	}
}

func (m *Member) disable(ctx context.Context, reason string) error {
	nodes, err := m.cfg.Session.Get(ctx, m.cfg.Job.Config())
	if err != nil {
		return err
	}
	stored, err := m.cfg.Job.UnmarshalConfig(nodes[0].Value)
	if err != nil || stored.Disabled {
		return err
	}
	stored.Disable(reason)
	text, err := m.marshal(stored)
	if err != nil {
		return err
	}
	_, err = settle.Commit{
		Store: m.cfg.Session, Ops: []registry.Op{registry.Set(m.cfg.Job.Config(), text, nodes[0].Version)},
		Shows: func(n registry.Node) bool { return bytes.Equal(n.Value, text) },
	}.Run(ctx, m.hindered)
	return err
}
