package schedule

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/cron.md says of Quartz, in its tables of four columns, is what the golden file says,
// and what it says of this package is so.
func TestTheCronPage(t *testing.T) {
	listed, golden := lines(t, "testdata/quartz-differences.tsv"), lines(t, "testdata/quartz-2.3.2.tsv")
	row := regexp.MustCompile("^\\| `([^`]+)`(?: in (New York))? \\| ([^|]+) \\| ([^|]+) \\| [^|]+ \\|$")
	rows := 0
	for _, line := range lines(t, "../../../docs/cron.md") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rows++
		expr, zone := m[1], "UTC"
		if m[2] != "" {
			zone = "America/" + strings.ReplaceAll(m[2], " ", "_")
		}
		part := difference(listed, golden, expr, zone)
		require.NotNil(t, part, "no difference is listed for %s", line)
		quartz, here := withinYears(t, part[3:], zone), answer(t, expr, zone, part[2], max(len(part)-3, 3))
		if here[0] == "!" {
			_, err := Parse(Config{Expr: expr})
			require.ErrorContains(t, err, m[4], line)
			require.NotEqual(t, "!", quartz[0], line)
			continue
		}
		for len(quartz) > 0 && len(here) > 0 && quartz[0] == here[0] {
			quartz, here = quartz[1:], here[1:]
		}
		require.Equal(t, dates(t, here, zone), m[4], line)
		switch {
		case strings.Contains(part[3], "hangs"):
			require.Equal(t, "hangs", m[3], line)
		case quartz[0] == "!":
			require.Equal(t, "refused", m[3], line)
		default:
			require.Equal(t, dates(t, quartz, zone), m[3], line)
		}
	}
	require.Greater(t, rows, 25)
}

// difference is the golden line of an expression that is listed as a difference.
func difference(listed, golden []string, expr, zone string) []string {
	for _, line := range golden {
		if part := strings.Split(line, "\t"); part[0] == expr && part[1] == zone {
			for _, key := range listed {
				if key == strings.Join(part[:3], "\t") {
					return part
				}
			}
		}
	}
	return nil
}

// dates are three days, or one reading of a zone's clock.
func dates(t *testing.T, fires []string, zone string) string {
	z, err := parseZone(zone)
	require.NoError(t, err)
	layout, n := "Jan 2", 3
	if zone != "UTC" {
		layout, n = "Jan 2 15:04 MST", 1
	}
	var out []string
	for i, at := range fires[:n] {
		shown := instant(t, at).In(z.loc)
		out = append(out, shown.Format(layout))
		if i == 0 && shown.Year() != 2026 {
			out[0] += shown.Format(" 2006")
		}
	}
	return strings.Join(out, ", ")
}
