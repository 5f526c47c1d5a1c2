package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// A workerTask is what a worker is told.
type workerTask struct {
	Dir      string        `json:"dir"`
	Who      string        `json:"who"`  // this process
	Name     string        `json:"name"` // this worker, over all its processes
	IP       string        `json:"ip"`
	Registry string        `json:"registry"`
	Addrs    []string      `json:"addrs"`
	Ahead    time.Duration `json:"ahead"`  // of its wall clock
	Strike   int           `json:"strike"` // number of the failpoint at which it stops, 0 for none
}

// A worker is a process with a scheduler.
type worker struct {
	task  workerTask
	out   *history.Writer
	reg   *watched
	ahead atomic.Int64
	runs  atomic.Int64
	trap  trap

	mu        sync.Mutex
	instances map[string]string         // by job
	owned     map[string]history.Record // by job: what it was told last to own in this session; of tell alone
}

const stopTime = 10 * time.Second

// work is a worker process. It stops when it is told to, or when its input ends.
func work() error {
	w := &worker{instances: map[string]string{}, owned: map[string]history.Record{}}
	if err := json.Unmarshal([]byte(os.Getenv(envTask)), &w.task); err != nil {
		return err
	}
	w.ahead.Store(int64(w.task.Ahead))
	w.trap.set(w.task.Strike)
	onPoint(w.trap.hit)
	file, err := os.OpenFile(filepath.Join(w.task.Dir, w.task.Who+".history"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	w.out = history.NewWriter(file, w.task.Who, func() (time.Duration, time.Time) { return common(), w.now().Round(0).UTC() })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go w.obey(cancel)
	reg, err := w.open(ctx)
	if err != nil || reg == nil {
		return err
	}
	defer reg.Close()
	w.reg = watch(reg, w.out)
	s, err := newScheduler(w, w.reg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	if err := start(ctx, s); err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Println("up")
	w.report(ctx)
	w.out.Write(history.Record{Kind: history.Stopping})
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer done()
	if err := s.Stop(patience); err != nil {
		w.out.Write(history.Record{Kind: history.Note, Reason: "stop", Err: err.Error()})
	}
	return w.out.Err()
}

// open waits for the registry. It returns nil when the worker is to stop first.
func (w *worker) open(ctx context.Context) (registry.Registry, error) {
	limit, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		reg, err := openRegistry(ctx, w.task.Registry, w.task.Addrs)
		if err == nil {
			return reg, nil
		}
		if !pause(limit, 100*time.Millisecond) {
			if ctx.Err() != nil {
				return nil, nil //nolint:nilnil // there is nothing to run any more
			}
			return nil, err
		}
	}
}

// obey does what the driver says, a line each.
func (w *worker) obey(stop func()) {
	defer stop()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case wordStrike:
			if n, err := strconv.Atoi(rest); err == nil {
				w.trap.set(n)
			}
		case wordGoOn:
			w.trap.release()
		case "ahead":
			if d, err := time.ParseDuration(rest); err == nil {
				w.ahead.Store(int64(d))
				w.out.Write(history.Record{Kind: history.ClockSet, Of: w.task.Who, Took: d})
			}
		case "stop":
			stop()
		}
	}
}

// report tells the driver now and then how many functions were entered.
func (w *worker) report(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Println("runs", w.runs.Load())
		case <-ctx.Done():
			return
		}
	}
}

// now is the worker's wall clock.
func (w *worker) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *worker) instanceOf(job, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[job] = id
}

// instance is the latest life of a job.
func (w *worker) instance(job string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instances[job]
}

var errDrawn = errors.New("drawn to fail")

// unwinding is how long a cancelled function takes to return.
const unwinding = 50 * time.Millisecond

// run is the function of every job. r is its key.
func (w *worker) run(ctx context.Context, spec jobSpec, r history.Record) error {
	w.runs.Add(1)
	r.Session, r.Deadline = w.reg.under(r.Instance)
	r.Kind, r.At = history.Entered, common()
	w.out.Write(r)
	r.Deadline, r.At, r.Fence = 0, 0, 0
	length := spec.length(r.Item, r.Due)
	timer := time.NewTimer(length)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
		if length%100 == 0 { // one in a hundred
			err = errDrawn
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
		r.Kind, r.Err = history.Cancelled, text(err)
		w.out.Write(r)
		timer.Reset(unwinding)
		<-timer.C
	}
	r.Kind, r.Err = history.Returned, text(err)
	w.out.Write(r)
	return err
}

// heard is what a listener to rounds does. r is its call. Some refuse, those before a round not
// so often that little runs.
func (w *worker) heard(ctx context.Context, r history.Record) (err error) {
	r.Session, _ = w.reg.under(r.Instance)
	w.out.Write(r)
	defer func() {
		r.Kind, r.Err, r.Slow = history.Answered, text(err), ctx.Err() != nil
		w.out.Write(r)
	}()
	n := r.Due.UnixNano() / int64(time.Second)
	refuses := n%5 == 0
	if r.Reason == history.BeforeAll {
		refuses = n%25 == 0
	}
	switch {
	case !pause(ctx, time.Duration(n%5)*20*time.Millisecond):
		return context.Cause(ctx)
	case refuses:
		return errDrawn
	}
	return nil
}

// listenTime bounds a call of a listener to rounds.
const listenTime = 700 * time.Millisecond
