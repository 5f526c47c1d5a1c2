package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// A scenario is one table.
type scenario struct {
	name, title string
	contenders  map[string][]string // by registry
	columns     []column
	// run gives the figures of one repetition.
	run func(ctx context.Context, s *settings, contender string, last figures) (figures, error)
}

// A column is one figure. The first of a scenario is what ratios are made of.
type column struct {
	key, title string
	digits     int
	less       bool // is better
}

var cpuColumns = []column{
	{key: "client", title: "client CPU a run, ms", digits: 3},
	{key: "server", title: "server CPU a run, ms", digits: 3},
	others,
}

// others says how quiet the machine was.
var others = column{key: "others", title: "CPU that others took, %", digits: 0}

func scenarios() []scenario {
	lateness := []column{{key: "p99", title: "late p99, ms", digits: 1, less: true}, {key: "p50", title: "p50", digits: 1}, {key: "max", title: "max", digits: 1}, {key: "on time", title: "began within 1 s, %", digits: 1}, others}
	items := []string{ours, oursAgain, oursBare}
	return []scenario{
		{
			"recorded", "Recorded runs a second: jobs of one item, each second, until 1 % is late by a second",
			map[string][]string{onEtcd: {ours, oursAgain, goCronLocked, goEtcdCron, bareSingle, bareShared}, onZooKeeper: {ours, oursAgain, bareSingle, bareShared}},
			append([]column{{key: "runs", title: "runs/s"}, {key: "overload", title: "at twice as many jobs, runs/s"}}, cpuColumns...), recorded,
		},
		{
			"steady", "1,000 jobs of one item, each second",
			map[string][]string{onEtcd: {ours, oursAgain, oursBare, goCronLocked, goCronAlone, goEtcdCron}, onZooKeeper: {ours, oursAgain, oursBare}},
			append([]column{{key: "cpu", title: "CPU a run, ms", digits: 3, less: true}}, append(cpuColumns[:2:2], lateness...)...), dueAtOnce(1000, time.Second),
		},
		{
			"unrecorded", "Unrecorded runs a second, until 1 % is late by a second",
			map[string][]string{onEtcd: {oursBare, goCronAlone}, onZooKeeper: {oursBare}},
			append([]column{{key: "runs", title: "runs/s"}, {key: "overload", title: "at twice as many, runs/s"}}, cpuColumns...), recorded,
		},
		{
			"due-1000", "1,000 jobs of one item due at one instant",
			map[string][]string{onEtcd: {ours, oursAgain, oursBare, goCronLocked, goCronAlone, goEtcdCron}, onZooKeeper: {ours, oursAgain}}, lateness, dueAtOnce(1000, duePeriod),
		},
		{
			"due-10000", "10,000 jobs of one item due at one instant",
			map[string][]string{onEtcd: {ours, oursAgain, oursBare, goCronLocked, goCronAlone, goEtcdCron}, onZooKeeper: {ours, oursAgain}}, lateness, dueAtOnce(10000, duePeriod),
		},
		itemsOf(100, items), itemsOf(5000, items), itemsOf(50000, items),
		{
			"crash", "kill -9 of one of two instances that share 100 jobs, each second",
			map[string][]string{onEtcd: {ours, oursAgain, goCronLocked, goEtcdCron}, onZooKeeper: {ours, oursAgain}},
			[]column{{key: "all", title: "until every job has run again, s", digits: 2, less: true}, {key: "first", title: "until the first job of the dead one ran, s", digits: 2}}, crash,
		},
		{
			"crash-10000", "kill -9 of one of ten instances that share 10,000 jobs",
			map[string][]string{onEtcd: {ours, bareWatching}, onZooKeeper: {ours}},
			[]column{
				{key: "owned", title: "from its expiry until all items are owned again, s", digits: 2, less: true},
				{key: "moved", title: "items that it had", digits: 0}, {key: "start", title: "start of the ten, s", digits: 1},
			}, crashOfTen,
		},
		{
			"start", "Start of 10,000 jobs of one item",
			map[string][]string{onEtcd: {ours, goEtcdCron}, onZooKeeper: {ours}},
			[]column{
				{key: "new", title: "new jobs, until all have owners, s", digits: 2, less: true}, {key: "new registered", title: "registered, s", digits: 2},
				{key: "known", title: "known jobs, until all have owners, s", digits: 2}, {key: "known registered", title: "registered, s", digits: 2},
			}, start,
		},
		{
			"memory", "10,000 jobs of one item that never fire: what a job holds resident",
			map[string][]string{onEtcd: {ours, goCronAlone, goEtcdCron}, onZooKeeper: {ours}},
			[]column{
				{key: "job", title: "KiB a job", digits: 1, less: true}, {key: "alive", title: "in objects that live", digits: 1},
				{key: "between", title: "between them", digits: 1}, {key: "goroutines", title: "goroutines"},
			}, memory,
		},
	}
}

