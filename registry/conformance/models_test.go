package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// However slow the service, the sequences that are run in any case hold every
// kind of fault: their seeds are fixed.
func TestFewSequencesHoldEveryFault(t *testing.T) {
	fates, drops, stirs := map[Fate]int{}, 0, map[stirKind]int{}
	for nr := range fewSequences {
		for _, m := range movesOf().Example(firstSeed + nr) {
			fates[m.fate]++
			if m.kind == moveDrop {
				drops++
			}
		}
		for _, s := range stirsOf().Example(firstSeed + nr) {
			stirs[s.kind]++
		}
	}
	t.Log(fates, drops, stirs)
	require.Greater(t, fates[AnswerLost], 1)
	require.Greater(t, fates[RequestLost], 1)
	require.Greater(t, drops, 1)
	require.Greater(t, stirs[stirDrop], 1)
	require.Greater(t, stirs[stirCutOff], 1)
}

func TestSequencesAreTheSameEveryTime(t *testing.T) {
	first := movesOf().Example(7)
	require.Equal(t, first, movesOf().Example(7))
	require.NotEqual(t, first, movesOf().Example(8))
}

func TestReduce(t *testing.T) {
	steps := []int{5, 1, 9, 2, 12, 3, 7}
	runs := 0
	left := steps
	reduce(steps, func(n int) []int {
		if n > 8 {
			return []int{n - 1}
		}
		return nil
	}, func(some []int) bool {
		runs++
		// What fails needs something of 8 or more before the 3.
		large := slices.IndexFunc(some, func(n int) bool { return n >= 8 })
		fails := large >= 0 && slices.Contains(some[large:], 3)
		if fails {
			left = some
		}
		return fails
	})
	require.Equal(t, []int{8, 3}, left)
	require.Less(t, runs, 40)
}
