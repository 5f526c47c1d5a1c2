package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A Target says which servers of which jobs are meant. One of the two may be left out: all
// servers of a job, or one server in all jobs.
type Target struct {
	// Job is the name of a job.
	Job string
	// IP is the address of a server.
	IP string
}

// jobs returns the jobs that are meant.
func (a *Admin) jobs(ctx context.Context, t Target) ([]layout.Job, error) {
	names := []string{t.Job}
	switch {
	case t.Job == "" && t.IP == "":
		return nil, field.Errorf("Target", "names neither a job nor a server; give one of them, or both")
	case t.Job == "":
		if err := a.store.Sync(ctx); err != nil {
			return nil, err
		}
		var err error
		if names, err = a.names(ctx); err != nil {
			return nil, err
		}
	default:
		if _, err := a.job(ctx, t.Job); err != nil {
			return nil, err
		}
	}
	var jobs []layout.Job
	for _, name := range names {
		j, err := layout.New(a.namespace, name)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// servers returns the nodes of the servers that are meant, in one job.
func (a *Admin) servers(ctx context.Context, j layout.Job, ip string) ([]registry.Node, error) {
	names := []string{ip}
	if ip == "" {
		var err error
		if names, err = children(ctx, a.store, j.Servers()); err != nil {
			return nil, err
		}
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = j.Server(name)
	}
	nodes, err := a.store.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	return existing(nodes), nil
}

func existing(nodes []registry.Node) []registry.Node {
	var found []registry.Node
	for _, n := range nodes {
		if n.Exists() {
			found = append(found, n)
		}
	}
	return found
}

// Disable disables servers: their instances give their items away when what runs has
// ended, and begin nothing. With JobConfig.StaticSharding they keep them.
func (a *Admin) Disable(ctx context.Context, t Target) error {
	return failed("disable", t.Job, a.setServers(ctx, t, false))
}

// Enable takes Disable back. A job that is disabled in its configuration stays so
// (EnableJob).
func (a *Admin) Enable(ctx context.Context, t Target) error {
	return failed("enable", t.Job, a.setServers(ctx, t, true))
}

func (a *Admin) setServers(ctx context.Context, t Target, enabled bool) error {
	jobs, err := a.jobs(ctx, t)
	if err != nil {
		return err
	}
	known := false
	for _, j := range jobs {
		err := a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
			nodes, err := a.servers(ctx, j, t.IP)
			var ops []registry.Op
			for _, n := range nodes {
				known = true
				if on, err := layout.ServerEnabled(string(n.Value)); err != nil || on != enabled {
					ops = append(ops, registry.Set(n.Path, []byte(layout.ServerStatus(enabled)), n.Version))
				}
			}
			return ops, err
		})
		if err != nil {
			return err
		}
	}
	return unknown(t, known)
}

func unknown(t Target, known bool) error {
	if known || t.IP == "" {
		return nil
	}
	return field.Errorf("IP", "no job that is meant knows the server %.60q; there are none of its instances, and have been none", t.IP)
}

// DisableJob says disabled in the job's configuration: every member pauses, and members
// that join later do, also those whose configuration replaces it (core.JobConfig.Overwrite). why, who has done it and
// for what, is shown wherever it is said that the job is disabled; without it the time is. A job that is
// disabled already keeps the reason that it has.
func (a *Admin) DisableJob(ctx context.Context, job string, why ...string) error {
	said := strings.Join(why, " ")
	if strings.TrimSpace(said) == "" {
		said = "an operator disabled it at " + time.Now().UTC().Format(time.RFC3339)
	}
	return failed("disable", job, a.setJob(ctx, job, func(c *layout.Config) bool {
		if c.SwitchedOff() != "" {
			return false
		}
		c.Disable(said)
		return true
	}))
}

// EnableJob takes DisableJob back, also for servers that are new since: they were registered
// as disabled, as ElasticJob does it. A server that an operator has disabled stays so.
func (a *Admin) EnableJob(ctx context.Context, job string) error {
	err := a.setJob(ctx, job, func(c *layout.Config) bool {
		was := c.Disabled || c.Props[layout.PropDisabledReason] != ""
		c.Enable()
		return was
	})
	if err == nil {
		err = a.enableNew(ctx, job)
	}
	return failed("enable", job, err)
}

// setJob writes what change does to the job's configuration; it reports whether there is anything to write.
func (a *Admin) setJob(ctx context.Context, name string, change func(*layout.Config) bool) error {
	j, err := a.job(ctx, name)
	if err != nil {
		return err
	}
	return a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		nodes, err := a.store.Get(ctx, j.Config())
		if err != nil {
			return nil, err
		}
		n := nodes[0]
		if !n.Exists() {
			return nil, ErrNoJob
		}
		c, err := j.UnmarshalConfig(n.Value)
		if err != nil || !change(&c) {
			return nil, err
		}
		text, err := layout.MarshalConfig(c)
		if err != nil {
			return nil, err
		}
		return []registry.Op{registry.Set(n.Path, text, n.Version)}, nil
	})
}

