package execution

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

// An owner notes what it is told. It may be told one thing at a time.
type owner struct {
	t      *testing.T
	inside atomic.Int32
	mu     sync.Mutex
	begun  []begun
	no     []refused
	ended  [][]int
	seen   []*ledger.Ledger
	late   []error // Hindered
	gone   []error
	react  func(due time.Time, items []int) // to Begun
}

type begun struct {
	due   time.Time
	items []int
	fence registry.Revision
}

type refused struct {
	due  time.Time
	item int
	why  Refusal
}

func newOwner(t *testing.T) *owner { return &owner{t: t} }

func (o *owner) enter() func() {
	if o.inside.Add(1) != 1 {
		o.t.Error("the owner is called while it is called")
	}
	o.mu.Lock()
	return func() { o.mu.Unlock(); o.inside.Add(-1) }
}

func (o *owner) Begun(due time.Time, items []int, fence registry.Revision) {
	defer o.enter()()
	o.begun = append(o.begun, begun{due, items, fence})
	if o.react != nil {
		o.react(due, items)
	}
}

func (o *owner) Refused(due time.Time, items []int, why Refusal, _ string) {
	defer o.enter()()
	for _, n := range items {
		o.no = append(o.no, refused{due, n, why})
	}
}

func (o *owner) Ended(items []int) {
	defer o.enter()()
	o.ended = append(o.ended, items)
}

func (o *owner) Changed(l *ledger.Ledger) {
	defer o.enter()()
	o.seen = append(o.seen, l)
}

func (o *owner) Hindered(err error) {
	defer o.enter()()
	o.late = append(o.late, err)
}

func (o *owner) Gone(err error) {
	defer o.enter()()
	o.gone = append(o.gone, err)
}

// told takes what the owner was told.
func (o *owner) told() (is told) {
	o.mu.Lock()
	defer o.mu.Unlock()
	is = told{o.begun, o.no, o.ended, o.seen, o.late, o.gone}
	o.begun, o.no, o.ended, o.seen, o.late, o.gone = nil, nil, nil, nil, nil, nil
	return is
}

type told struct {
	begun []begun
	no    []refused
	ended [][]int
	seen  []*ledger.Ledger
	late  []error
	gone  []error
}

// items counts how often each item was begun.
func (is told) items() map[int]int {
	count := map[int]int{}
	for _, g := range is.begun {
		for _, n := range g.items {
			count[n]++
		}
	}
	return count
}

// ends counts how often each item was told to have ended.
func (is told) ends() map[int]int {
	count := map[int]int{}
	for _, e := range is.ended {
		for _, n := range e {
			count[n]++
		}
	}
	return count
}

// once is a count of one for each item.
func once(items ...int) map[int]int {
	count := map[int]int{}
	for _, n := range items {
		count[n] = 1
	}
	return count
}

// all refuses every item for one reason.
func all(why Refusal, due time.Time, items ...int) (no []refused) {
	for _, n := range items {
		no = append(no, refused{due, n, why})
	}
	return no
}
