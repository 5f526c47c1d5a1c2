package admin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// What was registered as disabled because its job was is enabled with it, and not what an operator has disabled.
func TestAJobIsEnabledWithItsNewServers(t *testing.T) {
	for name, enable := range map[string]func(*bed) error{
		"EnableJob": func(b *bed) error { return b.EnableJob(b.Context(), "hello") },
		"SetConfig": func(b *bed) error {
			cfg, err := b.Config(b.Context(), "hello")
			require.NoError(b, err)
			cfg.Disabled = false
			return b.SetConfig(b.Context(), cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bed) {
				ctx := b.Context()
				a := b.start("a", "127.0.0.1", everySecond)
				b.fires(a)
				require.NoError(b, b.DisableJob(ctx, "hello"))
				b.until("it says so", func() bool { return a.job().Disabled != "" })
				b.rests(a)
				require.NoError(b, b.Disable(ctx, admin.Target{Job: "hello", IP: "127.0.0.1"}))
				c := b.start("c", "127.0.0.2", everySecond)
				b.until("it says so", func() bool { return c.job().Disabled != "" })
				require.Equal(b, "DISABLED", string(b.get("/shop/hello/servers/127.0.0.2").Value))
				require.NoError(b, enable(b))
				b.until("it has all", func() bool { return spread(map[*instance]int{a: 0, c: 4}) })
				b.fires(c)
				require.Equal(b, "DISABLED", string(b.get("/shop/hello/servers/127.0.0.1").Value), "an operator's word")
			})
		})
	}
}

// Everything that an operator does to a job that others run, one after the other.
// Who has disabled a job, and why, is said until somebody enables it, by whichever way.
func TestWhyAJobIsDisabled(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx := b.Context()
		a := b.start("a", "127.0.0.1", everySecond)
		why := func() string {
			j, err := b.Job(ctx, "hello")
			require.NoError(b, err)
			return j.Why
		}
		require.NoError(b, b.DisableJob(ctx, "hello"))
		require.Contains(b, why(), "the job is disabled in its configuration: an operator disabled it at 20")
		require.NoError(b, b.DisableJob(ctx, "hello", "another reason"))
		require.Contains(b, why(), "an operator disabled it at 20", "the first one counts")
		require.NoError(b, b.EnableJob(ctx, "hello"))
		require.NoError(b, b.DisableJob(ctx, "hello", "alice:", "the disk is full"))
		require.Equal(b, "the job is disabled in its configuration: alice: the disk is full", why())
		b.until("its instances say so", func() bool {
			return a.State().Jobs[0].Disabled == "the job is disabled in its configuration: alice: the disk is full"
		})
		// One that enables it leaves no reason for whoever disables it next.
		c, err := b.Config(ctx, "hello")
		require.NoError(b, err)
		c.Disabled = false
		require.NoError(b, b.SetConfig(ctx, c))
		require.Empty(b, why())
		c, err = b.Config(ctx, "hello")
		require.NoError(b, err)
		c.Disabled = true
		require.NoError(b, b.SetConfig(ctx, c))
		require.Equal(b, "the job is disabled in its configuration", why())
	})
}

