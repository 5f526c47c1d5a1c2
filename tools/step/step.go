package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A step makes one target. It is the writer of what make prints.
type step struct {
	program

	name string

	mu     sync.Mutex
	rest   []byte // of a line that has not ended
	last   string // the line that tells best how far make is
	result bool   // last is a result of go test
}

func (s *step) run() (outcome, row) {
	began := time.Now()
	s.say("starts at %s", began.Format(time.TimeOnly))
	cmd := exec.Command(s.make, s.name) //nolint:gosec,noctx // this program's purpose; signals end it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, s, s
	o := s.end(began, func() outcome { return execute(cmd) })
	return o, row{Step: s.name, Took: time.Since(began)}
}

// end waits for a command that began some time ago, and says meanwhile how far it is.
func (s *step) end(began time.Time, wait func() outcome) outcome {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		s.beat(began, done)
	}()
	o := wait()
	close(done)
	<-stopped
	if len(s.rest) > 0 {
		fmt.Fprintf(s.out, "%s\n", s.rest)
	}
	s.say("%s after %s", o.text, inWords(time.Since(began)))
	return o
}

// say prints a line of this program's own.
func (s *step) say(format string, args ...any) {
	fmt.Fprintf(s.out, "== %s: %s\n", s.name, fmt.Sprintf(format, args...))
}

// beat says now and then how far the step is.
func (s *step) beat(began time.Time, done <-chan struct{}) {
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-done:
			return
		}
		s.mu.Lock()
		text := inWords(time.Since(began)) + " so far"
		if s.last != "" {
			text += "; last: " + s.last
		}
		s.say("%s", text)
		s.mu.Unlock()
	}
}

// results are the lines of go test that tell how far it is.
var results = regexp.MustCompile(`^\s*(ok|FAIL|--- \w+:)\s+\S`)

// Write prints whole lines, so that a line of progress never stands inside one.
func (s *step) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	for line := range strings.Lines(string(s.rest[:end])) {
		if is := results.MatchString(line); is || !s.result && strings.TrimSpace(line) != "" {
			s.last, s.result = shorten(line), is
		}
	}
	_, err := s.out.Write(s.rest[:end])
	s.rest = s.rest[end:]
	return len(p), err
}

const module = "github.com/elasticron/elasticron/"

// shorten cuts a line to what fits beside the time.
func shorten(line string) string {
	const most = 80
	text := []rune(strings.ReplaceAll(strings.Join(strings.Fields(line), " "), module, ""))
	if len(text) > most {
		text = append(text[:most-1], '…')
	}
	return string(text)
}
