package zookeeper

import (
	"slices"
	"strings"
)

// own is the node below which ZooKeeper keeps its quotas and its configuration.
const own = "/zookeeper"

// A tree is the node below which all paths of a registry stand: the chroot, or "" for ZooKeeper's own root.
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
	return slices.DeleteFunc(names, func(name string) bool { return name == own[1:] })
}
