// Step makes targets of a Makefile, one after the other, and says what is being made
// and since when, at least every half minute, whatever that prints itself:
//
//	step [-fresh] [-table] [-optional] target…
//
// Each target is one line of steps.log: its name, its seconds and its result. -fresh
// starts that file anew. The first target that fails is the last one; then, and with
// -table in the end, all lines of the file are printed as a table. -optional is for
// targets whose failure ends nothing: there is no table.
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
	code := p.steps(f.Args())
	if *table || code != 0 && !*optional {
		if err := printTable(p.out, p.log); err != nil {
			fmt.Fprintf(p.out, "step: no table: %v\n", err)
		}
	}
	return code
}

func (p program) steps(targets []string) int {
	for _, target := range targets {
		s := &step{program: p, name: target}
		o, took := s.run()
		if err := record(p.log, row{Step: target, Took: took, Result: o.text}); err != nil {
			fmt.Fprintf(p.out, "step: %v\n", err)
		}
		if o.code != 0 {
			return o.code
		}
	}
	return 0
}
