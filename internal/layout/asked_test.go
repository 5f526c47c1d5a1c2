package layout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRequestsAndRunsAreReadAsTheyWereWritten(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 1_000_003, time.UTC)
	for _, r := range []Request{{}, {Items: "0-3,7", Parameter: "x\n\"y\"", Refuse: true, Expires: now, By: "ops"}} {
		read, err := UnmarshalRequest(MarshalRequest(r))
		require.NoError(t, err)
		require.Equal(t, r, read)
	}
	for _, r := range []Run{
		{Number: 1, Request: "a", At: now},
		{
			Number: 7, Request: "b", Epoch: 2, Total: 4, At: now, Items: "0-3", Parameter: "x", By: "ops", Sealed: "unmonitored",
			Answers: []Answer{{Items: "1", Outcome: "busy", Text: "why"}}, Closed: now.Add(time.Second), Problem: "no",
		},
	} {
		read, err := UnmarshalRun(MarshalRun(r))
		require.NoError(t, err)
		require.Equal(t, r, read)
	}
	results := Results{Results: []Answer{{Items: "0-2", Outcome: "failed", Text: "no paper"}}}
	read, err := UnmarshalResults(MarshalResults(results))
	require.NoError(t, err)
	require.Equal(t, results, read)
	kill := Kill{Item: 3, Due: now, By: "ops"}
	killed, err := UnmarshalKill(MarshalKill(kill))
	require.NoError(t, err)
	require.Equal(t, kill, killed)
}

func TestWhatIsNoRunIsRefused(t *testing.T) {
	for _, text := range []string{"", "{", "null", "[]", `{"n":0,"at":"2026-11-22T08:00:00Z"}`, `{"n":1}`, `{"n":1,"at":"x"}`} {
		_, err := UnmarshalRun([]byte(text))
		require.Error(t, err, text)
	}
	for _, text := range []string{"", "{", "null", "[]", `{"item":1}`, `{"item":-1,"due":"2026-11-22T08:00:00Z"}`} {
		_, err := UnmarshalKill([]byte(text))
		require.Error(t, err, text)
	}
	for _, text := range []string{"", "{", "[]", `{"items":7}`} {
		_, err := UnmarshalRequest([]byte(text))
		require.Error(t, err, text)
		_, err = UnmarshalResults([]byte(text))
		if text != `{"items":7}` {
			require.Error(t, err, text)
		}
	}
}

func TestNodesOfRequestsAndRuns(t *testing.T) {
	j, err := New("shop", "orders")
	require.NoError(t, err)
	require.Equal(t, "/elasticron/shop/orders/inforce/request@ab", j.Request("ab"))
	require.Equal(t, "/elasticron/shop/orders/inforce/run@12", j.Run(12))
	require.Equal(t, "/elasticron/shop/orders/runs/12/id", j.RunResult(12, "id"))
	require.Equal(t, "/elasticron/shop/orders/inforce/kill@ab", j.Kill("ab"))
	require.True(t, IsKill("kill@ab"))
	require.False(t, IsKill("run@1"))
	id, is := RequestID("request@ab")
	require.True(t, is)
	require.Equal(t, "ab", id)
	n, is := RunNumber("run@12")
	require.True(t, is)
	require.EqualValues(t, 12, n)
	for _, name := range []string{"run@", "run@0", "run@-1", "run@01", "run@x", "base", "paused@run@1", "request@", "request"} {
		_, isRun := RunNumber(name)
		_, isRequest := RequestID(name)
		require.False(t, isRun || isRequest, name)
	}
	require.EqualValues(t, 12, UnmarshalCounter(MarshalCounter(12)))
	for _, text := range []string{"", "-3", "x", "9999999999999999999999"} {
		require.Zero(t, UnmarshalCounter([]byte(text)), text)
	}
}
