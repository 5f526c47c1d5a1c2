package zkserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Cluster is one server or several that vote. Start makes it, Close ends it.
type Cluster struct {
	options Options
	host    host // nil for servers that somebody else runs
	way     string
	addrs   []string
	members []*member // none of somebody else's

	mu      sync.Mutex
	version string
	stopped []bool // killed, and not restarted
	closed  bool
}

// A host is what a way offers to a cluster.
type host interface {
	// name is the way, for people.
	name(version string) string
	// places says where n members are to listen. A second call finds other places.
	places(n int) ([]place, error)
	// launch starts the guard of member i.
	launch(ctx context.Context, i int, p place, env []string) (*member, error)
	// partition keeps member i and the others apart.
	partition(ctx context.Context, i int) (heal func() error, err error)
	// close removes what launch has left. The guards have ended.
	close() error
}

const (
	readyTime = 60 * time.Second // even on a machine that does ten other things
	closeTime = 30 * time.Second
	tries     = 3
)

// begin starts all members on a host.
func begin(ctx context.Context, o Options, h host) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	c := &Cluster{options: o, host: h, stopped: make([]bool, o.Members)}
	var err error
	for range tries { // another process may take a port before the server does
		err = c.try(ctx)
		if !errors.Is(err, errPortTaken) {
			break
		}
		err = errors.Join(err, c.endMembers())
		c.members, c.addrs = nil, nil
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.way = h.name(c.Version())
	return c, nil
}

var errPortTaken = errors.New("a port is taken")

func (c *Cluster) try(ctx context.Context) error {
	places, err := c.host.places(c.options.Members)
	if err != nil {
		return err
	}
	if err := c.launch(ctx, places); err != nil {
		return taken(err)
	}
	for _, m := range c.members {
		if err := m.start(ctx); err != nil {
			return err
		}
	}
	return taken(c.ready(ctx))
}

// launch starts the guards side by side.
func (c *Cluster) launch(ctx context.Context, places []place) error {
	members, errs := make([]*member, len(places)), make([]error, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		c.addrs = append(c.addrs, p.addr)
		wg.Go(func() {
			members[i], errs[i] = c.host.launch(ctx, i, p, []string{
				"ELASTICRON_CFG=" + zooCfg(c.options, places, i),
				fmt.Sprint("ELASTICRON_ID=", i+1),
				"ELASTICRON_JAVA=" + javaOptions(c.options),
			})
		})
	}
	wg.Wait()
	for _, m := range members {
		if m != nil {
			c.members = append(c.members, m)
		}
	}
	return errors.Join(errs...)
}

// ready waits until every member that runs serves, and one of several leads.
func (c *Cluster) ready(ctx context.Context) error {
	var modes []string
	for i := range c.members {
		s, err := c.serves(ctx, i)
		if err != nil {
			return err
		}
		if s.Mode == "" {
			continue
		}
		modes = append(modes, s.Mode)
		c.setVersion(s.Version)
	}
	if len(c.members) > 1 && !slices.Contains(modes, "leader") {
		_, err := c.Leader(ctx)
		return err
	}
	return nil
}

// serves waits until a member serves. A member that is killed meanwhile has no status, and one
// that is restarted meanwhile is waited for again.
func (c *Cluster) serves(ctx context.Context, i int) (s status, err error) {
	m := c.members[i]
	for !c.isStopped(i) {
		exited := m.exited()
		err = poll(ctx, exited, func(ctx context.Context) (err error) {
			s, err = look(ctx, m.addr)
			return err
		})
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil || !c.isStopped(i) && exited == m.exited() {
			return status{}, fmt.Errorf("zkserver: member %d at %s does not serve: %w: %s", i, m.addr, err, m.prints)
		}
	}
	return status{}, nil
}

// Addrs are where clients reach the members, host:port each.
func (c *Cluster) Addrs() []string { return slices.Clone(c.addrs) }

// Way says what serves: "container zookeeper:3.9", "process Debian 3.8.0",
// "maven 3.9.3", "address 127.0.0.1:2181".
func (c *Cluster) Way() string { return c.way }

// Version is that of the servers, such as "3.8.0".
func (c *Cluster) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

func (c *Cluster) setVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// Members is the number of servers.
func (c *Cluster) Members() int { return len(c.addrs) }

// Leader waits until a member that runs leads, and returns its index; 0 for a
// server that is alone.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	leader := 0
	err := poll(ctx, nil, func(ctx context.Context) error {
		for i, addr := range c.addrs {
			if c.isStopped(i) {
				continue
			}
			s, err := look(ctx, addr)
			if err == nil && (s.Mode == "leader" || s.Mode == "standalone") {
				leader = i
				return nil
			}
		}
		return errors.New("zkserver: no member leads")
	})
	return leader, err
}

// Close ends the servers and removes what they left. It is idempotent.
func (c *Cluster) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	err := c.endMembers()
	if c.host != nil {
		err = errors.Join(err, c.host.close())
	}
	return err
}

// endMembers ends them side by side.
func (c *Cluster) endMembers() error {
	errs := make([]error, len(c.members))
	var wg sync.WaitGroup
	for i, m := range c.members {
		wg.Go(func() { errs[i] = m.close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
