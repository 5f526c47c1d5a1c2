package execution

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A play is an owner, a leader, operators and a bad network that do what chance
// says, in fake time, and the books that the test keeps of it.
type play struct {
	*bed
	random  *rand.Rand
	fire    int
	asked   map[int]time.Time         // item: the begin that is not answered
	running map[int]time.Time         // item: the run in hand
	ending  map[int]bool              // items whose end is not answered
	fences  map[int]registry.Revision // the last of each item
	begins  int
}

func (p *play) chance(percent int) bool { return p.random.IntN(100) < percent }

// listen takes what the owner was told into the books.
func (p *play) listen() {
	is := p.told()
	require.Empty(p, is.gone)
	for _, g := range is.begun {
		for _, n := range g.items {
			require.Equal(p, p.asked[n], g.due, "item %d begins what was not asked, or twice", n)
			require.Greater(p, g.fence, p.fences[n], "item %d", n)
			delete(p.asked, n)
			p.running[n], p.fences[n] = g.due, g.fence
			p.begins++
		}
	}
	for _, r := range is.no {
		require.Equal(p, p.asked[r.item], r.due, "item %d is refused what was not asked, or twice", r.item)
		require.NotEqual(p, Lost, r.why)
		delete(p.asked, r.item)
	}
	for _, e := range is.ended {
		for _, n := range e {
			require.True(p, p.ending[n], "item %d ended, which nobody asked, or twice", n)
			delete(p.ending, n)
		}
	}
}

// step does one thing.
func (p *play) step() {
	n := p.random.IntN(p.total)
	switch p.random.IntN(10) {
	case 0, 1, 2, 3: // a fire of some items
		p.fire++
		var items []int
		for n := range p.total {
			if _, busy := p.running[n]; !busy && !p.ending[n] && p.asked[n].IsZero() && p.chance(70) {
				items = append(items, n)
				p.asked[n] = due(p.fire)
			}
		}
		p.rec.Begin(due(p.fire), items)
	case 4, 5, 6:
		for n, d := range p.running {
			if p.chance(60) {
				p.end(n, d)
			}
		}
	case 7: // the leader: what runs stays
		p.lead(n)
	case 8:
		p.operate(n)
		p.operate(p.random.IntN(p.total))
	case 9:
		p.rec.Account([]int{n}, due(p.fire))
	}
	if p.chance(80) {
		p.observe()
	}
}

func (p *play) end(n int, d time.Time) {
	through := d
	if p.chance(10) {
		through = d.Add(-1)
	}
	p.ending[n] = true
	delete(p.running, n)
	p.rec.End(n, d, through)
}

func (p *play) lead(n int) {
	node := p.node(ledgerPath)
	l, err := ledger.Decode(node.Value)
	require.NoError(p, err)
	it, owned := l.Items[n]
	switch {
	case !owned:
		l.Items[n] = ledger.Item{Through: due(p.fire)}
	case it.Running():
		it.Leaving = !it.Leaving
		l.Items[n] = it
	default:
		delete(l.Items, n)
	}
	_, err = p.other.Commit(p.Context(), registry.Set(ledgerPath, l.Encode(), node.Version))
	require.NoError(p, err)
}

// operate deletes a running node, or makes a foreign one, for a while.
func (p *play) operate(n int) {
	op := registry.CreateEphemeral(runningPath(n), []byte("b"))
	if node := p.node(runningPath(n)); node.Exists() {
		op = registry.Delete(runningPath(n), registry.AnyVersion)
		if _, runs := p.running[n]; !runs && string(node.Value) == "a" {
			return // a begin whose node is deleted before it is told is Lost: told apart elsewhere
		}
	}
	p.do(op)
}

func (p *play) network() {
	fates := []memory.Fate{memory.AnswerLost, memory.RequestLost, memory.Refused, memory.AppliedLate(3 * time.Second), memory.AppliedLate(70 * time.Millisecond)}
	random := rand.New(rand.NewPCG(p.random.Uint64(), 0))
	p.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		if id != p.ses.ID() || random.IntN(100) < 60 {
			return memory.Deliver
		}
		return fates[random.IntN(len(fates))]
	})
}

// rest ends every run and requires that nothing is left: no request without an
// answer, no item that the ledger says runs, no node of ours.
func (p *play) rest() {
	p.srv.Intercept(nil)
	p.pass(30 * time.Second)
	p.observe()
	p.pass(time.Second)
	p.listen()
	require.Empty(p, p.asked)
	for n, d := range p.running {
		p.end(n, d)
	}
	p.pass(30 * time.Second)
	p.listen()
	require.Empty(p, p.running)
	require.Empty(p, p.ending)
	for n, it := range p.ledger().Items {
		require.False(p, it.Running(), "item %d runs in the ledger and nowhere else", n)
	}
	for n := range p.total {
		require.NotEqual(p, "a", string(p.node(runningPath(n)).Value), "item %d", n)
	}
}

func TestWhateverHappensEveryRequestIsAnsweredOnce(t *testing.T) {
	begins := 0
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				p := &play{
					bed: b, random: rand.New(rand.NewPCG(seed, 9)), asked: map[int]time.Time{}, running: map[int]time.Time{},
					ending: map[int]bool{}, fences: map[int]registry.Revision{},
				}
				p.network()
				for k := range 150 {
					p.step()
					if p.chance(50) {
						p.pass(time.Duration(p.random.IntN(120)) * time.Millisecond)
					}
					if p.chance(10) { // time for what is late
						p.pass(4 * time.Second)
					}
					synctest.Wait()
					p.listen()
					if k%50 == 49 {
						p.rest()
						p.network()
					}
				}
				begins += p.begins
			})
		})
	}
	require.Greater(t, begins, 1000, "chance has played too little")
}
