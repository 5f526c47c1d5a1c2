// Package session is one registry session of a scheduler with everything that ends with
// it: a few watchers with a goroutine each, which hand events to whoever watches their
// target, the two pools on which all requests are made, and one for calls of the program's
// listeners.
//
//	s, err := session.Open(ctx, registry, warn)
//	p := s.Part()        // of one job
//	p.Follow(path, registry.Self, func(e registry.Event) { ... })
//	s.Control, s.Records, s.Calls // pools of tasks
//	s.End(cause)         // cancels Context, joins all goroutines, ends the session
//
// A target that the registry refuses to show is asked for again until it does; the
// others go on.
//
// # Concurrency
//
// All methods are safe for concurrent use. Handlers are called one at a time, those of a
// part in the order of events, and none of the callers' locks is held; they must be quick.
package session
