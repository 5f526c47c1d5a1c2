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
}

const (
	mostWhy  = 100
	mostTail = 200
)

var (
	matters  = regexp.MustCompile(`conformance: [0-9]+ cases|served by|^(ok|FAIL|panic:|racetest:)|--- FAIL`)
	explains = regexp.MustCompile(`(rule|saw|contract): |Error: |^panic:`)
)

func newDigest(file string, out io.Writer) (*digest, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return &digest{file: f, out: out}, nil
}

func (d *digest) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.rest = eachLine(append(d.rest, p...), func(line string) {
		if explains.MatchString(line) && len(d.why) < mostWhy && !slices.Contains(d.why, line) {
			d.why = append(d.why, line)
		}
		if len(d.tail) == mostTail {
			d.tail = d.tail[1:]
		}
		d.tail = append(d.tail, line)
		if matters.MatchString(line) {
			_, e := fmt.Fprintln(d.out, line)
			err = errors.Join(err, e)
		}
	})
	return n, err
}

func (d *digest) close(failed bool) {
	if err := d.file.Close(); err != nil {
		fmt.Fprintf(d.out, "racetest: %v\n", err)
	}
	if !failed {
		return
	}
	fmt.Fprintf(d.out, "%s\nracetest: the end of %s:\n%s\n", strings.Join(d.why, "\n"), d.file.Name(), strings.Join(d.tail, "\n"))
}
