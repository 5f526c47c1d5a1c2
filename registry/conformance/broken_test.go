package conformance

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/elasticron/elasticron/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caseNamed returns the case Group/Name.
func caseNamed(t *testing.T, name string) testCase {
	t.Helper()
	for _, g := range suite() {
		for _, c := range g.cases {
			if g.name+"/"+c.name == name {
				return c
			}
		}
	}
	t.Fatalf("no case %s", name)
	return testCase{}
}

// brokenTime bounds a case that must fail: many can only see that something
// never comes.
const brokenTime = 5 * time.Second

// A verdict is what came of one case.
type verdict struct {
	failed bool
	text   string
}

// tryAll runs n trials, many at once since most of them wait.
func tryAll(n int, try func(i int) verdict) []verdict {
	verdicts := make([]verdict, n)
	var some errgroup.Group
	some.SetLimit(16)
	for i := range n {
		some.Go(func() error {
			verdicts[i] = try(i)
			return nil
		})
	}
	_ = some.Wait()
	return verdicts
}

func TestBrokenAdaptersAreCaught(t *testing.T) {
	t.Parallel()
	verdicts := tryAll(len(breakages), func(i int) verdict {
		b := breakages[i]
		failed, text := executeFor(t, newFlawedHarness(b.flaw), caseNamed(t, b.caughtBy), brokenTime, 2*brokenTime)
		return verdict{failed, text}
	})
	for i, b := range breakages {
		t.Run(b.rule, func(t *testing.T) {
			c, v := caseNamed(t, b.caughtBy), verdicts[i]
			require.True(t, v.failed, "%s let an adapter pass with which %s", b.caughtBy, b.rule)
			require.Contains(t, v.text, "rule:     "+c.rule)
			require.Contains(t, v.text, b.saw)
			require.Contains(t, v.text, "contract: "+c.place)
			for _, other := range []string{"ignores its context", "nothing is proved", "panic: "} {
				require.NotContains(t, v.text, other, "caught for another reason")
			}
		})
	}
}

// The same cases pass with a sound adapter, through the same harness.
func TestSoundAdapterPasses(t *testing.T) {
	t.Parallel()
	var names []string
	for _, b := range breakages {
		names = append(names, b.caughtBy)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	verdicts := tryAll(len(names), func(i int) verdict {
		failed, text := execute(t, newFlawedHarness(flaw{}), caseNamed(t, names[i]))
		return verdict{failed, text}
	})
	for i, name := range names {
		t.Run(name, func(t *testing.T) { require.False(t, verdicts[i].failed, verdicts[i].text) })
	}
}

// deaf are faults that do nothing and say that they did.
type deaf struct{ calls *atomic.Int64 }

func (d deaf) called() error                                         { d.calls.Add(1); return nil }
func (d deaf) Expire(registry.Session) error                         { return d.called() }
func (d deaf) Drop(registry.Session) error                           { return d.called() }
func (d deaf) Blackhole(registry.Session, Direction) (func(), error) { return func() {}, d.called() }
func (d deaf) Refuse(registry.Session) (func(), error)               { return func() {}, d.called() }
func (d deaf) NextCommit(registry.Session, Fate) (func() bool, error) {
	return func() bool { return false }, d.called()
}
func (d deaf) Hits(registry.Session) int    { return 0 }
func (d deaf) PauseServer() (func(), error) { return func() {}, d.called() }
func (d deaf) RestartServer() error         { return nil } // its error is all that tells
func (d deaf) LoseLeader() error            { return d.called() }
func (d deaf) ForgetHistory() error         { return nil }

type deafHarness struct {
	*flawedHarness
	deaf
}

func (h deafHarness) Faults() Faults { return h.deaf }

// A case whose fault does not hit must fail: void is not green.
func TestDeafFaultsAreVoid(t *testing.T) {
	t.Parallel()
	var cases []testCase
	for _, g := range suite() {
		for _, c := range g.on(1) {
			c.name = g.name + "/" + c.name
			cases = append(cases, c)
		}
	}
	injected := make([]int64, len(cases))
	verdicts := tryAll(len(cases), func(i int) verdict {
		h := deafHarness{newFlawedHarness(flaw{}), deaf{new(atomic.Int64)}}
		failed, text := executeFor(t, h, cases[i], brokenTime, 2*brokenTime)
		injected[i] = h.calls.Load()
		return verdict{failed, text}
	})
	faulty := 0
	for i, c := range cases {
		if injected[i] > 0 {
			faulty++
			require.True(t, verdicts[i].failed, "%s passes with faults that do nothing", c.name)
		}
	}
	require.Greater(t, faulty, 45)
}

// Package documentation has the table of rules and cases.
func TestBrokenAdaptersAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	lines := strings.Split(string(doc), "\n")
	rows := 0
	for _, b := range breakages {
		found := false
		for _, line := range lines {
			found = found || strings.Contains(line, b.rule) && strings.HasSuffix(line, " "+b.caughtBy)
		}
		require.True(t, found, "doc.go lacks: %s → %s", b.rule, b.caughtBy)
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "//\t") && strings.Contains(line, " → ") {
			rows++
		}
	}
	require.Equal(t, len(breakages), rows, "doc.go has rows that nothing proves")
}
