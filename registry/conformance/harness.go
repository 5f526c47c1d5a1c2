package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A Harness is one running service with clients of it. Run makes one for each
// group of cases; every case works below a path of its own.
type Harness interface {
	// Registry returns a registry on a client of its own: faults of one do not
	// reach another. The harness closes it at the end, if the case has not; t is
	// the case's, and its Cleanup is a good place. Called from many goroutines. Of
	// a session neither it nor the faults keep more than the ID: the case
	// ClosedIsFreed fails where somebody holds a session that was closed.
	Registry(ctx context.Context, t testing.TB) registry.Registry

	// Members is the number of servers. Cases that need a second one are not in
	// the list of a service with one.
	Members() int

	// SessionTimeout is the timeout of every session, as the service granted it.
	SessionTimeout() time.Duration

	// Grace is how long after SessionTimeout the service may take to expire a
	// session.
	Grace() time.Duration

	// Faults acts behind the adapter's back.
	Faults() Faults

	// Close stops the service and removes what it left.
	Close()
}

// LateHarness is what a Harness implements as well when AppliedLate keeps the
// client away and the session would not outlive that: with a margin of a quarter
// and heartbeats every T/8, a session of timeout T bears an absence of LateBy when
// T is 6 seconds or more.
type LateHarness interface {
	// LateRegistry is Harness.Registry, but its sessions have a timeout of their own
	// that outlives LateBy. The cases of AppliedLate use it for the sessions that meet
	// this fate, and others for sessions that are to outlive a restart or an outage; they
	// assume nothing about their timeout but that it is at most 10 s.
	LateRegistry(ctx context.Context, t testing.TB) registry.Registry
}

// LightHarness is what a Harness implements as well when its service lives in this process and costs next to nothing:
// two groups then run at the same time, each on a service of its own.
type LightHarness interface {
	Light() bool
}

// Direction is what a blackhole swallows, seen from the client.
type Direction uint8

const (
	// Both swallows requests and answers.
	Both Direction = iota
	// Requests swallows what the client sends.
	Requests
	// Answers swallows what the service sends: its effects stay.
	Answers
)

// Fate is what becomes of one commit.
type Fate uint8

const (
	// AnswerLost: it is applied at once, the client learns nothing but that the connection broke.
	AnswerLost Fate = iota + 1
	// RequestLost: it never arrives, and the client cannot tell that from AnswerLost.
	RequestLost
	// AppliedLate: the client's connection breaks now, the service applies it LateBy
	// later, if it still can. Where a reconnect rules it out, the harness keeps the
	// client away until then.
	AppliedLate
)

// LateBy is the delay of AppliedLate.
const LateBy = 3 * time.Second

// ErrUnsupported is returned by a fault that the harness cannot inject. A case
// that needs it fails: void is not green.
var ErrUnsupported = errors.New("conformance: fault not supported by the harness")

// Faults are injected into the service or into one client's way to it. heal is
// idempotent and never nil.
type Faults interface {
	// Expire ends a session at the service, which tells the client nothing.
	Expire(s registry.Session) error
	// Drop cuts the client's connections once; it can connect again at once.
	Drop(s registry.Session) error
	// Blackhole keeps connections open and swallows traffic of the client.
	Blackhole(s registry.Session, d Direction) (heal func(), err error)
	// Refuse cuts the client's connections and refuses new ones.
	Refuse(s registry.Session) (heal func(), err error)
	// NextCommit decides the fate of the client's next commit. hit reports
	// whether a commit has met it.
	NextCommit(s registry.Session, f Fate) (hit func() bool, err error)
	// Hits counts the requests, answers and connections of this client that
	// faults have hit so far, also after the session has ended. It does not count
	// what a fault could have hit: a case with no hit is void.
	Hits(s registry.Session) int
	// PauseServer stops every server from answering; nothing is lost.
	PauseServer() (resume func(), err error)
	// RestartServer stops the service and starts it again on its data.
	RestartServer() error
	// LoseLeader makes another member the leader. Needs more than one member.
	LoseLeader() error
	// ForgetHistory makes the service forget old revisions (etcd: compaction). A
	// service without history does nothing.
	ForgetHistory() error
}

// MemberFaults is what Faults of a service with more than one member implement
// as well.
type MemberFaults interface {
	// StallMember makes the server that the client of s talks to keep its
	// connections to this client open, and accept new ones, and answer none. The
	// other servers go on.
	StallMember(s registry.Session) (heal func(), err error)
}

// DelayFaults is what Faults implement as well, or Lacking says why not.
type DelayFaults interface {
	// Delay lets every answer reach the client of s d later, and keeps the order of those
	// of one connection. Requests may be as late. Nothing is lost.
	Delay(s registry.Session, d time.Duration) (heal func(), err error)
}

// DenyFaults is what Faults implement as well, or Lacking says why not.
type DenyFaults interface {
	// Deny makes the service refuse everybody, as one without permission, what concerns
	// path or a node below it. It may break the connections of all clients.
	Deny(path string) (allow func(), err error)
}

// NamespaceHarness is what a Harness implements as well, or Lacking says why not.
type NamespaceHarness interface {
	// RegistryIn is Harness.Registry with another namespace on the same service.
	RegistryIn(ctx context.Context, t testing.TB, namespace string) registry.Registry
}

// LeaderHarness is what a Harness of several members implements as well, or Lacking
// says why not.
type LeaderHarness interface {
	// Leader names the member that leads.
	Leader() (string, error)
}

// HistoryHarness is what a Harness implements as well, or Lacking says why not.
type HistoryHarness interface {
	// Forgot says whether the last ForgetHistory has made the service forget something.
	Forgot() bool
}

// Lacking is a Harness that says what it cannot do, and why: "Delay", "Deny",
// "Namespace", "Leader" and "History" are names of the interfaces above. The suite prints
// it. What a harness neither does nor declares fails.
type Lacking interface {
	Lacks() map[string]string
}

func (f Fate) String() string {
	switch f {
	case AnswerLost:
		return "AnswerLost"
	case RequestLost:
		return "RequestLost"
	case AppliedLate:
		return "AppliedLate"
	}
	return fmt.Sprintf("Fate(%d)", uint8(f))
}

func (d Direction) String() string {
	switch d {
	case Requests:
		return "requests"
	case Answers:
		return "answers"
	}
	return "both ways"
}
