// Step makes targets of a Makefile, one after the other, and says what is being made
// and since when, at least every half minute, whatever that prints itself:
//
//	step [-fresh] [-table] [-optional] [-beside target] target…
//
// Each target is one line of steps.log: its name, its seconds and its result. -fresh
// starts that file anew. The first target that fails is the last one; then, and with
// -table in the end, all lines of the file are printed as a table. -optional is for
// targets whose failure ends nothing: there is no table.
//
// -beside names a target that only computes. It is made at the lowest priority while the
// others are, and what it prints comes after them. Its seconds are those that it was
// waited for in the end, and its result says how long it took in all.
//
// The exit code is that of make, or 128 and the number of the signal that ended it;
// 1 if it cannot be started, 2 for a wrong command line. MAKE names the program.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	failed = 1
	misuse = 2

	stepsLog = "steps.log"
)

func main() {
	p := program{every: 20 * time.Second, make: cmp.Or(os.Getenv("MAKE"), "make"), log: stepsLog, out: os.Stdout}
	os.Exit(p.run(os.Args[1:]))
}

// A program is what tests set otherwise.
type program struct {
	every time.Duration // between two lines of progress
	make  string
	log   string
	out   io.Writer
}

func (p program) run(args []string) int {
	f := flag.NewFlagSet("step", flag.ContinueOnError)
	f.SetOutput(p.out)
	fresh := f.Bool("fresh", false, "start "+p.log+" anew")
	table := f.Bool("table", false, "print the table in the end")
	optional := f.Bool("optional", false, "print no table after a failure")
	beside := f.String("beside", "", "a target to be made at the lowest priority while the others are")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return misuse
	}
	if *fresh {
		if err := os.Remove(p.log); err != nil && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(p.out, "step: %v\n", err)
			return failed
		}
	}
	code := p.all(f.Args(), *beside)
	if *table || code != 0 && !*optional {
		if err := printTable(p.out, p.log); err != nil {
			fmt.Fprintf(p.out, "step: no table: %v\n", err)
		}
	}
	return code
}

// all makes targets, and one beside them.
func (p program) all(targets []string, beside string) (code int) {
	if beside == "" {
		return p.steps(targets, func() bool { return false })
	}
	b, err := p.beside(beside)
	if err != nil {
		fmt.Fprintf(p.out, "step: %v\n", err)
		return failed
	}
	code = p.steps(targets, b.unwanted)
	if code != 0 {
		b.stop()
		return code
	}
	return p.recorded(b.wait())
}

// steps makes targets until one fails or they are unwanted.
func (p program) steps(targets []string, unwanted func() bool) int {
	for _, target := range targets {
		if unwanted() {
			break
		}
		if code := p.recorded((&step{program: p, name: target}).run()); code != 0 {
			return code
		}
	}
	return 0
}

// recorded makes a line of steps.log of how a target ended.
func (p program) recorded(o outcome, r row) int {
	r.Result = o.text + r.Result
	if err := record(p.log, r); err != nil {
		fmt.Fprintf(p.out, "step: %v\n", err)
	}
	return o.code
}
