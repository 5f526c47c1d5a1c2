package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThePeriodComesFromTheSinglePass(t *testing.T) {
	for pass, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, time.Second: 2 * time.Second, time.Second + 1: 3 * time.Second, 4 * time.Second: 10 * time.Second,
		30 * time.Second: time.Minute, time.Hour: time.Minute,
	} {
		period, words := periodOf(pass)
		require.Equal(t, want, period, "%v", pass)
		require.Equal(t, pass > 30*time.Second, 2*pass > period, "half of the time is left")
		require.Zero(t, time.Minute%period)
		require.Contains(t, words, period.String())
	}
	_, words := periodOf(300 * time.Millisecond)
	require.Equal(t, "a round every 2s", words)
	_, words = periodOf(7 * time.Second)
	require.Equal(t, "a round every 15s instead of every 2s, since a round takes one process 7s here: the play lasts longer", words)
	_, words = periodOf(1170 * time.Millisecond)
	require.Equal(t, "a round every 3s instead of every 2s, since a round takes one process 1.2s here: the play lasts longer", words)
	_, words = periodOf(time.Minute)
	require.Contains(t, words, "too slow")
}
