package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// listsAreFresh lists a directory, lets another session change it, learns of that in one of the ways there are,
// and lists it again.
func listsAreFresh(t *caseRun) {
	rounds := t.times(12)
	writer, watching, dir := t.open(), t.open(), t.path("dir")
	t.create(t.s, dir, "")
	f := t.syncedOn(watching, dir, registry.Children)
	told := func(n registry.Node, exists bool) {
		f.until("the change to be told", func() string {
			if last := f.views[target{dir, registry.Children}].nodes[n.Path]; last.Path == "" || last.Exists() != exists {
				return show(last)
			}
			return ""
		})
	}
	ways := []struct {
		name  string
		s     registry.Session // an event would tell the others too
		learn func(n registry.Node, exists bool)
	}{
		{"Sync", t.s, func(registry.Node, bool) { t.sync(t.s) }},
		{"an event", watching, told},
		{"a Get that shows it", t.s, func(n registry.Node, exists bool) {
			t.eventually("Get to show the change", func() string {
				if now := t.get(t.s, n.Path); now.Exists() != exists {
					return show(now)
				}
				return ""
			})
		}},
		{"a commit of its own that needs it", t.s, func(n registry.Node, exists bool) {
			if exists {
				t.commit(t.s, registry.Set(n.Path, nil, registry.AnyVersion))
			} else {
				t.commit(t.s, registry.Create(n.Path, nil), registry.Create(n.Path+"/c", nil))
				t.commit(t.s, registry.Delete(n.Path+"/c", 0), registry.Delete(n.Path, 0))
			}
		}},
	}
	for round := range rounds {
		for i, way := range ways {
			n := registry.Node{Path: fmt.Sprintf("%s/%02d-%d", dir, round, i)}
			name := n.Path[len(dir)+1:]
			for _, exists := range []bool{true, false} {
				t.children(way.s, dir)
				op := registry.Create(n.Path, nil)
				if !exists {
					op = registry.Delete(n.Path, registry.AnyVersion)
				}
				t.commit(writer, op)
				way.learn(n, exists)
				if names := t.children(way.s, dir); slices.Contains(names, name) != exists {
					t.fatalf("after a %s by another session and %s, Children gives %q", op.Kind, way.name, names)
				}
			}
		}
	}
	t.getsAfterLists(writer, dir)
}

// getsAfterLists is the other way round: what Children has shown, Get does not deny.
func (t *caseRun) getsAfterLists(writer registry.Session, dir string) {
	for i := range 10 {
		p := fmt.Sprint(dir, "/", i)
		for _, exists := range []bool{true, false} {
			t.get(t.s, p)
			if exists {
				t.commit(writer, registry.Create(p, nil))
			} else {
				t.commit(writer, registry.Delete(p, 0))
			}
			t.eventually("Children to show the change", func() string {
				if names := t.children(t.s, dir); slices.Contains(names, fmt.Sprint(i)) != exists {
					return fmt.Sprintf("%q", names)
				}
				return ""
			})
			if n := t.get(t.s, p); n.Exists() != exists {
				t.fatalf("Get gives %s after Children had shown the change", show(n))
			}
		}
	}
}

// ownedInEvents asks two sessions of one registry, and one of another, whose nodes they are.
func ownedInEvents(t *caseRun) {
	reg := t.registry()
	sessions := []registry.Session{t.openOn(reg), t.openOn(reg), t.open()}
	early := make([]*follower, len(sessions))
	for i, s := range sessions {
		early[i] = t.syncedOn(s, t.dir, registry.Children)
		early[i].add(t.path("0"), registry.Self)
	}
	for i, s := range sessions {
		t.commit(s, registry.CreateEphemeral(t.path(fmt.Sprint(i)), []byte("made")))
	}
	t.commit(t.s, registry.Create(t.path("persistent"), []byte("made")))
	look := func(f *follower, reader int, value string) {
		for maker := range sessions {
			p := t.path(fmt.Sprint(maker))
			n := f.becomes(p, value)
			if n.Owned != (maker == reader) || !n.Ephemeral {
				t.fatalf("session %d was told of %s, which session %d has made", reader, show(n), maker)
			}
			t.sync(sessions[reader])
			if read := t.get(sessions[reader], p); read.Owned != n.Owned {
				t.fatalf("session %d reads %s, and was told of %s", reader, show(read), show(n))
			}
		}
		if n := f.becomes(t.path("persistent"), "made"); n.Owned || n.Ephemeral {
			t.fatalf("a persistent node was told of as %s", show(n))
		}
	}
	for i := range sessions {
		look(early[i], i, "made")
	}
	for i := range sessions {
		by := sessions[(i+1)%len(sessions)] // who sets a node owns it no more than before
		t.commit(by, registry.Set(t.path(fmt.Sprint(i)), []byte("set"), 0))
	}
	for i, s := range sessions {
		look(early[i], i, "set")
		late := t.syncedOn(s, t.dir, registry.Children)
		look(late, i, "set")
		early[i].until("the Self target to be told too", func() string {
			n := early[i].views[target{t.path("0"), registry.Self}].nodes[t.path("0")]
			switch {
			case string(n.Value) != "set":
				return show(n)
			case n.Owned != (i == 0):
				t.errorf("the Self target of session %d was told of %s, which session 0 has made", i, show(n))
			}
			return ""
		})
	}
}