func itemsOf(n int, contenders []string) scenario {
	return scenario{
		fmt.Sprint("items-", n), fmt.Sprintf("One job of %s items, each second", thousands(n)),
		map[string][]string{onEtcd: contenders, onZooKeeper: contenders},
		append([]column{{key: "runs", title: "runs/s"}, {key: "p50", title: "late p50, ms", digits: 1}, {key: "p99", title: "p99", digits: 1}}, cpuColumns...),
		func(ctx context.Context, s *settings, contender string, _ figures) (figures, error) {
			return s.alone(ctx, contender, func(ctx context.Context, c *client) (figures, error) {
				m, err := s.stage(ctx, c, contest.Jobs{Count: 1, Items: s.scaled(n), Period: time.Second, Recorded: contender != oursBare})
				return m.figures(), err
			})
		},
	}
}

// alone lets one contender into an arena of its own.
func (s *settings) alone(ctx context.Context, contender string, f func(context.Context, *client) (figures, error)) (figures, error) {
	a, err := s.arena(ctx)
	if err != nil {
		return nil, err
	}
	found, err := func() (figures, error) {
		c, err := a.enter(ctx, contender)
		if err != nil {
			return nil, err
		}
		return f(ctx, c)
	}()
	return found, errors.Join(err, a.close())
}

// itemsUnrecorded are those of each job where nothing is recorded: it is the runs that are
// counted there, and no registration.
const itemsUnrecorded = 100

// shape is what jobs look like that run so often a second in all.
func shape(contender string, runs int) contest.Jobs {
	j := contest.Jobs{Count: runs, Items: 1, Period: time.Second, Recorded: true}
	if contender == oursBare {
		j.Items, j.Recorded = itemsUnrecorded, false
		j.Count = max(1, runs/itemsUnrecorded)
	}
	return j
}

const (
	coarse = 2.0  // from how many jobs to how many it goes while nothing is known
	fine   = 1.15 // and around what is known
)

// recorded finds how many runs a second there can be. The first repetition, which is not
// counted, doubles from few; each later one goes up in small steps from below what was found.
func recorded(ctx context.Context, s *settings, contender string, last figures) (figures, error) {
	if contender == bareSingle || contender == bareShared {
		return s.alone(ctx, contender, func(ctx context.Context, c *client) (figures, error) {
			if _, err := c.add(ctx, contest.Jobs{Count: s.scaled(bareJobs), Items: 1}); err != nil {
				return nil, err
			}
			m, err := c.write(ctx, s.window)
			return m.figures(), err
		})
	}
	from, factor := s.from, fine
	switch {
	case last != nil:
		from = int(0.85 * last["runs"])
	case from == 0:
		from = s.scaled(1000)
		found, err := s.climb(ctx, contender, from, coarse, false)
		if err != nil {
			return nil, err
		}
		from = int(found["runs"])
	}
	for {
		found, err := s.climb(ctx, contender, from, factor, true)
		if err != nil || found["runs"] > 0 || from < 10 {
			return found, err
		}
		from = from * 6 / 10
	}
}

