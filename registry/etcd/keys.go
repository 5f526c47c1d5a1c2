package etcd

import (
	"bytes"
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
func childRange(path string) (from, to []byte) {
	if path == "/" {
		return []byte(root + "1/"), []byte(root + "10")
	}
	prefix := root + strconv.Itoa(depth(path)+1) + path
	return []byte(prefix + "/"), []byte(prefix + "0") // '0' follows '/'
}

// nodePath is the inverse of nodeKey. A key that is not a node's yields false.
func nodePath(key []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(key, []byte(root))
	slash := bytes.IndexByte(rest, '/')
	if !ok || slash < 1 {
		return "", false
	}
	path := string(rest[slash:]) // nothing else of the key is kept with it
	return path, strconv.Itoa(depth(path)) == string(rest[:slash])
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
