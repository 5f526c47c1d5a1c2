package ports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

const (
	lowest   = 10_000
	highest  = 32_000
	attempts = 1000
)

// A Claim is a number of ports of the loopback interface that nobody used when it
// was made.
type Claim struct {
	numbers []int
	held    []net.PacketConn
	release func() error
}

// Take claims n ports. The caller closes the claim once its servers have ended.
func Take(n int) (*Claim, error) {
	return take(n, func() int { return lowest + rand.IntN(highest-lowest) })
}

func take(n int, next func() int) (*Claim, error) {
	c := &Claim{}
	c.release = sync.OnceValue(func() error {
		var errs []error
		for _, h := range c.held {
			errs = append(errs, h.Close())
		}
		return errors.Join(errs...)
	})
	var last error
	for range attempts {
		if len(c.numbers) == n {
			return c, nil
		}
		port := next()
		held, err := try(port)
		if err != nil {
			last = err
			continue
		}
		c.numbers, c.held = append(c.numbers, port), append(c.held, held)
	}
	return nil, errors.Join(fmt.Errorf("ports: fewer than %d are free: %w", n, last), c.Close())
}

// try takes a port that no claim has and no server listens on.
func try(port int) (net.PacketConn, error) {
	ctx, lc := context.Background(), net.ListenConfig{} // an address of this machine: nothing is waited for
	held, err := lc.ListenPacket(ctx, "udp4", address(port))
	if err != nil {
		return nil, err
	}
	// To listen would be no better: whatever this process starts at that moment has the
	// listener too until it has become another program, and who claimed the port finds it in use.
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address(port))
	switch {
	case err == nil:
		return nil, errors.Join(fmt.Errorf("port %d: %w", port, syscall.EADDRINUSE), conn.Close(), held.Close())
	case !errors.Is(err, syscall.ECONNREFUSED):
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}

// Number is port i.
func (c *Claim) Number(i int) int { return c.numbers[i] }

// Addr is port i with the address of the loopback interface.
func (c *Claim) Addr(i int) string { return address(c.numbers[i]) }

// Close lets others have the ports. It is idempotent; a nil claim holds nothing.
func (c *Claim) Close() error {
	if c == nil {
		return nil
	}
	return c.release()
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
