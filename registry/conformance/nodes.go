package conformance

import (
	"fmt"
	"strings"

	"github.com/elasticron/elasticron/registry"
)

var nodeCases = []testCase{
	{name: "CreateGet", rules: "R44 R47", run: createGet, place: "registry.Node, Store.Get",
		rule: "a created node reads back with its value, version 0, and Created equal to Modified"},
	{name: "CreateExists", rules: "R37", run: createExists, place: "registry.OpCreate",
		rule: "creating what exists fails with ErrExists and changes nothing"},
	{name: "CreateNoParent", rules: "R1", run: createNoParent, place: "registry.OpCreate; package doc, The tree",
		rule: "no parent is made on the way: ErrNoParent"},
	{name: "CreateUnderEphemeral", rules: "R2", run: createUnderEphemeral, place: "registry.OpCreate; package doc, The tree",
		rule: "an ephemeral node has no children, whoever owns it: ErrEphemeralParent"},
	{name: "CreateRoot", rules: "R5", run: createRoot, place: "package doc, The tree; Limits.Validate",
		rule: "the root cannot be part of a commit: ErrInvalid"},
	{name: "GetMissing", rules: "R77", run: getMissing, place: "Store.Get",
		rule: "a node that does not exist, or no more, comes back as the zero Node but for its Path, without error"},
	{name: "SetMissing", rules: "R36", run: setMissing, place: "registry.OpSet",
		rule: "Set of what does not exist fails with ErrNotFound and makes nothing"},
	{name: "SetAnyVersion", rules: "R45", run: setAnyVersion, place: "registry.AnyVersion",
		rule: "AnyVersion sets a node at every version"},
	{name: "SetRightVersion", rules: "R44", run: setRightVersion, place: "registry.OpSet",
		rule: "Set at the node's version is applied"},
	{name: "SetWrongVersion", rules: "R38", run: setWrongVersion, place: "registry.OpSet",
		rule: "Set at another version, 0 included, fails with ErrVersion and changes nothing"},
	{name: "SetVersionIncrements", rules: "R44", run: setVersionIncrements, place: "registry.Version, registry.Node",
		rule: "each Set adds one to Version, raises Modified and leaves Created"},
	{name: "DeleteMissing", rules: "R36", run: deleteMissing, place: "registry.OpDelete",
		rule: "Delete of what does not exist fails with ErrNotFound"},
	{name: "DeleteAnyVersion", rules: "R45", run: deleteAnyVersion, place: "registry.AnyVersion",
		rule: "AnyVersion deletes a node at every version"},
	{name: "DeleteWrongVersion", rules: "R38", run: deleteWrongVersion, place: "registry.OpDelete",
		rule: "Delete at another version fails with ErrVersion and the node stays"},
	{name: "DeleteWithChildren", rules: "R3", run: deleteWithChildren, place: "registry.OpDelete; package doc, The tree",
		rule: "a node with children, ephemeral ones too, cannot be deleted: ErrNotEmpty"},
	{name: "RecreateRestartsVersion", rules: "R29", run: recreateRestartsVersion, place: "registry.Version",
		rule: "Version starts again at 0 when a node is deleted and created"},
	{name: "RecreateNewCreated", rules: "R28", run: recreateNewCreated, place: "registry.Node.Created",
		rule: "Created never repeats: every incarnation has a greater one"},
	{name: "EmptyValue", rules: "R46", run: emptyValue, place: "registry.Node.Value",
		rule: "an empty value is a value of length 0 and the node exists"},
	{name: "NilVsEmpty", rules: "R46", run: nilVsEmpty, place: "registry.Node.Value",
		rule: "nil and empty values are the same; setting one empties a node"},
	{name: "ValueAtLimit", rules: "R52", run: valueAtLimit, place: "registry.Limits.MaxValue",
		rule: "a value of MaxValue bytes fits, and MaxValue is at least 256 KiB"},
	{name: "ValueOverLimitNothingSent", rules: "R39", run: valueOverLimit, place: "registry.ErrInvalid, Limits.Validate",
		rule: "what can never be, as a value over MaxValue or a path that breaks the rules, is ErrInvalid before anything is sent, so without a network too"},
	{name: "BinaryValue", rules: "R6", run: binaryValue, place: "registry.Node.Value",
		rule: "values are bytes: all 256 come back as they were"},
	{name: "UnicodeSegment", rules: "R6 R53", run: unicodeSegment, place: "registry.ValidatePath",
		rule: "segments are UTF-8, byte for byte: not folded, not normalised, not escaped"},
	{name: "SegmentAtLimit", rules: "R53", run: segmentAtLimit, place: "registry.ValidatePath",
		rule: "a segment of 255 bytes fits, one of 256 is ErrInvalid"},
	{name: "PathInvalidTable", rules: "R53", run: pathInvalidTable, place: "registry.ValidatePath, registry.ErrInvalid",
		rule: "every call refuses a path that breaks the rules with ErrInvalid"},
	{name: "DeepPath", rules: "R3 R26 R53", run: deepPath, place: "registry.ValidatePath, registry.EnsurePath",
		rule: "any depth that fits 2048 bytes works, with a path of just as many"},
	{name: "CallerMutationIsolated", rules: "R30 R31", run: callerMutation, place: "registry.Op, registry.Node.Value",
		rule: "Commit keeps no hold of the caller's value, and a value that was read belongs to the reader"},
	{name: "GetOrder", rules: "R77", run: getOrder, place: "Store.Get",
		rule: "Get answers in the order of its paths, with absent nodes and paths named twice in their places"},
	{name: "GetMany", rules: "R77", run: getMany, place: "Store.Get",
		rule: "any number of paths may be read in one call"},
	{name: "GetNothing", rules: "R77", run: getNothing, place: "Store.Get; registry.EnsurePath of the root",
		rule: "Get without paths returns no nodes and no error"},
	{name: "ReadOwnWrites", rules: "R21", run: readOwnWrites, place: "package doc, Guarantees: reads",
		rule: "a read is never older than the session's own writes"},
	{name: "SyncSeesOthers", rules: "R24", run: syncSeesOthers, place: "Store.Sync",
		rule: "after Sync a read sees all that was committed before Sync was called, by whom ever"},
	{name: "NamesAndValuesByteForByte", rules: "R6", run: byteForByte, needs: bulk, place: "package doc, The tree",
		rule: "names and values that a store might take for each other, or for a pattern, stay apart, with their children and in watches"},
	{name: "VersionBeyondTheService", rules: "R51", run: hugeVersions, place: "registry.Op",
		rule: "a version that the service cannot hold matches no node: it is not cut down to one that does"},
	{name: "CallersKeepWhatTheyPass", rules: "R30", run: callersKeep, needs: life, place: ownershipDoc,
		rule: "what is passed is not changed, and not read after the return, whatever came of the call"},
	{name: "ReadersOwnWhatTheyGet", rules: "R31", run: readersOwn, place: ownershipDoc,
		rule: "no two readers, targets, watchers or places of one Get share what they were given"},
	{name: "LargeValuesAreOwned", rules: "R30 R31", run: largeValuesAreOwned, needs: bulk, place: ownershipDoc,
		rule: "values of every size belong to who passed them, and to who was given them"},
	{name: "ReadersAtOnceOwnWhatTheyGet", rules: "R31", run: readersAtOnce, place: ownershipDoc,
		rule: "calls that are under way at once share nothing of what they return"},
	{name: "ValuesLikeEncodings", rules: "R6", run: valuesLikeEncodings, needs: bulk, place: "package doc, The tree",
		rule: "a value that looks like the encoding of another is not decoded, whoever writes and reads it"},
	{name: "ReadsAreMonotonic", rules: "R23", run: readsAreMonotonic, place: "package doc, Guarantees: reads",
		rule: "a read is not older than one of the same session that had returned before it began"},
	{name: "LargeAnswers", rules: "R76", run: largeAnswers, place: "registry.Store",
		rule: "no Get, Children or watch fails for the size of what it reads"},
}

