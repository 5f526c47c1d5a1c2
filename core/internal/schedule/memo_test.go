package schedule

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is remembered is what would be found.
func TestWhatIsRememberedIsWhatIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom([]string{"* * * * * ?", "*/7 * * * * ?", "0 30 2 * * ?", "0 0 0 1 1 ? 2030-2031", "0 15 * * * ?"}).Draw(t, "expr")
		s, err := Parse(Config{Expr: expr, Zone: rapid.SampledFrom([]string{"UTC", "Europe/Berlin"}).Draw(t, "zone")})
		require.NoError(t, err)
		at := time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 40).Draw(t, "questions") {
			after := at.Add(time.Duration(rapid.Int64Range(-int64(30*time.Minute), int64(4*time.Hour)).Draw(t, "after")))
			if rapid.Bool().Draw(t, "far") {
				after = after.AddDate(rapid.IntRange(-1, 8).Draw(t, "years"), 0, 0)
			}
			want, wantMore := s.find(after)
			got, more := s.Next(after)
			require.Equal(t, wantMore, more)
			require.True(t, want.Equal(got), "after %v: %v, want %v", after, got, want)
			require.Equal(t, want.Location(), got.Location())
			if rapid.Bool().Draw(t, "on") {
				at = got
			}
		}
	})
}

// Jobs of one configuration share a schedule, as long as one of them uses it.
func TestEqualConfigurationsShareASchedule(t *testing.T) {
	c := Config{Expr: "11 22 3 * * ?", Zone: "Europe/Berlin"}
	one, err := Parse(c)
	require.NoError(t, err)
	other, err := Parse(c)
	require.NoError(t, err)
	require.Same(t, one, other)
	c.Gap = SkipGap
	other, err = Parse(c)
	require.NoError(t, err)
	require.NotSame(t, one, other)
	c.Zone = ""
	one, err = Parse(c)
	require.NoError(t, err)
	other, err = Parse(c)
	require.NoError(t, err)
	require.NotSame(t, one, other, "the local zone may be another one by now")
	for i := range 100 {
		_, err = Parse(Config{Expr: "0 0 0 ? * MON", Zone: fmt.Sprintf("GMT+0%d:%02d", i%10, i%60)})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		inUse.mu.Lock()
		defer inUse.mu.Unlock()
		return len(inUse.schedules) < 50
	}, 10*time.Second, 10*time.Millisecond, "what nobody uses is forgotten")
}
