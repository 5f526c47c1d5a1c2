package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
)

func emptyValue(t *caseRun) {
	n := t.create(t.s, t.path("a"), "")
	if len(n.Value) != 0 {
		t.fatalf("value %q; want none", n.Value)
	}
	t.commit(t.s, registry.CreateEphemeral(t.path("e"), []byte{}))
	if n := t.present(t.s, t.path("e")); len(n.Value) != 0 {
		t.fatalf("value %q; want none", n.Value)
	}
}

func nilVsEmpty(t *caseRun) {
	t.commit(t.s, registry.Create(t.path("nil"), nil), registry.Create(t.path("empty"), []byte{}), registry.Create(t.path("full"), []byte("x")))
	t.commit(t.s, registry.Set(t.path("full"), nil, 0))
	for _, name := range []string{"nil", "empty", "full"} {
		if n := t.present(t.s, t.path(name)); len(n.Value) != 0 {
			t.fatalf("value of %s is %q; want none", name, n.Value)
		}
	}
	if n := t.present(t.s, t.path("full")); n.Version != 1 {
		t.fatalf("setting nil gave version %d; want 1", n.Version)
	}
}

func valueAtLimit(t *caseRun) {
	portable := registry.PortableLimits().MaxValue
	limit := t.s.Limits().MaxValue
	if limit < portable {
		t.fatalf("Limits().MaxValue is %d; portable is %d", limit, portable)
	}
	// A commit holds paths too, so MaxValue itself may not fit beside them.
	for i, size := range []int{portable, min(limit, t.s.Limits().MaxBytes-len(t.path("0")))} {
		value := bytes.Repeat([]byte{byte('a' + i)}, size)
		n := t.create(t.s, t.path(fmt.Sprint(i)), string(value))
		if !bytes.Equal(n.Value, value) {
			t.fatalf("%d bytes were written, %d others came back", size, len(n.Value))
		}
	}
}

func valueOverLimit(t *caseRun) {
	s := t.open() // a store has asked for nothing yet
	watches := s
	if of, is := s.(*lifelessSession); is {
		watches = of.Session
	}
	w, err := watches.Watch(t.ctx)
	if err != nil {
		t.fatalf("Watch: %v", err)
	}
	defer w.Close()
	heal := t.blackhole(s)
	defer heal()
	ctx, cancel := context.WithTimeout(t.ctx, t.h.SessionTimeout()/2)
	defer cancel()
	const bad = "no path"
	start := time.Now()
	long := func(op registry.Op) func() error {
		op.Value = make([]byte, s.Limits().MaxValue+1)
		return func() error { return second(s.Commit(ctx, op)) }
	}
	for what, call := range map[string]func() error{
		"commit of a value over the limit":  long(registry.Create(t.path("a"), nil)),
		"an ephemeral value over the limit": long(registry.CreateEphemeral(t.path("a"), nil)),
		"Set of a value over the limit":     long(registry.Set(t.dir, nil, registry.AnyVersion)),
		"commit of nothing":                 func() error { _, err := s.Commit(ctx); return err },
		"commit of a path that cannot be": func() error {
			_, err := s.Commit(ctx, registry.Create(t.path("a"), nil), registry.Check(bad, 0))
			return err
		},
		"Get of a path that cannot be":      func() error { _, err := s.Get(ctx, t.dir, bad); return err },
		"Children of a path that cannot be": func() error { _, err := s.Children(ctx, bad); return err },
		"Lock of a path that cannot be":     func() error { _, err := s.Lock(ctx, bad, nil); return err },
		"TryLock of a path that cannot be":  func() error { _, err := s.TryLock(ctx, bad, nil); return err },
		"Add of a path that cannot be":      func() error { return w.Add(bad, registry.Self) },
		"Add of a scope that cannot be":     func() error { return w.Add(t.dir, registry.Children+1) },
	} {
		t.isInvalid(what, call())
	}
	if d := time.Since(start); d > t.h.SessionTimeout()/3 {
		t.fatalf("the refusals took %v without a network: something was sent first", d)
	}
	t.proveBlackhole(s)
	heal()
	if n := t.latest(t.s, t.path("a")); n.Exists() {
		t.fatalf("%s was made", show(n))
	}
}

