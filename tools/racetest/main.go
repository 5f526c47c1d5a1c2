// Racetest is go test -race, repeated where the race detector itself crashed:
//
//	racetest [-log file] [-plain] [flag of go test…] -- package… [flag of the tests…]
//
// The detector of Go 1.26 crashes now and then (about once in forty runs of
// registry/memory, once in ten of registry/latch) where a time.AfterFunc starts
// goroutines inside a synctest bubble: a segmentation fault in the runtime, or a
// failed CHECK of its own. Only the packages whose run ended in such a crash, before
// any test of theirs had failed, are run again, at most twice.
//
// With -log, which comes first, everything that is printed goes to a file. Of it only
// results, case counts and the servers' names are seen, and after a failure what
// explains it. With -plain it is go test without -race. GO names the go command.
package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const (
	failed = 1
	misuse = 2

	tries = 3
	usage = "racetest: usage: racetest [-log file] [-plain] [flag of go test…] -- package… [flag of the tests…]"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout))
}

func run(args []string, out io.Writer) int {
	if len(args) > 1 && args[0] == "-log" {
		d, err := newDigest(args[1], out)
		if err != nil {
			fmt.Fprintf(out, "racetest: %v\n", err)
			return failed
		}
		code := run(args[2:], d)
		d.close(code != 0)
		return code
	}
	race := []string{"test", "-race"}
	if len(args) > 0 && args[0] == "-plain" {
		race, args = race[:1], args[1:]
	}
	end := slices.Index(args, "--")
	if end < 0 || end == len(args)-1 {
		fmt.Fprintln(out, usage)
		return misuse
	}
	flags, packages := args[:end], args[end+1:]
	var more []string
	if i := slices.IndexFunc(packages, func(p string) bool { return strings.HasPrefix(p, "-") }); i >= 0 {
		packages, more = packages[:i], packages[i:]
	}
	before := 0 // the exit code of tries in which another package failed
	for try := 1; ; try++ {
		v := &verdicts{out: out}
		code := test(slices.Concat(race, flags, packages, more), v)
		v.end()
		if code == 0 {
			return before
		}
		if len(v.crashed) > 0 && try == tries {
			fmt.Fprintf(out, "FAIL\nracetest: the race detector itself crashed in each of %d tries: %s\n", tries, strings.Join(v.crashed, " "))
		}
		if len(v.crashed) == 0 || try == tries {
			return code
		}
		if v.failed {
			before = code
		}
		packages = v.crashed
		fmt.Fprintf(out, "racetest: the race detector itself crashed; once more: %s\n", strings.Join(packages, " "))
	}
}

// test runs the go command once.
func test(args []string, out io.Writer) int {
	cmd := exec.Command(cmp.Or(os.Getenv("GO"), "go"), args...) //nolint:gosec,noctx // this program's purpose; go test has a timeout
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	switch {
	case err == nil:
		return 0
	case cmd.ProcessState == nil:
		fmt.Fprintf(out, "racetest: %v\n", err)
	case cmd.ProcessState.Exited():
		return cmd.ProcessState.ExitCode()
	}
	return failed
}