func createGet(t *caseRun) {
	before := t.create(t.s, t.path("before"), "")
	t.commit(t.s, registry.Create(t.path("a"), []byte("value")))
	n := t.present(t.s, t.path("a"))
	switch {
	case string(n.Value) != "value":
		t.fatalf("value %q; want %q", n.Value, "value")
	case n.Version != 0:
		t.fatalf("version %d of a new node; want 0", n.Version)
	case n.Created != n.Modified:
		t.fatalf("Created %d differs from Modified %d of a new node", n.Created, n.Modified)
	case n.Created <= before.Created:
		t.fatalf("Created %d is not greater than that of a node created before, %d", n.Created, before.Created)
	case n.Ephemeral || n.Owned:
		t.fatalf("a persistent node reads as %s", show(n))
	}
}

func createExists(t *caseRun) {
	first := t.create(t.s, t.path("a"), "first")
	t.refused(t.s, 0, registry.ErrExists, registry.Create(t.path("a"), []byte("second")))
	t.refused(t.s, 0, registry.ErrExists, registry.CreateEphemeral(t.path("a"), []byte("second")))
	t.unchanged(t.s, first)
}

func createNoParent(t *caseRun) {
	t.refused(t.s, 0, registry.ErrNoParent, registry.Create(t.path("a/b"), nil))
	t.refused(t.s, 0, registry.ErrNoParent, registry.CreateEphemeral(t.path("a/b"), nil))
	t.absent(t.s, t.path("a"), t.path("a/b"))
}