// proveBlackhole waits until the fault has swallowed something of s.
func (t *caseRun) proveBlackhole(s registry.Session) {
	_, _ = s.Get(t.within(t.h.SessionTimeout()/10), t.dir)
	if t.h.Faults().Hits(s) == 0 {
		t.eventually("the fault to hit", func() string {
			if t.h.Faults().Hits(s) == 0 {
				return "void, nothing is proved: Faults.Hits is 0"
			}
			return ""
		})
	}
}

func binaryValue(t *caseRun) {
	value := make([]byte, 512)
	for i := range value {
		value[i] = byte(i)
	}
	n := t.create(t.s, t.path("a"), string(value))
	if !bytes.Equal(n.Value, value) {
		t.fatalf("the bytes 0…255, twice, came back as %d bytes %x", len(n.Value), n.Value)
	}
}

func unicodeSegment(t *caseRun) {
	names := []string{"größe", "gro\u0308ße", "日本語", "a b", "100%", "%2F", "a+b&c=d", "~", "[0]*?", "Ω", "ω", "-", "_", "...",
		"\u00a0", "\ud7ff", "\uf900", "\uffef"} // next to those that are refused
	for _, name := range names {
		t.create(t.s, t.path(name), name)
	}
	got := t.children(t.s, t.dir)
	if len(got) != len(names) {
		t.fatalf("%d names were created, %d are listed: %q", len(names), len(got), got)
	}
	for _, name := range got {
		if n := t.present(t.s, t.path(name)); string(n.Value) != name {
			t.fatalf("%q reads as the node that was created as %q", name, n.Value)
		}
	}
}

func segmentAtLimit(t *caseRun) {
	name := strings.Repeat("s", 255)
	t.create(t.s, t.path(name), "x")
	if got := t.children(t.s, t.dir); len(got) != 1 || got[0] != name {
		t.fatalf("children %q; want one of 255 bytes", got)
	}
	t.create(t.s, t.path(name)+"/"+name, "below")
	_, err := t.s.Commit(t.ctx, registry.Create(t.path(name+"s"), nil))
	t.isInvalid("commit(create a segment of 256 bytes)", err)
}

func badPaths() []string {
	return []string{
		"", "a", "a/b", "//", "/a/", "/a//b", "/.", "/..", "/a/./b", "/a/../b", "/a\x00b", "/a\nb", "/a\x7fb",
		"/\u001f", "/\u0080", "/\u0085", "/\u009f", "/\ue000", "/\uf8ff", "/\ufff0", "/\uffff", "/\U00010000", "/\U0001f600", "/\U0010ffff",
		"/\xff\xfe", "/" + strings.Repeat("x", 256), "/" + strings.Repeat("abcdefg/", 255) + "abcdefgh",
	}
}

func pathInvalidTable(t *caseRun) {
	w, err := t.s.Watch(t.ctx)
	if err != nil {
		t.fatalf("Watch: %v", err)
	}
	defer w.Close()
	for _, p := range badPaths() {
		for _, op := range []registry.Op{
			registry.Create(p, nil), registry.CreateEphemeral(p, nil), registry.Set(p, nil, 0), registry.Delete(p, 0), registry.Check(p, 0),
		} {
			_, err := t.s.Commit(t.ctx, op)
			t.isInvalid(fmt.Sprintf("commit(%s %.40q)", op.Kind, p), err)
		}
		_, err := t.s.Get(t.ctx, t.dir, p)
		t.isInvalid(fmt.Sprintf("Get(%.40q)", p), err)
		_, err = t.s.Children(t.ctx, p)
		t.isInvalid(fmt.Sprintf("Children(%.40q)", p), err)
		t.isInvalid(fmt.Sprintf("Watcher.Add(%.40q)", p), w.Add(p, registry.Self))
		_, err = t.s.Lock(t.ctx, p, nil)
		t.isInvalid(fmt.Sprintf("Lock(%.40q)", p), err)
		_, err = t.s.TryLock(t.ctx, p, nil)
		t.isInvalid(fmt.Sprintf("TryLock(%.40q)", p), err)
	}
}

