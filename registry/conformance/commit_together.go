package conformance

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// commitTogetherCases are commits that are under way at once, of several sessions or of several callers of one.
var commitTogetherCases = []testCase{
	{name: "EachKindAtOnce", rules: "R36 R37 R38 R44 R45", run: eachKindAtOnce, place: "registry.OpKind, registry.AnyVersion",
		rule: "of many who make or delete one node at once one does, and the others are told why not; at AnyVersion each Set and Delete is applied while the node is there"},
	{name: "GuardsHoldAtOnce", rules: "R17 R50 R112", run: guardsHoldAtOnce, place: "registry.OpCheck; Store.Commit",
		rule: "no commit is applied after what makes its Check fail, however close they are"},
	{name: "RevisionsAtOnce", rules: "R28 R47", run: revisionsAtOnce, place: "Store.Commit",
		rule: "the revision of a commit is the Modified of what it wrote, whatever else is committed at the same time"},
	{name: "AlikeCommitsAtOnce", rules: "R30 R37 R44", run: alikeAtOnce, place: "Store.Commit; package doc, Guarantees",
		rule: "the same operations committed by several callers at once are as many commits"},
	{name: "SiblingsAtOnce", rules: "R9 R18 R49", run: siblingsAtOnce, needs: life, place: "registry.Registry; Node.Owned",
		rule: "what sessions of one registry commit at once is each one's own: the nodes, and the refusals"},
}

// together commits each of ops by itself, all at once and in turn by the sessions, and returns which were applied. The
// others have to fail with one of want.
func (t *caseRun) together(sessions []registry.Session, ops [][]registry.Op, want ...error) (applied []bool) {
	applied = make([]bool, len(ops))
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range ops {
		all.Go(func() {
			<-begin
			_, err := sessions[i%len(sessions)].Commit(t.ctx, ops[i]...)
			applied[i] = err == nil
			if err != nil && !slices.ContainsFunc(want, func(want error) bool { return errors.Is(err, want) }) {
				t.errorf("commit(%s), one of %d at once, failed with %v; want success or %v", describe(ops[i]), len(ops), err, want)
			}
		})
	}
	close(begin)
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return applied
}

// only returns which one was applied.
func (t *caseRun) only(applied []bool, what string) int {
	one := slices.Index(applied, true)
	if one < 0 || slices.Contains(applied[one+1:], true) {
		t.fatalf("%d commits at once were to %s; applied were: %v; want one", len(applied), what, applied)
	}
	return one
}

func eachKindAtOnce(t *caseRun) {
	const callers = 9
	rounds, sessions := t.times(9), []registry.Session{t.s, t.open(), t.open()}
	for round := range rounds {
		at := func(name string) string { return t.path(fmt.Sprint(name, " ", round)) }
		each := func(op func(i int) registry.Op) (ops [][]registry.Op) {
			for i := range callers {
				ops = append(ops, []registry.Op{op(i)})
			}
			return ops
		}
		value := func(i int) []byte { return fmt.Append(nil, i) }
		t.createAll(t.s, []string{at("gone"), at("either"), at("set"), at("fades")})

		create := registry.CreateEphemeral
		if t.c.store {
			create = registry.Create
		}
		mine := t.together(sessions, each(func(i int) registry.Op { return create(at("mine"), value(i)) }), registry.ErrExists)
		winner := t.only(mine, "make one node")
		by := sessions[winner%len(sessions)]
		n := t.latest(by, at("mine"))
		if string(n.Value) != fmt.Sprint(winner) || n.Version != 0 || (!n.Owned && !t.c.store) {
			t.fatalf("of %d who made one node at once number %d did, and reads %s with value %q",
				callers, winner, show(n), n.Value)
		}
		t.only(t.together(sessions, each(func(i int) registry.Op {
			return registry.Delete(at("gone"), registry.Version(i%2-1))
		}), registry.ErrNotFound), "delete one node")
		t.only(t.together(sessions, each(func(i int) registry.Op {
			if i%2 == 0 {
				return registry.Delete(at("either"), 0)
			}
			return registry.Set(at("either"), value(i), 0)
		}), registry.ErrNotFound, registry.ErrVersion), "set or delete one node at version 0")

		t.together(sessions, each(func(i int) registry.Op {
			return registry.Set(at("set"), value(i), registry.AnyVersion)
		}))
		if n := t.latest(t.s, at("set")); n.Version != callers {
			t.fatalf("after %d Sets at once, each acknowledged: %s", callers, show(n))
		}

		deletes := round % callers
		fades := t.together(sessions, each(func(i int) registry.Op {
			if i == deletes {
				return registry.Delete(at("fades"), registry.AnyVersion)
			}
			return registry.Set(at("fades"), value(i), registry.AnyVersion)
		}), registry.ErrNotFound)
		if n := t.latest(t.s, at("fades")); !fades[deletes] || n.Exists() {
			t.fatalf("a Delete at AnyVersion beside Sets was applied: %v; what is left: %s", fades[deletes], show(n))
		}
	}
}