// readersAtOnce has many calls under way together, which an adapter may make one.
func readersAtOnce(t *caseRun) {
	const readers, rounds, right = 8, 12, "the right value"
	path := t.path("a")
	t.create(t.s, path, right)
	reg := t.registry()
	sessions := []registry.Session{t.openOn(reg), t.openOn(reg)}
	t.sync(sessions[0])
	t.sync(sessions[1])
	for round := range rounds {
		nodes, names := make([][]registry.Node, readers), make([][]string, readers)
		begin := make(chan struct{})
		var all sync.WaitGroup
		for i := range readers {
			s := sessions[i*round%2]
			all.Go(func() {
				<-begin
				var err error
				if nodes[i], err = s.Get(t.ctx, path); err == nil {
					names[i], err = s.Children(t.ctx, t.dir)
				}
				if err != nil {
					t.errorf("one of %d reads at once: %v", readers, err)
				}
			})
		}
		close(begin)
		all.Wait()
		for i := range readers {
			if len(nodes[i]) != 1 || len(names[i]) != 1 {
				t.fatalf("reader %d of %d at once was given %d nodes and the children %q", i, readers, len(nodes[i]), names[i])
			}
			if n := nodes[i][0]; string(n.Value) != right || names[i][0] != "a" {
				t.fatalf("reader %d of %d at once holds value %q and the child %q, which another one had changed for itself; want %q and a",
					i, readers, n.Value, names[i][0], right)
			}
			scribble(nodes[i][0].Value)
			nodes[i][0], names[i][0] = registry.Node{}, "scribbled"
		}
		if n := t.present(sessions[round%2], path); string(n.Value) != right {
			t.fatalf("a later Get holds %q", n.Value)
		}
	}
}

// sizes are values that an adapter may treat in different ways.
func (t *caseRun) sizes() []int {
	most := min(t.s.Limits().MaxValue, t.s.Limits().MaxBytes-len(t.path("create-0000000")))
	return []int{1, 1 << 10, 4<<10 + 1, 65 << 10, registry.PortableLimits().MaxValue, most}
}

// largeValuesAreOwned passes values of all sizes, and scribbles over them and over what it is given.
func largeValuesAreOwned(t *caseRun) {
	reader := t.open()
	f := t.syncedOn(reader, t.dir, registry.Children)
	for i, size := range t.sizes() {
		right := slices.Repeat([]byte{byte('a' + i)}, size)
		holds := func(what string, value []byte) {
			if !slices.Equal(value, right) {
				t.fatalf("%s of %d bytes holds %d bytes, %.20q…, after its owner or another reader scribbled over theirs",
					what, size, len(value), value)
			}
		}
		made, mine, set := t.path(fmt.Sprint("create-", i)), t.path(fmt.Sprint("ephemeral-", i)), t.path(fmt.Sprint("set-", i))
		t.create(t.s, set, "")
		for _, op := range []registry.Op{registry.Create(made, nil), registry.CreateEphemeral(mine, nil), registry.Set(set, nil, 0)} {
			op.Value = slices.Clone(right)
			t.commit(t.s, op)
			scribble(op.Value)
		}
		for _, p := range []string{made, mine, set} {
			for range 2 {
				for _, s := range []registry.Session{t.s, reader} {
					t.sync(s)
					n := t.present(s, p)
					holds("a Get", n.Value)
					scribble(n.Value)
				}
			}
			told := f.last("the node to be told", func(n registry.Node) bool { return n.Path == p && len(n.Value) == size })
			holds("an event", told.Value)
			scribble(told.Value)
			holds("a Get after the event", t.present(reader, p).Value)
		}
		t.commit(t.s, registry.Delete(made, 0), registry.Delete(mine, 0), registry.Delete(set, 1))
	}
}