func deepPath(t *caseRun) {
	const longest = 2048
	deep := t.dir + strings.Repeat("/d", (longest-len(t.dir))/2-1) + "/last"
	deep = deep[:longest] // its last name has one byte or two
	if err := registry.EnsurePath(t.ctx, t.s, deep); err != nil {
		t.fatalf("EnsurePath of %d levels: %v", strings.Count(deep, "/"), err)
	}
	last := strings.LastIndexByte(deep, '/')
	parent := deep[:last]
	self, below := t.syncedOn(t.s, deep, registry.Self), t.syncedOn(t.s, parent, registry.Children)
	t.commit(t.s, registry.Set(deep, []byte("bottom"), 0))
	if n := t.present(t.s, deep); string(n.Value) != "bottom" {
		t.fatalf("value %q; want %q", n.Value, "bottom")
	}
	self.becomes(deep, "bottom")
	below.becomes(deep, "bottom")
	t.hasChildren(t.s, parent, deep[last+1:])
	t.refused(t.s, 0, registry.ErrNotEmpty, registry.Delete(parent, registry.AnyVersion))
}

func callerMutation(t *caseRun) {
	f := t.follow(t.s)
	f.add(t.path("a"), registry.Self)
	value := []byte("right")
	t.commit(t.s, registry.Create(t.path("a"), value))
	copy(value, "wrong")
	n := t.present(t.s, t.path("a"))
	if string(n.Value) != "right" {
		t.fatalf("value %q after the caller reused its buffer; want %q", n.Value, "right")
	}
	copy(n.Value, "wrong")
	event := f.last("a node of 5 bytes", func(n registry.Node) bool { return n.Exists() })
	if string(event.Value) != "right" {
		t.fatalf("the watch delivered %q; want %q", event.Value, "right")
	}
	copy(event.Value, "wrong")
	again := t.follow(t.s)
	again.add(t.path("a"), registry.Self)
	event = again.last("the node again", func(n registry.Node) bool { return n.Exists() })
	if n := t.present(t.s, t.path("a")); string(n.Value) != "right" || string(event.Value) != "right" {
		t.fatalf("after readers changed the bytes they had read, Get gives %q and a watch %q; want %q", n.Value, event.Value, "right")
	}
}

func getOrder(t *caseRun) {
	for _, name := range []string{"a", "b", "c"} {
		t.create(t.s, t.path(name), name)
	}
	order := []string{"c", "none", "a", "b", "a", "zero", "c"}
	paths := make([]string, len(order))
	for i, name := range order {
		paths[i] = t.path(name)
	}
	for i, n := range t.getAll(t.s, paths...) {
		missing := order[i] == "none" || order[i] == "zero"
		if n.Exists() == missing || (!missing && string(n.Value) != order[i]) {
			t.fatalf("place %d, asked for %s, holds %s with value %q", i, order[i], show(n), n.Value)
		}
	}
}

func getMany(t *caseRun) {
	const count, every = 5000, 11
	var paths, made []string
	for i := range count {
		p := t.path(fmt.Sprintf("n%04d", i))
		paths = append(paths, p)
		if i%every == 0 {
			made = append(made, p)
		}
	}
	t.createAll(t.s, made)
	for i, n := range t.getAll(t.s, paths...) {
		if n.Exists() != (i%every == 0) {
			t.fatalf("place %d of %d holds %s", i, count, show(n))
		}
	}
}

func getNothing(t *caseRun) {
	nodes, err := t.s.Get(t.ctx)
	if err != nil || len(nodes) != 0 {
		t.fatalf("Get() = %d nodes, %v", len(nodes), err)
	}
	if err := registry.EnsurePath(t.ctx, t.s, "/"); err != nil {
		t.fatalf("EnsurePath(/): %v", err)
	}
}

func readOwnWrites(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	for i := 1; i <= 50; i++ {
		value := fmt.Sprint(i)
		t.commit(t.s, registry.Set(t.path("a"), []byte(value), registry.AnyVersion), registry.Create(t.path(value), nil))
		if n := t.get(t.s, t.path("a")); string(n.Value) != value {
			t.fatalf("value %q right after %q was committed by the same session", n.Value, value)
		}
		if names := t.children(t.s, t.dir); len(names) != i+1 {
			t.fatalf("%d children right after the same session made number %d", len(names), i+1)
		}
	}
}

func syncSeesOthers(t *caseRun) {
	other := t.open()
	t.create(other, t.path("a"), "0")
	for i := 1; i <= 50; i++ {
		value := fmt.Sprint(i)
		t.commit(other, registry.Set(t.path("a"), []byte(value), registry.AnyVersion))
		if n := t.latest(t.s, t.path("a")); string(n.Value) != value {
			t.fatalf("value %q after Sync; another session had committed %q before", n.Value, value)
		}
	}
}
