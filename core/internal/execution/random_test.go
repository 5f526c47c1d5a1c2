package execution

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A play is an owner, a leader, operators and a bad network that do what chance says, in
// fake time, and the books that the test keeps of it.
type play struct {
	*bed
	random  *rand.Rand
	total   int
	fire    int
	asked   map[int][]*step // of each item, the changes that are not answered, in order
	running map[int]time.Time
	fences  map[int]registry.Revision
	begins  int
}

func (p *play) chance(percent int) bool { return p.random.IntN(100) < percent }

func (p *play) ask(k kind, d time.Time, items ...int) {
	for i, s := range p.submit(k, d, items...) {
		p.asked[items[i]] = append(p.asked[items[i]], s)
	}
}

// answered requires that s is the first of its item that waits for an answer.
func (p *play) answered(s *step) {
	require.NotEmpty(p, p.asked[s.item], "item %d is answered twice: %+v", s.item, s)
	require.Same(p, p.asked[s.item][0], s, "item %d: out of order", s.item)
	p.asked[s.item] = p.asked[s.item][1:]
}

// listen takes what the owner was told into the books. It reports true when the owner had to register
// anew.
func (p *play) listen() (anew bool) {
	is := p.take()
	for _, err := range is.gone { // what the leader wrote was damaged before its owner had read it
		require.ErrorIs(p, err, pages.ErrLacks)
		anew = true
		defer p.register()
	}
	for _, a := range is.applied {
		for _, s := range a.steps {
			p.answered(s)
			switch s.kind {
			case begin:
				require.Greater(p, a.rev, p.fences[s.item], "item %d", s.item)
				p.running[s.item], p.fences[s.item] = s.due, a.rev
				p.begins++
			case end, giveBack:
				delete(p.running, s.item)
			case account:
			}
		}
	}
	for _, r := range is.no {
		p.answered(r.step)
		require.NotContains(p, []kind{end, giveBack}, r.kind, "%+v", r)
	}
	return anew
}

// step does one thing.
func (p *play) step() {
	n := p.random.IntN(p.total)
	switch p.random.IntN(14) {
	case 0, 1, 2, 3: // a fire of some items
		p.fire++
		for n := range p.total {
			if _, busy := p.running[n]; !busy && len(p.asked[n]) == 0 && p.chance(70) {
				p.ask(begin, due(p.fire), n)
			}
		}
	case 4, 5, 6:
		for n := range p.total {
			if d, runs := p.running[n]; runs && len(p.asked[n]) == 0 && p.chance(60) {
				p.ask([]kind{end, end, end, giveBack}[p.random.IntN(4)], d, n)
			}
		}
	case 7: // the leader: what runs stays
		p.lead(n)
	case 8:
		p.operate(n)
		p.operate(p.random.IntN(p.total))
	case 9:
		if len(p.asked[n]) == 0 {
			p.fire++
			p.ask(account, due(p.fire), n)
		}
	case 10:
		if p.chance(30) {
			p.register()
		}
	case 12, 13:
		p.damage()
	case 11: // an instance of ElasticJob comes or goes
		p.rec.Show([]time.Duration{-1, 20 * time.Millisecond, time.Second}[p.random.IntN(3)], p.chance(40))
	}
	switch still := p.chance(10); {
	case p.chance(20):
	case p.chance(50):
		is := p.node(p.place.Ledger)
		p.rec.Take(still, Written{Version: is.Version, Value: is.Value})
	default:
		p.rec.Refresh(still)
	}
}

func (p *play) lead(n int) {
	found := p.read()
	if found.Err != nil { // somebody damaged it, and its owner has not mended it yet
		p.rec.Refresh(false)
		return
	}
	l := found.Ledger
	it, owned := l.Get(n)
	switch {
	case !owned:
		l.Set(n, ledger.Item{Through: due(p.fire)})
	case it.Running():
		it.Leaving = !it.Leaving
		l.Set(n, it)
	default:
		l.Delete(n)
	}
	for range p.total { // a page that stands without being listed is seen when it is to be made
		_, err := p.other.Commit(p.Context(), p.write(l, found.Node)...)
		failed, refused := errors.AsType[*registry.CommitError](err)
		if !refused {
			require.NoError(p, err)
			return
		}
		_, page, is := ledger.ParsePath(failed.Op.Path)
		require.True(p, is, "%v", err)
		l.Lacks(page, errors.Is(err, registry.ErrExists))
	}
	require.Fail(p, "the leader cannot write the ledger")
}

