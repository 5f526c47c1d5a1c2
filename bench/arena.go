package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// An arena is one server and the contenders on it.
type arena struct {
	settings *settings
	service  *service
	clients  []*client
	counts   bool // contest.Config.Counts, of who enters
}

// A client is one contender's process.
type client struct {
	*process
	arena *arena
	jobs  contest.Jobs // all that it has
	// registered is how long the last of them took to be registered; 0 is not known.
	registered time.Duration
	profile    string // a file for the profile of adding jobs; empty is none
}

func (s *settings) arena(ctx context.Context) (*arena, error) {
	svc, err := startService(ctx, s.registry, s.dir, s.fsync)
	if err != nil {
		return nil, err
	}
	return &arena{settings: s, service: svc}, nil
}

func (a *arena) close() error {
	for _, c := range a.clients {
		c.end(time.Second)
	}
	return a.service.close()
}

// enter starts a contender.
func (a *arena) enter(ctx context.Context, contender string) (*client, error) {
	program, err := os.Executable()
	if contender == goEtcdCron {
		program, err = a.settings.rival.program(ctx)
	}
	if err != nil {
		return nil, err
	}
	p, err := spawn(program, roleContender)
	if err != nil {
		return nil, err
	}
	c := &client{process: p, arena: a}
	a.clients = append(a.clients, c)
	cfg := contest.Config{
		Contender: contender, Server: a.service.addr, Registry: a.settings.registry,
		Name: fmt.Sprint("instance-", len(a.clients)), Counts: a.counts,
	}
	if err := p.orders.Encode(cfg); err != nil {
		return nil, err
	}
	if _, err := p.answer(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", contender, err)
	}
	return c, nil
}

// leave closes a contender as a program that ends does.
func (c *client) leave(ctx context.Context) error {
	_, err := c.ask(ctx, contest.Order{Do: contest.DoClose})
	c.end(5 * time.Second)
	return err
}

// add adds as many jobs as are missing, and returns how long it took to register them.
func (c *client) add(ctx context.Context, jobs contest.Jobs) (time.Duration, error) {
	jobs.First = c.jobs.Count
	jobs.Count -= jobs.First
	if jobs.Count <= 0 {
		return 0, nil
	}
	took, err := c.ask(ctx, contest.Order{Do: contest.DoAdd, Jobs: jobs, File: c.profile})
	c.jobs = jobs
	c.jobs.Count += jobs.First
	c.registered = took.Registered
	return took.Took, err
}

// runAll waits until every item has run once, for a while: who is overloaded never gets there.
func (c *client) runAll(ctx context.Context, patience time.Duration) error {
	giveUp := time.Now().Add(patience)
	return poll(ctx, func() (bool, error) {
		a, err := c.ask(ctx, contest.Order{Do: contest.DoIdle})
		return a.Idle == 0 || time.Now().After(giveUp), err
	})
}

// A measurement is one window.
type measurement struct {
	contest.Result
	window         time.Duration
	due            int           // runs
	client, server time.Duration // CPU
	others         float64       // the share of the machine's CPU that went elsewhere, of 1
}

// measure opens a window of whole seconds, and profiles it when that is wanted.
func (c *client) measure(ctx context.Context, window time.Duration) (measurement, error) {
	period := max(c.jobs.Period, time.Second)
	o := contest.Order{Do: contest.DoMeasure}
	o.From = time.Now().Add(700 * time.Millisecond).Truncate(period).Add(period) // a busy process hears of it late
	o.To = o.From.Add(max(window, period))
	m := measurement{window: o.To.Sub(o.From)}
	m.due = c.jobs.Count * c.jobs.Items * int(m.window/period)
	o.Runs = m.due
	if folder := c.arena.settings.profile; folder != "" {
		if serve := c.arena.service.profile; serve != nil {
			if err := serve(contest.Order{From: o.From, To: o.To, File: filepath.Join(folder, "server.pprof")}); err != nil {
				return m, err
			}
		}
		o.File = filepath.Join(folder, "client.pprof")
	}
	return m, c.during(ctx, o, &m)
}

// write lets the bare client write.
func (c *client) write(ctx context.Context, window time.Duration) (measurement, error) {
	o := contest.Order{Do: contest.DoWrite, From: time.Now().Add(100 * time.Millisecond)}
	o.To = o.From.Add(window)
	m := measurement{window: window}
	return m, c.during(ctx, o, &m)
}

// during adds what the processes use in the window of an order.
func (c *client) during(ctx context.Context, o contest.Order, m *measurement) error {
	if err := c.orders.Encode(o); err != nil {
		return err
	}
	used := func(at time.Time) (u usage, err error) {
		if err = wait(ctx, at); err != nil {
			return u, err
		}
		return usageOf([]int{c.cmd.Process.Pid}, c.arena.service.pids)
	}
	before, err := used(o.From)
	if err != nil {
		return err
	}
	after, err := used(o.To)
	a, failed := c.answer(ctx)
	m.Result, m.client, m.server = a.Result, after.client-before.client, after.server-before.server
	rest := after.all - before.all - m.client - m.server
	m.others = max(0, rest.Seconds()) / m.window.Seconds() / float64(runtime.NumCPU())
	return errors.Join(err, failed)
}

func (m measurement) perSecond() float64 { return float64(m.Begun) / m.window.Seconds() }

// keptUp is when 99 of 100 fires that came due began, less than a second late, and as many
// began as came due.
func (m measurement) keptUp() bool {
	return m.OnTime*100 >= m.due*99 && m.Begun*100 >= m.due*99
}

// catchesUp is when it did not keep up and ran more than came due, by 1 of 100: what it had not done before.
func (m measurement) catchesUp() bool { return !m.keptUp() && m.Begun*100 > m.due*101 }

func (m measurement) figures() figures {
	f := figures{
		"runs": m.perSecond(),
		"p50":  milliseconds(m.P50), "p99": milliseconds(m.P99), "max": milliseconds(m.Max),
	}
	f["others"] = 100 * m.others
	if m.due > 0 {
		f["on time"] = 100 * float64(m.OnTime) / float64(m.due)
	}
	if m.Begun > 0 {
		f["client"] = milliseconds(m.client) / float64(m.Begun)
		f["server"] = milliseconds(m.server) / float64(m.Begun)
		f["cpu"] = f["client"] + f["server"]
	}
	return f
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func wait(ctx context.Context, at time.Time) error {
	select {
	case <-time.After(time.Until(at)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