func TestADayOfAnOperator(t *testing.T) {
	onEach(t, func(b *bed) {
		ctx := b.Context()
		a, c := b.start("a", "127.0.0.1", everySecond), b.start("c", "127.0.0.2", everySecond)
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
		b.fires(a)
		b.until("the job is well", func() bool { job, err := b.Job(ctx, "hello"); return err == nil && job.State == admin.JobOK })
		job, err := b.Job(ctx, "hello")
		require.NoError(b, err)
		require.Equal(b, 2, job.Instances)
		require.Equal(b, a.job().Leader, job.Leader)
		require.False(b, job.Next.IsZero())
		instances, err := b.Instances(ctx, "hello")
		require.NoError(b, err)
		require.Len(b, instances, 2)
		require.Equal(b, a.id(), instances[0].ID)
		require.Equal(b, "a", instances[0].Name)
		require.NotEmpty(b, instances[0].Host)
		require.Len(b, instances[0].Items, 2)

		// One item.
		require.NoError(b, b.DisableItem(ctx, "hello", 0))
		b.until("it is seen", func() bool { return len(a.job().DisabledItems)+len(c.job().DisabledItems) == 1 })
		it, err := b.Item(ctx, "hello", 0)
		require.NoError(b, err)
		require.Equal(b, admin.ItemDisabled, it.State)
		require.True(b, it.Blocked)
		require.NoError(b, b.EnableItem(ctx, "hello", 0))
		b.until("it is seen", func() bool { return len(a.job().DisabledItems)+len(c.job().DisabledItems) == 0 })

		// One instance, by its stable name.
		require.NoError(b, b.Pause(ctx, "hello", "a"))
		require.NoError(b, b.Pause(ctx, "hello", "a"), "again")
		b.until("the other has all", func() bool { return spread(map[*instance]int{a: 0, c: 4}) })
		names, err := b.Paused(ctx, "hello")
		require.NoError(b, err)
		require.Equal(b, []string{"a"}, names)
		b.rests(a)
		b.fires(c)
		require.NoError(b, b.Resume(ctx, "hello", "a"))
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })

		// One server.
		require.NoError(b, b.Disable(ctx, admin.Target{Job: "hello", IP: "127.0.0.2"}))
		b.until("the other has all", func() bool { return spread(map[*instance]int{a: 4, c: 0}) })
		require.NoError(b, b.Enable(ctx, admin.Target{IP: "127.0.0.2"}))
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })

		// The job.
		require.NoError(b, b.DisableJob(ctx, "hello"))
		b.until("both say so", func() bool { return a.job().Disabled != "" && c.job().Disabled != "" })
		b.rests(a)
		job, err = b.Job(ctx, "hello")
		require.NoError(b, err)
		require.Equal(b, admin.JobDisabled, job.State)
		items, err := b.Items(ctx, "hello")
		require.NoError(b, err)
		require.Contains(b, items[0].Why, "configuration")
		require.NoError(b, b.EnableJob(ctx, "hello"))
		b.fires(a)

		// Its configuration.
		cfg, err := b.Config(ctx, "hello")
		require.NoError(b, err)
		cfg.Shards = 6
		require.NoError(b, b.SetConfig(ctx, cfg))
		b.until("the new items are there", func() bool { return spread(map[*instance]int{a: 3, c: 3}) && a.job().Total == 6 })
		cfg.Shards = 7
		require.ErrorIs(b, b.SetConfig(ctx, cfg), admin.ErrChanged)

		// One instance leaves for good, then the other, then the job.
		leaves := a.id()
		ids, err := b.Shutdown(ctx, admin.Target{Job: "hello", IP: "127.0.0.1"})
		require.NoError(b, err)
		require.Equal(b, []string{leaves}, ids)
		b.until("it has left", func() bool { return a.job().Phase == core.PhaseStopped })
		b.until("the other has all", func() bool { return spread(map[*instance]int{c: 6}) })
		err = b.RemoveJob(ctx, "hello")
		require.ErrorIs(b, err, admin.ErrInUse)
		require.Contains(b, err.Error(), `admin: remove: job "hello": the job hello is in use by 127.0.0.`)
		require.ErrorIs(b, b.RemoveServers(ctx, admin.Target{IP: "127.0.0.2"}), admin.ErrInUse)
		require.NoError(b, b.RemoveServers(ctx, admin.Target{IP: "127.0.0.1"}))
		require.NoError(b, b.ShutdownInstance(ctx, "hello", c.id()))
		b.until("it has left", func() bool { return c.job().Phase == core.PhaseStopped })
		require.NoError(b, b.RemoveJob(ctx, "hello"))
		require.NoError(b, b.RemoveJob(ctx, "hello"), "again")
		jobs, err := b.Jobs(ctx)
		require.NoError(b, err)
		require.Empty(b, jobs)
		gone, err := b.Removed(ctx)
		require.NoError(b, err)
		require.Len(b, gone, 1)
		require.Equal(b, "hello", gone[0].Name)
		_, err = b.Job(ctx, "hello")
		require.ErrorIs(b, err, admin.ErrNoJob)

		// A process that starts with it is refused, until an operator allows it.
		d := b.prepare("d", "127.0.0.1", everySecond)
		require.ErrorContains(b, d.Start(ctx), "an operator removed this job")
		other := everySecond
		other.Name = "other"
		goesOn := b.prepare("g", "127.0.0.1", other)
		require.NoError(b, goesOn.Add(core.JobFunc(func(context.Context, core.Shard) error { return nil }), everySecond))
		require.ErrorContains(b, goesOn.Start(ctx), "an operator removed this job")
		require.Equal(b, core.PhaseFailed, goesOn.State().Jobs[1].Phase)
		require.NoError(b, b.Readmit(ctx, "hello"))
		b.until("those who were refused it, and go on, share it", func() bool {
			hello := goesOn.State().Jobs[1]
			return hello.Phase == core.PhaseRunning && len(hello.Items) == 2 && len(d.job().Items) == 2
		})
		require.NoError(b, d.Stop(ctx))
		require.NoError(b, goesOn.Stop(ctx))
		require.NoError(b, b.RemoveJob(ctx, "other"))
		b.fires(b.start("e", "127.0.0.1", everySecond))
		left, err := b.Inspect(ctx, "")
		require.NoError(b, err)
		require.Empty(b, lines(left))
	})
}

