package zkserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const faultTime = 20 * time.Second

// Pause stops member i as SIGSTOP does; Resume lets it go on.
func (c *Cluster) Pause(i int) error { return c.tell(i, "stop") }

// Resume ends a Pause.
func (c *Cluster) Resume(i int) error { return c.tell(i, "continue") }

// Kill ends member i as SIGKILL does. Its data stays; Restart brings it back.
func (c *Cluster) Kill(i int) error {
	if err := c.disturbable(i); err != nil {
		return err
	}
	c.setStopped(i, true) // first: ready is to know why the server ended
	if err := c.tell(i, "kill"); err != nil {
		c.setStopped(i, false)
		return err
	}
	return nil
}

// Restart kills member i if it runs and starts it again on its data. It waits until the
// members that run serve, unless too few run for that. Several may be restarted side by side.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	if err := c.Kill(i); err != nil {
		return err
	}
	if err := c.members[i].start(ctx); err != nil {
		return err
	}
	c.setStopped(i, false)
	if c.running() <= len(c.members)/2 {
		return nil
	}
	return c.ready(ctx)
}

// RestartAll kills every member, starts all again on their data, and waits until
// they serve.
func (c *Cluster) RestartAll(ctx context.Context) error {
	for i := range c.addrs {
		if err := c.Kill(i); err != nil {
			return err
		}
	}
	for i, m := range c.members {
		if err := m.start(ctx); err != nil {
			return err
		}
		c.setStopped(i, false)
	}
	return c.ready(ctx)
}

// Partition keeps member i and the other members apart, silently; clients still reach
// all. heal is idempotent.
func (c *Cluster) Partition(i int) (heal func() error, err error) {
	if err := c.disturbable(i); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultTime)
	defer cancel()
	end, err := c.host.partition(ctx, i)
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(end), nil
}

func (c *Cluster) tell(i int, command string) error {
	if err := c.disturbable(i); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultTime)
	defer cancel()
	return c.members[i].tell(ctx, command)
}

var (
	errClosed = errors.New("zkserver: the cluster is closed")
	errAlone  = fmt.Errorf("%w: a server that is alone cannot be parted from others", ErrUnsupported)
)

func (c *Cluster) disturbable(i int) error {
	if c.host == nil {
		return fmt.Errorf("%w: the servers at %v are somebody else's; unset %s for servers that can be disturbed", ErrUnsupported, c.addrs, EnvAddress)
	}
	if i < 0 || i >= len(c.members) {
		return fmt.Errorf("zkserver: there is no member %d, only %d members", i, len(c.members))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	return nil
}

func (c *Cluster) setStopped(i int, stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped[i] = stopped
}

func (c *Cluster) isStopped(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.host != nil && c.stopped[i]
}

func (c *Cluster) running() int {
	n := 0
	for i := range c.members {
		if !c.isStopped(i) {
			n++
		}
	}
	return n
}
