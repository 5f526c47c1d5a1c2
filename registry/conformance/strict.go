package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

func readsAreMonotonic(t *caseRun) {
	const writes, readers = 60, 4
	writer, s := t.open(), t.open()
	t.create(writer, t.path("a"), "")
	t.create(writer, t.path("b"), "")
	var mu sync.Mutex
	newest := map[string]registry.Revision{}
	done := make(chan struct{})
	var reads atomic.Int64
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for ; ; reads.Add(1) {
				select {
				case <-done:
					return
				default:
				}
				<-time.After(200 * time.Microsecond) // what spins keeps heartbeats from their time
				mu.Lock()
				least := map[string]registry.Revision{t.path("a"): newest[t.path("a")], t.path("b"): newest[t.path("b")]}
				mu.Unlock()
				nodes, err := s.Get(t.ctx, t.path("a"), t.path("b"))
				if err != nil {
					t.errorf("Get: %v", err)
					return
				}
				mu.Lock()
				for _, n := range nodes {
					if n.Modified < least[n.Path] {
						t.errorf("a read gives %s after one that had returned before gave Modified %d", show(n), least[n.Path])
					}
					newest[n.Path] = max(newest[n.Path], n.Modified)
				}
				mu.Unlock()
			}
		})
	}
	for i := range writes {
		if _, err := writer.Commit(t.ctx, registry.Set(t.path("ab"[i%2:i%2+1]), nil, registry.AnyVersion)); err != nil {
			t.errorf("Set: %v", err)
			break
		}
		if i%20 == 10 {
			t.drop(s)
		}
		for enough := reads.Load() + 1; reads.Load() < enough && !t.Failed() && t.ctx.Err() == nil; {
			<-time.After(100 * time.Microsecond) // every write has its readers
		}
	}
	close(done)
	wg.Wait()
}

func largeAnswers(t *caseRun) {
	const nodes, names = 20, 2000
	size := registry.PortableLimits().MaxValue
	var paths []string
	t.create(t.s, t.path("large"), "")
	for i := range nodes {
		p := t.path(fmt.Sprint("large/", i))
		paths = append(paths, p)
		t.commit(t.s, registry.Create(p, bytes.Repeat([]byte{byte('a' + i)}, size)))
	}
	for i, n := range t.getAll(t.s, paths...) {
		if len(n.Value) != size || n.Value[0] != byte('a'+i) || n.Value[size-1] != byte('a'+i) {
			t.fatalf("node %d of %d holds %d bytes; want %d", i, nodes, len(n.Value), size)
		}
	}
	f := t.syncedOn(t.open(), t.path("large"), registry.Children)
	f.mu.Lock()
	got := len(f.children(target{t.path("large"), registry.Children}))
	f.mu.Unlock()
	if got != nodes {
		t.fatalf("a watch delivered %d nodes of %d bytes before Synced; want %d", got, size, nodes)
	}
	t.create(t.s, t.path("long"), "")
	long := make([]string, names)
	for i := range long {
		long[i] = t.path(fmt.Sprintf("long/%05d-%s", i, strings.Repeat("n", 230)))
	}
	t.createAll(t.s, long)
	if got := len(t.children(t.s, t.path("long"))); got != names {
		t.fatalf("%d of %d long names", got, names)
	}
}

