package conformance

import (
	"errors"

	"github.com/elasticron/elasticron/registry"
)

var commitCases = []testCase{
	{name: "AllApplied", rules: "R17", run: allApplied, place: "Store.Commit",
		rule: "a commit applies every one of its operations"},
	{name: "NoneAppliedOnFailure", rules: "R17", run: noneApplied, place: "Store.Commit, registry.CommitError",
		rule: "when one operation cannot be applied, none is, not even those before it"},
	{name: "FailureIndexFirst", rules: "R18", run: failureIndexFirst, place: "registry.CommitError.Index",
		rule: "the error names operation 0 when that is what fails"},
	{name: "FailureIndexMiddle", rules: "R18", run: failureIndexMiddle, place: "registry.CommitError.Index",
		rule: "the error names the operation that fails, wherever it stands and whatever its kind"},
	{name: "FailureIndexTwoBadPicksFirst", rules: "R18", run: failureIndexTwoBad, needs: bulk, place: "registry.CommitError.Index",
		rule: "of two operations that cannot be applied the error names the first"},
	{name: "ErrorIsTyped", rules: "R18", run: errorIsTyped, place: "registry.CommitError",
		rule: "the error is a *CommitError with the failed Op, and errors.Is finds its one reason and no other"},
	{name: "CheckExists", rules: "R45 R50", run: checkExists, place: "registry.OpCheck",
		rule: "Check passes when the node exists, and writes nothing"},
	{name: "CheckMissing", rules: "R36 R45 R50", run: checkMissing, place: "registry.OpCheck, registry.AnyVersion",
		rule: "Check of what does not exist fails with ErrNotFound, at AnyVersion too"},
	{name: "CheckVersion", rules: "R38 R50", run: checkVersion, place: "registry.OpCheck",
		rule: "Check passes at the node's version only: else ErrVersion"},
	{name: "CheckOnly", rules: "R50", run: checkOnly, place: "registry.OpCheck, Store.Commit",
		rule: "a commit of nothing but checks is a commit"},
	{name: "CreateParentAndChildSameCommit", rules: "R81", run: createParentAndChild, place: "Store.Commit: operations see each other",
		rule: "a parent may be created with its child and grandchild"},
	{name: "DeleteChildAndParentSameCommit", rules: "R81", run: deleteChildAndParent, place: "Store.Commit: operations see each other",
		rule: "a child may be deleted with its parent"},
	{name: "OrderMatters", rules: "R81", run: orderMatters, place: "Store.Commit: applies ops in their order",
		rule: "operations see only those before them: child before parent is ErrNoParent, parent before child ErrNotEmpty"},
	{name: "OrderOfKinds", rules: "R81", run: orderOfKinds, place: "Store.Commit: operations see each other",
		rule: "a create sees that its parent became ephemeral, or went, earlier in the commit"},
	{name: "DuplicatePathRefused", rules: "R39", run: duplicatePath, place: "Store.Commit, Limits.Validate",
		rule: "a path may stand once in a commit: else ErrInvalid, whatever the kinds"},
	{name: "EmptyCommit", rules: "R39", run: emptyCommit, place: "Limits.Validate",
		rule: "a commit of no operations is ErrInvalid"},
	{name: "InvalidOp", rules: "R39", run: invalidOp, place: "Limits.Validate",
		rule: "an unknown kind, the zero Op and a version below AnyVersion are ErrInvalid"},
	{name: "MaxOps", rules: "R52", run: maxOps, place: "registry.Limits.MaxOps",
		rule: "a commit of MaxOps creates, and of MaxOps sets, fits"},
	{name: "PortableOpsDistinctParents", rules: "R52", run: portableOps, place: "registry.Limits, PortableLimits",
		rule: "40 operations of any kind fit, each under a parent of its own"},
	{name: "PortableBytes", rules: "R52", run: portableBytes, place: "registry.Limits, PortableLimits",
		rule: "512 KiB over all paths and values fit in one commit, and read back"},
	{name: "OverMaxOps", rules: "R39", run: overMaxOps, place: "registry.Limits.MaxOps",
		rule: "one operation more than MaxOps is ErrInvalid, and none is applied"},
	{name: "OverBytes", rules: "R39", run: overBytes, place: "registry.Limits.MaxBytes",
		rule: "one byte more than MaxBytes is ErrInvalid, and nothing is applied"},
	{name: "SameRevisionForAll", rules: "R47", run: sameRevision, place: "registry.Node, Store.Commit",
		rule: "all that one commit writes has the same Modified, all that it creates the same Created"},
	{name: "RevisionIsModified", rules: "R47", run: revisionIsModified, place: "Store.Commit",
		rule: "the revision of a commit with a Set is the Modified of everything it wrote"},
	{name: "RevisionsIncrease", rules: "R85", run: revisionsIncrease, place: "registry.Revision",
		rule: "later commits have greater revisions, over all sessions"},
	{name: "ConcurrentCASOneWinner", rules: "R38", run: casOneWinner, place: "registry.OpSet, registry.OpCreate",
		rule: "of many writers at one version one wins and the others get ErrVersion; of many creators one, and ErrExists"},
	{name: "ConcurrentCounterNoLostUpdate", rules: "R38", run: counterNoLostUpdate, needs: bulk, place: "registry.OpSet",
		rule: "read, add one, set at the version read: no addition is lost"},
	{name: "ConcurrentEachItsOwn", rules: "R18", run: eachItsOwn, needs: bulk, place: "Store.Commit",
		rule: "of many commits of one session at once each is applied once or refused for its own sake, whatever becomes of the others"},
	{name: "EphemeralInCommit", rules: "R9", run: ephemeralInCommit, needs: life, place: "registry.OpCreateEphemeral",
		rule: "an ephemeral node is made with other operations, and not made when one fails"},
	{name: "EphemeralAndPersistentMixed", rules: "R9", run: ephemeralMixed, needs: life, place: "registry.OpCreateEphemeral",
		rule: "of one commit the ephemeral nodes vanish with the session and the persistent ones stay"},
	{name: "SetKeepsEphemeral", rules: "R48", run: setKeepsEphemeral, needs: life, place: "registry.OpSet",
		rule: "an ephemeral node stays ephemeral, and its owner's, when it is set by whom ever"},
	{name: "NodesGoWithTheirOwners", rules: "R9 R12 R17", run: nodesGoWithTheirOwners, needs: life, place: "registry.OpCreateEphemeral; package doc, Guarantees",
		rule: "with a session go the nodes that it has made and has still: none less for a refused Delete, none more for a refused create or one that was deleted"},
	{name: "CommitOnLostSession", rules: "R8", run: commitOnLost, needs: life, place: "registry.ErrSessionLost",
		rule: "a commit on a session that has ended is ErrSessionLost, and nothing is applied"},
	{name: "ContextCancelledBeforeSend", rules: "R33", run: contextCancelled, place: "Store.Commit",
		rule: "a context that has ended before anything was sent comes back as its plain error, and nothing is applied"},
	{name: "LargeCommitsAreOne", rules: "R17 R18 R47", run: largeCommits, place: "Store.Commit; registry.Limits",
		rule: "a commit at MaxOps or MaxBytes has one revision, is seen as a whole, and leaves nothing when its last operation is refused"},
	{name: "RevisionOfEveryKind", rules: "R84 R85 R47", run: revisionOfEveryKind, place: "Store.Commit",
		rule: "every commit returns its revision, whatever it consists of"},
	{name: "ChecksAreFresh", rules: "R112", run: checksAreFresh, place: "Store.Commit",
		rule: "a commit of checks is applied, or refused, as what was committed before it demands, whoever did that"},
	{name: "ChecksTellTheNewest", rules: "R84 R85", run: checksTellTheNewest, place: "Store.Commit",
		rule: "a commit of checks has the revision of the store, not of what it checked: no less than that of any commit answered before"},
	{name: "DecidedByThePresent", rules: "R112", run: decidedByThePresent, place: "Store.Commit",
		rule: "a commit is decided by the present state, whatever its session has read before"},
	{name: "ParentsAndChildrenRace", rules: "R1 R3", run: parentsAndChildrenRace, place: "package doc, The tree",
		rule: "of a Delete of a node and a create below it at the same time one is applied: no child is left without its parent"},
	{name: "AlikePathsInOneCommit", rules: "R6 R39", run: alikeInOneCommit, place: "package doc, The tree; Limits.Validate",
		rule: "paths that a service might take for each other are distinct within one commit too"},
	{name: "RevisionsOutliveRestart", rules: "R28 R85", run: revisionsOutliveRestart, needs: alone, place: "registry.Node.Created, Store.Commit",
		rule: "no revision comes again after a restart, though the nodes that had the newest are gone"},
	{name: "PrecedenceOfReasons", rules: "R83", run: precedence, place: "Store.Commit",
		rule: "of several reasons ErrNotFound comes first, then ErrVersion, then ErrNotEmpty"},
}

