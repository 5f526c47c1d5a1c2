package pages

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

const root = "/ledgers/a"

var (
	due  = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	room = ledger.Room{Value: 2 << 10, Ops: 100, Bytes: 1 << 20}
)

// A store holds one ledger, and can be changed between the nodes of one request, as a registry can whose
// requests of many nodes see no one instant.
type store struct {
	*testing.T
	led    *ledger.Ledger
	nodes  map[string]registry.Node
	gets   [][]string
	before func(path string) // may be nil
}

func newStore(t *testing.T) *store {
	s := &store{T: t, led: ledger.New(1, 40), nodes: map[string]registry.Node{}}
	for n := range 40 {
		s.led.Set(n, ledger.Item{Through: due.Add(time.Duration(n))})
	}
	s.nodes[root] = registry.Node{Path: root, Created: 7, Version: -1}
	s.write()
	require.NotEmpty(t, s.led.Pages())
	return s
}

func (s *store) write() {
	n := s.nodes[root]
	n.Version++
	w := s.led.Write(int64(n.Version), room)
	n.Value = w.Root
	s.nodes[root] = n
	for _, p := range w.Pages {
		at := p.Node(root)
		if p.Value == nil {
			delete(s.nodes, at)
			continue
		}
		s.nodes[at] = registry.Node{Path: at, Created: 7, Value: p.Value}
	}
	s.led.Written()
}

// change changes an item, and what stands with it.
func (s *store) change(n int) {
	it, _ := s.led.Get(n)
	it.Run = it.Run.Add(time.Second)
	if it.Run.Before(due) {
		it.Run = due
	}
	s.led.Set(n, it)
	s.led.Seq++
	s.write()
}

func (s *store) get(_ context.Context, paths ...string) ([]registry.Node, error) {
	s.gets = append(s.gets, paths)
	found := make([]registry.Node, len(paths))
	for i, p := range paths {
		if s.before != nil {
			s.before(p)
		}
		found[i] = s.nodes[p]
		found[i].Path = p
	}
	return found, nil
}

func (s *store) read(before *ledger.Ledger) Found {
	s.Helper()
	found, err := Read(s.Context(), s.get, map[string]*ledger.Ledger{root: before}, s.nodes[root], registry.Node{Path: "/ledgers/none"})
	require.NoError(s, err)
	require.Equal(s, Found{Node: registry.Node{Path: "/ledgers/none"}}, found[1])
	return found[0]
}

func (s *store) requireRead(found Found) {
	s.Helper()
	require.NoError(s, found.Err)
	require.True(s, s.led.Equal(found.Ledger))
	require.Equal(s, s.nodes[root].Version, found.Node.Version)
}

func TestAReadIsOneRequestForThePages(t *testing.T) {
	s := newStore(t)
	found := s.read(nil)
	s.requireRead(found)
	require.Len(t, s.gets, 1)
	require.Len(t, s.gets[0], 1+len(s.led.Pages()))

	s.gets = nil
	s.requireRead(s.read(found.Ledger))
	require.Empty(t, s.gets, "nothing has changed")
	page := s.led.Pages()[1]
	s.change(s.led.Of(page)[0])
	s.requireRead(s.read(found.Ledger))
	require.Equal(t, [][]string{{root, ledger.Path(root, page)}}, s.gets, "only what has changed")

	s.gets = nil
	single := ledger.New(1, 40)
	read, err := Read(t.Context(), s.get, nil, registry.Node{Path: root, Created: 1, Value: single.Encode()})
	require.NoError(t, err)
	require.True(t, single.Equal(read[0].Ledger))
	require.Empty(t, s.gets, "a ledger without pages needs no further read")
}

func TestOneItemNeedsItsPageAlone(t *testing.T) {
	s := newStore(t)
	page := s.led.Pages()[0]
	item := s.led.Of(page)[0]
	found, err := Item(t.Context(), s.get, item, s.nodes[root])
	require.NoError(t, err)
	require.NoError(t, found.Err)
	want, _ := s.led.Get(item)
	got, held := found.Ledger.Get(item)
	require.True(t, held)
	require.Equal(t, want, got)
	require.Equal(t, [][]string{{root, ledger.Path(root, page)}}, s.gets)
}

// Its owner commits while it is read, each time a page of those that are read.
func TestWhatIsTornIsReadAgain(t *testing.T) {
	for _, busy := range []int{1, 5, 1_000_000} {
		t.Run(fmt.Sprint(busy), func(t *testing.T) {
			s := newStore(t)
			left, k := busy, 0
			pages := s.led.Pages()
			s.before = func(path string) {
				if left == 0 || path == root {
					return
				}
				left--
				k++
				s.change(s.led.Of(pages[k%len(pages)])[0])
			}
			found := s.read(nil)
			if busy > 1_000 {
				require.ErrorIs(t, found.Err, ledger.ErrTorn)
				require.Nil(t, found.Ledger)
				require.Len(t, s.gets, tries)
				return
			}
			s.requireRead(found)
			require.LessOrEqual(t, len(s.gets), busy+2)
		})
	}
}

func TestAPageThatIsMissingOrGarbage(t *testing.T) {
	s := newStore(t)
	pages := s.led.Pages()
	delete(s.nodes, ledger.Path(root, pages[0]))
	for i, garbage := range []string{"garbage", `{"mark":12345}`} {
		at := ledger.Path(root, pages[1+i])
		s.nodes[at] = registry.Node{Path: at, Created: 9, Value: []byte(garbage)}
	}
	found := s.read(nil)
	require.ErrorIs(t, found.Err, ErrLacks)
	require.NotErrorIs(t, found.Err, ledger.ErrTorn)
	require.Nil(t, found.Ledger)
	require.Equal(t, map[int]bool{pages[0]: false, pages[1]: true, pages[2]: true}, found.Lacking)
	require.Len(t, s.gets, certain)
}

func TestARootThatIsReplacedOrGone(t *testing.T) {
	s := newStore(t)
	node := s.nodes[root]
	replaced := node
	replaced.Created++
	for _, is := range []registry.Node{replaced, {}} {
		s.nodes[root] = is
		found, err := Read(t.Context(), s.get, nil, node)
		require.NoError(t, err)
		require.ErrorIs(t, found[0].Err, ledger.ErrTorn)
	}
	found, err := Read(t.Context(), s.get, nil, registry.Node{Path: root, Created: 1, Value: []byte("garbage")})
	require.NoError(t, err)
	require.ErrorContains(t, found[0].Err, "not one of ours")

	broken := errors.New("no network")
	s.nodes[root] = node
	_, err = Read(t.Context(), func(context.Context, ...string) ([]registry.Node, error) { return nil, broken }, nil, node)
	require.ErrorIs(t, err, broken)
}

func TestOperations(t *testing.T) {
	for want, p := range map[string]ledger.Page{
		"create": {Number: 3, Value: []byte("x"), New: true},
		"set":    {Number: 3, Value: []byte("x")},
		"delete": {Number: 3},
	} {
		op := Op(root, p)
		require.Equal(t, root+"/3", op.Path)
		require.Equal(t, map[string]registry.Op{
			"create": registry.Create(op.Path, []byte("x")), "set": registry.Set(op.Path, []byte("x"), registry.AnyVersion),
			"delete": registry.Delete(op.Path, registry.AnyVersion),
		}[want], op)
	}
}
