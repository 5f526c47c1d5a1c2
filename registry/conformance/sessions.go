package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
)

const sessionDoc = "registry.Session"

var sessionCases = []testCase{
	{name: "TwoSessionsDistinct", rules: "R16 R86", run: twoSessions, place: "Session.ID, Registry.Open",
		rule: "sessions, of one registry too, are lives of their own: distinct IDs, each with its own ephemeral nodes"},
	{name: "OwnedFlag", rules: "R49 R37", run: ownedFlag, place: "registry.Node.Owned",
		rule: "Owned is set on ephemeral nodes for the session that made them and for no other, and no other can make them"},
	{name: "CloseRemovesEphemerals", rules: "R9 R99", run: closeRemoves, place: "Session.Close",
		rule: "when Close has returned nil the session's ephemeral nodes are gone, and nobody else's"},
	{name: "CloseIdempotent", rules: "R104", run: closeIdempotent, place: "Session.Close",
		rule: "Close may be called again, from many goroutines too"},
	{name: "CloseUnreachableBounded", rules: "R99 R102 R104", run: closeUnreachable, place: "Session.Close",
		rule: "without the service each Close, alone, beside another and again, returns with its own context, with an error; Done is closed; the nodes vanish by expiry"},
	{name: "CloseAfterLossEndsAtService", rules: "R99 R101", run: closeAfterLoss, place: "Session.Close",
		rule: "Close of a lost session still tries to end it at the service: after nil its nodes are gone; where they are gone it is nil"},
	{name: "CloseHoldsUpNobody", rules: "R16 R75", run: closeBeside, place: "package doc, Guarantees: sessions of one Registry",
		rule: "while Close waits for the service the calls of other sessions of the registry, and Open, return with their contexts"},
	{name: "CallsWaitForNoOther", rules: "R19 R75", run: callsBeside, place: "registry.Store; package doc, Guarantees: contexts",
		rule: "while calls of a session wait for the service others return with their own contexts"},
	{name: "RegistryCloseEndsSessions", rules: "R43 R70", run: registryClose, place: "Registry.Close, registry.ErrClosed",
		rule: "closing a registry ends its sessions, Open then fails with ErrClosed, and Close is idempotent"},
	{name: "OpenWaitsThenUnavailable", rules: "R69", run: openUnavailable, place: "Registry.Open",
		rule: "Open waits for a service that cannot be reached until its context ends, then fails with ErrUnavailable and what the context says"},
	{name: "OpenThroughSlowAnswers", rules: "R69", run: openSlowAnswers, needs: slowly, place: "Registry.Open",
		rule: "where answers come so late that no session lives to be used, Open waits until its context ends, or the service answers in time"},
	{name: "Namespace", rules: "R68", run: namespaceNotEmpty, place: "Registry.Namespace",
		rule: "a namespace is never empty and has no slash at its ends"},
	{name: "AliveErrNil", rules: "R98 R113", run: aliveErrNil, place: "Session.Err, Session.Done, Session.Deadline",
		rule: "while a session lives Err is nil, Done open, and Deadline, of the monotonic clock, ahead by no more than the timeout"},
	{name: "ErrTellsWithDone", rules: "R98 R97", run: errTellsWithDone, place: "Session.Err, Session.Done, Session.Deadline",
		rule: "Err is nil until Done is closed, and wraps ErrSessionLost from then on, however the session ends; Deadline does not go back with that"},
	{name: "DeadlineAdvances", rules: "R97", run: deadlineAdvances, place: "Session.Deadline",
		rule: "Deadline advances with the heartbeats, over broken connections too, and never goes back"},
	{name: "ExpireRemovesEphemerals", rules: "R9", run: expireRemoves, place: sessionDoc,
		rule: "a session that the service has ended loses its ephemeral nodes, and only its own"},
	{name: "ExpireClosesDone", rules: "R13 R98", run: expireClosesDone, place: "Session.Done, Session.Err",
		rule: "a session that the service has ended closes Done by its Deadline, and Err wraps ErrSessionLost"},
	{name: "ExpireKeepsPersistent", rules: "R9", run: expireKeeps, place: "registry.OpCreate",
		rule: "persistent nodes outlive the session that made them"},
	{name: "ErrorEveryMethod", rules: "R8 R35", run: errorEveryMethod, place: "registry.ErrSessionLost",
		rule: "every method of a lost session, and of a closed one, fails with ErrSessionLost, and with nothing else"},
	{name: "NoWriteAfterLoss", rules: "R10", run: noWriteAfterLoss, place: "package doc, Guarantees: a session is one life",
		rule: "a session that the service has ended makes no ephemeral node any more, before and after its client knows, and never revives"},
	{name: "LateCommitOfDeadSession", rules: "R10", run: lateCommitOfDead, place: "package doc, Guarantees: a session is one life",
		rule: "a commit that a session left in flight when it ended makes no ephemeral node"},
	{name: "DoneNotAfterDeadline", rules: "R13", run: doneNotAfterDeadline, place: "Session.Done",
		rule: "cut off in whatever way, Done is closed no later than Deadline"},
	{name: "DeadlineNeverAfterServerDeletion", rules: "R95", run: deadlineBeforeDeletion, place: "Session.Deadline",
		rule: "Deadline is never later than the instant at which the service deletes the session's nodes"},
	{name: "DropReconnectSameSession", rules: "R14", run: dropReconnect, place: "package doc, Guarantees: connection loss",
		rule: "a broken connection is made again within the same session"},
	{name: "DropKeepsEphemerals", rules: "R14 R49", run: dropKeeps, place: "package doc, Guarantees: connection loss",
		rule: "a blip within the session deletes nothing and re-creates nothing"},
	{name: "BlackholeShort", rules: "R14", run: blackholeShort, place: "package doc, Guarantees: connection loss",
		rule: "silence of a third of the timeout loses nothing"},
	{name: "ReconnectWithin2s", rules: "R14", run: reconnectQuickly, place: "Registry.Open, registry.Store",
		rule: "after an outage of 4 s a client works again within 2 s: its back-off does not grow without bound"},
	{name: "PauseShort", rules: "R14", run: pauseShort, needs: alone, place: "package doc, Guarantees: connection loss",
		rule: "a service that pauses for a third of the timeout loses no session"},
	{name: "PauseLong", rules: "R13", run: pauseLong, needs: alone, place: "Session.Done; package doc, Guarantees",
		rule: "a service that pauses for longer than the timeout: Done by Deadline, and later new sessions, without the old one's nodes"},
	{name: "RestartServerKeepsData", rules: "R28 R85", run: restartKeepsData, needs: alone, place: "registry.Revision, registry.Node",
		rule: "a restart keeps nodes, versions and revisions, and later revisions are greater"},
	{name: "RestartServerSessionRule", rules: "R9 R14 R49", run: restartSessionRule, needs: alone, place: "package doc, Guarantees: a session is one life",
		rule: "over a restart a session either lives on with its nodes, or is lost and they vanish"},
	{name: "LoseLeaderKeepsSession", rules: "R14", run: loseLeader, needs: alone | cluster, place: "package doc, Guarantees: connection loss",
		rule: "a change of the service's leader loses no session"},
	{name: "StalledEndpointDoesNotKillSession", rules: "R14", run: stalledEndpoint, needs: alone | cluster, place: "package doc, Guarantees: connection loss",
		rule: "when the server that a client talks to stops answering, the session goes on at another"},
	{name: "NoGoroutineLeak", rules: "R100", run: noGoroutineLeak, needs: alone, place: "Session.Close",
		rule: "closing a session joins its goroutines, those of its watchers and locks too: they end with Close, not a while later"},
	{name: "ClosedIsFreed", rules: "R114", run: closedIsFreed, place: "Session.Close, Watcher.Close",
		rule: "sessions, stores and watchers that were closed, and locks that were released, can be collected while what made them lives on"},
	{name: "ContextKeepsNothing", rules: "R115", run: contextKeepsNothing, place: contextDoc,
		rule: "a call that has returned leaves nothing that waits for the end of its context"},
	{name: "ContextsEndAfterReturn", rules: "R32", run: contextsEndAfterReturn, place: contextDoc,
		rule: "a context that ends after the return touches nothing that the call has made: sessions, watchers, locks, stores"},
	{name: "EndedContextEveryMethod", rules: "R33", run: endedContextEveryMethod, place: contextDoc,
		rule: "a call whose context has ended sends nothing and fails with what the context says"},
	{name: "CloseWithEndedContext", rules: "R34 R99", run: closeEnded, place: "Session.Close",
		rule: "Close with an ended context makes one attempt at the service, of at most a quarter of the timeout; nil means that the nodes are gone"},
	{name: "CloseRacesCalls", rules: "R82 R103", run: closeRaces, place: "Session.Close",
		rule: "calls in flight when Close is called fail with ErrSessionLost, and a commit that was sent with ErrUncertain as well"},
	{name: "EphemeralsRaceClose", rules: "R10 R82 R99 R103", run: ephemeralsRaceClose, place: "package doc, Guarantees; Session.Close",
		rule: "of the ephemeral nodes that are on their way when their session closes none is there once Close has returned nil, nor comes later"},
	{name: "CallsInFlightAtLoss", rules: "R8 R35 R82", run: callsInFlightAtLoss, place: "registry.ErrSessionLost",
		rule: "calls in flight when the session is lost fail with ErrSessionLost alone, but for a commit that was sent"},
	{name: "RegistryCloseCutOff", rules: "R43 R71", run: registryCloseCutOff, place: "Registry.Close",
		rule: "Registry.Close does not wait for a service that does not answer"},
	{name: "OpenRacesRegistryClose", rules: "R43 R70", run: openRacesClose, needs: slowly, place: "Registry.Close",
		rule: "an Open that waits for its answer, or for the service, when its registry is closed fails with ErrClosed"},
	{name: "SessionsAreApart", rules: "R16", run: sessionsAreApart, place: "package doc, Guarantees: sessions of one Registry",
		rule: "the end of a session, in whatever way, harms no other of the same registry"},
	{name: "EphemeralsGoTogether", rules: "R11", run: ephemeralsGoTogether, place: "package doc, Guarantees: a session is one life",
		rule: "who finds one ephemeral node of an ended session gone finds all gone"},
	{name: "ThousandNodesGo", rules: "R9 R99", run: thousandGo, needs: alone | bulk, place: "Session.Close",
		rule: "when Close has returned nil all ephemeral nodes of the session are gone, be they more than a thousand"},
	{name: "NamesAreFreeAtOnce", rules: "R12", run: namesAreFree, place: "package doc, Guarantees: a session is one life",
		rule: "names of a dead session are free for others, and nothing of the dead session disturbs them"},
	{name: "ReachableServiceKeepsSession", rules: "R15", run: busyUser, needs: alone, place: "package doc, Guarantees: connection loss",
		rule: "while the service can be reached, no user of a session can make it be lost: idle watchers, waiting locks, many calls at once, many sessions"},
	{name: "IDsAreUnique", rules: "R86", run: idsAreUnique, place: "Session.ID",
		rule: "no two sessions have one ID, one after the other or opened at once"},
	{name: "IDsOutliveRestart", rules: "R86", run: idsOutliveRestart, needs: alone, place: "Session.ID",
		rule: "no session has the ID of one before the service was restarted"},
	{name: "DeadlineThroughSlowAnswers", rules: "R96 R95", run: deadlineSlowAnswers, needs: slowly, place: "Session.Deadline",
		rule: "however late answers come, Deadline is not later than the deletion at the service"},
	{name: "SlowAnswersLoseNothing", rules: "R14", run: slowAnswersLoseNothing, needs: slowly, place: "package doc, Guarantees: connection loss",
		rule: "answers that are late by a tenth of the timeout lose no session, event or lock"},
	{name: "SecondNamespace", rules: "R7", run: secondNamespace, needs: spaces, place: "registry.Registry",
		rule: "registries of two namespaces see the same nodes, locks and changes"},
	{name: "Denied", rules: "R18 R41 R64", run: denied, needs: alone, place: "registry.ErrDenied",
		rule: "what the service refuses is ErrDenied, by read, operation and target, and nothing else is; without a refusal there is none; a target is added again once it is allowed"},
}

