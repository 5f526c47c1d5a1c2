package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/history"
)

// A service that takes long for one count is a fault while it does, whatever comes of the count.
func TestSlowCountsAreAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		begun := time.Now()
		w := &witness{out: history.NewWriter(&out, "driver", func() (time.Duration, time.Time) { return time.Since(begun), time.Now() })}
		lost := errors.New("lost")
		for took, is := range map[time.Duration]error{slowCount - time.Nanosecond: nil, 0: lost} {
			require.Equal(t, is, w.timed(func() error { <-time.After(took); return is }))
		}
		require.Empty(t, out.String())
		since := time.Since(begun)
		require.Equal(t, lost, w.timed(func() error { <-time.After(2 * time.Second); return lost }))
		all, err := history.Read(strings.NewReader(out.String()))
		require.NoError(t, err)
		require.Len(t, all, 2)
		for i, at := range []time.Duration{since + slowCount, since + 2*time.Second} {
			require.Equal(t, []history.Kind{history.FaultBegun, history.FaultEnded}[i], all[i].Kind)
			require.Equal(t, at, all[i].At)
			require.True(t, all[i].Disturbs)
		}
	})
}
