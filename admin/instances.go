package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/layout"
)

// An Instance is one registration of a process in a job.
type Instance struct {
	// ID is the instance id, Name its stable part, which Pause takes. Of a Java member both
	// are the whole id.
	ID, Name string
	// Server is its address, Host the name of its host, "" when it is not known.
	Server, Host string
	// Java: it is a member of ElasticJob itself.
	Java bool
	// Leader: it leads the job.
	Leader bool
	// Since is when it registered, by its own clock; zero when it is not known.
	Since time.Time
	// Items are those that it owns, Running those of them that run, ascending.
	Items, Running []int
	// ShutDown: its node was deleted, and it leaves when what it runs has ended.
	ShutDown bool
	// Blocked says why nothing begins there, "" when something may.
	Blocked string
}

// Instances returns the instances of a job, by id.
func (a *Admin) Instances(ctx context.Context, job string) ([]Instance, error) {
	v, err := a.view(ctx, job)
	if err != nil {
		return nil, failed("list instances", job, err)
	}
	ids := slices.Clone(v.instances)
	for id := range v.lives {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	shards := v.shards()
	var all []Instance
	for _, id := range slices.Compact(ids) {
		all = append(all, v.instance(id, shards))
	}
	return all, nil
}

func (v *view) instance(id string, shards []Item) Instance {
	parsed, _ := layout.ParseInstanceID(id)
	life := v.lives[id]
	in := Instance{
		ID: id, Name: parsed.Stable(), Server: parsed.IP, Host: life.Host, Java: parsed.IsJava(), Since: life.At,
		Leader: v.value(v.job.Leader()) == id, ShutDown: !v.registered(id),
	}
	for _, it := range shards {
		if it.Instance != id {
			continue
		}
		in.Items = append(in.Items, it.Number)
		if !it.Run.IsZero() || it.State == ItemRunning {
			in.Running = append(in.Running, it.Number)
		}
	}
	switch {
	case in.ShutDown:
		in.Blocked = "it was shut down, and leaves when what it runs has ended"
	case v.stored.Disabled:
		in.Blocked = v.stored.DisabledReason()
	case v.paused[in.Name]:
		in.Blocked = "the instance is paused"
	case !v.enabled(in.Server):
		in.Blocked = "the server " + in.Server + " is disabled"
	case v.clocks[id] != "":
		in.Blocked = "its clock is off: " + v.clocks[id]
	}
	return in
}

// on returns the registered instances at an address.
func (v *view) on(ip string) []string {
	var ids []string
	for _, id := range v.instances {
		if strings.HasPrefix(id, ip+"@-@") {
			ids = append(ids, id)
		}
	}
	return ids
}

// A Server is an address on which instances of jobs run, over all jobs.
type Server struct {
	// IP is the address.
	IP string
	// Jobs know the server; Disabled are those of them in which it is disabled.
	Jobs, Disabled []string
	// Instances are the ids of the instances on it, each once, as a process has one for each
	// of its jobs.
	Instances []string
}

// Servers returns the servers of all jobs, by address.
func (a *Admin) Servers(ctx context.Context) ([]Server, error) {
	views, err := eachJob(ctx, a, func(v *view) (*view, bool) { return v, true })
	if err != nil {
		return nil, failed("list servers", "", err)
	}
	found := map[string]*Server{}
	for _, v := range views {
		for _, ip := range v.servers {
			s := found[ip]
			if s == nil {
				s = &Server{IP: ip}
				found[ip] = s
			}
			s.Jobs = append(s.Jobs, v.job.Name())
			if !v.enabled(ip) {
				s.Disabled = append(s.Disabled, v.job.Name())
			}
			s.Instances = append(s.Instances, v.on(ip)...)
		}
	}
	all := make([]Server, 0, len(found))
	for _, s := range found {
		slices.Sort(s.Instances)
		s.Instances = slices.Compact(s.Instances)
		all = append(all, *s)
	}
	slices.SortFunc(all, func(x, y Server) int { return strings.Compare(x.IP, y.IP) })
	return all, nil
}
