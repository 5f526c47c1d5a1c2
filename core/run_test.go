package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// twoJobs is a scheduler with the job hello and the job bad, which belongs to a class of Java.
func twoJobs(b *bed, w *witness, opts ...core.Option) *core.Scheduler {
	seed := b.start("seed", newWitness(), core.JobConfig{Name: "other", Cron: "@daily", Shards: 1})
	b.create(seed, "/"+b.ns+"/bad", "com.example.Bad")
	b.create(seed, "/"+b.ns+"/bad/config", "jobName: bad\ncron: '* * * * * ?'\nshardingTotalCount: 1\n")
	bad := everySecond
	bad.Name = "bad"
	s := core.New(b.registry(), append(opts, core.WithIP("127.0.0.1"), core.WithLogger(nil))...)
	require.NoError(b, s.Add(w, everySecond))
	require.NoError(b, s.Add(newWitness(), bad))
	return s
}

// One job that cannot run is told by its name, and the others run on.
func TestStartTellsWhichJobsCannotRun(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		s := twoJobs(b, w)
		err := s.Start(b.Context())
		var failed *core.StartError
		require.ErrorAs(b, err, &failed)
		require.Len(b, failed.Jobs, 1)
		require.ErrorIs(b, failed.Jobs["bad"], core.ErrConfig)
		require.ErrorIs(b, err, core.ErrConfig)
		require.Equal(b, failed.Jobs["bad"].Error(), err.Error())
		b.until("the other job runs", func() bool { return w.count() >= 8 })
		require.NoError(b, s.Stop(b.Context()))
	})
}

// Run goes on as long as one job does, and says in the end which could not.
func TestRunGoesOnAsLongAsOneJobDoes(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		s := twoJobs(b, w)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		b.until("the other job runs", func() bool { return w.count() >= 8 })
		require.Empty(b, ended)
		cancel()
		err := <-ended
		require.ErrorIs(b, err, core.ErrConfig)
		require.ErrorContains(b, err, `job "bad"`)
		<-s.Done()
		require.ErrorIs(b, s.Run(b.Context()), core.ErrStopped)
	})
}

// Run returns when every job was shut down, and when somebody else calls Stop.
func TestRunEndsWithItsJobs(t *testing.T) {
	for _, how := range []string{"shut down", "stopped"} {
		inBubble(t, func(b *bed) {
			s := core.New(b.registry(), core.WithIP("127.0.0.1"), core.WithLogger(nil))
			for _, name := range []string{"hello", "bye"} {
				cfg := everySecond
				cfg.Name = name
				require.NoError(b, s.Add(newWitness(), cfg))
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(b.Context()) }()
			state := func(i int) core.JobState { return s.State().Jobs[i] }
			b.until("both run", func() bool { return state(0).Phase == core.PhaseRunning && state(1).Phase == core.PhaseRunning })
			if how == "stopped" {
				require.NoError(b, s.Stop(b.Context()))
				require.NoError(b, <-ended)
				return
			}
			store := b.open(b.prepare("tool", newWitness(), everySecond))
			for i, name := range []string{"hello", "bye"} {
				require.Empty(b, ended)
				_, err := store.Commit(b.Context(), registry.Delete("/"+b.ns+"/"+name+"/instances/"+state(i).Instance, registry.AnyVersion))
				require.NoError(b, err)
				b.until("it has left", func() bool { return state(i).Phase == core.PhaseStopped })
			}
			err := <-ended
			require.ErrorIs(b, err, core.ErrShutDown)
			require.ErrorContains(b, err, `job "hello"`)
			require.ErrorContains(b, err, `job "bye"`)
		})
	}
}

// A start that fails waits for what runs already no longer than it says.
func TestAStartThatFailsEndsWhatRuns(t *testing.T) {
	inBubble(t, func(b *bed) {
		reg := b.registry()
		free := make(chan struct{})
		defer close(free)
		reg.hold(func(ops []registry.Op) {
			if strings.HasPrefix(ops[len(ops)-1].Path, "/"+b.ns+"/late/") {
				<-free
			}
		})
		causes := make(chan error, 1)
		hour := core.JobFunc(func(ctx context.Context, _ core.Shard) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		})
		s := core.New(reg, core.WithIP("127.0.0.1"), core.WithLogger(nil), core.WithRunPatience(3*time.Second))
		cfg := everySecond
		cfg.Shards = 1
		require.NoError(b, s.Add(hour, cfg))
		late := cfg
		late.Name = "late"
		require.NoError(b, s.Add(newWitness(), late))
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		err := s.Start(ctx)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "1 of 2 jobs not registered in time: late")
		require.ErrorIs(b, <-causes, core.ErrStopped)
		require.Less(b, time.Since(begun), 30*time.Second)
		require.Equal(b, core.State{Stopping: true}.Stopping, s.State().Stopping)
	})
}

// A refusing registry opens no session while it is told not to.
type refusing struct {
	registry.Registry
	why atomic.Pointer[error]
}

func (r *refusing) Open(ctx context.Context) (registry.Session, error) {
	if why := r.why.Load(); why != nil {
		return nil, *why
	}
	return r.Registry.Open(ctx)
}

