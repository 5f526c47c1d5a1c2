package contest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/prometheus/procfs"
)

// Config is what a contender is started with.
type Config struct {
	// Contender is which one, for a program that can be several.
	Contender string `json:"contender"`
	// Server is where the registry is, as host:port, and Registry what it is.
	Server   string `json:"server"`
	Registry string `json:"registry"`
	// Name tells instances apart that share jobs.
	Name string `json:"name"`
	// Counts says that it counts the items that it owns, and spreads jobs of one item over all instances.
	Counts bool `json:"counts,omitempty"`
}

// Jobs are jobs that are added together.
type Jobs struct {
	// First is the number of the first one, and Count how many there are.
	First int `json:"first"`
	Count int `json:"count"`
	// Items of each job.
	Items int `json:"items"`
	// Period is how often they fire, together, at its multiples: whole seconds that divide
	// a minute. 0 is never.
	Period time.Duration `json:"period"`
	// Recorded says that what runs is recorded in the registry.
	Recorded bool `json:"recorded"`
}

// JobName is the name of job i, from which its number can be read.
func JobName(i int) string { return fmt.Sprintf("job-%d", i) }

// JobNumber is the inverse of JobName.
func JobNumber(name string) (i int, err error) {
	_, err = fmt.Sscanf(name, "job-%d", &i)
	return i, err
}

// Cron is the schedule of a period, with seconds first; Quartz's has "?" as the last field.
func (j Jobs) Cron(weekday string) string {
	switch s := int(j.Period / time.Second); s {
	case 0:
		return "0 0 0 1 1 " + weekday // New Year's Day
	case 1:
		return "* * * * * " + weekday
	default:
		return fmt.Sprintf("*/%d * * * * %s", s, weekday)
	}
}

// A Contender fires jobs and tells each begin to the Tally that it was opened with.
type Contender interface {
	// Add adds jobs and returns when they are registered. It may be called again.
	Add(ctx context.Context, jobs Jobs) error
	// Close leaves the registry.
	Close(ctx context.Context) error
}

// A Registrant is a contender that registers jobs before they are ready.
type Registrant interface {
	Contender
	// Registered is how long that took of the last Add.
	Registered() time.Duration
}

// An Owner is a contender that knows which items are its own.
type Owner interface {
	Contender
	// Owned returns how many it owns. It counts only where Config.Counts is set.
	Owned() Owned
}

// Owned is how many items an instance owns, and when it was given the latest of them.
type Owned struct {
	Items int       `json:"items"`
	At    time.Time `json:"at"`
}

// A Writer is a contender that only writes: it is the limit of the others.
type Writer interface {
	Contender
	// Write records runs as fast as it can until ctx ends, and returns how many.
	Write(ctx context.Context) (runs int, err error)
}

