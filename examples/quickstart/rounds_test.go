package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const period = 2 * time.Second

func TestARoundIsWholeWhenEveryItemRan(t *testing.T) {
	b := newBook([]Sums{{Files: 1}, {Files: 2}}, period)
	b.open(noon)
	require.NoError(t, b.result(noon.Add(period), 0, Sums{Files: 1}, false))
	require.Empty(t, b.closeRounds())
	require.NoError(t, b.result(noon.Add(period), 1, Sums{Files: 2}, false))
	require.Len(t, b.closeRounds(), 1)
	require.Empty(t, b.closeRounds(), "a round is closed once")
	require.Equal(t, 1, b.whole)
	require.Equal(t, 3, b.files)
}

func TestWrongSumsAndDoubledItemsAreErrors(t *testing.T) {
	b := newBook([]Sums{{Files: 1}, {Files: 2}}, period)
	require.ErrorContains(t, b.result(noon, 1, Sums{Files: 3}, false), "item 1 is wrong")
	require.NoError(t, b.result(noon, 0, Sums{Files: 1}, false))
	require.ErrorContains(t, b.result(noon, 0, Sums{Files: 1}, false), "item 0 ran twice")
	require.ErrorContains(t, b.result(noon, 2, Sums{}, false), "item 2 does not exist")
}

// A killed worker may have told a result that it could not record any more.
func TestWhatAKilledWorkerHadBegunRunsAgain(t *testing.T) {
	b := newBook([]Sums{{Files: 1}, {Files: 2}}, period)
	b.open(noon.Add(-period))
	require.NoError(t, b.result(noon, 0, Sums{Files: 1}, false))
	require.False(t, b.has(noon, 1))
	require.NoError(t, b.result(noon, 1, Sums{Files: 2}, true))
	require.True(t, b.has(noon, 1))
	closed := b.closeRounds()
	require.Len(t, closed, 1)
	require.Contains(t, closed[0].String(), "; items [1] finished by others")
	require.NoError(t, b.result(noon, 0, Sums{Files: 1}, true), "the killed one had told it")
	require.NoError(t, b.result(noon, 1, Sums{Files: 2}, false), "and its line came late")
	require.ErrorContains(t, b.result(noon, 0, Sums{Files: 1}, true), "item 0 ran twice")
	require.ErrorContains(t, b.result(noon.Add(period), 1, Sums{Files: 3}, true), "item 1 is wrong")
	require.ErrorContains(t, b.result(noon, 0, Sums{Files: 1}, false), "item 0 ran twice")
	require.Equal(t, 2, b.again)
	require.Equal(t, 1, b.whole)
	require.Equal(t, 3, b.files)
}

func TestALostItemIsNamedWithItsReason(t *testing.T) {
	b := newBook([]Sums{{Files: 1}, {Files: 2}}, period)
	b.open(noon.Add(-period))
	require.NoError(t, b.result(noon, 0, Sums{Files: 1}, false))
	require.NoError(t, b.result(noon.Add(period), 0, Sums{Files: 1}, false))
	b.lose(noon.Add(period), []int{0, 1}, 2, "it died")
	closed := b.closeRounds()
	require.Len(t, closed, 2)
	require.Contains(t, closed[1].String(), "1 of 2 items ran; not: item 1: it died")
	require.Equal(t, 2, b.partly)
	require.Zero(t, b.whole)
}

func TestAnItemThatNeitherRanNorWasSkippedIsMissed(t *testing.T) {
	b := newBook([]Sums{{}, {}}, period)
	b.open(noon.Add(-period))
	require.NoError(t, b.result(noon, 0, Sums{}, false))
	require.Len(t, b.missing(noon.Add(period)), 1)
	require.Contains(t, b.missing(noon.Add(period))[0], "item 1 neither ran nor was skipped")
	require.Empty(t, b.missing(noon), "the running round is not missed")
}

func TestARoundThatNobodySpokeOfIsMissed(t *testing.T) {
	b := newBook([]Sums{{}}, period)
	b.open(noon.Add(-period / 2))
	require.NoError(t, b.result(noon, 0, Sums{}, false))
	require.NoError(t, b.result(noon.Add(2*period), 0, Sums{}, false))
	b.closeRounds()
	missing := b.missing(noon.Add(3 * period))
	require.Len(t, missing, 1)
	require.Contains(t, missing[0], clock(noon.Add(period))+": item 0 neither ran nor was skipped")
}

func TestTheLongestTimeWithoutAnOwner(t *testing.T) {
	o := newOwners(3)
	o.set("a", []int{0, 1, 2}, noon)
	require.True(t, o.whole(1))
	require.False(t, o.whole(2))
	o.set("a", []int{0, 1}, noon.Add(time.Second))
	require.False(t, o.whole(1))
	o.set("b", []int{2}, noon.Add(1500*time.Millisecond))
	require.True(t, o.whole(2))
	require.Equal(t, 500*time.Millisecond, o.longest)
	o.gone("a", noon.Add(2*time.Second))
	o.set("b", []int{0, 1, 2}, noon.Add(4*time.Second))
	require.Equal(t, 2*time.Second, o.longest)
	require.Equal(t, []string{"b"}, sortedNames(o.of))
}

func TestSharesAreTheWholeCorpus(t *testing.T) {
	files := []string{"a", "b", "c", "d", "e"}
	var all []string
	for i := range 3 {
		all = append(all, share(files, i, 3)...)
	}
	require.ElementsMatch(t, files, all)
}

func TestCountSeesWhatTheScannerSees(t *testing.T) {
	src := "package p\n\nvar x, y = 1, z // not w\n"
	require.Equal(t, Sums{Files: 1, Lines: 3, Bytes: len(src), Identifiers: 4}, count([]byte(src)))
}

func TestIndexStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	_, err := index(ctx, []string{"nowhere"}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFlagsAreRefusedWithTheFix(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-rounds", "0"}, "-rounds 0: give at least 1"},
		{[]string{"-workers", "1"}, "at least 2"},
		{[]string{"-items", "0"}, "1 to 1000"},
		{[]string{"-keep", "-registry", "etcd://x/y"}, "means nothing with -registry"},
		{[]string{"-registry", "memory://a/b"}, "lives in one process"},
		{[]string{"surplus"}, `unknown argument "surplus"`},
	} {
		_, err := parseFlags(c.args)
		require.ErrorContains(t, err, c.says)
	}
}
