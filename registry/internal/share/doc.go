// Package share lets calls of a session that are made at once share a request: commits, or
// reads. A server spends most of a small one on the request, and not on what it says: so
// eight are sent one by one, and those that come meanwhile wait for the next one, together.
// While more than one request is under way, one that could still grow waits up to 5 ms.
//
// What a shared request is, which calls get on with each other in one, and what a
// refusal of it means is the adapter's.
//
// # Concurrency
//
// A Queue is safe for concurrent use.
package share
