// Bench measures Elasticron beside what else there is, on one machine and one server, and
// prints tables:
//
//	go run . -scenario recorded,due-10000 -registry etcd
//	go run . -results all.jsonl -scenario crash    # adds to a file, for measuring in pieces
//	go run . -results all.jsonl -tables            # prints what it holds
//
// The server is a process of its own with its data on the disk of -dir, and each contender
// another. A window is measured from outside: CPU is that of the two processes. See
// docs/benchmarks.md for what the scenarios are.
//
// go-etcd-cron cannot be had as a module. With -go-etcd-cron DIR, a folder with its source,
// it is built in a workspace outside of the repository; without, its rows quote what was
// measured elsewhere.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// settings are the command line.
type settings struct {
	registry    string
	fsync       bool
	scenarios   []string // none is all
	contenders  []string // likewise
	repetitions int
	quick       bool
	dir         string
	results     string
	tables      bool
	profile     string
	from, most  int
	rival       *rival

	window, settle, patience time.Duration
	// overloaded is how long there are twice as many jobs before it is looked at what runs: what counts is how it goes
	// on, and not what adding them has left.
	overloaded time.Duration
	log        io.Writer
}

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch os.Getenv(envRole) {
	case roleEtcd:
		err = serveEtcd(ctx, os.Stdin, os.Stdout)
	case roleContender:
		err = contest.Serve(ctx, os.Stdin, os.Stdout, open)
	default:
		err = bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench:", brief(err))
	return 1
}

// brief leaves out most of a text that names thousands of jobs.
func brief(err error) string {
	const most = 500
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

func parse(args []string, log io.Writer) (*settings, error) {
	s := &settings{rival: &rival{}, log: log, window: 5 * time.Second, settle: 2 * time.Second, patience: 20 * time.Second, overloaded: time.Minute}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	var names []string
	for _, sc := range scenarios() {
		names = append(names, sc.name)
	}
	chosen := f.String("scenario", "", "which, with commas between them: "+strings.Join(names, ", ")+"; all when empty")
	contenders := f.String("contender", "", "which, with semicolons between them: a name, or its first letters; all when empty")
	f.StringVar(&s.registry, "registry", onEtcd, onEtcd+" or "+onZooKeeper)
	f.BoolVar(&s.fsync, "fsync", true, "the server writes to the disk before it answers")
	f.IntVar(&s.repetitions, "repetitions", 5, "of which medians are taken")
	f.BoolVar(&s.quick, "quick", false, "a hundredth of everything, once: shows that it works, and measures nothing")
	f.StringVar(&s.dir, "dir", os.TempDir(), "where the server has its data")
	f.StringVar(&s.results, "results", "", "a file of JSON lines that results are added to")
	f.BoolVar(&s.tables, "tables", false, "measure nothing; print the tables of -results")
	f.StringVar(&s.profile, "profile", "", "a folder for CPU profiles: client.pprof, and etcd's server.pprof, of one scenario and contender; runs are -from a second; of start: new.pprof and known.pprof, and new-server.pprof and known-server.pprof of the first 5 s; of crash-10000: the first 12 s after the kill, of a survivor and the server; of memory: heap.pprof, as exact as GODEBUG=memprofilerate makes it")
	f.IntVar(&s.from, "from", 0, "runs a second to begin with; 0 finds out")
	f.IntVar(&s.most, "most", 400_000, "runs a second to end with")
	f.DurationVar(&s.window, "window", s.window, "how long each window is, in whole seconds")
	f.DurationVar(&s.settle, "settle", s.settle, "how long jobs run before they are measured")
	f.StringVar(&s.rival.source, "go-etcd-cron", "", "a folder with the source of go-etcd-cron")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	s.scenarios, s.contenders = list(*chosen, ","), list(*contenders, ";")
	if s.quick {
		s.repetitions, s.window, s.settle, s.patience, s.overloaded, s.most = 1, time.Second, 100*time.Millisecond, 5*time.Second, time.Second, 20
	}
	for _, name := range s.scenarios {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-scenario %s: give some of %s", name, strings.Join(names, ", "))
		}
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is no flag", f.Arg(0))
	case s.registry != onEtcd && s.registry != onZooKeeper:
		return nil, fmt.Errorf("-registry %s: give %s or %s", s.registry, onEtcd, onZooKeeper)
	case s.tables && s.results == "":
		return nil, errors.New("-tables: give -results too")
	case s.repetitions < 1, s.window < time.Second:
		return nil, errors.New("-repetitions is at least 1, -window 1s")
	case s.profile != "" && len(s.scenarios) != 1:
		return nil, errors.New("-profile: give one -scenario too")
	case s.profile != "" && s.from == 0 && climbs(s.scenarios[0]):
		return nil, errors.New("-profile: give -from too")
	}
	return s, nil
}