func createUnderEphemeral(t *caseRun) {
	other := t.open()
	t.commit(t.s, registry.CreateEphemeral(t.path("mine"), nil))
	t.commit(other, registry.CreateEphemeral(t.path("theirs"), nil))
	t.sync(t.s)
	for _, parent := range []string{t.path("mine"), t.path("theirs")} {
		t.refused(t.s, 0, registry.ErrEphemeralParent, registry.Create(parent+"/child", nil))
		t.refused(t.s, 0, registry.ErrEphemeralParent, registry.CreateEphemeral(parent+"/child", nil))
		t.absent(t.s, parent+"/child")
	}
}

func createRoot(t *caseRun) {
	for _, op := range []registry.Op{
		registry.Create("/", nil), registry.CreateEphemeral("/", nil), registry.Set("/", nil, registry.AnyVersion),
		registry.Delete("/", registry.AnyVersion), registry.Check("/", registry.AnyVersion),
	} {
		_, err := t.s.Commit(t.ctx, op)
		t.isInvalid("commit("+describe([]registry.Op{op})+")", err)
	}
}

// getMissing reads what has never been, and what has been and is gone: getAll looks at what is left of it.
func getMissing(t *caseRun) {
	t.absent(t.s, t.path("none"), t.path("none/below/nothing"))
	for _, op := range []registry.Op{registry.Create(t.path("gone"), []byte("x")), registry.CreateEphemeral(t.path("gone"), []byte("x"))} {
		t.commit(t.s, op)
		t.commit(t.s, registry.Set(op.Path, []byte("y"), 0))
		t.present(t.s, op.Path)
		t.commit(t.s, registry.Delete(op.Path, 1))
		t.absent(t.s, op.Path)
	}
}

func setMissing(t *caseRun) {
	t.refused(t.s, 0, registry.ErrNotFound, registry.Set(t.path("a"), []byte("x"), registry.AnyVersion))
	t.refused(t.s, 0, registry.ErrNotFound, registry.Set(t.path("a"), []byte("x"), 0))
	t.absent(t.s, t.path("a"))
}

func setAnyVersion(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	for i := 1; i <= 3; i++ {
		t.commit(t.s, registry.Set(t.path("a"), fmt.Append(nil, i), registry.AnyVersion))
		if n := t.present(t.s, t.path("a")); string(n.Value) != fmt.Sprint(i) {
			t.fatalf("value %q after setting %d", n.Value, i)
		}
	}
}

func setRightVersion(t *caseRun) {
	n := t.create(t.s, t.path("a"), "0")
	for _, value := range []string{"1", "2"} {
		t.commit(t.s, registry.Set(n.Path, []byte(value), n.Version))
		n = t.present(t.s, n.Path)
		if string(n.Value) != value {
			t.fatalf("value %q; want %q", n.Value, value)
		}
	}
}