// guardsHoldAtOnce has a guard go, or change, and the state that it guards be closed, in one commit, while others open
// the state if the guard stands.
func guardsHoldAtOnce(t *caseRun) {
	const writers = 6
	rounds, sessions := t.times(40), []registry.Session{t.s, t.open(), t.open()}
	for round := range rounds {
		guard, state := t.path(fmt.Sprint("guard", round)), t.path(fmt.Sprint("state", round))
		t.commit(t.s, registry.Create(guard, nil), registry.Create(state, []byte("new")))
		closes, check, want := registry.Delete(guard, 0), registry.Check(guard, registry.AnyVersion), registry.ErrNotFound
		if round%2 == 1 {
			closes, check, want = registry.Set(guard, nil, 0), registry.Check(guard, 0), registry.ErrVersion
		}
		ops := [][]registry.Op{{closes, registry.Set(state, []byte("closed"), registry.AnyVersion)}}
		for range writers {
			ops = append(ops, []registry.Op{check, registry.Set(state, []byte("open"), registry.AnyVersion)})
		}
		opened := t.together(sessions, ops, want)
		if n := t.latest(t.s, state); !opened[0] || string(n.Value) != "closed" {
			t.fatalf("a commit that needs %s was applied after the commit of %s; the state that this has closed is %q",
				describe([]registry.Op{check}), describe(ops[0]), n.Value)
		}
	}
}

// revisionsAtOnce has several callers write nodes of their own.
func revisionsAtOnce(t *caseRun) {
	const callers = 8
	rounds, sessions := t.times(18), []registry.Session{t.s, t.open(), t.open()}
	paths := make([]string, callers)
	for i := range paths {
		paths[i] = t.path(fmt.Sprint(i))
	}
	t.createAll(t.s, paths)
	var all sync.WaitGroup
	for i, p := range paths {
		all.Go(func() {
			s := sessions[i%len(sessions)]
			for round := range rounds {
				made := fmt.Sprint(p, "/", round)
				rev, err := s.Commit(t.ctx, registry.Set(p, nil, registry.Version(round)), registry.Create(made, nil))
				if err != nil {
					t.fatalf("one of %d who write nodes of their own: %v", callers, err)
				}
				for _, n := range t.getAll(s, p, made) {
					if n.Modified != rev || n.Path == made && n.Created != rev {
						t.fatalf("Commit, beside others, returned %d and wrote %s", rev, show(n))
					}
				}
			}
		})
	}
	all.Wait()
}

// alikeAtOnce has several callers pass one slice.
func alikeAtOnce(t *caseRun) {
	const callers = 8
	rounds, sessions := t.times(12), []registry.Session{t.s}
	for round := range rounds {
		p := t.path(fmt.Sprint(round))
		t.create(t.s, p, "")
		alike := func(ops ...registry.Op) [][]registry.Op { return slices.Repeat([][]registry.Op{ops}, callers) }
		sets := alike(registry.Set(p, []byte("same"), registry.AnyVersion), registry.Check(t.dir, registry.AnyVersion))
		t.together(sessions, sets)
		if n := t.present(t.s, p); n.Version != callers {
			t.fatalf("after %d commits of the same Set at once, each acknowledged: %s", callers, show(n))
		}
		made := t.together(sessions, alike(registry.Create(p+"/made", []byte("same"))), registry.ErrExists)
		t.only(made, "make one node, with the same value")
	}
}

// siblingsAtOnce has two sessions of one registry make nodes, and be refused, at the same time.
func siblingsAtOnce(t *caseRun) {
	const rounds, callers = 6, 12
	reg := t.registry()
	sessions := []registry.Session{t.openOn(reg), t.openOn(reg)}
	made := make([][]string, len(sessions))
	for round := range rounds {
		begin := make(chan struct{})
		var all sync.WaitGroup
		for i := range callers {
			by, want := i%len(sessions), error(nil)
			p := t.path(fmt.Sprint(round, " ", i))
			op := registry.CreateEphemeral(p, nil)
			if i%3 == 2 {
				op, want = registry.Check(p, registry.AnyVersion), registry.ErrNotFound
			} else {
				made[by] = append(made[by], p)
			}
			all.Go(func() {
				<-begin
				if _, err := sessions[by].Commit(t.ctx, op); !errors.Is(err, want) {
					t.errorf("commit(%s), at the same time as others of its registry, = %v; want %v", describe([]registry.Op{op}), err, want)
				}
			})
		}
		close(begin)
		all.Wait()
	}
	for by, s := range sessions {
		for other := range sessions {
			t.sync(s)
			for _, n := range t.getAll(s, made[other]...) {
				if n.Owned != (by == other) || !n.Ephemeral {
					t.fatalf("session %d reads %s of session %d, which made it at the same time as another session of its registry its own",
						by, show(n), other)
				}
			}
		}
	}
	t.mustClose(sessions[0])
	t.sync(t.s)
	t.absent(t.s, made[0]...)
	for _, n := range t.getAll(t.s, made[1]...) {
		if !n.Exists() {
			t.fatalf("%s: its session lives, and another one of its registry was closed", show(n))
		}
	}
}
