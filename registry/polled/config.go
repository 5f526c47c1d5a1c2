package polled

import (
	"cmp"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

const (
	// defaultTimeout is Config.SessionTimeout where it is zero.
	defaultTimeout = 10 * time.Second
	// shortestTimeout leaves time for a request between two heartbeats.
	shortestTimeout = 100 * time.Millisecond
	// longestPoll is Config.Poll where that is zero and a quarter of the timeout more.
	longestPoll = 500 * time.Millisecond
	// defaultInFlight is Config.MaxInFlight where it is zero.
	defaultInFlight = 16
	// pollsInTimeout: some heartbeats in a row may be lost, and the session lives.
	pollsInTimeout = 4
)

// Config is what New needs to know. Name and Namespace must be given.
type Config struct {
	// Name of the adapter, for example "sqlite": every error begins with it.
	Name string
	// Namespace is what Registry.Namespace returns: "shop" or "team/shop".
	Namespace string
	// Data names what the store keeps, as a file or an address does. Registries of this process with the same Data wake
	// each other's watchers, as one registry does its own; empty matches nothing.
	Data string
	// SessionTimeout is that of every session, at least 100 ms. Zero is 10 seconds.
	SessionTimeout time.Duration
	// Poll is how often a session sends a heartbeat, which is also how late it sees what others wrote. At most a
	// quarter of SessionTimeout; zero is that, or half a second where that is less. While a Bell is heard, heartbeats
	// are sent every quarter of SessionTimeout, and what others write is seen at once.
	Poll time.Duration
	// Limits are what one commit of the store may hold. Zero is
	// registry.PortableLimits, and no field may be less than there.
	Limits registry.Limits
	// MaxInFlight is how many reads and commits the store is asked for at once; what
	// is more waits for its turn, in order. Heartbeats do not wait, and behind the
	// store, in a pool of connections, they meet no more than these. Zero is 16.
	MaxInFlight int
	// Warnings are what an Opener has found that is wrong and stops nothing yet: what it is,
	// and what to do. A scheduler tells them when it starts.
	Warnings []string
}

// Validate says what is wrong and how to mend it; the error wraps
// registry.ErrInvalid. New calls it; an Opener may, before it opens a store.
func (c Config) Validate() error {
	c = c.withDefaults()
	least := registry.PortableLimits()
	var problem string
	switch namespace := settings.Namespace(c.Namespace, "shop or team/shop"); {
	case c.Name == "":
		problem = "Name is empty: give the adapter's, as \"sqlite\""
	case namespace != nil:
		problem = fmt.Sprintf("Namespace: %v", namespace)
	case c.SessionTimeout < shortestTimeout:
		problem = fmt.Sprintf("SessionTimeout is %v: want at least %v, or 0 for %v",
			c.SessionTimeout, shortestTimeout, defaultTimeout)
	case c.Poll < 0 || c.Poll > c.SessionTimeout/pollsInTimeout:
		problem = fmt.Sprintf("Poll is %v: want at most a quarter of SessionTimeout, %v, or 0", c.Poll, c.SessionTimeout/pollsInTimeout)
	case c.Limits.MaxOps < least.MaxOps || c.Limits.MaxBytes < least.MaxBytes || c.Limits.MaxValue < least.MaxValue:
		problem = fmt.Sprintf("Limits is %+v: want at least %+v, or nothing", c.Limits, least)
	case c.MaxInFlight < 0:
		problem = fmt.Sprintf("MaxInFlight is %d: want at least 1, or 0 for %d", c.MaxInFlight, defaultInFlight)
	default:
		return nil
	}
	return fmt.Errorf("%s: %w: polled.Config.%s", cmp.Or(c.Name, "polled"), registry.ErrInvalid, problem)
}

func (c Config) withDefaults() Config {
	c.SessionTimeout = cmp.Or(c.SessionTimeout, defaultTimeout)
	c.Poll = cmp.Or(c.Poll, min(c.SessionTimeout/pollsInTimeout, longestPoll))
	c.Limits = cmp.Or(c.Limits, registry.PortableLimits())
	c.MaxInFlight = cmp.Or(c.MaxInFlight, defaultInFlight)
	return c
}