func list(text, between string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, between)
}

func bench(ctx context.Context, args []string, out, log io.Writer) (err error) {
	s, err := parse(args, log)
	if err != nil {
		return err
	}
	if s.tables {
		records, err := load(s.results)
		printTables(out, records)
		return err
	}
	if s.rival.dir, err = os.MkdirTemp("", "elasticron-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.rival.dir)) }()
	if s.profile != "" {
		return s.profileOne(ctx, out)
	}
	fmt.Fprintf(out, "%s, %s, %d cores: bench %s\n\n", time.Now().UTC().Format(time.DateTime), runtime.Version(), runtime.NumCPU(), strings.Join(args, " "))
	records, err := s.measureAll(ctx)
	printTables(out, records)
	return err
}

// profileOne runs a scenario once, for its profiles.
func (s *settings) profileOne(ctx context.Context, out io.Writer) error {
	sc := scenarios()[slices.IndexFunc(scenarios(), func(sc scenario) bool { return sc.name == s.scenarios[0] })]
	chosen := s.wanted(sc)
	if len(chosen) != 1 {
		return fmt.Errorf("-profile: -contender chooses %q, want one", chosen)
	}
	s.repetitions = 1
	found, err := s.profiled(ctx, sc, chosen[0])
	fmt.Fprintf(out, "%s, %s: %v\n", sc.name, chosen[0], found)
	return err
}

// measureAll goes on after a contender that fails, and says so at the end.
func (s *settings) measureAll(ctx context.Context) (records []record, err error) {
	for _, sc := range scenarios() {
		if len(s.scenarios) > 0 && !slices.Contains(s.scenarios, sc.name) {
			continue
		}
		for _, contender := range s.wanted(sc) {
			more, failed := s.repeat(ctx, sc, contender)
			records = append(records, more...)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("%s, %s: %w", sc.name, contender, failed))
			}
			if ctx.Err() != nil {
				return records, err
			}
		}
	}
	return records, err
}

// wanted are the contenders of a scenario that were chosen and can be had.
func (s *settings) wanted(sc scenario) []string {
	all := sc.contenders[s.registry]
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		if name == goEtcdCron && s.rival.source == "" {
			return true
		}
		return len(s.contenders) > 0 && !slices.ContainsFunc(s.contenders, func(c string) bool {
			return name == c || !slices.Contains(all, c) && strings.HasPrefix(name, c)
		})
	})
}

func (s *settings) repeat(ctx context.Context, sc scenario, contender string) ([]record, error) {
	var records []record
	var last figures
	once := sc.name == "steady" || strings.HasPrefix(sc.name, "due-") // whose repetitions are windows of one process
	for range s.repetitions {
		found, err := sc.run(ctx, s, contender, last)
		if err != nil {
			return records, err
		}
		s.progress("%s, %s: %v", sc.name, contender, found)
		r := record{At: time.Now().UTC(), Registry: s.registry, Fsync: s.fsync, Scenario: sc.name, Contender: contender, Figures: found, Of: 1}
		if once {
			r.Of = s.repetitions
		}
		if err := s.save(r); err != nil {
			return records, err
		}
		records, last = append(records, r), found
		if once {
			break
		}
	}
	return records, nil
}

func (s *settings) save(r record) error {
	if s.results == "" {
		return nil
	}
	file, err := os.OpenFile(s.results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(r), file.Close())
}

func (s *settings) progress(text string, args ...any) {
	fmt.Fprintf(s.log, "%s "+text+"\n", append([]any{time.Now().UTC().Format(time.TimeOnly)}, args...)...)
}

// scaled is a hundredth, but two at least, when it is quick.
func (s *settings) scaled(n int) int {
	if s.quick {
		return max(2, n/100)
	}
	return n
}