// An Order is one line of what bench asks for.
type Order struct {
	Do   string    `json:"do"`
	Jobs Jobs      `json:"jobs"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Runs int       `json:"runs"`
	File string    `json:"file"`
}

// What an Order may ask for.
const (
	DoAdd     = "add"     // add Jobs; Answer.Took; a CPU profile of it into File
	DoIdle    = "idle"    // how many jobs have not run; Answer.Idle
	DoMeasure = "measure" // what is due From, To; Answer.Result; a CPU profile of it into File
	DoWrite   = "write"   // write From, To; Answer.Result.Begun
	DoMark    = "mark"    // begin to wait for jobs that run
	DoSince   = "since"   // Answer.Awakening
	DoOwned   = "owned"   // Answer.Owned
	DoWeigh   = "weigh"   // collect garbage; Answer.Weight; a heap profile into File
	DoClose   = "close"   // end
)

// An Answer is the line that follows each order.
type Answer struct {
	Error string        `json:"error,omitempty"`
	Took  time.Duration `json:"took,omitempty"`
	// Registered is how much of Took it was until the jobs were registered, where that is known.
	Registered time.Duration `json:"registered,omitempty"`
	Idle       int           `json:"idle,omitempty"`
	Result     Result        `json:"result"`
	Awakening  Awakening     `json:"awakening"`
	Owned      Owned         `json:"owned"`
	Weight     Weight        `json:"weight"`
	Addr       string        `json:"addr,omitempty"` // of a server
}

// A Weight is what a process holds.
type Weight struct {
	Resident   int    `json:"resident"` // bytes
	Alive      uint64 `json:"alive"`    // bytes of it in objects that live
	Between    uint64 `json:"between"`  // bytes of it beside them, in spans that hold at least one
	Goroutines int    `json:"goroutines"`
}

// Serve is the whole of a contender's process: it does what the lines of in ask for, and
// ends with them: without a farewell to the registry unless it was asked to close.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open func(context.Context, Config, *Tally) (Contender, error)) (err error) {
	decoder, encoder := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var cfg Config
	if err := decoder.Decode(&cfg); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	s := server{tally: &Tally{}}
	s.contender, err = open(ctx, cfg, s.tally)
	if err != nil {
		return errors.Join(err, encoder.Encode(Answer{Error: err.Error()}))
	}
	if err := encoder.Encode(Answer{}); err != nil {
		return err
	}
	for {
		var o Order
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF): // it is needed no more
			return nil
		case err != nil:
			return fmt.Errorf("an order: %w", err)
		}
		a, err := s.do(ctx, o)
		if err != nil {
			a.Error = err.Error()
		}
		if err := encoder.Encode(a); err != nil || o.Do == DoClose {
			return err
		}
	}
}

type server struct {
	contender Contender
	tally     *Tally
}

func (s *server) do(ctx context.Context, o Order) (a Answer, err error) {
	switch o.Do {
	case DoAdd:
		s.tally.Grow(o.Jobs.Count, o.Jobs.Items)
		begun := time.Now()
		err = profiled(o.File, func() error { return s.contender.Add(ctx, o.Jobs) })
		a.Took = time.Since(begun)
		if r, is := s.contender.(Registrant); is {
			a.Registered = r.Registered()
		}
	case DoIdle:
		a.Idle = s.tally.Idle()
	case DoMeasure:
		a.Result, err = s.measure(ctx, o)
	case DoWrite:
		a.Result.Begun, err = s.write(ctx, o)
	case DoMark:
		s.tally.Mark()
	case DoSince:
		a.Awakening = s.tally.Since()
	case DoOwned:
		o, is := s.contender.(Owner)
		if !is {
			return a, errors.New("this contender does not know what it owns")
		}
		a.Owned = o.Owned()
	case DoWeigh:
		a.Weight, err = weigh(o.File)
	case DoClose:
		err = s.contender.Close(ctx)
	default:
		err = fmt.Errorf("order %q is none", o.Do)
	}
	return a, err
}

func weigh(file string) (Weight, error) {
	debug.FreeOSMemory()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	self, err := procfs.Self()
	if err != nil {
		return Weight{}, err
	}
	stat, err := self.Stat()
	if err == nil && file != "" {
		err = written(file, pprof.WriteHeapProfile)
	}
	return Weight{
		Resident: stat.ResidentMemory(), Alive: heap.HeapAlloc, Between: heap.HeapInuse - heap.HeapAlloc,
		Goroutines: runtime.NumGoroutine(),
	}, err
}

func written(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// measure waits a second longer than the window, so that all that is not late is there.
func (s *server) measure(ctx context.Context, o Order) (Result, error) {
	s.tally.Open(o.From, o.To, o.Runs) // first: a busy process collects for longer than the window is away
	runtime.GC()
	err := errors.Join(Profile(ctx, o), until(ctx, o.To.Add(late)))
	return s.tally.Close(), err
}

// Profile waits until the window of an order is over, and writes a CPU profile of it where the order has
// a File.
func Profile(ctx context.Context, o Order) error {
	if err := until(ctx, o.From); err != nil {
		return err
	}
	return profiled(o.File, func() error { return until(ctx, o.To) })
}

// profiled does what it is given, and writes a CPU profile of that to a file, unless that has no name.
func profiled(name string, do func() error) error {
	if name == "" {
		return do()
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = do()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

func (s *server) write(ctx context.Context, o Order) (int, error) {
	w, ok := s.contender.(Writer)
	if !ok {
		return 0, errors.New("it writes nothing by itself")
	}
	if err := until(ctx, o.From); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithDeadline(ctx, o.To)
	defer cancel()
	return w.Write(ctx)
}

func until(ctx context.Context, at time.Time) error {
	select {
	case <-time.After(time.Until(at)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
