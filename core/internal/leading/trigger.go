package leading

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

const (
	// triggered is who asks where ElasticJob's tools do.
	triggered = "ElasticJob"
	// triggerLasts is how long it may take until what they ask for is accepted.
	triggerLasts = time.Minute
)

// onTrigger follows the nodes by which ElasticJob's tools ask an instance to run its items.
func (l *Leader) onTrigger(e registry.Event) {
	if e.Synced {
		return
	}
	id := path.Base(e.Node.Path)
	l.mu.Lock()
	if e.Node.Exists() {
		lazymap.Set(&l.triggers, id, e.Node)
	} else {
		delete(l.triggers, id)
	}
	l.mu.Unlock()
	if e.Node.Exists() {
		l.Look()
	}
}

// pulled returns the triggers of instances that live, ElasticJob 2's among them: the word
// TRIGGER in the instance's own node.
func (l *Leader) pulled(f Facts) []registry.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes := slices.Clone(f.Triggered)
	for _, n := range l.triggers {
		nodes = append(nodes, n)
	}
	nodes = slices.DeleteFunc(nodes, func(n registry.Node) bool { return !slices.Contains(f.Lives, path.Base(n.Path)) })
	slices.SortFunc(nodes, func(a, b registry.Node) int { return strings.Compare(a.Path, b.Path) })
	return nodes
}

// translate makes requests of triggers: of the items that the instance owns now.
func (a *answering) translate(ctx context.Context, nodes []registry.Node) error {
	job := a.l.cfg.Job
	paths := make([]string, len(nodes))
	for i, n := range nodes {
		paths[i] = n.Path
	}
	nodes, err := a.l.cfg.Session.Get(ctx, paths...)
	if err != nil {
		return fmt.Errorf("core: triggers: %w", err)
	}
	for _, n := range nodes {
		id := path.Base(n.Path)
		op := registry.Delete(n.Path, n.Version)
		if path.Dir(n.Path) == job.Instances() {
			own, err := layout.ParseInstanceID(id)
			if err != nil || !layout.Triggered(n.Value) {
				continue
			}
			value, err := layout.MarshalInstance(own)
			if err != nil {
				continue
			}
			op = registry.Set(n.Path, value, n.Version)
		}
		if !n.Exists() || a.l.isLeft(n.Path) {
			continue
		}
		ops := []registry.Op{op}
		own, err := layout.ParseInstanceID(id)
		if items := a.plan.Items(id); err == nil && len(items) > 0 {
			req := layout.Request{Items: ledger.FormatRange(items), By: triggered, Expires: a.now.Add(triggerLasts), Within: triggerLasts}
			node := registry.Create(job.Request(fmt.Sprintf("trigger-%d-%s", n.Modified, own.Life)), layout.MarshalRequest(req))
			ops = append(ops, node)
		}
		if err := a.spare(n.Path, a.commit(ctx, ops...)); err != nil {
			return err
		}
	}
	return nil
}