func twoSessions(t *caseRun) {
	reg := t.registry()
	a, b, c := t.openOn(reg), t.openOn(reg), t.open()
	ids := []string{t.s.ID(), a.ID(), b.ID(), c.ID()}
	slices.Sort(ids)
	if ids[0] == "" || len(slices.Compact(ids)) != 4 {
		t.fatalf("the IDs of four sessions are %q", ids)
	}
	for i, s := range []registry.Session{a, b, c} {
		t.commit(s, registry.CreateEphemeral(t.path(fmt.Sprint(i)), nil))
	}
	t.mustClose(a)
	t.sync(b)
	t.absent(b, t.path("0"))
	t.alive(b)
	t.alive(c)
	t.present(b, t.path("1"))
	t.present(b, t.path("2"))
	t.commit(b, registry.CreateEphemeral(t.path("again"), nil))
}

func (t *caseRun) mustClose(s registry.Session) {
	if err := s.Close(t.ctx); err != nil {
		t.fatalf("Close of session %s: %v", s.ID(), err)
	}
	t.step("closed session %s", s.ID())
	select {
	case <-s.Done():
	default:
		t.fatalf("Done is open after Close had returned")
	}
}

func ownedFlag(t *caseRun) {
	reg := t.registry()
	a, b := t.openOn(reg), t.openOn(reg)
	t.commit(a, registry.CreateEphemeral(t.path("e"), nil), registry.Create(t.path("p"), nil))
	for s, owned := range map[registry.Session]bool{a: true, b: false, t.s: false} {
		t.sync(s)
		nodes := t.getAll(s, t.path("e"), t.path("p"))
		if e := nodes[0]; !e.Ephemeral || e.Owned != owned {
			t.fatalf("session %s reads the ephemeral node of session %s as %s", s.ID(), a.ID(), show(e))
		}
		if p := nodes[1]; p.Ephemeral || p.Owned {
			t.fatalf("a persistent node reads as %s", show(p))
		}
	}
	was := t.present(a, t.path("e"))
	for _, s := range []registry.Session{a, b, t.s} {
		for _, again := range []func(string, []byte) registry.Op{registry.Create, registry.CreateEphemeral} {
			t.refused(s, 0, registry.ErrExists, again(was.Path, []byte("mine")))
		}
		t.unchanged(a, was)
	}
}

