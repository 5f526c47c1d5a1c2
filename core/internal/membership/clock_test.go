package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A clock is off only where no delay of the answer can be the reason.
func TestJudge(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from, to int // seconds from what the leader's clock said
		off      bool
		known    bool
	}{
		{0, 0, false, true},
		{-5, 5, false, true},
		{5, 5, false, true},
		{6, 6, true, true},
		{-6, -6, true, true},
		{6, 60, true, true},
		{-60, -6, true, true},
		{0, 60, false, false}, // the answer took a minute: the clock may be right
		{-60, 0, false, false},
		{-60, 60, false, false},
		{-6, -5, false, false},
	} {
		by, known := judge(at.Add(time.Duration(c.from)*time.Second), at.Add(time.Duration(c.to)*time.Second), at, 5*time.Second)
		require.Equal(t, c.known, known, "%+v", c)
		require.Equal(t, c.off, by != 0, "%+v", c)
		require.Equal(t, c.off && c.from < 0, by < 0, "%+v", c)
	}
}

// Whatever the delays, a clock within the bound is never told to be off, and one beyond it never
// to be right.
func TestJudgeIsNeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := func(name string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least*1000, most*1000).Draw(t, name)) * time.Millisecond
		}
		bound := second("bound", 1, 60)
		ahead := second("ahead", -120, 120)
		asked := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) // the leader's clock says then
		there, back := second("there", 0, 120), second("back", 0, 120)
		by, known := judge(asked.Add(ahead), asked.Add(there+back+ahead), asked.Add(there), bound)
		switch {
		case !known:
		case by != 0:
			require.Greater(t, ahead.Abs(), bound)
		default:
			require.LessOrEqual(t, ahead.Abs(), bound)
		}
	})
}
