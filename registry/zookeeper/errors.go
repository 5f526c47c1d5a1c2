package zookeeper

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// denials are the answers of a server that does not let this user do something.
var denials = []error{zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL}

func denies(err error) bool {
	return link.IsAny(err, denials)
}

// sentinels are the errors that say already what they are in the contract.
var sentinels = []error{
	registry.ErrSessionLost, registry.ErrUncertain, registry.ErrUnavailable,
	registry.ErrInvalid, registry.ErrDenied,
}

// fail wraps what a server says of a request that is no commit. Other errors of
// the link come back as they are.
func fail(what, path string, err error) error {
	is := registry.ErrUnavailable
	switch {
	case link.IsAny(err, sentinels):
		return err
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("zookeeper: %s %s: %w", what, path, registry.ErrNotFound)
	case denies(err):
		is = registry.ErrDenied
	}
	return fmt.Errorf("zookeeper: %s %s: %w: %w", what, path, is, err)
}
