package schedule

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// The golden file says what Quartz does, the other file where and why this
// package does something else: see testdata/java/README.md.
func TestQuartz(t *testing.T) {
	differences := map[string]bool{} // seen
	for _, line := range lines(t, "testdata/quartz-differences.tsv") {
		if line != "" && !strings.HasPrefix(line, "#") {
			differences[line] = false
		}
	}
	golden := lines(t, "testdata/quartz-2.3.2.tsv")
	require.Greater(t, len(golden), 500)
	for _, line := range golden {
		part := strings.Split(line, "\t")
		key := strings.Join(part[:3], "\t")
		diff := cmp.Diff(withinYears(t, part[3:], part[1]), answer(t, part[0], part[1], part[2], len(part)-3))
		if _, listed := differences[key]; listed {
			differences[key] = true
			require.NotEmpty(t, diff, "%s is listed as a difference and is none", key)
			continue
		}
		require.Empty(t, diff, "%s: - Quartz, + here", key)
	}
	for key, seen := range differences {
		require.True(t, seen, "%s is listed as a difference and not in the golden file", key)
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// withinYears ends Quartz's fires with 2099 and its errors with the mark.
func withinYears(t *testing.T, fires []string, zone string) []string {
	if strings.HasPrefix(fires[0], "!") {
		return []string{"!"}
	}
	z, err := parseZone(zone)
	require.NoError(t, err)
	for i, at := range fires {
		if at != "end" && instant(t, at).In(z.loc).Year() > 2099 {
			return append(fires[:i:i], "end")
		}
	}
	return fires
}

func answer(t *testing.T, expr, zone, start string, n int) []string {
	s, err := Parse(Config{Expr: expr, Zone: zone})
	if err != nil {
		return []string{"!"}
	}
	return fires(s, instant(t, start), n, time.UTC)
}
