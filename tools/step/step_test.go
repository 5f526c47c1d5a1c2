package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a program whose make runs a shell script, with the target as $1.
func fake(t *testing.T, script string) (p program, printed *strings.Builder) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "make")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	printed = &strings.Builder{}
	return program{every: time.Hour, make: name, log: filepath.Join(dir, stepsLog), out: printed}, printed
}

func TestStepsEndInATable(t *testing.T) {
	p, printed := fake(t, `echo "ok  	made $1"`)
	require.Zero(t, p.run([]string{"-fresh", "vet"}))
	require.NotContains(t, printed.String(), "together", "no table before the last goal")
	printed.Reset()
	require.Zero(t, p.run([]string{"-table", "build", "tests"}))
	require.Regexp(t, `^== build: starts at \d\d:\d\d:\d\d
ok  	made build
== build: ok after 0\.\d s
== tests: starts at \d\d:\d\d:\d\d
ok  	made tests
== tests: ok after 0\.\d s

step      took   result
vet       0\.\d s  ok
build     0\.\d s  ok
tests     0\.\d s  ok
together  0\.\d s  
$`, printed.String())
	require.Zero(t, p.run([]string{"-fresh"}))
	require.NoFileExists(t, p.log)
}

func TestAFailureEndsInATableToo(t *testing.T) {
	p, printed := fake(t, `[ "$1" != bad ] || { echo "FAIL	x"; exit 7; }`)
	require.Equal(t, 7, p.run([]string{"good", "bad", "never"}))
	require.Regexp(t, `(?s)FAIL	x\n== bad: FAILED: exit status 7 after .*\ngood +\S+ s +ok\nbad +\S+ s +FAILED: exit status 7\n`, printed.String())
	require.NotContains(t, printed.String(), "never")

	printed.Reset()
	require.Equal(t, 7, p.run([]string{"-optional", "bad"}))
	require.NotContains(t, printed.String(), "together")

	p, printed = fake(t, `kill -TERM $$`)
	require.Equal(t, 128+15, p.run([]string{"x"}))
	require.Contains(t, printed.String(), "FAILED: signal: terminated")
	p.make = "/nowhere/make"
	require.Equal(t, failed, p.run([]string{"x"}))
	require.Equal(t, misuse, p.run([]string{"-what"}))
}

func TestASilentStepIsToldOf(t *testing.T) {
	p, printed := fake(t, `echo "ok  	github.com/elasticron/elasticron/registry/etcd	35.1s"; printf half; while [ ! -e "$0.go" ]; do sleep 0.01; done; echo " a line"`)
	p.every = 10 * time.Millisecond
	p.out = &watched{Builder: printed, sign: "so far; last: ok", f: func() { _ = os.WriteFile(p.make+".go", nil, 0o600) }}
	require.Zero(t, p.run([]string{"conformance"}))
	require.Regexp(t, `\n== conformance: \d\.\d s so far; last: ok registry/etcd 35\.1s\n(== .*\n)*half a line\n== `, printed.String())
}

// watched calls f when the sign is written.
type watched struct {
	*strings.Builder

	sign string
	f    func()
}

func (w *watched) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.sign) {
		w.f()
	}
	return w.Builder.Write(p)
}

func TestTheLastLineThatTells(t *testing.T) {
	s := &step{program: program{out: &strings.Builder{}}}
	for _, c := range []struct{ printed, last string }{
		{"Setting up gcc\n\n", "Setting up gcc"},
		{"go: downloading example.com/x v1\n", "go: downloading example.com/x v1"},
		{"ok  \tgithub.com/elasticron/elasticron/core\t12.0s\nother\n", "ok core 12.0s"},
		{"    --- PASS: TestX (0.1s)\nFAI", "--- PASS: TestX (0.1s)"},
		{"L\t" + strings.Repeat("x", 100) + "\n", "FAIL " + strings.Repeat("x", 74) + "…"},
	} {
		_, err := s.Write([]byte(c.printed))
		require.NoError(t, err)
		require.Equal(t, c.last, s.last)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 s", 1440 * time.Millisecond: "1.4 s", 35 * time.Second: "35 s",
		59800 * time.Millisecond: "1 min 0 s", 245 * time.Second: "4 min 5 s",
	} {
		require.Equal(t, want, inWords(d))
	}
}

// The slow target waits for both others, which are made meanwhile.
func TestATargetIsMadeBesideTheOthers(t *testing.T) {
	p, printed := fake(t, `echo "ok  	made $1"
case $1 in
slow) nice >"$0.nice"; while [ ! -e "$0.second" ]; do sleep 0.01; done ;;
second) while [ ! -e "$0.nice" ]; do sleep 0.01; done; : >"$0.second" ;;
esac`)
	require.Zero(t, p.run([]string{"-table", "-beside", "slow", "first", "second"}))
	require.Regexp(t, `^== slow: starts at \d\d:\d\d:\d\d, at the lowest priority, beside the others
== first: (?s:.*)== second: ok after \S+ s
ok  	made slow
== slow: ok after \S+ s

step      took +result
first     \S+ s +ok
second    \S+ s +ok
slow      \S+ s +ok, \S+ s with what it was beside
together  \S+ s +
$`, printed.String())
	nice, err := os.ReadFile(p.make + ".nice")
	require.NoError(t, err)
	require.Equal(t, lowest, strings.TrimSpace(string(nice)))
}

func TestWhatIsBesideEndsWithTheOthers(t *testing.T) {
	p, printed := fake(t, `case $1 in
slow) sleep 1000 & echo $! >"$0.pid"; wait ;;
bad) while [ ! -s "$0.pid" ]; do sleep 0.01; done; exit 7 ;;
esac`)
	require.Equal(t, 7, p.run([]string{"-beside", "slow", "bad", "never"}))
	require.NotContains(t, printed.String(), "never")
	pid, err := os.ReadFile(p.make + ".pid")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return exec.Command("sh", "-c", "kill -0 "+string(pid)).Run() != nil
	}, 5*time.Second, 10*time.Millisecond, "what it had started is left")
}

func TestAFailureBesideEndsTheOthers(t *testing.T) {
	p, printed := fake(t, `case $1 in
bad) echo "FAIL	x"; exit 7 ;;
esac`)
	tries := 0
	p.out = &watched{Builder: printed, sign: "== good: ok", f: func() { tries++ }}
	var targets []string
	for range 1000 {
		targets = append(targets, "good")
	}
	require.Equal(t, 7, p.run(append([]string{"-beside", "bad"}, targets...)))
	require.Less(t, tries, len(targets), "the others go on")
	require.Regexp(t, `(?s)\nFAIL	x\n== bad: FAILED: exit status 7 after .*\nbad +\S+ s +FAILED: exit status 7, .*\n`, printed.String())
}

// The signal comes when no command runs that it could be handed on to.
func TestASignalBetweenTargetsEndsWhatIsBeside(t *testing.T) {
	p, printed := fake(t, `case $1 in
slow) sleep 1000 & echo $! >"$0.pid"; wait ;;
first) while [ ! -s "$0.pid" ]; do sleep 0.01; done ;;
esac`)
	p.out = &watched{Builder: printed, sign: "== first: ok", f: func() {
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		defer signal.Stop(signals)
		require.NoError(t, self.Signal(syscall.SIGTERM))
		<-signals
	}}
	require.Equal(t, signalled+15, p.run([]string{"-beside", "slow", "first"}))
	require.Contains(t, printed.String(), "== slow: FAILED: signal: terminated")
}
