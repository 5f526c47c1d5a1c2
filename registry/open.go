package registry

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// An Opener makes a Registry from a URL. It checks, within ctx, that the service can be reached, so that a typing
// error is found at start and not at the first use.
type Opener func(ctx context.Context, u *url.URL) (Registry, error)

var schemes = struct {
	sync.RWMutex
	openers map[string]Opener
}{openers: map[string]Opener{}}

// Register makes a scheme known to Open. Adapters call it when they are imported. It panics when the scheme is taken.
func Register(scheme string, open Opener) {
	schemes.Lock()
	defer schemes.Unlock()
	if _, taken := schemes.openers[scheme]; taken {
		panic("registry: scheme " + scheme + " is registered twice")
	}
	schemes.openers[scheme] = open
}

// Open opens the registry that rawURL names: scheme://hosts/namespace. The adapter of the scheme has been imported by
// then. Secrets do not belong in a URL: one that holds a password is refused, and not repeated in the error.
func Open(ctx context.Context, rawURL string) (Registry, error) {
	u, err := url.Parse(rawURL)
	if err != nil || strings.TrimSpace(rawURL) != rawURL || strings.Contains(rawURL, "：") {
		return nil, fmt.Errorf("registry: %w: not a URL, want scheme://host:port/namespace, "+
			"no space and no ：", ErrInvalid)
	}
	if u.User != nil {
		return nil, fmt.Errorf("registry: %w: the URL holds a user or password; "+
			"give them in the adapter's configuration, a file or the environment", ErrInvalid)
	}
	schemes.RLock()
	open, known := schemes.openers[u.Scheme]
	names := slices.Sorted(maps.Keys(schemes.openers))
	schemes.RUnlock()
	if !known {
		return nil, fmt.Errorf("registry: unknown scheme %q (forgotten import?); registered: [%s]",
			u.Scheme, strings.Join(names, " "))
	}
	return open(ctx, u)
}
