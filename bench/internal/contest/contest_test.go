package contest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock of a bubble begins at a whole second.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tally Tally
		tally.Grow(3, 1)
		begin := time.Now()
		tally.Open(begin.Add(time.Second), begin.Add(3*time.Second), 6)
		tally.Began(0, begin) // due before it
		time.Sleep(1500 * time.Millisecond)
		tally.Began(0, begin.Add(time.Second)) // 500 ms late
		time.Sleep(time.Second)
		tally.Began(1, begin.Add(time.Second))   // 1.5 s late
		tally.Began(2, begin.Add(2*time.Second)) // 500 ms late
		time.Sleep(time.Second)
		tally.Began(2, begin.Add(3*time.Second)) // due after it
		tally.Began(1, begin.Add(2*time.Second)) // 1.5 s late, and begins after it
		require.Equal(t, Result{Begun: 3, Ran: 4, OnTime: 2, P50: 1500 * time.Millisecond, P99: 1500 * time.Millisecond, Max: 1500 * time.Millisecond}, tally.Close())
	})
}

func TestDueTimesThatNobodyTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tally Tally
		tally.Grow(1, 1)
		begin := time.Now()
		tally.Open(begin, begin.Add(time.Minute), 6)
		time.Sleep(100 * time.Millisecond)
		tally.BeganNext(0, time.Second) // due at 0
		time.Sleep(3 * time.Second)
		for range 3 {
			tally.BeganNext(0, time.Second) // due at 1, 2 and 3
		}
		r := tally.Close()
		require.Equal(t, 2, r.OnTime)
		require.Equal(t, 2100*time.Millisecond, r.Max)
	})
}

func TestSinceAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tally Tally
		tally.Grow(3, 2)
		require.Equal(t, 3, tally.Idle())
		tally.Began(0, time.Now())
		time.Sleep(2 * time.Second)
		tally.Began(1, time.Now())
		tally.Began(1, time.Now())
		require.Equal(t, 2, tally.Idle())
		time.Sleep(2 * time.Second)
		tally.Mark()
		begin := time.Now()
		time.Sleep(time.Second)
		tally.Began(1, time.Now()) // it ran here before
		require.Equal(t, Awakening{Waiting: 2, Last: time.Now()}, tally.Since())
		time.Sleep(time.Second)
		tally.Began(0, time.Now()) // too long ago
		tally.Began(0, time.Now())
		time.Sleep(time.Second)
		tally.Began(2, time.Now())
		require.Equal(t, Awakening{First: begin.Add(2 * time.Second), Last: begin.Add(3 * time.Second)}, tally.Since())
	})
}

func TestSchedules(t *testing.T) {
	require.Equal(t, "* * * * * ?", Jobs{Period: time.Second}.Cron("?"))
	require.Equal(t, "*/10 * * * * *", Jobs{Period: 10 * time.Second}.Cron("*"))
	require.Equal(t, "0 0 0 1 1 *", Jobs{}.Cron("*"))
	i, err := JobNumber(JobName(17))
	require.NoError(t, err)
	require.Equal(t, 17, i)
}

type fake struct{ added int }

func (f *fake) Add(_ context.Context, jobs Jobs) error { f.added += jobs.Count; return nil }
func (*fake) Close(context.Context) error              { return nil }

func TestServe(t *testing.T) {
	ask := func(orders ...string) (answers []Answer, f *fake) {
		f = &fake{}
		var out bytes.Buffer
		open := func(context.Context, Config, *Tally) (Contender, error) { return f, nil }
		require.NoError(t, Serve(t.Context(), strings.NewReader(strings.Join(orders, "\n")), &out, open))
		for decoder := json.NewDecoder(&out); ; {
			var a Answer
			if err := decoder.Decode(&a); err == io.EOF {
				return answers, f
			}
			answers = append(answers, a)
		}
	}
	answers, f := ask(`{}`, `{"do":"add","jobs":{"count":3,"items":1}}`, `{"do":"idle"}`, `{"do":"x"}`, `{"do":"write"}`, `{"do":"close"}`, `{"do":"idle"}`)
	require.Len(t, answers, 6, "nothing is answered after the end")
	require.Equal(t, 3, f.added)
	require.Equal(t, 3, answers[2].Idle)
	require.Contains(t, answers[3].Error, `order "x" is none`)
	require.Contains(t, answers[4].Error, "writes nothing")
	answers, _ = ask(`{}`, `{"do":"idle"}`)
	require.Len(t, answers, 2, "it ends with its input")
}