// enableNew enables the servers that were registered while the job was disabled. It is called once the job is enabled:
// from then on none is registered as disabled.
func (a *Admin) enableNew(ctx context.Context, job string) error {
	j, err := a.job(ctx, job)
	if err != nil {
		return err
	}
	return a.edit(ctx, func(ctx context.Context) (ops []registry.Op, err error) {
		nodes, err := a.servers(ctx, j, "")
		for _, n := range nodes {
			if layout.RegisteredDisabled(n) {
				ops = append(ops, registry.Set(n.Path, []byte(layout.ServerStatus(true)), n.Version))
			}
		}
		return ops, err
	})
}

// DisableItem disables one item. Its owner begins it no more; what runs ends.
func (a *Admin) DisableItem(ctx context.Context, job string, item int) error {
	return failed(fmt.Sprintf("disable item %d", item), job, a.setItem(ctx, job, item, true))
}

// EnableItem takes DisableItem back.
func (a *Admin) EnableItem(ctx context.Context, job string, item int) error {
	return failed(fmt.Sprintf("enable item %d", item), job, a.setItem(ctx, job, item, false))
}

func (a *Admin) setItem(ctx context.Context, job string, item int, disabled bool) error {
	v, err := a.view(ctx, job)
	if err != nil {
		return err
	}
	if item < 0 || item >= max(v.total(), v.stored.ShardingTotalCount) {
		return ErrNoItem
	}
	return a.mark(ctx, v.job.Disabled(item), disabled)
}

// mark makes or deletes a node whose existence says something. Its parents are made with it.
func (a *Admin) mark(ctx context.Context, path string, wanted bool) error {
	return a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		parent := path[:strings.LastIndexByte(path, '/')]
		nodes, err := a.store.Get(ctx, path, parent)
		if err != nil || nodes[0].Exists() == wanted {
			return nil, err
		}
		if !wanted {
			return []registry.Op{registry.Delete(path, nodes[0].Version)}, a.clearBelow(ctx, path)
		}
		if !nodes[1].Exists() {
			if err := registry.EnsurePath(ctx, a.store, parent); err != nil {
				return nil, err
			}
		}
		return []registry.Op{registry.Create(path, nil)}, nil
	})
}

// clearBelow deletes what stands below a node.
func (a *Admin) clearBelow(ctx context.Context, path string) error {
	names, err := children(ctx, a.store, path)
	for _, name := range names {
		if err := registry.DeleteTree(ctx, a.store, path+"/"+name); err != nil {
			return err
		}
	}
	return err
}

// Pause pauses the instances of a job that have a stable name (Instance.Name), also those
// that will have it after a restart: they give their items away when what runs has ended,
// begin nothing and do not lead. With JobConfig.StaticSharding they keep them. Members of
// ElasticJob itself do not know of it.
func (a *Admin) Pause(ctx context.Context, job, name string) error {
	return failed("pause "+name, job, a.setPaused(ctx, job, name, true))
}

// Resume takes Pause back.
func (a *Admin) Resume(ctx context.Context, job, name string) error {
	return failed("resume "+name, job, a.setPaused(ctx, job, name, false))
}

func (a *Admin) setPaused(ctx context.Context, job, name string, paused bool) error {
	j, err := a.job(ctx, job)
	if err != nil {
		return err
	}
	if err := layout.ValidateName(name); err != nil {
		return err
	}
	return a.mark(ctx, j.Paused(name), paused)
}

// Paused lists the stable names that are paused in a job, sorted.
func (a *Admin) Paused(ctx context.Context, job string) ([]string, error) {
	j, err := a.job(ctx, job)
	if err != nil {
		return nil, failed("list paused instances", job, err)
	}
	nodes, err := children(ctx, a.store, j.InForce())
	var names []string
	for _, node := range nodes {
		if name, ok := layout.PausedName(node); ok {
			names = append(names, name)
		}
	}
	return names, failed("list paused instances", job, err)
}

// Shutdown asks instances to leave their job for good, by deleting their nodes, and
// returns their ids. What they run ends first. A process that is started again joins again.
func (a *Admin) Shutdown(ctx context.Context, t Target) ([]string, error) {
	jobs, err := a.jobs(ctx, t)
	if err != nil {
		return nil, failed("shut down", t.Job, err)
	}
	var gone []string
	for _, j := range jobs {
		ids, err := a.shutDown(ctx, j, func(id layout.InstanceID) bool { return t.IP == "" || t.IP == id.IP })
		gone = append(gone, ids...)
		if err != nil {
			return gone, failed("shut down", j.Name(), err)
		}
	}
	return gone, nil
}

// ShutdownInstance is Shutdown of one instance of a job, by its id. One that has left
// already is no error.
func (a *Admin) ShutdownInstance(ctx context.Context, job, id string) error {
	j, err := a.job(ctx, job)
	if err == nil {
		_, err = a.shutDown(ctx, j, func(other layout.InstanceID) bool { return other.String() == id })
	}
	return failed("shut down "+id, job, err)
}

func (a *Admin) shutDown(ctx context.Context, j layout.Job, meant func(layout.InstanceID) bool) (gone []string, err error) {
	err = a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		ids, err := children(ctx, a.store, j.Instances())
		var ops []registry.Op
		for _, id := range ids {
			parsed, err := layout.ParseInstanceID(id)
			if err != nil || !meant(parsed) {
				continue
			}
			ops = append(ops, registry.Delete(j.Instance(id), registry.AnyVersion)) // an id is of one registration
			if len(gone) == 0 || gone[len(gone)-1] < id {
				gone = append(gone, id)
			}
		}
		return ops, err
	})
	return gone, err
}
