package core_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
)

// cells are the rows of the tables of a page that have as many columns, without their heads.
func cells(t *testing.T, page string, columns int) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		parts := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") || len(parts) != columns {
			continue
		}
		for i := range parts {
			parts[i] = strings.Trim(strings.TrimSpace(parts[i]), "`")
		}
		rows = append(rows, parts)
	}
	require.NotEmpty(t, rows)
	return rows
}

// What docs/cron.md says of an expression is so.
func TestThePageAboutCron(t *testing.T) {
	const page = "../docs/cron.md"
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range cells(t, page, 3) {
		s, err := core.JobConfig{Cron: row[0], TimeZone: "UTC"}.Schedule()
		require.NoError(t, err, row[0])
		next, ok := s.Next(from)
		require.True(t, ok, row[0])
		require.Equal(t, row[2], next.UTC().Format(time.DateTime), row[0])
	}
	for _, row := range cells(t, page, 5) {
		s, err := core.JobConfig{Cron: row[0], TimeZone: "America/New_York", Gap: row[1], Overlap: row[2]}.Schedule()
		require.NoError(t, err, row)
		after, err := time.Parse(time.RFC3339, row[3])
		require.NoError(t, err, row)
		next, ok := s.Next(after)
		require.True(t, ok, row)
		require.Equal(t, row[4], next.In(s.Location()).Format(time.RFC3339), row)
	}
	for _, row := range cells(t, page, 2) {
		err := core.JobConfig{Name: "hello", Cron: row[0], TimeZone: "UTC", Shards: 1}.Validate()
		require.ErrorContains(t, err, row[1], row[0])
	}
}

// What it warns of, and does not refuse.
func TestTheTrapsOfCron(t *testing.T) {
	count := func(cron string, from, until time.Time) (n int) {
		s, err := core.JobConfig{Cron: cron, TimeZone: "UTC"}.Schedule()
		require.NoError(t, err)
		for at, ok := s.Next(from); ok && at.Before(until); at, ok = s.Next(at) {
			n++
		}
		return n
	}
	begin := time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC)
	require.Equal(t, 7, count("0 0 0 31 * ?", begin, begin.AddDate(1, 0, 0)))
	require.Equal(t, 60, count("* 30 2 * * ?", begin, begin.AddDate(0, 0, 1)))
	require.Equal(t, 9, count("0 0/7 * * * ?", begin, begin.Add(time.Hour)))
	s, err := core.JobConfig{Cron: "0 0 0 1W 8 ?", TimeZone: "UTC"}.Schedule()
	require.NoError(t, err)
	next, _ := s.Next(begin)
	require.Equal(t, "Mon 3 Aug 2026", next.Format("Mon 2 Jan 2006"))
}
