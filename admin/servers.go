package admin

import (
	"context"
	"path"
	"slices"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// RemoveServers removes servers from jobs that have no instance on them: what stands of
// them is a name and a switch. It fails with an *InUseError where one is registered.
func (a *Admin) RemoveServers(ctx context.Context, t Target) error {
	jobs, err := a.jobs(ctx, t)
	if err != nil {
		return failed("remove servers", t.Job, err)
	}
	known := false
	for _, j := range jobs {
		nodes, err := a.servers(ctx, j, t.IP)
		for _, n := range nodes {
			known = true
			if err == nil {
				err = a.removeServer(ctx, j, n)
			}
		}
		if err != nil {
			return failed("remove servers", j.Name(), err)
		}
	}
	return failed("remove servers", t.Job, unknown(t, known))
}

// removeServer removes a server's node at the version that was read. No commit can say
// that nobody is registered on an address, but each registration demands the node: one
// that came first is seen afterwards, and the node is made again.
func (a *Admin) removeServer(ctx context.Context, j layout.Job, n registry.Node) error {
	ids, err := a.on(ctx, j, path.Base(n.Path))
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		return &InUseError{What: "the server " + path.Base(n.Path) + " of the job " + j.Name(), Instances: ids}
	}
	err = a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		nodes, err := a.store.Get(ctx, n.Path)
		if err != nil || nodes[0].Created != n.Created {
			return nil, err
		}
		if nodes[0].Version != n.Version {
			return nil, ErrChanged
		}
		return []registry.Op{registry.Delete(n.Path, n.Version)}, a.clearBelow(ctx, n.Path)
	})
	if err != nil {
		return err
	}
	if ids, err = a.on(ctx, j, path.Base(n.Path)); err != nil || len(ids) == 0 {
		return err
	}
	return a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		nodes, err := a.store.Get(ctx, n.Path)
		if err != nil || nodes[0].Exists() {
			return nil, err
		}
		return []registry.Op{registry.Create(n.Path, n.Value)}, nil
	})
}

// on returns the ids of the instances of a job at an address, now.
func (a *Admin) on(ctx context.Context, j layout.Job, ip string) ([]string, error) {
	if err := a.store.Sync(ctx); err != nil {
		return nil, err
	}
	ids, err := a.everybody(ctx, j)
	return slices.DeleteFunc(ids, func(id string) bool {
		parsed, err := layout.ParseInstanceID(id)
		return err != nil || parsed.IP != ip
	}), err
}
