package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// isInvalid demands ErrInvalid and nothing else.
func (t *caseRun) isInvalid(what string, err error) {
	t.step("%s = %v", what, err)
	if !errors.Is(err, registry.ErrInvalid) {
		t.fatalf("%s: error %v; want ErrInvalid", what, err)
	}
}

// get reads one node.
func (t *caseRun) get(s registry.Session, path string) registry.Node {
	return t.getAll(s, path)[0]
}

func (t *caseRun) getAll(s registry.Session, paths ...string) []registry.Node {
	nodes, err := s.Get(t.ctx, paths...)
	if err != nil {
		t.fatalf("Get(%d paths, first %s): %v", len(paths), paths[0], err)
	}
	if len(nodes) != len(paths) {
		t.fatalf("Get of %d paths returned %d nodes", len(paths), len(nodes))
	}
	for i := range nodes {
		if nodes[i].Path != paths[i] {
			t.fatalf("Get: node %d is %q; path %d was %q", i, nodes[i].Path, i, paths[i])
		}
		if problem := leftOver(nodes[i]); problem != "" {
			t.fatalf("Get: %s", problem)
		}
	}
	return nodes
}

// leftOver says what an absent node still has of the one that was there, "" for nothing.
func leftOver(n registry.Node) string {
	if n.Exists() || len(n.Value) == 0 && n.Version == 0 && n.Modified == 0 && !n.Ephemeral && !n.Owned {
		return ""
	}
	return fmt.Sprintf("what is absent is told as %+v; want the zero Node but for Path", n)
}

func (t *caseRun) present(s registry.Session, path string) registry.Node {
	n := t.get(s, path)
	if !n.Exists() {
		t.fatalf("%s does not exist", path)
	}
	return n
}

func (t *caseRun) absent(s registry.Session, paths ...string) {
	for _, n := range t.getAll(s, paths...) {
		if n.Exists() {
			t.fatalf("%s exists: %s", n.Path, show(n))
		}
	}
}

// latest syncs, then reads: what the service has now.
func (t *caseRun) latest(s registry.Session, path string) registry.Node {
	t.sync(s)
	return t.get(s, path)
}

func (t *caseRun) sync(s registry.Session) {
	if err := s.Sync(t.ctx); err != nil {
		t.fatalf("Sync: %v", err)
	}
}

func (t *caseRun) children(s registry.Session, path string) []string {
	names, err := s.Children(t.ctx, path)
	if err != nil {
		t.fatalf("Children(%s): %v", path, err)
	}
	return names
}

// goneSoon waits until paths are gone at the service.
func (t *caseRun) goneSoon(s registry.Session, paths ...string) {
	t.eventually("the nodes to vanish", func() string {
		t.sync(s)
		for _, n := range t.getAll(s, paths...) {
			if n.Exists() {
				return show(n) + " still exists"
			}
		}
		return ""
	})
}

// lostSoon waits until s is lost.
func (t *caseRun) lostSoon(s registry.Session) {
	select {
	case <-s.Done():
		t.step("session %s: Done is closed: %v", s.ID(), s.Err())
	case <-t.ctx.Done():
		t.fatalf("Done of session %s was not closed until the end of the case (Deadline %s ago)", s.ID(), time.Since(s.Deadline()).Round(time.Millisecond))
	}
}

// alive fails when s is lost.
func (t *caseRun) alive(s registry.Session) {
	select {
	case <-s.Done():
		t.fatalf("session %s was lost: %v", s.ID(), s.Err())
	default:
	}
}

func show(n registry.Node) string {
	if !n.Exists() {
		return n.Path + " absent"
	}
	kind := ""
	if n.Ephemeral {
		kind = ", ephemeral"
	}
	if n.Owned {
		kind += ", owned"
	}
	return fmt.Sprintf("%s{%d bytes, version %d, created %d, modified %d%s}", n.Path, len(n.Value), n.Version, n.Created, n.Modified, kind)
}

// isError demands an error that wraps want.
func (t *caseRun) isError(err, want error) {
	if !errors.Is(err, want) {
		t.fatalf("error %v; want %q", err, want)
	}
}

// unchanged fails when the node is not what it was.
func (t *caseRun) unchanged(s registry.Session, was registry.Node) {
	n := t.get(s, was.Path)
	if n.Created != was.Created || n.Modified != was.Modified || n.Version != was.Version ||
		n.Ephemeral != was.Ephemeral || !bytes.Equal(n.Value, was.Value) {
		t.fatalf("the node changed from %s to %s", show(was), show(n))
	}
}