// Why says what keeps an item from running: one case for each reason.
func TestItemsSayWhy(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx := b.Context()
		a := b.start("a", "127.0.0.1", everySecond)
		why := func() string {
			it, err := b.Item(ctx, "hello", 3)
			require.NoError(b, err)
			return it.Why
		}
		b.fires(a)
		b.until("it waits for its next fire", func() bool { return why() == "" })
		undo := func(act, back func() error, want string) {
			b.Helper()
			require.NoError(b, act())
			require.Contains(b, why(), want)
			require.NoError(b, back())
			b.until("it waits for its next fire", func() bool { return why() == "" })
		}
		server := admin.Target{IP: "127.0.0.1"}
		undo(func() error { return b.DisableItem(ctx, "hello", 3) }, func() error { return b.EnableItem(ctx, "hello", 3) }, "the item is disabled (/shop/hello/sharding/3/disabled)")
		undo(func() error { return b.DisableJob(ctx, "hello") }, func() error { return b.EnableJob(ctx, "hello") }, "the job is disabled in its configuration")
		undo(func() error { return b.Disable(ctx, server) }, func() error { return b.Enable(ctx, server) }, "the server 127.0.0.1 is disabled")
		undo(func() error { return b.Pause(ctx, "hello", "a") }, func() error { return b.Resume(ctx, "hello", "a") }, "the instance a is paused")

		// It runs, and its owner wants to leave.
		release := make(chan struct{})
		a.onRun(func(context.Context, core.Shard) error { <-release; return nil })
		b.until("it runs", func() bool { return strings.HasPrefix(why(), "runs the fire due at ") })
		require.Contains(b, why(), a.id())
		c := b.start("c", "127.0.0.2", everySecond)
		moves := func() []string {
			items, err := b.Items(ctx, "hello")
			require.NoError(b, err)
			var out []string
			for _, it := range items {
				if strings.Contains(it.Why, "it moves to another instance") {
					out = append(out, it.Instance)
				}
			}
			return out
		}
		b.until("two are wanted elsewhere", func() bool { return len(moves()) == 2 })
		// The total changes meanwhile.
		cfg, err := b.Config(ctx, "hello")
		require.NoError(b, err)
		cfg.Shards = 5
		require.NoError(b, b.SetConfig(ctx, cfg))
		b.until("the change is told", func() bool { return strings.Contains(why(), "the sharding total count changes") })
		job, err := b.Job(ctx, "hello")
		require.NoError(b, err)
		require.Equal(b, admin.JobSharding, job.State)
		// Shut down while it runs.
		require.NoError(b, b.ShutdownInstance(ctx, "hello", a.id()))
		instances, err := b.Instances(ctx, "hello")
		require.NoError(b, err)
		require.True(b, instances[0].ShutDown)
		require.Contains(b, why(), "was shut down")
		close(release)
		a.onRun(nil)
		b.until("the other has all", func() bool { return spread(map[*instance]int{c: 5}) })
		c.stop(b)
		require.Contains(b, why(), "is gone")
		b.remove("/elasticron/shop/hello/ledgers/" + instances[1].ID)
		b.remove("/shop/hello/sharding/3/instance")
		require.Equal(b, "no instance is registered", why())
	})
}

// What an item runs is seen before ElasticJob's tools are shown it.
func TestRunningIsSeenAtOnce(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.prepare("a", "127.0.0.1", everySecond)
		release := make(chan struct{})
		begun := make(chan core.Shard, 100)
		a.onRun(func(_ context.Context, s core.Shard) error { begun <- s; <-release; return nil })
		defer close(release)
		require.NoError(b, a.Start(b.Context()))
		s := <-begun
		it, err := b.Item(b.Context(), "hello", s.Item)
		require.NoError(b, err)
		require.Equal(b, admin.ItemRunning, it.State)
		require.True(b, it.Run.Equal(s.Due))
		require.False(b, b.get("/shop/hello/sharding/0/running").Exists())
		instances, err := b.Instances(b.Context(), "hello")
		require.NoError(b, err)
		require.Contains(b, instances[0].Running, s.Item)
	})
}