func setWrongVersion(t *caseRun) {
	fresh := t.create(t.s, t.path("fresh"), "x")
	t.refused(t.s, 0, registry.ErrVersion, registry.Set(fresh.Path, []byte("bad"), 1))
	t.create(t.s, t.path("a"), "0")
	t.commit(t.s, registry.Set(t.path("a"), []byte("1"), 0))
	t.commit(t.s, registry.Set(t.path("a"), []byte("2"), 1))
	was := t.present(t.s, t.path("a"))
	for _, v := range []registry.Version{0, 1, 3, 1 << 30} {
		t.refused(t.s, 0, registry.ErrVersion, registry.Set(was.Path, []byte("bad"), v))
	}
	t.unchanged(t.s, was)
	t.unchanged(t.s, fresh)
}

func setVersionIncrements(t *caseRun) {
	was := t.create(t.s, t.path("a"), "same")
	for range 4 {
		t.commit(t.s, registry.Set(was.Path, []byte("same"), registry.AnyVersion))
		n := t.present(t.s, was.Path)
		switch {
		case n.Version != was.Version+1:
			t.fatalf("version went from %d to %d with one Set", was.Version, n.Version)
		case n.Modified <= was.Modified:
			t.fatalf("Modified went from %d to %d with a Set", was.Modified, n.Modified)
		case n.Created != was.Created:
			t.fatalf("Created went from %d to %d with a Set", was.Created, n.Created)
		}
		was = n
	}
}

func deleteMissing(t *caseRun) {
	t.refused(t.s, 0, registry.ErrNotFound, registry.Delete(t.path("a"), registry.AnyVersion))
	t.refused(t.s, 0, registry.ErrNotFound, registry.Delete(t.path("a"), 0))
	t.refused(t.s, 0, registry.ErrNotFound, registry.Delete(t.path("no/parent"), registry.AnyVersion))
}

func deleteAnyVersion(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	t.commit(t.s, registry.Set(t.path("a"), nil, 0))
	t.commit(t.s, registry.Delete(t.path("a"), registry.AnyVersion))
	t.absent(t.s, t.path("a"))
}

func deleteWrongVersion(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	t.commit(t.s, registry.Set(t.path("a"), []byte("x"), 0))
	was := t.present(t.s, t.path("a"))
	for _, v := range []registry.Version{0, 2} {
		t.refused(t.s, 0, registry.ErrVersion, registry.Delete(was.Path, v))
	}
	t.unchanged(t.s, was)
	t.commit(t.s, registry.Delete(was.Path, 1))
	t.absent(t.s, was.Path)
}

func deleteWithChildren(t *caseRun) {
	for _, child := range []registry.Op{
		registry.Create(t.path("p/persistent"), nil), registry.CreateEphemeral(t.path("e/ephemeral"), nil),
	} {
		parent := child.Path[:strings.LastIndexByte(child.Path, '/')]
		was := t.create(t.s, parent, "x")
		t.commit(t.s, child)
		t.refused(t.s, 0, registry.ErrNotEmpty, registry.Delete(parent, registry.AnyVersion))
		t.refused(t.s, 0, registry.ErrNotEmpty, registry.Delete(parent, 0))
		t.unchanged(t.s, was)
		t.present(t.s, child.Path)
		t.commit(t.s, registry.Delete(child.Path, registry.AnyVersion))
		t.commit(t.s, registry.Delete(parent, 0))
		t.absent(t.s, parent)
	}
}

func recreateRestartsVersion(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	t.commit(t.s, registry.Set(t.path("a"), nil, 0))
	t.commit(t.s, registry.Delete(t.path("a"), 1))
	if n := t.create(t.s, t.path("a"), ""); n.Version != 0 {
		t.fatalf("version %d of a node created again; want 0", n.Version)
	}
}

func recreateNewCreated(t *caseRun) {
	last := t.create(t.s, t.path("a"), "")
	for range 3 {
		t.commit(t.s, registry.Delete(t.path("a"), registry.AnyVersion))
		n := t.create(t.s, t.path("a"), "")
		if n.Created <= last.Created || n.Created <= last.Modified {
			t.fatalf("Created %d of a new incarnation; the one before had Created %d, Modified %d", n.Created, last.Created, last.Modified)
		}
		last = n
	}
}
