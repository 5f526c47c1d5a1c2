package conformance

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/registry"
)

// A move is one step of a sequence: a commit, which a fate may meet, a list of
// children, or broken connections.
type move struct {
	kind moveKind
	fate Fate // of a commit; 0: none
	ops  []intent
	path string
}

// An intent is an operation below the sequence's own path. One that fits is bent,
// when it is made, to what the node is then; the others are mostly refused.
type intent struct {
	registry.Op
	fits bool
}

// on is the operation for the node as it is.
func (in intent) on(n registry.Node) registry.Op {
	op := in.Op
	op.Path = n.Path
	if !in.fits {
		return op
	}
	creates := op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral
	switch {
	case creates && n.Exists():
		op.Kind = registry.OpDelete
	case !creates && !n.Exists():
		op.Kind = registry.OpCreate
	}
	op.Version = n.Version
	if op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral {
		op.Version = 0
	}
	return op
}

// opsOn makes operations of intents.
func (t *caseRun) opsOn(store registry.Store, intents []intent) []registry.Op {
	paths := make([]string, len(intents))
	for i, in := range intents {
		paths[i] = t.path(in.Path)
	}
	nodes, err := store.Get(t.ctx, paths...)
	if err != nil || len(nodes) != len(paths) {
		t.fatalf("Get(%q) = %d nodes, %v", paths, len(nodes), err)
	}
	ops := make([]registry.Op, len(intents))
	for i, in := range intents {
		ops[i] = in.on(nodes[i])
	}
	return ops
}

type moveKind uint8

const (
	moveCommit moveKind = iota
	moveList
	moveDrop
)

// modelPaths are few, so that operations meet each other.
func modelPaths() []string { return []string{"a", "a/x", "a/y", "a/x/z", "b", "b/x"} }

func genIntent(t *rapid.T) intent {
	return intent{fits: rapid.IntRange(0, 3).Draw(t, "fits") > 0, Op: registry.Op{
		Kind: rapid.SampledFrom([]registry.OpKind{
			registry.OpCreate, registry.OpCreate, registry.OpCreateEphemeral, registry.OpSet, registry.OpSet, registry.OpDelete, registry.OpCheck,
		}).Draw(t, "kind"),
		Path:    rapid.SampledFrom(modelPaths()).Draw(t, "path"),
		Value:   []byte(rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 3, -1).Draw(t, "value")),
		Version: rapid.SampledFrom([]registry.Version{registry.AnyVersion, registry.AnyVersion, 0, 0, 1, 2}).Draw(t, "version"),
	}}
}

func genIntents(t *rapid.T) []intent {
	n := rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3, 4}).Draw(t, "count")
	byPath := func(in intent) string { return in.Path }
	return rapid.SliceOfNDistinct(rapid.Custom(genIntent), n, n, byPath).Draw(t, "ops")
}

// movesOf is a sequence of RapidSequential.
func movesOf() *rapid.Generator[[]move] {
	const steps = 30
	return rapid.SliceOfN(rapid.Custom(genMove), steps, steps)
}

func genMove(t *rapid.T) move {
	switch rapid.IntRange(0, 39).Draw(t, "move") { // small numbers come more often
	case 12, 13:
		return move{kind: moveDrop}
	case 7, 20, 21:
		return move{fate: AnswerLost, ops: genIntents(t)}
	case 9, 10, 26, 27:
		return move{fate: RequestLost, ops: genIntents(t)}
	case 30, 31, 32, 33, 34, 35:
		return move{kind: moveList, path: rapid.SampledFrom(append(modelPaths(), "")).Draw(t, "path")}
	default:
		return move{ops: genIntents(t)}
	}
}

// simplerMove tries a commit without its fate, and with fewer operations.
func simplerMove(m move) []move {
	var all []move
	if m.fate != 0 {
		all = append(all, move{ops: m.ops})
	}
	if len(m.ops) > 1 {
		for i := range m.ops {
			all = append(all, move{fate: m.fate, ops: slices.Concat(m.ops[:i], m.ops[i+1:])})
		}
	}
	return all
}