// operate deletes a running node, or makes a foreign one.
func (p *play) operate(n int) {
	op := registry.CreateEphemeral(runningPath(n), []byte([]string{"b", "java"}[p.random.IntN(2)]))
	if p.node(runningPath(n)).Exists() {
		op = registry.Delete(runningPath(n), registry.AnyVersion)
	}
	p.do(op)
}

// damage deletes a page of the ledger, or overwrites it, or makes one.
func (p *play) damage() {
	at := ledger.Path(p.place.Ledger, p.random.IntN(p.total))
	switch stands := p.node(at).Exists(); {
	case !stands && (p.limits.MaxValue > 2_000 || p.chance(90)):
	case !stands:
		p.do(registry.Create(at, []byte("garbage")))
	case p.chance(50):
		p.do(registry.Delete(at, registry.AnyVersion))
	default:
		p.do(registry.Set(at, []byte("garbage"), registry.AnyVersion))
	}
}

// register ends the registration, at whatever point, and makes the next one.
func (p *play) register() {
	p.rec.Suspend()
	p.srv.Intercept(nil)
	p.again()
	p.network()
}

func (p *play) network() {
	fates := []memory.Fate{
		memory.AnswerLost, memory.RequestLost, memory.Refused, memory.AppliedLate(3 * time.Second),
		memory.AppliedLate(70 * time.Millisecond),
	}
	random := rand.New(rand.NewPCG(p.random.Uint64(), 0))
	p.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		if id != p.ses.ID() || random.IntN(100) < 60 {
			return memory.Deliver
		}
		return fates[random.IntN(len(fates))]
	})
}

// rest ends every run and requires that nothing is left: no change without an answer, no
// item that the ledger says runs.
func (p *play) rest() {
	for anew := true; anew; anew = p.listen() {
		p.srv.Intercept(nil)
		for range 2 { // pages are looked at when nobody has written the ledger since the last time
			p.rec.Refresh(false)
			p.pass(30 * time.Second)
		}
	}
	for n := range p.total {
		require.Empty(p, p.asked[n])
		require.Equal(p, p.item(n).Run, p.running[n], "item %d", n)
		if d, runs := p.running[n]; runs {
			p.ask(end, d, n)
		}
	}
	p.pass(30 * time.Second)
	p.listen()
	require.Empty(p, p.running)
	known := p.rec.Ledger()
	require.True(p, p.ledger().Equal(known), "%s\n%s", p.ledger().Encode(), known.Encode())
	require.Equal(p, p.ledger().Seq, known.Seq)
	require.Zero(p, known.Running())
	for n := range p.total {
		if node := p.node(runningPath(n)); string(node.Value) == "a" {
			p.Fatalf("item %d has a running node of ours", n)
		}
	}
}

func TestWhateverHappensEveryChangeIsAnsweredOnce(t *testing.T) {
	begins := 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onBed(t, 5, func(b *bed) { begins += b.play(seed, 5) })
		})
	}
	require.Greater(t, begins, 1000, "chance has played too little")
}

// The same with a ledger that has pages most of the time, to which somebody does damage.
func TestWhateverHappensToPagesEveryChangeIsAnsweredOnce(t *testing.T) {
	begins, paged := 0, 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &wrapped{limits: registry.Limits{MaxOps: 40, MaxBytes: 64 << 10, MaxValue: 1_200}}
			w.seen = func(ops []registry.Op) {
				for _, op := range ops {
					if path.Dir(path.Dir(op.Path)) == "/ledgers" {
						paged++
					}
				}
			}
			onBedOf(t, 14, func(s registry.Session) registry.Session { w.Session = s; return w }, func(b *bed) { begins += b.play(seed, 14) })
		})
	}
	require.Greater(t, begins, 1000, "chance has played too little")
	require.Greater(t, paged, 1000, "chance has played too little")
}

// play lets chance play, and returns how many begins there were.
func (b *bed) play(seed uint64, total int) int {
	p := &play{
		bed: b, random: rand.New(rand.NewPCG(seed, 9)), total: total, asked: map[int][]*step{}, running: map[int]time.Time{},
		fences: map[int]registry.Revision{},
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
	return p.begins
}