// lateValues are those of commits that are applied when their owner has long used the bytes for something else.
func lateValues(t *caseRun) {
	for n := range attempts {
		author := t.openLate()
		set, made := t.path(fmt.Sprint("set", n)), t.path(fmt.Sprint("made", n))
		t.create(t.s, set, "old")
		one, two := []byte("right"), slices.Repeat([]byte("right"), 14<<10)
		t.late(author, registry.Set(set, one, 0), registry.Create(made, two))
		scribble(one)
		scribble(two)
		ctx, cancel := context.WithTimeout(t.ctx, 2*LateBy)
		defer cancel()
		for ctx.Err() == nil {
			t.sync(t.s)
			nodes := t.getAll(t.s, set, made)
			if nodes[0].Version == 0 {
				t.elapse(pollEvery)
				continue
			}
			t.rightOrFail("applied late", nodes...)
			return
		}
		t.step("the commit was not applied late: an election, for one, may have lost it")
	}
	t.void("in %d attempts no commit was applied late", attempts)
}

// rightOrFail takes nodes whose values are "right", once or many times.
func (t *caseRun) rightOrFail(what string, nodes ...registry.Node) {
	for _, n := range nodes {
		for i, b := range n.Value {
			if b != "right"[i%5] {
				t.fatalf("a commit that was %s wrote %s with value %.20q, which its caller put there after the return; want right", what, show(n), n.Value)
			}
		}
	}
}

// pausedValues are those of commits that the service has got and looks at later.
func pausedValues(t *caseRun) {
	reader, set := t.open(), t.path("set")
	t.create(t.s, set, "old")
	t.sync(reader)
	resume := t.pause()
	for _, op := range []registry.Op{
		registry.Set(set, []byte("right"), 0), registry.Create(t.path("made"), slices.Repeat([]byte("right"), 14<<10)),
		registry.CreateEphemeral(t.path("mine"), []byte("right")),
	} {
		_, err := t.try(t.within(t.h.SessionTimeout()/20), t.s, op)
		if err == nil {
			t.void("the service answers a commit while it is paused")
		}
		scribble(op.Value)
	}
	resume()
	t.commit(reader, registry.Create(t.path("after"), nil))
	t.still(func() {
		t.sync(reader)
		for _, n := range t.getAll(reader, set, t.path("made"), t.path("mine")) {
			if n.Exists() && string(n.Value) != "old" {
				t.rightOrFail("sent while the service was paused", n)
			}
		}
	})
}

// encoded are values that look like the encoding of others.
func encoded() [][]byte {
	var all [][]byte
	for _, v := range []string{
		`\x6162`, `\x`, `\x616`, `\\x6162`, `\141\142`, "0x6162", "6162", "YWI=", "YWI", "H4sIAAAAAAAA/w==", "%61%62", "&amp;", "&#97;", "=?utf-8?q?ab?=",
		`"ab"`, `'ab'`, "{}", "[]", `{"a":1}`, "true", "undefined", "nil", "<nil>", "NaN", "1e3", "+1", "007", "$1", "${a}", "%s", "%!s(MISSING)", "?", "E'ab'",
		"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "\x78\x9c", "\x28\xb5\x2f\xfd", "\x04\x22\x4d\x18", "PK\x03\x04", "\xef\xbb\xbfbom", "\xff\xfea\x00",
		"\x0a\x02ab", "\x80\x01", "\r\n", "a\r\nb", "a\nb", "\x1a", "\x7f", "\x1b[0m", "a\x00", "\x00\x00\x00\x02ab", "\u2028", "e\u0301", "\xc3\x28",
	} {
		all = append(all, []byte(v))
	}
	return all
}

// valuesLikeEncodings writes them in each way and reads them in each.
func valuesLikeEncodings(t *caseRun) {
	p, reader := t.path("set"), t.open()
	t.create(t.s, p, "")
	f := t.syncedOn(reader, t.dir, registry.Children)
	for i, value := range encoded() {
		made := t.path(fmt.Sprintf("made-%03d", i))
		op := registry.Create(made, value)
		if i%3 == 0 {
			op = registry.CreateEphemeral(made, value)
		}
		t.commit(t.s, op, registry.Set(p, value, registry.Version(i)))
		for _, path := range []string{made, p} {
			if n := t.present(t.s, path); !slices.Equal(n.Value, value) {
				t.fatalf("the value %q came back as %q", value, n.Value)
			}
			told := f.last("the write to be told", func(n registry.Node) bool {
				return n.Path == path && n.Exists() && (path == made || int(n.Version) == i+1)
			})
			if !slices.Equal(told.Value, value) {
				t.fatalf("the value %q was told of as %q", value, told.Value)
			}
		}
		t.commit(t.s, registry.Delete(made, 0))
	}
}