// climb adds jobs until they are too many: runs is 0 when the first are.
func (s *settings) climb(ctx context.Context, contender string, from int, factor float64, overload bool) (figures, error) {
	return s.alone(ctx, contender, func(ctx context.Context, c *client) (figures, error) {
		found := figures{}
		n := from
		for ; n <= s.most; n = max(n+1, int(float64(n)*factor)) {
			m, err := s.stage(ctx, c, shape(contender, n))
			for looks := 1; err == nil && looks < mostLooks && m.catchesUp(); looks++ {
				s.progress("%s: %d a second: %.0f a second, it catches up on what adding jobs held up", contender, n, m.perSecond())
				m, err = c.measure(ctx, s.window)
			}
			if err != nil {
				return nil, err
			}
			s.progress("%s: %d a second: %d of %d on time, %.0f a second, p99 %v", contender, n, m.OnTime, m.due, m.perSecond(), m.P99.Round(time.Millisecond))
			if !m.keptUp() {
				break
			}
			found = m.figures()
		}
		if !overload || found["runs"] == 0 {
			return found, nil
		}
		jobs := shape(contender, int(2*found["runs"]))
		if _, err := s.stage(ctx, c, jobs); err != nil {
			return nil, err
		}
		if err := wait(ctx, time.Now().Add(s.overloaded)); err != nil {
			return nil, err
		}
		var ran []figures
		for range overloadLooks {
			m, err := c.measure(ctx, s.window)
			if err != nil {
				return nil, err
			}
			f := m.figures()
			s.progress("%s: %d a second: %.0f a second, p50 %v, CPU a run %.3f ms of the client and %.3f of the server", contender,
				jobs.Count*jobs.Items, f["runs"], m.P50.Round(time.Millisecond), f["client"], f["server"])
			ran = append(ran, f)
		}
		found["overload"] = medians(ran)["runs"]
		return found, nil
	})
}

// mostLooks is how many windows a contender has at a number of jobs, as long as it runs more than comes due.
const mostLooks = 6

// overloadLooks is how many windows there are at twice as many jobs. The middle one counts: where both cores are full,
// one window alone says more about how fast the machine was just then.
const overloadLooks = 5

// stage lets jobs run for a while before it looks.
func (s *settings) stage(ctx context.Context, c *client, jobs contest.Jobs) (measurement, error) {
	if _, err := c.add(ctx, jobs); err != nil {
		return measurement{}, err
	}
	if err := c.runAll(ctx, s.patience); err != nil {
		return measurement{}, err
	}
	if err := wait(ctx, time.Now().Add(s.settle)); err != nil {
		return measurement{}, err
	}
	return c.measure(ctx, s.window)
}

// climbs reports whether a scenario adds jobs until they are too many.
func climbs(scenario string) bool { return scenario == "recorded" || scenario == "unrecorded" }

// profiled is one repetition of a scenario, with profiles: recorded runs at a known number of jobs.
func (s *settings) profiled(ctx context.Context, sc scenario, contender string) (figures, error) {
	if !climbs(sc.name) {
		return sc.run(ctx, s, contender, nil)
	}
	return s.alone(ctx, contender, func(ctx context.Context, c *client) (figures, error) {
		if _, err := c.add(ctx, shape(contender, s.from)); err != nil {
			return nil, err
		}
		if err := c.runAll(ctx, s.patience); err != nil {
			return nil, err
		}
		m, err := c.measure(ctx, s.window)
		return m.figures(), err
	})
}

// duePeriod is long enough for the slowest to be done with one fire before the next.
const duePeriod = 10 * time.Second

// dueAtOnce takes one window after the other of the same process for repetitions.
func dueAtOnce(n int, period time.Duration) func(context.Context, *settings, string, figures) (figures, error) {
	return func(ctx context.Context, s *settings, contender string, _ figures) (figures, error) {
		jobs := contest.Jobs{Count: s.scaled(n), Items: 1, Period: period, Recorded: contender != oursBare}
		if s.quick {
			jobs.Period = min(period, 2*time.Second)
		}
		return s.alone(ctx, contender, func(ctx context.Context, c *client) (figures, error) {
			if _, err := c.add(ctx, jobs); err != nil {
				return nil, err
			}
			if err := c.runAll(ctx, s.patience); err != nil {
				return nil, err
			}
			var fires []figures
			for range s.repetitions {
				m, err := c.measure(ctx, s.window.Truncate(jobs.Period))
				if err != nil {
					return nil, err
				}
				fires = append(fires, m.figures())
			}
			return medians(fires), nil
		})
	}
}

const crashJobs = 100

