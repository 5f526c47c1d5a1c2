package zookeeper

import (
	"strings"

	"github.com/elasticron/elasticron/registry"
)

// own is the node below which ZooKeeper keeps its quotas and its configuration.
const own = "/zookeeper"

// A tree is the node below which all paths of a registry stand: the chroot, or ""
// for ZooKeeper's own root.
type tree string

// at returns the path at the service.
func (t tree) at(path string) string {
	if t != "" && path == "/" {
		return string(t)
	}
	return string(t) + path
}

// path is the inverse of at. A node outside of the tree yields false.
func (t tree) path(at string) (string, bool) {
	rest, inside := strings.CutPrefix(at, string(t))
	switch {
	case !inside:
		return "", false
	case rest == "" && t != "":
		return "/", true
	}
	return rest, strings.HasPrefix(rest, "/")
}

// reserves reports whether path belongs to ZooKeeper itself.
func (t tree) reserves(path string) bool {
	return t == "" && (path == own || strings.HasPrefix(path, own+"/"))
}

// names drops from the names below path what belongs to ZooKeeper itself.
func (t tree) names(path string, names []string) []string {
	if t != "" || path != "/" {
		return names
	}
	kept := names[:0]
	for _, name := range names {
		if name != own[1:] {
			kept = append(kept, name)
		}
	}
	return kept
}

// child is the path of a name below dir.
func child(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// validate refuses what cannot be sent, in the contract's words.
func validate(paths ...string) error {
	for _, path := range paths {
		if err := registry.ValidatePath(path); err != nil {
			return err
		}
	}
	return nil
}
