package pages

import (
	"context"
	"errors"
	"fmt"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// ErrLacks: pages that the root lists are not there, or cannot be read.
var ErrLacks = errors.New("the ledger lacks a page")

const (
	// tries is how often a ledger is read that changes meanwhile.
	tries = 20
	// certain is how often a page is read until it is its own fault: the root that stood before
	// and after it was read was the same.
	certain = 3
)

// A Get reads nodes, as registry.Store does.
type Get func(ctx context.Context, paths ...string) ([]registry.Node, error)

// A Found is what was read of one ledger.
type Found struct {
	// Node is the ledger's node, as it was read last.
	Node registry.Node
	// Ledger is nil where there is no node, or with Err.
	Ledger *ledger.Ledger
	// Err says why it cannot be read. Lacking are the pages at which that lies; true is one that
	// stands.
	Err     error
	Lacking map[int]bool
}

// Read reads what the ledgers of some nodes have besides. Pages are not read again that a ledger
// in before has, which was read of the same node.
func Read(ctx context.Context, get Get, before map[string]*ledger.Ledger, nodes ...registry.Node) ([]Found, error) {
	return read(ctx, get, before, (*ledger.Reading).Wants, nodes)
}

// Item reads what is needed to know one item: of the ledger that is returned nothing else counts.
func Item(ctx context.Context, get Get, n int, node registry.Node) (Found, error) {
	found, err := read(ctx, get, nil, func(r *ledger.Reading) []int { return r.WantsItem(n) }, []registry.Node{node})
	if err != nil {
		return Found{}, err
	}
	return found[0], nil
}

// A reader reads one ledger.
type reader struct {
	Found
	reading *ledger.Reading
	failed  map[int]lack // since the root is as it is
}

type lack struct {
	times  int
	stands bool
}

func read(
	ctx context.Context, get Get, before map[string]*ledger.Ledger, wants func(*ledger.Reading) []int, nodes []registry.Node,
) ([]Found, error) {
	readers := make([]reader, len(nodes))
	for i, n := range nodes {
		readers[i].open(n, before[n.Path])
	}
	for range tries {
		var paths []string
		for i := range readers {
			paths = append(paths, readers[i].paths(wants)...)
		}
		if len(paths) == 0 {
			break
		}
		nodes, err := get(ctx, paths...)
		if err != nil {
			return nil, err
		}
		for i := range readers {
			if n := len(readers[i].paths(wants)); n > 0 {
				readers[i].take(nodes[:n], wants(readers[i].reading))
				nodes = nodes[n:]
			}
		}
	}
	found := make([]Found, len(readers))
	for i := range readers {
		found[i] = readers[i].done(wants)
	}
	return found, nil
}

// open begins with what the node says now.
func (r *reader) open(n registry.Node, before *ledger.Ledger) {
	r.Node, r.failed = n, map[int]lack{}
	if !n.Exists() {
		r.reading = nil
		return
	}
	if r.reading, r.Err = ledger.Open(n.Value); r.Err == nil {
		r.reading.Reuse(before)
	}
}

// paths are those that are still to be read; none when there is nothing to read.
func (r *reader) paths(wants func(*ledger.Reading) []int) []string {
	if r.reading == nil || r.Err != nil {
		return nil
	}
	want := wants(r.reading)
	if len(want) == 0 {
		return nil
	}
	paths := []string{r.Node.Path}
	for _, p := range want {
		paths = append(paths, ledger.Path(r.Node.Path, p))
	}
	return paths
}

// take takes what was read: the root, and pages.
func (r *reader) take(nodes []registry.Node, numbers []int) {
	switch root := nodes[0]; {
	case root.Created != r.Node.Created:
		r.Node, r.Err = root, ledger.ErrTorn
		return
	case root.Version != r.Node.Version:
		before := r.reading.Part()
		if r.open(root, before); r.reading == nil || r.Err != nil {
			return
		}
	}
	for i, n := range nodes[1:] {
		err := r.reading.Page(numbers[i], n.Value)
		if err == nil {
			delete(r.failed, numbers[i])
			continue
		}
		was := r.failed[numbers[i]]
		if !n.Exists() {
			err = registry.ErrNotFound
		}
		if r.failed[numbers[i]] = (lack{was.times + 1, n.Exists()}); was.times+1 >= certain {
			r.Err = fmt.Errorf("%w: %d: %v", ErrLacks, numbers[i], err) //nolint:errorlint // it is not torn: no other look helps
		}
	}
}

// done returns what came of it.
func (r *reader) done(wants func(*ledger.Reading) []int) Found {
	if r.reading != nil && r.Err == nil {
		if r.Ledger = r.reading.Part(); len(wants(r.reading)) > 0 {
			r.Ledger, r.Err = nil, ledger.ErrTorn
		}
	}
	if errors.Is(r.Err, ErrLacks) {
		r.Lacking = map[int]bool{}
		for p, is := range r.failed {
			if is.times >= certain {
				r.Lacking[p] = is.stands
			}
		}
	}
	return r.Found
}

// Op is the operation that sets, makes or deletes a page of the ledger that stands at a path. The
// ledger's own is to come before those that make pages, and after those that delete them where it is
// deleted too.
func Op(root string, p ledger.Page) registry.Op {
	switch at := p.Node(root); {
	case p.Value == nil:
		return registry.Delete(at, registry.AnyVersion)
	case p.New:
		return registry.Create(at, p.Value)
	default:
		return registry.Set(at, p.Value, registry.AnyVersion)
	}
}
