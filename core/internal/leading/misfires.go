package leading

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// misfired is who asks where ElasticJob's misfire nodes do.
const misfired = "ElasticJob's misfire"

// takeMisfires makes one request of ElasticJob's misfire nodes, in the commit that removes them,
// so that none is honoured twice. Where the job makes nothing up they are removed and told.
func (l *Leader) takeMisfires(ctx context.Context, guard []registry.Op, nodes []registry.Node) error {
	f := l.cfg.Host.Facts()
	if f.Disabled {
		return nil // they stand until it is enabled
	}
	for room := l.cfg.Session.Limits().MaxOps - len(guard) - 1; len(nodes) > 0; {
		some := nodes[:min(room, len(nodes))]
		nodes = nodes[len(some):]
		var ops []registry.Op
		var items []int
		for _, n := range some {
			item, _ := layout.ParseItem(path.Base(path.Dir(n.Path)))
			items, ops = append(items, item), append(ops, registry.Delete(n.Path, n.Version))
		}
		slices.Sort(items)
		if f.MakesUp && f.Monitor {
			req := layout.Request{Items: ledger.FormatRange(items), By: misfired, MadeUp: true}
			id := fmt.Sprintf("misfire-%d-%d", some[0].Created, items[0]) // no other node has both
			ops = append(ops, registry.Create(l.cfg.Job.Request(id), layout.MarshalRequest(req)))
		}
		if err := l.mendSome(ctx, guard, ops...); err != nil {
			return err
		}
		switch which := ledger.FormatRange(items); {
		case !f.Monitor:
			l.warn("ElasticJob left misfire nodes of items "+which+": they are removed, and nothing is made up, since the job is not monitored", nil)
		case !f.MakesUp:
			l.warn("ElasticJob left misfire nodes of items "+which+": they are removed, and nothing is made up, as Misfire says", nil)
		}
	}
	return nil
}
