package dispatch_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
)

// An outage troubles every job once a second. The log says so and stays readable; listeners hear all of it.
func TestAnOutageOfManyJobsIsTenRecordsInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, seconds = 1000, 25
		log, heard := newLog(), 0
		d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelWarn), Listeners: []func(event.Event){func(event.Event) { heard++ }}})
		for range seconds {
			for i := range jobs {
				dispatch.Emit(d, event.Warning{Job: fmt.Sprint("job-", i), Problem: "a request failed", Err: errors.New("no server")})
			}
			time.Sleep(time.Second)
		}
		dispatch.Emit(d, event.Warning{Problem: "the scheduler's own"})
		dispatch.Emit(d, event.Warning{Job: "job-1", Problem: "another"})
		d.Close()
		require.Equal(t, seconds*jobs+2, heard)
		text := strings.Join(log.lines(), "\n")
		require.Equal(t, 3*10, strings.Count(text, `error="no server"`), text)
		require.Equal(t, 2, strings.Count(text, `msg="a request failed" more=9990 within=10s`), text)
		require.Equal(t, 1, strings.Count(text, `msg="a request failed" more=4990 within=5s`), text)
		require.Equal(t, 1, strings.Count(text, "the scheduler's own"))
		require.Equal(t, 1, strings.Count(text, "another"))
	})
}

// The number of those that were left out does not wait for whatever is told next.
func TestAnOutageThatIsOverIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelWarn)})
		for i := range 100 {
			dispatch.Emit(d, event.Warning{Job: fmt.Sprint("job-", i), Problem: "a request failed"})
		}
		time.Sleep(11 * time.Second)
		require.Contains(t, strings.Join(log.lines(), "\n"), `msg="a request failed" more=90 within=10s`)
		d.Close()
		require.Len(t, log.lines(), 11)
	})
}

// One job's warnings are all written.
func TestOneJobsOutageIsAllWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		d := dispatch.New(dispatch.Config{Log: log.logger(slog.LevelWarn)})
		for range 60 {
			dispatch.Emit(d, event.Warning{Job: "job", Problem: "a request failed"})
			time.Sleep(time.Second)
		}
		d.Close()
		text := strings.Join(log.lines(), "\n")
		require.Equal(t, 60, strings.Count(text, "job=job"))
		require.NotContains(t, text, "more=")
	})
}
