package conformance

import (
	"maps"
	"slices"
)

// harnessCases run first: what a harness does wrong is told before an adapter is blamed.
// They take seconds, most of them for AppliedLate.
var harnessCases = []testCase{
	{name: "DeclaresWhatItLacks", run: declares, place: "conformance.Lacking",
		rule: "a harness offers every fault, or says why not"},
	{name: "Expire", run: proves(kindExpire), place: "conformance.Faults",
		rule: "Expire makes the session's nodes vanish"},
	{name: "Drop", run: proves(kindDrop), place: "conformance.Faults",
		rule: "Drop breaks a commit that waits for its answer, and counts in Hits"},
	{name: "Refuse", run: proves(kindRefuse), place: "conformance.Faults",
		rule: "Refuse keeps the client away until heal"},
	{name: "Blackhole", run: proves(kindBlackhole+" "+Both.String(), kindBlackhole+" "+Requests.String(), kindBlackhole+" "+Answers.String()),
		place: "conformance.Faults", rule: "Blackhole swallows what its direction says, and nothing else"},
	{name: "NextCommit", run: proves(AnswerLost.String(), RequestLost.String(), AppliedLate.String()), place: "conformance.Faults",
		rule: "NextCommit applies the commit at once, never, or LateBy later, and hit tells"},
	{name: "PauseServer", run: provesPause, needs: alone, place: "conformance.Faults",
		rule: "PauseServer stops every answer until resume"},
	{name: "RestartServer", run: provesRestart, needs: alone, place: "conformance.Faults",
		rule: "RestartServer breaks what waits for an answer"},
	{name: "Delay", run: proves(kindDelay), needs: slowly, place: "conformance.DelayFaults",
		rule: "Delay makes answers come so much later"},
}

func proves(kinds ...string) func(*caseRun) {
	return func(t *caseRun) {
		for _, kind := range kinds {
			if problem := t.h.proofs.of(t.ctx, t.h.Harness, kind); problem != "" {
				t.void("the fault %s does not do what it says: %s", kind, problem)
			}
		}
	}
}

func provesPause(t *caseRun) {
	resume := t.pause()
	resume()
	t.present(t.s, t.dir)
}

func provesRestart(t *caseRun) {
	t.must("RestartServer", t.h.Faults().RestartServer())
	t.present(t.open(), t.dir)
}

// offers says which of the faults that are optional a harness has.
func offers(h Harness) map[string]bool {
	faults := h.Faults()
	_, delay := faults.(DelayFaults)
	_, deny := faults.(DenyFaults)
	_, namespace := h.(NamespaceHarness)
	_, leader := h.(LeaderHarness)
	_, history := h.(HistoryHarness)
	return map[string]bool{"Delay": delay, "Deny": deny, "Namespace": namespace, "Leader": leader || h.Members() == 1, "History": history}
}

// lacks are the optional faults that a harness has not, with its reasons: "" is none.
func lacks(h Harness) map[string]string {
	reasons := map[string]string{}
	if l, says := h.(Lacking); says {
		reasons = l.Lacks()
	}
	missing := map[string]string{}
	for name, has := range offers(h) {
		if !has {
			missing[name] = reasons[name]
		} else if reason, too := reasons[name]; too {
			missing[name+" (offered all the same)"] = reason
		}
	}
	return missing
}

func declares(t *caseRun) {
	missing := lacks(t.h.Harness)
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if missing[name] == "" {
			t.errorf("the harness has no %s and does not say why: implement it, or name it in Lacks", name)
		} else {
			t.Logf("this harness has no %s: %s", name, missing[name])
		}
	}
}

// offered leaves out the cases whose fault the harness lacks.
func offered(h Harness, cases []testCase) []testCase {
	has := offers(h)
	var all []testCase
	for _, c := range cases {
		if (c.needs&slowly == 0 || has["Delay"]) && (c.needs&spaces == 0 || has["Namespace"]) && (c.needs&rights == 0 || has["Deny"]) {
			all = append(all, c)
		}
	}
	return all
}
