package registry

// A Revision orders the commits of one service: etcd's revision, ZooKeeper's
// zxid. Zero means none. Revisions of different services must not be compared.
type Revision int64

// A Version counts the Sets of one incarnation of a node, from 0 at its creation.
// It starts again when the node is deleted and created.
type Version int64

// AnyVersion matches every version, but not absence.
const AnyVersion Version = -1

// A Node is the state of one path. The zero value but for Path means absent.
type Node struct {
	// Path is always set.
	Path string
	// Value belongs to the receiver. An empty value has length 0, nil or not.
	Value []byte
	// Version is the number of Sets since creation.
	Version Version
	// Created identifies this incarnation; it never repeats. Zero: no such node.
	Created Revision
	// Modified is the revision of the last Create or Set.
	Modified Revision
	// Ephemeral nodes vanish with the session that made them.
	Ephemeral bool
	// Owned is set on an ephemeral node of the very session that reads it.
	Owned bool
}

// Exists reports whether the node was there when it was read.
func (n Node) Exists() bool { return n.Created != 0 }
