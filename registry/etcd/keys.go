package etcd

import (
	"strconv"
	"strings"
)

// root is the one etcd prefix below which everything lives. A node is stored at root + depth + path, so that one level
// of children is one prefix. Both are fixed before 1.0.
const root = "/elasticron/"

// nodeKey returns the etcd key of a node: "/shop/hello" is "/elasticron/2/shop/hello".
func nodeKey(path string) []byte {
	key := make([]byte, 0, len(root)+2+len(path))
	return append(strconv.AppendInt(append(key, root...), int64(depth(path)), 10), path...)
}

// childRange returns the half-open range of keys that holds exactly the nodes one level below path.
func childRange(path string) (from, to string) {
	if path == "/" {
		return root + "1/", root + "10"
	}
	prefix := root + strconv.Itoa(depth(path)+1) + path
	return prefix + "/", prefix + "0" // '0' follows '/'
}

// nodePath is the inverse of nodeKey. A key that is not a node's yields false.
func nodePath(key []byte) (string, bool) {
	rest, ok := strings.CutPrefix(string(key), root)
	if !ok {
		return "", false
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 1 || strconv.Itoa(depth(rest[slash:])) != rest[:slash] {
		return "", false
	}
	return rest[slash:], true
}

// depth is the number of segments; the root has none.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// parentOf returns the path one level up; that of "/a" is "/".
func parentOf(node string) string { return node[:max(1, strings.LastIndexByte(node, '/'))] }
