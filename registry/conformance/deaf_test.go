package conformance

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// numb is a harness of which one kind of fault does nothing, and counts nothing, or lies.
type numb struct {
	*flawedHarness

	kind string // "": all
	lies bool
	used *atomic.Int64
	lied *atomic.Int64
}

func newNumb(kind string, lies bool) numb {
	return numb{newFlawedHarness(flaw{}), kind, lies, new(atomic.Int64), new(atomic.Int64)}
}

func (h numb) Faults() Faults { return numbFaults{(*flawedFaults)(h.flawedHarness), h} }

type numbFaults struct {
	*flawedFaults

	h numb
}

// does says whether the fault is a real one; the others have been called for nothing.
func (f numbFaults) does(kind string) bool {
	if f.h.kind != "" && f.h.kind != kind {
		return true
	}
	f.h.used.Add(1)
	f.h.lied.Add(1)
	return false
}

func (f numbFaults) Hits(s registry.Session) int {
	if f.h.lies {
		return f.flawedFaults.Hits(s) + int(f.h.lied.Load())
	}
	return f.flawedFaults.Hits(s)
}

// healed counts once more when it ends, as if something had been hit meanwhile.
func (f numbFaults) healed() func() { return func() { f.h.lied.Add(1) } }

func (f numbFaults) Expire(s registry.Session) error {
	if f.does(kindExpire) {
		return f.flawedFaults.Expire(s)
	}
	return nil
}

func (f numbFaults) Drop(s registry.Session) error {
	if f.does(kindDrop) {
		return f.flawedFaults.Drop(s)
	}
	return nil
}

func (f numbFaults) Blackhole(s registry.Session, d Direction) (func(), error) {
	if f.does(kindBlackhole) {
		return f.flawedFaults.Blackhole(s, d)
	}
	return f.healed(), nil
}

func (f numbFaults) Refuse(s registry.Session) (func(), error) {
	if f.does(kindRefuse) {
		return f.flawedFaults.Refuse(s)
	}
	return f.healed(), nil
}

func (f numbFaults) Delay(s registry.Session, d time.Duration) (func(), error) {
	if f.does(kindDelay) {
		return f.flawedFaults.Delay(s, d)
	}
	return f.healed(), nil
}

func (f numbFaults) Deny(path string) (func(), error) {
	if f.does(kindDeny) {
		return f.flawedFaults.Deny(path)
	}
	return func() {}, nil
}

func (f numbFaults) NextCommit(s registry.Session, fate Fate) (func() bool, error) {
	if f.does(fate.String()) {
		return f.flawedFaults.NextCommit(s, fate)
	}
	return func() bool { return f.h.lies }, nil
}

func (f numbFaults) PauseServer() (func(), error) {
	if f.does(kindPause) {
		return f.flawedFaults.PauseServer()
	}
	return func() {}, nil
}

func (f numbFaults) RestartServer() error {
	if f.does(kindRestart) {
		return f.flawedFaults.RestartServer()
	}
	return nil
}

func (f numbFaults) LoseLeader() error {
	if f.does(kindLoseLeader) {
		return errors.New("there is one server")
	}
	return nil
}

// everyCase are all that run on a service with one server.
func everyCase() (cases []testCase) {
	for _, g := range suite() {
		for _, c := range g.on(1) {
			c.name = g.name + "/" + c.name
			cases = append(cases, c)
		}
	}
	return cases
}

// A pairing is a case and a kind of fault that it uses.
type pairing struct {
	c    testCase
	kind string
}

// pairings finds by a sound run which faults each case uses.
func pairings(t *testing.T) (pairs []pairing) {
	t.Helper()
	cases := everyCase()
	used := make([][]string, len(cases))
	tryAll(len(cases), func(i int) verdict {
		o := observe(newFlawedHarness(flaw{}))
		failed, text := executeOn(t, o, cases[i], cases[i].time(), hungTime)
		for kind := range o.used {
			kind, _, _ = strings.Cut(kind, " ")
			if !slices.Contains(used[i], kind) && kind != kindForget { // a service without history has nothing to forget
				used[i] = append(used[i], kind)
			}
		}
		return verdict{failed, text}
	})
	for i, c := range cases {
		for _, kind := range used[i] {
			pairs = append(pairs, pairing{c, kind})
		}
	}
	return pairs
}

// leastFaulty is how many cases use a fault, and leastPairings how many kinds they use.
const (
	leastFaulty   = 102
	leastPairings = 143
)

// A case whose fault does not hit must fail: void is not green. So it is when all faults are
// deaf, when one kind is, and when one kind lies about what it does.
func TestFaultsThatDoNothingAreSeen(t *testing.T) {
	t.Parallel()
	pairs := pairings(t)
	faulty := map[string]bool{}
	for _, p := range pairs {
		faulty[p.c.name] = true
	}
	t.Logf("%d cases use a fault, in %d pairs with its kind", len(faulty), len(pairs))
	require.GreaterOrEqual(t, len(faulty), leastFaulty)
	require.GreaterOrEqual(t, len(pairs), leastPairings)
	for what, lies := range map[string]bool{"deaf": false, "lying": true} {
		verdicts := tryAll(len(pairs), func(i int) verdict {
			failed, text := executeFor(t, newNumb(pairs[i].kind, lies), pairs[i].c, brokenTime, 2*brokenTime)
			return verdict{failed, text}
		})
		for i, p := range pairs {
			if !verdicts[i].failed {
				t.Errorf("%s passes though %s is %s", p.c.name, p.kind, what)
			}
		}
	}
	all := everyCase()
	verdicts := tryAll(len(all), func(i int) verdict {
		if !faulty[all[i].name] {
			return verdict{failed: true}
		}
		failed, text := executeFor(t, newNumb("", false), all[i], brokenTime, 2*brokenTime)
		return verdict{failed, text}
	})
	for i, c := range all {
		if !verdicts[i].failed {
			t.Errorf("%s passes though all faults are deaf", c.name)
		}
	}
}