// alike are names that a store may take for each other, or for a pattern.
func alike() []string {
	return []string{
		"abc", "ABC", "Abc", "abc ", " abc", "abc%", "abc_", "ab_", "ab%", "%", "_", `abc\`, `ab\%`, "abc%20", "abc%61", "abc+", "abc&lt;", "a'b", "a''b", `a"b`, "a`b", "a;--", "a*", "a?", "[abc]", "a[b]c",
		"\u00e9", "e\u0301", "ß", "ss", "\u017f", "i", "\u0130", "\u0131", "K", "\u212a", "fi", "A", "\u0391", "a\u200bc", "ac", "a\u00a0b",
		"a b", "a  b", "\u00a0", "0", "00", "0x0", "null", "NULL", "-1",
	}
}

func byteForByte(t *caseRun) {
	names := alike()
	f := t.syncedOn(t.open(), t.dir, registry.Children)
	for _, name := range names {
		f.add(t.path(name), registry.Self)
		f.add(t.path(name), registry.Children)
	}
	for _, name := range names {
		t.commit(t.s, registry.Create(t.path(name), []byte(name+" ")), registry.Create(t.path(name)+"/child of "+name, nil))
	}
	listed := map[string]bool{}
	for _, name := range t.children(t.s, t.dir) {
		listed[name] = true
	}
	if len(listed) != len(names) {
		t.fatalf("%d names that differ in some byte were created; %d are listed", len(names), len(listed))
	}
	for _, name := range names {
		if n := t.present(t.s, t.path(name)); string(n.Value) != name+" " || !listed[name] {
			t.fatalf("%q, listed: %v, holds %q; want its name and a space", name, listed[name], n.Value)
		}
		if got := t.children(t.s, t.path(name)); len(got) != 1 || got[0] != "child of "+name {
			t.fatalf("the children of %q are %q", name, got)
		}
		f.becomes(t.path(name), name+" ")
		f.until(fmt.Sprintf("the targets of %q to have its state", name), func() string {
			self, below := f.views[target{t.path(name), registry.Self}], f.children(target{t.path(name), registry.Children})
			if n := self.nodes[t.path(name)]; string(n.Value) != name+" " || len(below) != 1 || self.synced == 0 {
				return fmt.Sprintf("%s with value %q, children %q", show(n), n.Value, below)
			}
			return ""
		})
	}
	for i, name := range names {
		t.commit(t.s, registry.Delete(t.path(name)+"/child of "+name, 0), registry.Delete(t.path(name), 0))
		if got := len(t.children(t.s, t.dir)); got != len(names)-i-1 {
			t.fatalf("%d names were deleted, %d are left of %d", i+1, got, len(names))
		}
	}
	values := [][]byte{
		{0}, []byte("\x00\x00end"), []byte("trailing   "), []byte(" \t\r\n"), []byte("\xff\xfe\x80"), []byte(`\x41\000`), []byte("''\"\\"), []byte("null"),
		bytes.Repeat([]byte{0, 255}, registry.PortableLimits().MaxValue/2),
	}
	p := t.path("value")
	t.create(t.s, p, "")
	self := t.syncedOn(t.open(), p, registry.Self)
	for i, value := range values {
		t.commit(t.s, registry.Set(p, value, registry.Version(i)))
		if n := t.present(t.s, p); !bytes.Equal(n.Value, value) {
			t.fatalf("%.20q, %d bytes, came back as %.20q, %d bytes", value, len(value), n.Value, len(n.Value))
		}
		self.last(fmt.Sprintf("%.20q to arrive", value), func(n registry.Node) bool { return bytes.Equal(n.Value, value) })
	}
}

func revisionOfEveryKind(t *caseRun) {
	last := t.commit(t.s, registry.Create(t.path("set"), nil))
	next := func(what string, rev registry.Revision, wrote bool) {
		if rev < last || wrote && rev == last || rev == 0 {
			t.fatalf("%s returned revision %d; the commit before was %d", what, rev, last)
		}
		last = rev
	}
	for i := range 3 {
		p, e := t.path(fmt.Sprint("p", i)), t.path(fmt.Sprint("e", i))
		rev := t.commit(t.s, registry.Create(p, nil))
		next("a Create", rev, true)
		if n := t.present(t.s, p); n.Created != rev || n.Modified != rev {
			t.fatalf("a Create returned %d and wrote %s", rev, show(n))
		}
		rev = t.commit(t.s, registry.CreateEphemeral(e, nil), registry.Check(p, 0))
		next("a CreateEphemeral", rev, true)
		if n := t.present(t.s, e); n.Created != rev {
			t.fatalf("a CreateEphemeral returned %d and wrote %s", rev, show(n))
		}
		modified := t.commit(t.s, registry.Set(p, nil, 0))
		next("a Set", modified, true)
		rev = t.commit(t.s, registry.Check(p, 1))
		next("a Check", rev, false)
		if rev < modified {
			t.fatalf("a Check returned %d, less than the Modified %d of what it checked", rev, modified)
		}
		next("checks", t.commit(t.s, registry.Check(p, 1), registry.Check(e, 0), registry.Check(t.dir, registry.AnyVersion)), false)
		next("a Delete", t.commit(t.s, registry.Delete(e, 0)), true)
		next("deletes", t.commit(t.s, registry.Delete(p, 1), registry.Check(t.dir, registry.AnyVersion)), true)
	}
}

func checksAreFresh(t *caseRun) {
	writer := t.open()
	t.create(writer, t.path("a"), "")
	for i := range registry.Version(t.times(40)) {
		flag := t.path(fmt.Sprint("flag", i))
		t.commit(writer, registry.Set(t.path("a"), nil, i), registry.Create(flag, nil))
		t.commit(t.s, registry.Check(t.path("a"), i+1), registry.Check(flag, registry.AnyVersion))
		t.commit(writer, registry.Delete(flag, 0))
		t.refused(t.s, 0, registry.ErrNotFound, registry.Check(flag, registry.AnyVersion))
		t.refused(t.s, 0, registry.ErrVersion, registry.Check(t.path("a"), i))
	}
}

func precedence(t *caseRun) {
	t.create(t.s, t.path("p"), "")
	t.create(t.s, t.path("p/c"), "")
	t.refused(t.s, 0, registry.ErrVersion, registry.Delete(t.path("p"), 7))
	t.refused(t.s, 1, registry.ErrVersion, registry.Check(t.dir, registry.AnyVersion), registry.Delete(t.path("p"), 7))
	t.refused(t.s, 0, registry.ErrNotEmpty, registry.Delete(t.path("p"), 0))
	t.refused(t.s, 0, registry.ErrNotFound, registry.Delete(t.path("none"), 7))
	t.refused(t.s, 0, registry.ErrNotFound, registry.Set(t.path("none/below"), nil, 7))
}

func hugeVersions(t *caseRun) {
	n := t.create(t.s, t.path("a"), "x")
	for _, v := range []registry.Version{1, 1 << 16, 1 << 31, 1<<31 - 1, 1 << 32, 1<<32 - 1, 1<<33 + 0, math.MaxInt64, math.MaxInt64 - 1} {
		for _, op := range []registry.Op{registry.Check(n.Path, v), registry.Set(n.Path, nil, v), registry.Delete(n.Path, v)} {
			t.refused(t.s, 0, registry.ErrVersion, op)
			t.refused(t.s, 1, registry.ErrVersion, registry.Create(t.path("b"), nil), op)
		}
		t.refused(t.s, 0, registry.ErrNotFound, registry.Check(t.path("none"), v))
	}
	t.unchanged(t.s, n)
}

// largeCommits looks on while commits that are as large as they may be are made and refused.
func largeCommits(t *caseRun) {
	limits := t.s.Limits()
	n := min(limits.MaxOps, limits.MaxBytes/(len(t.dir)+16), 2000)
	reader := t.open()
	paths := make([]string, n)
	for i := range paths {
		paths[i] = t.path(fmt.Sprintf("%05d", i))
	}
	look := func(what string, versions ...registry.Version) (stop func()) {
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				first := t.getAll(reader, paths[n-1], paths[0])
				t.sync(reader)
				later := t.getAll(reader, paths[0], paths[n-1], paths[n/2])
				for _, was := range first {
					for _, is := range later {
						if is.Modified < was.Modified || was.Exists() && !is.Exists() {
							t.errorf("%s: a reader saw %s, and after Sync %s", what, show(was), show(is))
							return
						}
					}
				}
			}
		})
		return func() { close(done); wg.Wait() }
	}
	one := func(what string, ops []registry.Op) {
		rev := t.commit(t.s, ops...)
		for _, node := range t.getAll(t.s, paths...) {
			if node.Exists() && node.Modified != rev {
				t.fatalf("%s: a commit at revision %d wrote %s", what, rev, show(node))
			}
		}
	}
	stop := look("creates and sets")
	one("creates", t.each(n, func(p string) registry.Op { return registry.Create(p, nil) }))
	one("sets", t.each(n, func(p string) registry.Op { return registry.Set(p, []byte("1"), 0) }))
	stop()
	bad := t.each(n, func(p string) registry.Op { return registry.Set(p, []byte("2"), 1) })
	bad[n-1].Version = 7
	t.refused(t.s, n-1, registry.ErrVersion, bad...)
	bad[n-1] = registry.Create(t.path("none/below"), nil)
	t.refused(t.s, n-1, registry.ErrNoParent, bad...)
	t.sync(reader)
	for _, node := range t.getAll(reader, paths...) {
		if node.Version != 1 || string(node.Value) != "1" {
			t.fatalf("after refused commits of %d operations: %s with value %q", n, show(node), node.Value)
		}
	}
	full := t.filled(limits.MaxBytes)
	if len(full) > limits.MaxOps {
		return
	}
	for i := range full {
		full[i].Path = t.path(fmt.Sprintf("F%04d", i))
	}
	rev := t.commit(t.s, full...)
	for _, op := range full {
		if node := t.latest(reader, op.Path); node.Created != rev || !bytes.Equal(node.Value, op.Value) {
			t.fatalf("a commit of %d bytes at revision %d: a reader sees %s", limits.MaxBytes, rev, show(node))
		}
	}
}

// oneClass provokes each error and looks at what else it is.
func oneClass(t *caseRun) {
	sentinels := map[string]error{
		"ErrNotFound": registry.ErrNotFound, "ErrExists": registry.ErrExists, "ErrVersion": registry.ErrVersion, "ErrNotEmpty": registry.ErrNotEmpty,
		"ErrNoParent": registry.ErrNoParent, "ErrEphemeralParent": registry.ErrEphemeralParent, "ErrInvalid": registry.ErrInvalid,
		"ErrUnavailable": registry.ErrUnavailable, "ErrUncertain": registry.ErrUncertain, "ErrSessionLost": registry.ErrSessionLost,
		"ErrDenied": registry.ErrDenied, "ErrHeld": registry.ErrHeld, "ErrClosed": registry.ErrClosed,
	}
	is := func(err error, names ...string) {
		t.step("want %v: %v", names, err)
		for name, sentinel := range sentinels {
			want := false
			for _, n := range names {
				want = want || n == name
			}
			if errors.Is(err, sentinel) != want {
				t.fatalf("error %v: is %s: %v; want %v and nothing else", err, name, !want, names)
			}
		}
	}
	commit := func(ops ...registry.Op) error { _, err := t.s.Commit(t.ctx, ops...); return err }
	p := t.create(t.s, t.path("p"), "").Path
	t.create(t.s, p+"/c", "")
	t.commit(t.s, registry.CreateEphemeral(t.path("e"), nil))
	is(commit(registry.Check(t.path("none"), registry.AnyVersion)), "ErrNotFound")
	is(commit(registry.Set(t.path("none"), nil, 0)), "ErrNotFound")
	is(commit(registry.Delete(t.path("none"), 0)), "ErrNotFound")
	is(commit(registry.Create(p, nil)), "ErrExists")
	is(commit(registry.CreateEphemeral(p, nil)), "ErrExists")
	is(commit(registry.Check(p, 7)), "ErrVersion")
	is(commit(registry.Set(p, nil, 7)), "ErrVersion")
	is(commit(registry.Delete(p, 0)), "ErrNotEmpty")
	is(commit(registry.Create(t.path("none/x"), nil)), "ErrNoParent")
	is(commit(registry.CreateEphemeral(t.path("none/x"), nil)), "ErrNoParent")
	is(commit(registry.Create(t.path("e/x"), nil)), "ErrEphemeralParent")
	is(commit(), "ErrInvalid")
	is(second(t.s.Children(t.ctx, t.path("none"))), "ErrNotFound")
	is(second(t.s.Get(t.ctx, "bad")), "ErrInvalid")
	t.lock(t.s, t.path("lock"))
	is(second(t.s.TryLock(t.ctx, t.path("lock"), nil)), "ErrHeld")
	for _, ctx := range t.ended() {
		is(second(t.s.Get(ctx, p)))
		is(second(t.s.Lock(ctx, t.path("lock"), nil)))
	}
	w := t.watch(t.s)
	_ = w.Close()
	is(second(w.Next(t.ctx)), "ErrClosed")
	reg := t.registry()
	gone := t.openOn(reg)
	dead := t.watch(gone)
	t.mustClose(gone)
	is(second(gone.Get(t.ctx, p)), "ErrSessionLost")
	is(second(gone.Commit(t.ctx, registry.Create(t.path("x"), nil))), "ErrSessionLost")
	is(second(dead.Next(t.ctx)), "ErrSessionLost")
	is(gone.Err(), "ErrSessionLost")
	cut := t.open()
	heal := t.blackhole(cut)
	defer heal()
	is(second(cut.Get(t.within(t.h.SessionTimeout()/8), p)), "ErrUnavailable")
	is(second(cut.Commit(t.within(t.h.SessionTimeout()/8), registry.Create(t.path("x"), nil))), "ErrUncertain")
	heal()
	if err := reg.Close(); err != nil {
		t.fatalf("Registry.Close: %v", err)
	}
	is(second(reg.Open(t.ctx)), "ErrClosed")
}

// uncertainKinds lets each kind of operation be uncertain alone.
func uncertainKinds(t *caseRun) {
	for _, fate := range []Fate{AnswerLost, RequestLost} {
		dir := t.path(fate.String())
		t.create(t.s, dir, "")
		for _, name := range []string{"set", "delete", "check"} {
			t.create(t.s, dir+"/"+name, "old")
		}
		for name, op := range map[string]registry.Op{
			"create": registry.Create(dir+"/create", []byte("new")), "ephemeral": registry.CreateEphemeral(dir+"/ephemeral", []byte("new")),
			"set": registry.Set(dir+"/set", []byte("new"), 0), "any": registry.Set(dir+"/check", []byte("new"), registry.AnyVersion),
			"delete": registry.Delete(dir+"/delete", 0),
		} {
			t.uncertain(t.s, fate, op)
			applied := func() bool {
				n := t.latest(t.s, op.Path)
				if n.Version > 1 {
					t.fatalf("%s of unknown outcome was applied more than once: %s", name, show(n))
				}
				return n.Exists() && string(n.Value) == "new" || op.Kind == registry.OpDelete && !n.Exists()
			}
			if fate == AnswerLost {
				t.eventually(name+" to be applied", func() string {
					if applied() {
						return ""
					}
					return "it is not"
				})
			}
			t.still(func() {
				if fate == RequestLost && applied() {
					t.fatalf("the request of a %s was lost, and it was applied: somebody sent it again", name)
				}
			})
			applied()
		}
		t.uncertain(t.s, fate, registry.Check(dir, 0))
	}
	t.alive(t.s)
}

// denied has a service refuse a part of the tree; one that cannot never says ErrDenied.
func denied(t *caseRun) {
	if _, can := t.h.Harness.Faults().(DenyFaults); !can {
		t.nothingDenied()
		return
	}
	reg := t.registry()
	s, st := t.openOn(reg), t.store(reg)
	secret, open := t.path("secret"), t.path("open")
	t.create(t.s, secret, "x")
	t.create(t.s, open, "x")
	t.create(t.s, secret+"/lock", "")
	w := t.watch(s)
	for _, p := range []string{secret, open} {
		if err := w.Add(p, registry.Self); err != nil {
			t.fatalf("Add: %v", err)
		}
		t.drain(w, func(e registry.Event) bool { return e.Synced })
	}
	allow, err := t.h.Faults().(*observedFaults).Deny(secret)
	t.must("Deny "+secret, err)
	defer allow()
	for what, err := range map[string]error{
		"Get":                 second(s.Get(t.ctx, open, secret)),
		"Get behind others":   second(s.Get(t.ctx, append(slices.Repeat([]string{open}, 300), secret)...)),
		"Children":            second(s.Children(t.ctx, secret)),
		"Commit":              second(s.Commit(t.ctx, registry.Set(secret, nil, 0))),
		"Lock":                second(s.Lock(t.within(t.left()/4), secret+"/lock", nil)),
		"TryLock":             second(s.TryLock(t.within(t.left()/4), secret+"/lock", nil)),
		"Create below":        second(s.Commit(t.ctx, registry.Create(secret+"/a", nil))),
		"EnsurePath":          registry.EnsurePath(t.ctx, s, secret+"/a/b"),
		"Get of a store":      second(st.Get(t.within(t.left()/4), open, secret)),
		"Children of a store": second(st.Children(t.within(t.left()/4), secret)),
		"Commit of a store":   second(st.Commit(t.within(t.left()/4), registry.Set(secret, nil, 0))),
		"Commit with others":  second(s.Commit(t.ctx, registry.Create(open+"/a", nil), registry.Delete(secret, 7))),
	} {
		t.step("%s of what is denied = %v", what, err)
		if !errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrUncertain) {
			t.fatalf("%s of what is denied: error %v; want ErrDenied", what, err)
		}
	}
	t.refused(s, 1, registry.ErrDenied, registry.Create(open+"/a", nil), registry.Delete(secret, 7))
	t.absent(s, open+"/a")
	t.deniedFirst(s, open, secret)
	deniedOnce := false
	for t.commit(t.s, registry.Set(open, []byte("y"), registry.AnyVersion)); ; {
		events, err := w.Next(t.ctx)
		if errors.Is(err, registry.ErrDenied) && !deniedOnce {
			t.deniedAlone(err)
			deniedOnce = true
			continue
		}
		if err != nil {
			t.fatalf("Next, the second time after ErrDenied (%v): %v; want the other target to go on", deniedOnce, err)
		}
		done := false
		for _, e := range events {
			if e.Path == secret {
				t.fatalf("the watch delivered %s, which is denied", show(e.Node))
			}
			done = done || string(e.Node.Value) == "y"
		}
		if done && deniedOnce {
			break
		}
		t.commit(t.s, registry.Set(open, []byte("y"), registry.AnyVersion))
	}
	t.deniedAtAdd(w, secret)
	t.deniedAtAdd(t.watch(s), secret)
	allow()
	t.hasChildren(t.s, secret+"/lock")
	t.alive(s)
	for what, err := range map[string]error{
		"Get":                 second(s.Get(t.ctx, open, secret)),
		"Children":            second(s.Children(t.ctx, secret)),
		"Get of a store":      second(st.Get(t.ctx, open, secret)),
		"Children of a store": second(st.Children(t.ctx, secret)),
	} {
		if err != nil {
			t.fatalf("%s of what was denied, which is allowed again: %v", what, err)
		}
	}
	t.create(s, secret+"/a", "")
	t.commit(t.s, registry.Set(secret, []byte("z"), registry.AnyVersion))
	t.still(func() {
		events, _ := w.Next(t.within(5 * pollEvery))
		for _, e := range events {
			if e.Path == secret {
				t.fatalf("the watch delivered %s of a target that was refused and not added again", show(e.Node))
			}
		}
	})
	if err := w.Add(secret, registry.Self); err != nil {
		t.fatalf("Add of a target that had been refused: %v", err)
	}
	told := false
	t.drain(w, func(e registry.Event) bool {
		told = told || e.Path == secret && e.Node.Exists()
		return e.Path == secret && e.Synced
	})
	if !told {
		t.fatalf("a target that had been refused was added again, and Synced came without its state")
	}
}

// deniedAlone demands that a refusal of Next is of no other class.
func (t *caseRun) deniedAlone(err error) {
	for _, other := range []error{registry.ErrUnavailable, registry.ErrUncertain, registry.ErrSessionLost, registry.ErrClosed, registry.ErrInvalid} {
		if errors.Is(err, other) {
			t.fatalf("Next for a target that is denied: error %v is %q as well; want ErrDenied alone", err, other)
		}
	}
}

// deniedAtAdd adds targets that are denied already: each is told to be, and nothing of it.
func (t *caseRun) deniedAtAdd(w registry.Watcher, secret string) {
	for _, scope := range []registry.Scope{registry.Self, registry.Children} {
		if err := w.Add(secret, scope); err != nil {
			t.fatalf("Add: %v", err)
		}
		for told := false; !told; {
			events, err := w.Next(t.within(t.left() / 4))
			told = errors.Is(err, registry.ErrDenied)
			if err != nil && !told {
				t.fatalf("Next after Add of a target (%s) that is denied: %v; want ErrDenied", scope, err)
			}
			t.deniedAlone(err)
			for _, e := range events {
				if e.Path == secret {
					t.fatalf("the watch delivered %s of a target (%s) that is denied", show(e.Node), scope)
				}
			}
		}
	}
}

func (t *caseRun) nothingDenied() {
	for name, call := range t.calls(t.ctx, t.s) {
		if err := call(); errors.Is(err, registry.ErrDenied) {
			t.fatalf("%s: %v; this service denies nothing", name, err)
		}
	}
	cut := t.open()
	heal, err := t.h.Faults().Refuse(cut)
	t.must("Refuse", err)
	defer heal()
	for name, call := range t.calls(t.within(t.h.SessionTimeout()/10), cut) {
		if err := call(); errors.Is(err, registry.ErrDenied) {
			t.fatalf("%s through refused connections: %v; nobody has denied anything", name, err)
		}
	}
	_, err = t.s.Commit(context.WithoutCancel(t.ctx), registry.Set("/", nil, 0))
	t.isInvalid("Set of the root", err)
}
