package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// verdicts reads along with go test, which prints package after package and closes
// each with a line.
type verdicts struct {
	out     io.Writer
	rest    []byte   // of a line that has not ended
	crash   bool     // of the detector, in the package that is being read
	test    bool     // one that failed, there
	crashed []string // packages that failed by a crash alone
	failed  bool     // another package failed
}

var (
	crashes = regexp.MustCompile(`^(ThreadSanitizer: CHECK failed|SIGSEGV: segmentation violation)`)
	tests   = regexp.MustCompile(`^\s*--- FAIL: `)
	closing = regexp.MustCompile(`^(?:ok  |FAIL|\?   )\t(\S+)`)
)

func (v *verdicts) Write(p []byte) (int, error) {
	var err error
	v.rest = eachLine(append(v.rest, p...), func(line string) {
		_, e := fmt.Fprintln(v.out, v.line(line))
		err = errors.Join(err, e)
	})
	return len(p), err
}

// end prints what had no line end.
func (v *verdicts) end() {
	_, _ = v.out.Write(v.rest) // what cannot be printed can be told to nobody
	v.rest = nil
}

// eachLine calls f for each whole line and returns what is left.
func eachLine(text []byte, f func(line string)) []byte {
	end := bytes.LastIndexByte(text, '\n') + 1
	for line := range strings.Lines(string(text[:end])) {
		f(strings.TrimSuffix(line, "\n"))
	}
	return text[end:]
}

// line reads one line and returns what to print: only what failed says FAIL.
func (v *verdicts) line(line string) string {
	v.crash = v.crash || crashes.MatchString(line)
	v.test = v.test || tests.MatchString(line)
	m := closing.FindStringSubmatch(line)
	switch {
	case line == "FAIL" && len(v.crashed) > 0 && !v.failed && !v.test:
		return "crashed"
	case m == nil:
		return line
	case !strings.HasPrefix(line, "FAIL"):
	case v.crash && !v.test:
		v.crashed = append(v.crashed, m[1])
		line = "crashed" + strings.TrimPrefix(line, "FAIL")
	default:
		v.failed = true
	}
	v.crash, v.test = false, false
	return line
}

// A digest keeps everything in a file and prints the lines that matter.
type digest struct {
	file *os.File
	out  io.Writer
	rest []byte
	why  []string // lines that explain a failure, each once
	tail []string

	test   string              // whose lines are being read
	said   map[string][]string // by tests that have not ended
	failed []string            // what each test that failed and had said something, said last
}

const (
	mostWhy  = 100
	mostTail = 200
	mostSaid = 40

	mostFailed = 400 // lines of all tests that failed
	mostRunes  = 400 // of a line
)

var (
	matters  = regexp.MustCompile(`conformance: [0-9]+ cases|served by|^(ok|FAIL|panic:|racetest:)|--- FAIL`)
	explains = regexp.MustCompile(`(rule|saw|contract): |Error: |^panic:`)
	turns    = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE)\s+(\S+)`)
	ends     = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)
)

func newDigest(file string, out io.Writer) (*digest, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return &digest{file: f, out: out, said: map[string][]string{}}, nil
}

func (d *digest) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.rest = eachLine(append(d.rest, p...), func(line string) {
		if explains.MatchString(line) && len(d.why) < mostWhy && !slices.Contains(d.why, line) {
			d.why = append(d.why, line)
		}
		d.tail = last(mostTail, d.tail, line)
		d.hear(line)
		if matters.MatchString(line) {
			_, e := fmt.Fprintln(d.out, line)
			err = errors.Join(err, e)
		}
	})
	return n, err
}

// hear keeps what tests say, which go test -v prints in turns, until they have passed.
func (d *digest) hear(line string) {
	turn, end := turns.FindStringSubmatch(line), ends.FindStringSubmatch(line)
	switch {
	case turn != nil:
		d.test = turn[1]
	case end != nil:
		if said := d.said[end[2]]; end[1] == "FAIL" && len(said) > 0 {
			d.failed = append(append(d.failed, "--- "+end[2]+":"), said...)
		}
		delete(d.said, end[2])
	case closing.MatchString(line):
		d.test = ""
		clear(d.said)
	case d.test != "" && strings.TrimSpace(line) != "":
		d.said[d.test] = last(mostSaid, d.said[d.test], line)
	}
}

// last appends a line and keeps the latest of them, as many as most.
func last(most int, lines []string, line string) []string {
	if text := []rune(line); len(text) > mostRunes {
		line = string(text[:mostRunes]) + "…"
	}
	return append(lines[max(0, len(lines)-most+1):], line)
}

// close ends with what explains a failure best: what is read of a long log is its end.
func (d *digest) close(failed bool) {
	if err := d.file.Close(); err != nil {
		fmt.Fprintf(d.out, "racetest: %v\n", err)
	}
	if !failed {
		return
	}
	fmt.Fprintln(d.out, strings.Join(d.why, "\n"))
	panicked := func(line string) bool { return strings.HasPrefix(line, "panic:") }
	if len(d.failed) == 0 || slices.ContainsFunc(d.why, panicked) {
		fmt.Fprintf(d.out, "racetest: the end of %s:\n%s\n", d.file.Name(), strings.Join(d.tail, "\n"))
	}
	if len(d.failed) > 0 {
		fmt.Fprintf(d.out, "racetest: what failed, from %s:\n%s\n", d.file.Name(),
			strings.Join(d.failed[:min(mostFailed, len(d.failed))], "\n"))
	}
	if more := len(d.failed) - mostFailed; more > 0 {
		fmt.Fprintf(d.out, "racetest: %d lines more are in %s\n", more, d.file.Name())
	}
}