// Whoever is on call reads why an instance does not come back: of a password that was changed while it ran.
func TestASessionThatCannotBeOpenedAgainIsTold(t *testing.T) {
	inBubble(t, func(b *bed) {
		inner := b.registry()
		reg := &refusing{Registry: inner}
		var mu sync.Mutex
		var told []error
		log := &page{}
		s := core.New(reg, core.WithIP("127.0.0.1"), core.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))),
			core.WithListener(func(e event.Event) {
				if w, is := e.(event.Warning); is && strings.HasPrefix(w.Problem, "no session with the registry can be opened") {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, w.Err)
				}
			}))
		w := newWitness()
		require.NoError(b, s.Add(w, everySecond))
		require.NoError(b, s.Start(b.Context()))
		b.until("it runs", func() bool { return w.count() >= 4 })
		denied := fmt.Errorf("the password is wrong: %w", registry.ErrDenied)
		reg.why.Store(&denied)
		inner.lose()
		pause(5 * time.Minute)
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(told)
		}
		require.Equal(b, 3, count(), "at once, after a minute, and after two more")
		other := errors.New("the certificate has expired")
		reg.why.Store(&other)
		b.until("another reason is told", func() bool { return count() == 4 })
		mu.Lock()
		require.ErrorIs(b, told[0], registry.ErrDenied)
		require.ErrorIs(b, told[3], other)
		mu.Unlock()
		require.Equal(b, "a session with the registry", s.State().Jobs[0].WaitingFor)
		before := w.count()
		reg.why.Store(nil)
		b.until("it runs again", func() bool { return w.count() > before })
		require.NoError(b, s.Stop(b.Context()))
		require.Contains(b, log.String(), `msg="session regained"`)
		require.Equal(b, 4, strings.Count(log.String(), "no session with the registry can be opened"))
	})
}

// The registry is not blamed for a listener that does not return.
func TestStopSaysThatAListenerHasNotReturned(t *testing.T) {
	inBubble(t, func(b *bed) {
		free := make(chan struct{})
		a := b.start("a", newWitness(), everySecond, core.WithListener(func(e event.Event) {
			if _, is := e.(event.Stopped); is {
				<-free
			}
		}))
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		err := a.Stop(ctx)
		require.ErrorContains(b, err, "the registry was left; a listener (WithListener) has not returned")
		require.ErrorIs(b, err, context.DeadlineExceeded)
		close(free)
		require.NoError(b, a.Stop(b.Context()))
	})
}

// A configuration is put in the place of the registry's once: what was changed there afterwards outlives the sessions of
// the process, and what was switched off outlives the process.
func TestOverwritingIsDoneOnce(t *testing.T) {
	inBubble(t, func(b *bed) {
		first := b.start("first", newWitness(), everySecond)
		cfg := everySecond
		cfg.Shards, cfg.Overwrite = 5, true
		a := b.start("a", newWitness(), cfg)
		b.until("its configuration is in force", func() bool { return a.job().Total == 5 && first.job().Total == 5 })
		require.Equal(b, []event.ConfigChanged{{
			Job: "hello", Overwrote: true, Changes: []event.Change{{Field: "Shards", Old: "4", New: "5"}},
		}}, of[event.ConfigChanged](a))

		b.setConfig(a, "shardingTotalCount: 5", "shardingTotalCount: 7")
		b.until("an operator's change is in force", func() bool { return a.job().Total == 7 })
		a.gate.lose()
		b.until("it has another session", func() bool { return len(of[event.SessionRegained](a)) == 1 && a.job().Phase == core.PhaseRunning })
		b.until("the change stands", func() bool { return a.job().Total == 7 })

		a.stop(b)
		var once sync.Once
		off := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			once.Do(func() { require.NoError(b, s.DisableJob(ctx, "the table is full")) })
			return nil
		})
		c := b.start("c", off, cfg)
		b.until("it is disabled", func() bool { return c.job().Disabled != "" })
		c.stop(b)
		cfg.Shards = 6
		d := b.start("d", newWitness(), cfg)
		b.until("what else it says is in force", func() bool { return d.job().Total == 6 })
		require.Equal(b, "the job is disabled in its configuration: the table is full", d.job().Disabled)
		require.Len(b, of[event.ConfigChanged](d), 1)
		d.stop(b)
		e := b.start("e", newWitness(), cfg)
		require.Empty(b, of[event.ConfigChanged](e), "nothing differs that counts")
		require.NotEmpty(b, e.job().Disabled)
		// Whoever writes the switch by hand decides, too.
		b.setConfig(e, "disabled: true", "disabled: false")
		b.until("it is enabled", func() bool { return e.job().Disabled == "" })
	})
}

// A run that returns the error of its context says why that ended: "context canceled" alone tells an operator nothing.
func TestACancelledRunSaysWhy(t *testing.T) {
	inBubble(t, func(b *bed) {
		ended := make(chan error, 1)
		s := core.New(b.registry(), core.WithIP("127.0.0.1"), core.WithLogger(nil), core.WithListener(func(e event.Event) {
			if e, is := e.(event.ItemEnded); is {
				ended <- e.Err
			}
		}))
		cfg := everySecond
		cfg.Shards = 1
		called := make(chan struct{})
		require.NoError(b, s.Add(core.JobFunc(func(ctx context.Context, _ core.Shard) error {
			close(called)
			<-ctx.Done()
			return ctx.Err()
		}), cfg))
		require.NoError(b, s.Start(b.Context()))
		<-called
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		require.NoError(b, s.Stop(ctx))
		err := <-ended
		require.EqualError(b, err, "context canceled: scheduler stopped")
		require.ErrorIs(b, err, context.Canceled)
		require.ErrorIs(b, err, core.ErrStopped)
	})
}
