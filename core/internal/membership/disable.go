package membership

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"unicode"

	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// maxReason bounds why a job is disabled, in characters.
const maxReason = 500

// Disable disables the job in its configuration, for all members, and says why. A job that is
// disabled already keeps the reason that it has.
func (m *Member) Disable(ctx context.Context, reason string) error {
	for {
		// Somebody who changes the configuration at the same time does not hinder it.
		if err := m.disable(ctx, reason); !errors.Is(err, registry.ErrVersion) || ctx.Err() != nil {
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
	stored.Disabled = true
	stored.Props = maps.Clone(stored.Props)
	if stored.Props == nil {
		stored.Props = layout.Props{}
	}
	stored.Props[settings.PropDisabledReason] = oneLine(reason)
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

// oneLine keeps a text for people to one line that is not too long.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if cut := []rune(s); len(cut) > maxReason {
		return string(cut[:maxReason]) + "…"
	}
	return s
}
