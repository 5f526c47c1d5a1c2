package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/history"
)

// A fleet is all workers of a part of the run.
type fleet struct {
	ctx           context.Context
	dir, registry string
	out           *history.Writer // the driver's
	slots         []*slot

	mu       sync.Mutex
	changed  *sync.Cond
	disabled int // workers that are down or stand still
	troubles []string
}

// A slot is one worker, over all its processes.
type slot struct {
	fleet    *fleet
	name, ip string
	way      way

	// Guarded by fleet.mu.
	busy     bool // a fault is at its process
	process  *child
	who      string
	count    int
	expected bool // its process may end
	ahead    time.Duration
	runs     []int64       // entered functions, of each process
	trapped  int           // number of the failpoint at which its next process stops
	struck   chan struct{} // closed when it stands there
	up       bool
}

func newFleet(ctx context.Context, dir, registry string, addrs []string, n int, out *history.Writer) (*fleet, error) {
	f := &fleet{ctx: ctx, dir: dir, registry: registry, out: out}
	f.changed = sync.NewCond(&f.mu)
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})
	for i := range n {
		w, err := newWay(addrs)
		if err != nil {
			return f, err
		}
		f.slots = append(f.slots, &slot{fleet: f, name: fmt.Sprint("w", i), ip: fmt.Sprint("127.0.0.", i+1), way: w})
	}
	return f, nil
}

// start starts the worker's next process.
func (s *slot) start() error {
	f := s.fleet
	f.mu.Lock()
	s.count++
	n := s.count - 1
	s.who = fmt.Sprintf("%s.%d", s.name, s.count)
	s.runs = append(s.runs, 0)
	s.up = false
	task := workerTask{
		Dir: f.dir, Who: s.who, Name: s.name, IP: s.ip, Registry: f.registry, Addrs: s.way.addrs(), Ahead: s.ahead, Strike: s.trapped,
	}
	s.trapped = 0
	f.mu.Unlock()
	c, err := spawn(f.dir, task.Who, roleWorker, task, func(line string) { s.said(n, line) })
	if err != nil {
		return err
	}
	f.mu.Lock()
	s.process, s.expected = c, false // not before: the end of the one before is expected
	f.mu.Unlock()
	go s.await(c, task.Who)
	return nil
}

func (s *slot) said(n int, line string) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	if rest, ok := strings.CutPrefix(line, "runs "); ok {
		if count, err := strconv.ParseInt(rest, 10, 64); err == nil {
			s.runs[n] = count
		}
	}
	s.up = s.up || line == "up"
	if line == wordStruck && s.struck != nil {
		close(s.struck)
		s.struck = nil
	}
	s.fleet.changed.Broadcast()
}

// await tells of a process that ended unbidden, and starts another.
func (s *slot) await(c *child, who string) {
	<-c.ended
	f := s.fleet
	f.mu.Lock()
	unbidden := s.process == c && !s.expected
	f.mu.Unlock()
	if !unbidden {
		return
	}
	f.trouble("%s ended by itself: %v", who, c.err)
	f.out.Write(history.Record{Kind: history.Crashed, Of: who, Reason: "by itself"})
	if err := s.start(); err != nil {
		f.trouble("%s did not start: %v", s.name, err)
	}
}

// expect lets the process end. It returns it.
func (s *slot) expect() (*child, string) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	s.expected, s.up = true, false
	return s.process, s.who
}

// kill kills the process as SIGKILL does.
func (s *slot) kill() {
	c, who := s.expect()
	c.kill()
	s.fleet.out.Write(history.Record{Kind: history.Crashed, Of: who})
}

// stop ends the process in order.
func (s *slot) stop() {
	c, who := s.expect()
	c.tell("stop")
	if !c.finish(stopTime + 10*time.Second) {
		s.fleet.trouble("%s did not stop in order: %v", who, c.err)
		s.fleet.out.Write(history.Record{Kind: history.Crashed, Of: who, Reason: "did not stop in order"})
	}
}

// named reports whether an instance's id is one of the worker's.
func (s *slot) named(id string) bool { return strings.Contains(id, "@"+s.name+"-") }

// setTrap makes the process stop at a failpoint. struck is closed when it stands there.
func (s *slot) setTrap(p failpoint.Point) (struck <-chan struct{}) {
	s.fleet.mu.Lock()
	s.struck = make(chan struct{})
	struck = s.struck
	c := s.process
	s.fleet.mu.Unlock()
	c.tell("%s %d", wordStrike, numberOf(p))
	return struck
}

// trapAtStart makes the next process stop at a failpoint, with setTrap's channel.
func (s *slot) trapAtStart(p failpoint.Point) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	s.trapped = numberOf(p)
}

// goOn lets who stands at a failpoint go on.
func (s *slot) goOn() {
	c, _ := s.now()
	c.tell(wordGoOn)
}

func (f *fleet) trouble(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.troubles = append(f.troubles, fmt.Sprintf(format, args...))
}

// pause stops the process; resume lets it go on. They report whether it was there.
func (s *slot) pause() bool {
	c, who := s.now()
	s.fleet.out.Write(history.Record{Kind: history.Paused, Of: who})
	return c.signal(pausing)
}

func (s *slot) resume() {
	c, who := s.now()
	s.fleet.out.Write(history.Record{Kind: history.Resumed, Of: who})
	_ = c.signal(resuming)
}

func (s *slot) now() (*child, string) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	return s.process, s.who
}

// setAhead sets the worker's wall clock.
func (s *slot) setAhead(d time.Duration) {
	s.fleet.mu.Lock()
	s.ahead = d
	c := s.process
	s.fleet.mu.Unlock()
	c.tell("ahead %v", d)
}

// take waits for a worker whose process is up and that no fault is at, from the wanted
// one on. down: it will be down, or stand still: some always go on. When the run is given
// up it returns any.
func (f *fleet) take(wanted int, down bool) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		for i := range f.slots {
			s := f.slots[(wanted+i)%len(f.slots)]
			if f.ctx.Err() == nil && (s.busy || !s.up || down && f.disabled >= len(f.slots)/2) {
				continue
			}
			s.busy = true
			if down {
				f.disabled++
			}
			return s
		}
		f.changed.Wait()
	}
}

// release ends take.
func (f *fleet) release(s *slot, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.busy = false
	if down {
		f.disabled--
	}
	f.changed.Broadcast()
}

// ready waits until all workers are up.
func (f *fleet) ready(ctx context.Context) error {
	return poll(ctx, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, s := range f.slots {
			if !s.up {
				return false
			}
		}
		return true
	})
}

// entered is how many functions were entered, as the workers say.
func (f *fleet) entered() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var n int64
	for _, s := range f.slots {
		for _, runs := range s.runs {
			n += runs
		}
	}
	return n
}

// close ends everything at once.
func (f *fleet) close() {
	for _, s := range f.slots {
		if c, _ := s.expect(); c != nil {
			c.kill()
		}
		s.way.close()
	}
}