func allApplied(t *caseRun) {
	t.create(t.s, t.path("check"), "c")
	t.create(t.s, t.path("set"), "old")
	t.create(t.s, t.path("delete"), "d")
	t.commit(t.s,
		registry.Check(t.path("check"), 0), registry.Set(t.path("set"), []byte("new"), 0),
		registry.Delete(t.path("delete"), 0), registry.Create(t.path("create"), []byte("x")),
		registry.CreateEphemeral(t.path("ephemeral"), []byte("y")))
	t.hasChildren(t.s, t.dir, "check", "create", "ephemeral", "set")
	for name, want := range map[string]string{"check": "c", "set": "new", "create": "x", "ephemeral": "y"} {
		if n := t.present(t.s, t.path(name)); string(n.Value) != want {
			t.fatalf("%s has value %q; want %q", name, n.Value, want)
		}
	}
}

func noneApplied(t *caseRun) {
	set, del := t.create(t.s, t.path("set"), "old"), t.create(t.s, t.path("delete"), "d")
	good := []registry.Op{
		registry.Create(t.path("create"), nil), registry.CreateEphemeral(t.path("ephemeral"), nil),
		registry.Set(set.Path, []byte("new"), 0), registry.Delete(del.Path, 0),
	}
	bad := registry.Set(t.path("missing"), nil, registry.AnyVersion)
	for at := range len(good) + 1 {
		ops := append(append(append([]registry.Op(nil), good[:at]...), bad), good[at:]...)
		t.refused(t.s, at, registry.ErrNotFound, ops...)
		t.unchanged(t.s, set)
		t.unchanged(t.s, del)
		t.absent(t.s, t.path("create"), t.path("ephemeral"), t.path("missing"))
		t.hasChildren(t.s, t.dir, "delete", "set")
	}
}