// proveHit ends a case whose fault has swallowed nothing.
func (t *caseRun) proveHit(s registry.Session) {
	if t.h.Faults().Hits(s) == 0 {
		t.void("Faults.Hits is 0")
	}
}

func openUnavailable(t *caseRun) {
	reg := t.registry()
	first := t.openOn(reg)
	heal, err := t.h.Faults().Refuse(first)
	t.must("Refuse", err)
	defer heal()
	const wait = 300 * time.Millisecond
	for _, how := range []error{context.DeadlineExceeded, context.Canceled} {
		start := time.Now()
		s, err := reg.Open(t.endsIn(wait, how))
		took := time.Since(start)
		if err == nil {
			_ = s.Close(t.ctx)
			t.void("a session was opened through connections that are refused")
		}
		t.step("Open with a context of %v = %v after %v", wait, err, took)
		t.isError(err, registry.ErrUnavailable)
		t.isError(err, how)
		if took < wait/2 || took > wait+2*time.Second {
			t.fatalf("Open gave up after %v; its context ended after %v", took, wait)
		}
	}
	t.proveHit(first)
}

func namespaceNotEmpty(t *caseRun) {
	if ns := t.registry().Namespace(); ns == "" || ns[0] == '/' || ns[len(ns)-1] == '/' {
		t.fatalf("Namespace is %q", ns)
	}
}

