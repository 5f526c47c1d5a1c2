package strategy

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Instance ids come from few servers, names and lives, so that lives of one
// instance, namesakes and strangers all meet.
func drawID(t *rapid.T, names int) string {
	id := fmt.Sprintf("10.0.0.%d@-@", rapid.IntRange(1, 3).Draw(t, "server"))
	name := rapid.IntRange(0, names).Draw(t, "name")
	if name == 0 {
		return id + fmt.Sprint(rapid.IntRange(1, 5).Draw(t, "pid"))
	}
	return id + fmt.Sprintf("web-%d-%c", name, 'a'+rapid.IntRange(0, 3).Draw(t, "life"))
}

// drawPrevious gives items to instances without any order or balance: some to
// several, some out of range, some to nobody.
func drawPrevious(t *rapid.T, ids []string, names, total int) Assignment {
	previous := Assignment{}
	for range rapid.IntRange(0, 2*total).Draw(t, "claims") {
		id := drawID(t, names)
		if len(ids) > 0 && rapid.Bool().Draw(t, "present") {
			id = rapid.SampledFrom(ids).Draw(t, "holder")
		}
		previous[id] = append(previous[id], rapid.IntRange(-1, total+1).Draw(t, "item"))
	}
	return previous
}

func drawInput(t *rapid.T, instances, names, total int) Input {
	in := Input{Job: rapid.String().Draw(t, "job")}
	in.Total = rapid.IntRange(0, total).Draw(t, "total")
	for range rapid.IntRange(1, instances).Draw(t, "instances") {
		in.Instances = append(in.Instances, drawID(t, names))
	}
	in.Previous = drawPrevious(t, in.Instances, names, in.Total)
	return in
}

func clone(in Input) Input {
	in.Instances = slices.Clone(in.Instances)
	previous := make(Assignment, len(in.Previous))
	for id, items := range in.Previous {
		previous[id] = slices.Clone(items)
	}
	in.Previous = previous
	return in
}

func TestEveryStrategy(t *testing.T) {
	for _, s := range builtin {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := drawInput(t, 30, 20, 60)
				before := clone(in)
				got := s.Assign(in)
				require.Empty(t, cmp.Diff(before, in), "the input is left alone")
				require.NoError(t, got.Check(in))
				requireBalanced(t, got, in)

				shuffled := clone(in)
				shuffled.Instances = rapid.Permutation(in.Instances).Draw(t, "permutation")
				require.Empty(t, cmp.Diff(got, s.Assign(shuffled)), "order does not matter")
			})
		})
	}
}

func requireBalanced(t require.TestingT, a Assignment, in Input) {
	distinct := slices.Compact(slices.Sorted(slices.Values(in.Instances)))
	require.Equal(t, distinct, slices.Sorted(maps.Keys(a)), "an entry for each instance")
	for _, items := range a {
		require.NotNil(t, items)
		require.GreaterOrEqual(t, len(items), in.Total/len(distinct))
		require.LessOrEqual(t, len(items), (in.Total+len(distinct)-1)/len(distinct))
	}
}

// The strategies of ElasticJob know nothing of the past.
func TestJavasIgnorePrevious(t *testing.T) {
	for _, s := range []Strategy{AvgAllocation{}, Odevity{}, RoundRobin{}} {
		rapid.Check(t, func(t *rapid.T) {
			in := drawInput(t, 6, 4, 12)
			got := s.Assign(in)
			in.Previous = nil
			require.Empty(t, cmp.Diff(s.Assign(in), got))
		})
	}
}

func TestStickyKeepsItsOwnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, 30, 20, 200)
		got := Sticky{}.Assign(in)
		in.Previous = got
		require.Empty(t, cmp.Diff(got, Sticky{}.Assign(in)))
	})
}

// A restart of everything under new lives moves nothing, if names are unique.
func TestStickyKeepsItsAnswerOverRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Job: "job", Total: rapid.IntRange(0, 50).Draw(t, "total")}
		n := rapid.IntRange(1, 12).Draw(t, "instances")
		rename := make(map[string]string, n)
		for k := range n {
			id := fmt.Sprintf("10.0.0.%d@-@web-%d-%d", k, k, rapid.Int64().Draw(t, "life")&0xffff)
			in.Instances = append(in.Instances, id)
			rename[id] = fmt.Sprintf("10.0.9.%d@-@web-%d-next", n-k, k)
		}
		got, want := Sticky{}.Assign(in), Assignment{}
		next := Input{Job: in.Job, Total: in.Total, Previous: got}
		for id, items := range got {
			want[rename[id]] = items
			next.Instances = append(next.Instances, rename[id])
		}
		require.Empty(t, cmp.Diff(want, Sticky{}.Assign(next)))
		next.Previous = nil
		require.Empty(t, cmp.Diff(want, Sticky{}.Assign(next)), "ties do not depend on lives either")
	})
}