func crash(ctx context.Context, s *settings, contender string, _ figures) (figures, error) {
	jobs := contest.Jobs{Count: s.scaled(crashJobs), Items: 1, Period: time.Second, Recorded: true}
	a, err := s.arena(ctx)
	if err != nil {
		return nil, err
	}
	found, err := func() (figures, error) {
		var both []*client
		for range 2 {
			c, err := a.enter(ctx, contender)
			if err != nil {
				return nil, err
			}
			if _, err := c.add(ctx, jobs); err != nil {
				return nil, err
			}
			both = append(both, c)
		}
		// Until who owns what has settled.
		if err := wait(ctx, time.Now().Add(6*time.Second)); err != nil {
			return nil, err
		}
		return kill(ctx, both[0], both[1])
	}()
	return found, errors.Join(err, a.close())
}

// kill ends one and waits until the other has run all jobs.
func kill(ctx context.Context, dies, survives *client) (figures, error) {
	at := time.Now()
	if err := dies.cmd.Process.Kill(); err != nil {
		return nil, err
	}
	if _, err := survives.ask(ctx, contest.Order{Do: contest.DoMark}); err != nil {
		return nil, err
	}
	var last contest.Awakening
	err := poll(ctx, func() (bool, error) {
		a, err := survives.ask(ctx, contest.Order{Do: contest.DoSince})
		last = a.Awakening
		return last.Waiting == 0, err
	})
	found := figures{"all": last.Last.Sub(at).Seconds()}
	if !last.First.IsZero() {
		found["first"] = last.First.Sub(at).Seconds()
	}
	return found, err
}

const (
	startJobs = 10_000
	// startProfile is how long the server's profile of a start is, from its beginning.
	startProfile = 5 * time.Second
)

// start registers jobs that never fire, leaves, and registers them again.
func start(ctx context.Context, s *settings, contender string, _ figures) (figures, error) {
	jobs := contest.Jobs{Count: s.scaled(startJobs), Items: 1, Recorded: true}
	a, err := s.arena(ctx)
	if err != nil {
		return nil, err
	}
	found := figures{}
	err = func() error {
		for _, what := range []string{"new", "known"} {
			c, err := a.enter(ctx, contender)
			if err != nil {
				return err
			}
			if s.profile != "" {
				c.profile = filepath.Join(s.profile, what+".pprof")
				if serve := a.service.profile; serve != nil {
					now := time.Now()
					o := contest.Order{From: now, To: now.Add(startProfile), File: filepath.Join(s.profile, what+"-server.pprof")}
					if err := serve(o); err != nil {
						return err
					}
				}
			}
			took, err := c.add(ctx, jobs)
			if err != nil {
				return err
			}
			found[what] = took.Seconds()
			if c.registered > 0 {
				found[what+" registered"] = c.registered.Seconds()
			}
			if err := c.leave(ctx); err != nil {
				return err
			}
		}
		return nil
	}()
	return found, errors.Join(err, a.close())
}

// rest is how long jobs are left alone before they are weighed.
const rest = 5 * time.Second

// memory compares what a process with many jobs holds with what it held with one.
func memory(ctx context.Context, s *settings, contender string, _ figures) (figures, error) {
	return s.alone(ctx, contender, func(ctx context.Context, c *client) (figures, error) {
		many := s.scaled(startJobs)
		weigh := func(jobs int) (contest.Weight, error) {
			if _, err := c.add(ctx, contest.Jobs{Count: jobs, Items: 1, Recorded: true}); err != nil {
				return contest.Weight{}, err
			}
			if err := wait(ctx, time.Now().Add(min(rest, s.patience))); err != nil {
				return contest.Weight{}, err
			}
			o := contest.Order{Do: contest.DoWeigh}
			if s.profile != "" && jobs > 1 {
				o.File = filepath.Join(s.profile, "heap.pprof")
			}
			a, err := c.ask(ctx, o)
			return a.Weight, err
		}
		one, err := weigh(1)
		if err != nil {
			return nil, err
		}
		all, err := weigh(many)
		a := func(more, less float64) float64 { return (more - less) / 1024 / float64(many-1) }
		return figures{
			"job":   a(float64(all.Resident), float64(one.Resident)),
			"alive": a(float64(all.Alive), float64(one.Alive)), "between": a(float64(all.Between), float64(one.Between)),
			"goroutines": float64(all.Goroutines),
		}, err
	})
}