// A crashed owner is shown as gone while its record is all that is left of it, and so is
// the job that has nobody else.
func TestACrashedOwner(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.put("/shop/hello/config", javaConfig("hello", 1))
		b.put("/shop/hello/servers/10.0.0.9", "ENABLED")
		b.put("/elasticron/shop/hello/inforce/base", `{"epoch":1,"to":1,"through":"1999-12-31T00:00:00Z","assigned":true}`)
		b.put("/elasticron/shop/hello/ledgers/"+goneID, `{"epoch":1,"total":1,"groups":[{"items":"0","through":"1999-12-31T00:00:00Z"}]}`)
		job, err := b.Job(b.Context(), "hello")
		require.NoError(b, err)
		require.Equal(b, admin.JobCrashed, job.State)
		b.put("/shop/hello/instances/10.0.0.9@-@other-aaaaaaaaaa", "")
		it, err := b.Item(b.Context(), "hello", 0)
		require.NoError(b, err)
		require.Equal(b, admin.ItemSharding, it.State)
		require.Equal(b, "its owner "+goneID+" is gone; a living instance gets it from the leader", it.Why)
		job, err = b.Job(b.Context(), "hello")
		require.NoError(b, err)
		require.Equal(b, admin.JobSharding, job.State)
	})
}

// Stopped says why, and that nothing was lost.
func TestShutdownIsToldByWhoLeaves(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", everySecond)
		b.fires(a)
		_, err := b.Shutdown(b.Context(), admin.Target{Job: "hello"})
		require.NoError(b, err)
		b.until("it has left", func() bool { return a.job().Phase == core.PhaseStopped })
		a.stop(b)
		e, ok := told(a, func(event.Stopped) bool { return true })
		require.True(b, ok)
		require.Equal(b, event.StopShutDown, e.Reason)
	})
}

// A commit whose answer is lost, or that is lost itself, is settled: each switch says what
// was asked for when its call returns, and no call reports a change of its own as somebody
// else's.
func TestSwitchesSettleWhatIsUncertain(t *testing.T) {
	for name, lose := range map[string]func(u *unsure){
		"the answer":  func(u *unsure) { u.lose = once() },
		"the request": func(u *unsure) { u.drop = once() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				ctx := b.Context()
				b.javaJob("a")
				for _, act := range []struct {
					do   func() error
					seen func() bool
				}{
					{func() error { return b.DisableItem(ctx, "a", 0) }, func() bool { return b.get("/shop/a/sharding/0/disabled").Exists() }},
					{func() error { return b.EnableItem(ctx, "a", 0) }, func() bool { return !b.get("/shop/a/sharding/0/disabled").Exists() }},
					{func() error { return b.DisableJob(ctx, "a") }, func() bool { return strings.Contains(string(b.get("/shop/a/config").Value), "disabled: true") }},
					{func() error { return b.EnableJob(ctx, "a") }, func() bool { return strings.Contains(string(b.get("/shop/a/config").Value), "disabled: false") }},
					{func() error { return b.Disable(ctx, admin.Target{Job: "a"}) }, func() bool { return string(b.get("/shop/a/servers/10.0.0.2").Value) == "DISABLED" }},
					{func() error { return b.Pause(ctx, "a", "w") }, func() bool { return b.get("/elasticron/shop/a/inforce/paused@w").Exists() }},
					{func() error { return b.Resume(ctx, "a", "w") }, func() bool { return !b.get("/elasticron/shop/a/inforce/paused@w").Exists() }},
					{func() error {
						c, err := b.Config(ctx, "a")
						require.NoError(b, err)
						c.Description = "new"
						return b.SetConfig(ctx, c)
					}, func() bool { return strings.Contains(string(b.get("/shop/a/config").Value), "description: new") }},
					{func() error { _, err := b.Shutdown(ctx, admin.Target{Job: "a"}); return err }, func() bool { return !b.get("/shop/a/instances/" + java2).Exists() }},
					{func() error { return b.RemoveServers(ctx, admin.Target{Job: "a"}) }, func() bool { return !b.get("/shop/a/servers/10.0.0.1").Exists() }},
					{func() error { return b.RemoveJob(ctx, "a") }, func() bool { return !b.get("/shop/a").Exists() }},
					{func() error { return b.Readmit(ctx, "a") }, func() bool { return len(b.get("/elasticron/shop/a").Value) == 0 }},
				} {
					lose(b.store)
					require.NoError(b, act.do())
					require.True(b, act.seen())
				}
			})
		})
	}
}

// While the registry says nothing a call ends with its context.
func TestUncertainEndsWithTheContext(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.javaJob("a")
		b.store.drop = func([]registry.Op) bool { return true }
		ctx, cancel := context.WithTimeout(b.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(b, b.DisableItem(ctx, "a", 0), registry.ErrUncertain)
		c, err := b.Config(b.Context(), "a")
		require.NoError(b, err)
		c.Description = "new"
		require.ErrorIs(b, b.SetConfig(ctx, c), registry.ErrUncertain)
	})
}
