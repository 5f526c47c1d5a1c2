package etcd

import "github.com/elasticron/elasticron/registry"

// NodeKey is the key of a node.
func NodeKey(path string) string { return string(nodeKey(path)) }

// Waiting is the number of commits that wait for a request to share.
func Waiting(s registry.Session) int { return s.(*session).commits.Waiting() }

// WaitingReads is how many reads of a session wait for a request to share.
func WaitingReads(s registry.Session) int { return s.(*session).reads.Waiting() }

// LoggedIn reports whether a login is known, which nobody has refused.
func LoggedIn(r *Registry) bool { return r.login.token.Load() != nil }
