package registry

// A Revision orders the commits of one service: etcd's revision, ZooKeeper's
// zxid. Zero means none. Revisions of different services cannot be compared.
type Revision int64

// A Version counts the Sets of one incarnation of a node, from 0 at its creation
// (R44). It starts again when the node is deleted and created (R29).
type Version int64

// AnyVersion matches every version, but not absence (R45).
const AnyVersion Version = -1

// A Node is the state of one path. The zero value but for Path means absent.
type Node struct {
	// Path is always set.
	Path string
	// Value belongs to the receiver (R31). An empty value has length 0, nil or not (R46).
	Value []byte
	// Version is the number of Sets since creation.
	Version Version
	// Created identifies this incarnation; it never repeats (R28). Zero: no such node.
	Created Revision
	// Modified is the revision of the last Create or Set (R47).
	Modified Revision
	// Ephemeral nodes vanish with the session that made them (R9); a Set leaves them so (R48).
	Ephemeral bool
	// Owned is set on an ephemeral node of the very session that reads it (R49).
	Owned bool
}

// Exists reports whether the node was there when it was read.
func (n Node) Exists() bool { return n.Created != 0 }
