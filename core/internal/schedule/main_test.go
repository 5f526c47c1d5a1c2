package schedule

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse also takes a *rapid.T.
func parse(t require.TestingT, c Config) *Schedule {
	s, err := Parse(c)
	require.NoError(t, err, "%+v", c)
	return s
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return at
}

// fires lists up to n fires after start, as they are written, then "end" if there
// are no more.
func fires(s *Schedule, start time.Time, n int, loc *time.Location) []string {
	var out []string
	for at := start; n > 0; n-- {
		next, ok := s.Next(at)
		if !ok {
			return append(out, "end")
		}
		out = append(out, next.In(loc).Format(time.RFC3339Nano))
		at = next
	}
	return out
}
