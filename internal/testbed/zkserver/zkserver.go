package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The ways, by the names that EnvWay knows.
const (
	wayAddress   = "address"
	wayContainer = "container"
	wayProcess   = "process"
	wayMaven     = "maven"
)

// Start starts a cluster by the first way that works, and returns when it serves.
// The error is an *UnavailableError when no way works.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	unavailable := &UnavailableError{}
	for _, way := range ways(o) {
		c, err := startBy(ctx, way, o)
		if err == nil {
			return c, nil
		}
		if way == wayAddress && !errors.Is(err, ErrAbsent) {
			return nil, err // named, and of no use: not to be hidden by another way
		}
		unavailable.Reasons = append(unavailable.Reasons, Reason{Way: way, Err: err})
	}
	return nil, unavailable
}

// ways are what o and the environment allow, in order. An address that is named
// comes before a way that the environment forces: it was started by that way.
func ways(o Options) []string {
	forced := os.Getenv(EnvWay)
	switch {
	case o.Way != "":
		return []string{o.Way}
	case forced != "":
		return []string{wayAddress, forced}
	}
	return []string{wayAddress, wayContainer, wayProcess, wayMaven}
}

func startBy(ctx context.Context, way string, o Options) (*Cluster, error) {
	if way == wayAddress {
		return attach(ctx, o)
	}
	h, err := findHost(ctx, way, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	return begin(ctx, o, h)
}

func findHost(ctx context.Context, way string, o Options) (host, error) {
	switch way {
	case wayContainer:
		return findEngine(ctx, o)
	case wayProcess:
		return findPackage(o)
	case wayMaven:
		return resolve(ctx, o)
	}
	return nil, fmt.Errorf("%s (or Options.Way) is %q: want %s, %s, %s or %s", EnvWay, way, wayAddress, wayContainer, wayProcess, wayMaven)
}

// attach uses the servers that the environment names.
func attach(ctx context.Context, o Options) (*Cluster, error) {
	list := os.Getenv(EnvAddress)
	switch {
	case list == "":
		return nil, fmt.Errorf("%w: %s is not set", ErrAbsent, EnvAddress)
	case o.Own:
		return nil, fmt.Errorf("%w: servers that can be disturbed are wanted, and those of %s are shared", ErrAbsent, EnvAddress)
	}
	c := &Cluster{options: o}
	for addr := range strings.SplitSeq(list, ",") {
		c.addrs = append(c.addrs, strings.TrimSpace(addr))
	}
	if len(c.addrs) < o.Members {
		return nil, fmt.Errorf("%w: %s names %d servers, %d are wanted", ErrAbsent, EnvAddress, len(c.addrs), o.Members)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var errs []error
	for _, addr := range c.addrs {
		s, err := look(ctx, addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s does not serve: %w", EnvAddress, addr, err))
			continue
		}
		c.setVersion(s.Version)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	c.way = os.Getenv(EnvServed)
	if c.way == "" {
		c.way = "address " + list
	}
	return c, nil
}
