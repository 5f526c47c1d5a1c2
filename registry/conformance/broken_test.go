package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
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
	requireCaught(t, breakages)
}

// requireCaught requires that each is caught by its case, for the reason it gives.
func requireCaught(t *testing.T, all []breakage) {
	t.Helper()
	try := func(i int) verdict {
		b := all[i]
		failed, text := executeFor(t, newFlawedHarness(b.flaw), caseNamed(t, b.caughtBy), brokenTime, brokenTime)
		return verdict{failed, text}
	}
	verdicts := tryAll(len(all), try)
	for i, b := range all {
		t.Run(b.rule, func(t *testing.T) {
			c, v := caseNamed(t, b.caughtBy), verdicts[i]
			for again := 0; again < 2 && !strings.Contains(v.text, b.saw); again++ {
				v = try(i) // alone: on a busy machine something else may be seen first
			}
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
	sound := func(i int) verdict {
		failed, text := execute(t, newFlawedHarness(flaw{}), caseNamed(t, names[i]))
		return verdict{failed, text}
	}
	counts := func(i int) bool { return caseNamed(t, names[i]).needs&alone != 0 } // what others do too
	verdicts := tryAll(len(names), func(i int) verdict {
		if counts(i) {
			return verdict{}
		}
		return sound(i)
	})
	for i := range names {
		if counts(i) {
			verdicts[i] = sound(i)
		}
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) { require.False(t, verdicts[i].failed, verdicts[i].text) })
	}
}