// badOps are operations that fail in every way there is, on the nodes that
// prepareBad makes.
func (t *caseRun) badOps() []struct {
	op  registry.Op
	err error
} {
	t.create(t.s, t.path("v0"), "")
	t.create(t.s, t.path("v0b"), "")
	t.create(t.s, t.path("v0c"), "")
	t.create(t.s, t.path("full"), "")
	t.create(t.s, t.path("full/child"), "")
	t.create(t.s, t.path("there"), "")
	t.commit(t.s, registry.CreateEphemeral(t.path("eph"), nil))
	return []struct {
		op  registry.Op
		err error
	}{
		{registry.Check(t.path("gone1"), registry.AnyVersion), registry.ErrNotFound},
		{registry.Check(t.path("v0"), 7), registry.ErrVersion},
		{registry.Create(t.path("there"), nil), registry.ErrExists},
		{registry.Create(t.path("no/parent"), nil), registry.ErrNoParent},
		{registry.CreateEphemeral(t.path("eph/child"), nil), registry.ErrEphemeralParent},
		{registry.Set(t.path("gone2"), nil, 0), registry.ErrNotFound},
		{registry.Set(t.path("v0b"), nil, 3), registry.ErrVersion},
		{registry.Delete(t.path("gone3"), 0), registry.ErrNotFound},
		{registry.Delete(t.path("v0c"), 2), registry.ErrVersion},
		{registry.Delete(t.path("full"), 0), registry.ErrNotEmpty},
	}
}

func failureIndexFirst(t *caseRun) {
	for _, bad := range t.badOps() {
		t.refused(t.s, 0, bad.err, bad.op, registry.Create(t.path("x"), nil), registry.Create(t.path("y"), nil))
	}
}

func failureIndexMiddle(t *caseRun) {
	for i, bad := range t.badOps() {
		at := i % 4
		ops := []registry.Op{
			registry.Create(t.path("w"), nil), registry.Create(t.path("x"), nil),
			registry.CreateEphemeral(t.path("y"), nil), registry.Create(t.path("z"), nil),
		}
		ops = append(ops[:at:at], append([]registry.Op{bad.op}, ops[at:]...)...)
		t.refused(t.s, at, bad.err, ops...)
	}
}

func failureIndexTwoBad(t *caseRun) {
	bad := t.badOps()
	for i := range bad {
		for j := range bad {
			if i == j {
				continue
			}
			t.refused(t.s, 1, bad[i].err, registry.Create(t.path("x"), nil), bad[i].op, registry.Create(t.path("y"), nil), bad[j].op)
		}
	}
}

func errorIsTyped(t *caseRun) {
	reasons := []error{
		registry.ErrNotFound, registry.ErrExists, registry.ErrVersion, registry.ErrNotEmpty, registry.ErrNoParent, registry.ErrEphemeralParent,
		registry.ErrInvalid, registry.ErrUnavailable, registry.ErrUncertain, registry.ErrSessionLost, registry.ErrDenied,
	}
	for _, bad := range t.badOps() {
		_, err := t.try(t.ctx, t.s, bad.op)
		t.isCommitError(err, 0, bad.err, []registry.Op{bad.op})
		for _, reason := range reasons {
			if errors.Is(err, reason) != (errors.Is(reason, bad.err)) {
				t.fatalf("errors.Is(%v, %v) is %v", err, reason, errors.Is(err, reason))
			}
		}
	}
}