func aliveErrNil(t *caseRun) {
	for range 20 {
		if err := t.s.Err(); err != nil {
			t.fatalf("Err is %v", err)
		}
		t.alive(t.s)
		before := time.Now()
		ahead := time.Until(t.s.Deadline())
		if ahead <= 0 || t.s.Deadline().Sub(before) > t.h.SessionTimeout()+time.Since(before) {
			t.fatalf("Deadline is %v ahead; the timeout is %v", ahead, t.h.SessionTimeout())
		}
		t.present(t.s, t.dir)
		if d := t.s.Deadline(); !strings.Contains(d.String(), " m=") {
			t.fatalf("Deadline is %v, without a monotonic reading", d)
		}
	}
}

func deadlineAdvances(t *caseRun) {
	last := t.s.Deadline()
	for range 3 {
		t.drop(t.s)
		was := last
		t.eventually("Deadline to advance", func() string {
			now := t.s.Deadline()
			if now.Before(last) {
				t.fatalf("Deadline went back by %v", last.Sub(now))
			}
			last = now
			t.alive(t.s)
			if now.After(was) {
				return ""
			}
			return "it stands"
		})
	}
	t.step("Deadline has advanced three times")
}

func expireRemoves(t *caseRun) {
	owner, other := t.open(), t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil), registry.CreateEphemeral(t.path("b"), nil))
	t.commit(other, registry.CreateEphemeral(t.path("c"), nil))
	t.must("Expire", t.h.Faults().Expire(owner))
	t.goneSoon(t.s, t.path("a"), t.path("b"))
	t.lostSoon(owner)
	t.present(t.s, t.path("c"))
	t.alive(other)
}

func expireClosesDone(t *caseRun) {
	owner := t.open()
	t.must("Expire", t.h.Faults().Expire(owner))
	t.lostSoon(owner)
	if late := time.Since(owner.Deadline()); late > t.slack() {
		t.fatalf("Done was closed %v after Deadline; the service could be asked all the time", late)
	}
	t.isError(owner.Err(), registry.ErrSessionLost)
}

func expireKeeps(t *caseRun) {
	owner := t.open()
	n := t.create(owner, t.path("a"), "x")
	t.changesKind(owner)
	t.must("Expire", t.h.Faults().Expire(owner))
	t.lostSoon(owner)
	t.goneSoon(t.s, t.path("once persistent"))
	t.unchanged(t.s, n)
	t.present(t.s, t.path("once ephemeral"))
}
