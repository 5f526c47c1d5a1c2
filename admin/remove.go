package admin

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// RemoveJob removes a job: its configuration, its records, everything. It fails with an
// *InUseError while an instance is registered; Shutdown comes first. It fails, too, where the job's path
// is a namespace that has jobs: they would go with it. What remains is a
// mark that the job was removed: a process that starts with the job fails and says so,
// until Readmit. Members of ElasticJob itself do not know of the mark.
//
// The commit that sets the mark proves that nobody is registered, and whoever prepares to
// register checks in his own that it is not set. Deleting the rest may be repeated after
// any error.
func (a *Admin) RemoveJob(ctx context.Context, job string) error {
	j, err := layout.New(a.namespace, job)
	if err == nil {
		err = a.namesNoNamespace(ctx, j)
	}
	if err == nil {
		err = a.markRemoved(ctx, j)
	}
	if err == nil {
		err = a.repeat(ctx, func() error { return a.clear(ctx, j) })
	}
	return failed("remove", job, err)
}

// markRemoved sets the mark.
func (a *Admin) markRemoved(ctx context.Context, j layout.Job) error {
	stone := layout.MarshalTombstone(layout.Tombstone{Removed: a.now()})
	return a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		nodes, err := a.store.Get(ctx, j.Config(), j.OwnRoot(), j.Instances(), j.Lives())
		if err != nil {
			return nil, err
		}
		config, own := nodes[0], nodes[1]
		if _, removed := layout.UnmarshalTombstone(own.Value); removed && own.Exists() {
			return nil, nil
		}
		if !config.Exists() {
			return nil, ErrNoJob
		}
		ids, err := a.everybody(ctx, j)
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			return nil, &InUseError{What: "the job " + j.Name(), Instances: ids}
		}
		if !own.Exists() {
			if err := registry.EnsurePath(ctx, a.store, path.Dir(j.OwnRoot())); err != nil {
				return nil, err
			}
		}
		var ops []registry.Op
		if own.Exists() {
			ops = append(ops, registry.Set(own.Path, stone, own.Version))
		} else {
			ops = append(ops, registry.Create(own.Path, stone))
		}
		for _, dir := range existing(nodes[2:]) { // a directory that is not empty refuses
			ops = append(ops, registry.Delete(dir.Path, registry.AnyVersion))
		}
		return ops, nil
	})
}

// namesNoNamespace fails where jobs stand below a job, as in a namespace that has its path.
func (a *Admin) namesNoNamespace(ctx context.Context, j layout.Job) error {
	if err := a.store.Sync(ctx); err != nil {
		return err
	}
	names, err := children(ctx, a.store, j.Root())
	if err != nil {
		return err
	}
	configs := make([]string, len(names))
	for i, name := range names {
		configs[i] = j.Root() + "/" + name + "/config"
	}
	nodes, err := a.store.Get(ctx, configs...)
	for i, n := range nodes {
		if n.Exists() {
			return fmt.Errorf("its path is a namespace with jobs, %q among them, which would be removed with it; remove those first, or delete the job's own nodes by hand", names[i])
		}
	}
	return err
}

// everybody returns the ids of the instances of a job that are there.
func (a *Admin) everybody(ctx context.Context, j layout.Job) ([]string, error) {
	instances, err := children(ctx, a.store, j.Instances())
	if err != nil {
		return nil, err
	}
	lives, err := children(ctx, a.store, j.Lives())
	ids := slices.Concat(instances, lives)
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// clear deletes everything of a job but the mark.
func (a *Admin) clear(ctx context.Context, j layout.Job) error {
	if err := a.namesNoNamespace(ctx, j); err != nil {
		return err
	}
	if err := a.clearBelow(ctx, j.OwnRoot()); err != nil {
		return err
	}
	return registry.DeleteTree(ctx, a.store, j.Root())
}

// Readmit lets a job be made again that RemoveJob has removed. A process that goes on with other
// jobs, and was refused this one meanwhile, starts it then. It returns nil for a job that was not removed.
func (a *Admin) Readmit(ctx context.Context, job string) error {
	j, err := layout.New(a.namespace, job)
	if err != nil {
		return failed("readmit", job, err)
	}
	return failed("readmit", job, a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		nodes, err := a.store.Get(ctx, j.OwnRoot())
		if err != nil {
			return nil, err
		}
		if _, removed := layout.UnmarshalTombstone(nodes[0].Value); !removed {
			return nil, nil
		}
		if err := a.clear(ctx, j); err != nil { // a removal may have been cut short
			return nil, err
		}
		return []registry.Op{registry.Set(j.OwnRoot(), nil, nodes[0].Version)}, nil
	}))
}

// A Removed is a job that was removed and not readmitted.
type Removed struct {
	// Name is its name.
	Name string
	// At is when, by the clock of who removed it.
	At time.Time
}

// Removed lists the jobs that were removed, by name.
func (a *Admin) Removed(ctx context.Context) ([]Removed, error) {
	gone, err := a.removed(ctx)
	return gone, failed("list removed jobs", "", err)
}

func (a *Admin) removed(ctx context.Context) ([]Removed, error) {
	if err := a.store.Sync(ctx); err != nil {
		return nil, err
	}
	root := "/" + layout.OwnNamespace + "/" + a.namespace
	names, err := children(ctx, a.store, root)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = root + "/" + name
	}
	nodes, err := a.store.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var gone []Removed
	for i, n := range nodes {
		if t, removed := layout.UnmarshalTombstone(n.Value); removed {
			gone = append(gone, Removed{Name: names[i], At: t.Removed})
		}
	}
	return gone, nil
}
