package conformance

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A recorder is the testing.TB of one case. It keeps failures instead of
// passing them on, so that a case that must fail can be run as well.
type recorder struct {
	testing.TB // of the test around: Name, TempDir and the like

	mu       sync.Mutex
	failed   bool
	lines    []string
	saws     []string // what the case could not accept, each once
	more     int      // that are not in saws
	frame    func(saw string) string
	cleanups []func()
}

func (r *recorder) add(failure bool, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failure
	if line != "" {
		r.lines = append(r.lines, strings.TrimRight(line, "\n"))
	}
}

// see fails the case. The frame, which has the steps up to here, is made for the first
// alone: what other goroutines saw stands in the same one.
func (r *recorder) see(saw string, frame func() func(saw string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	switch {
	case r.frame == nil:
		r.frame = frame()
	case slices.Contains(r.saws, saw):
		return
	case len(r.saws) == maxSaws:
		r.more++
		return
	}
	r.saws = append(r.saws, saw)
}

// maxSaws is how many different things are told that a case saw.
const maxSaws = 8

func (r *recorder) Helper()                           {}
func (r *recorder) Log(args ...any)                   { r.add(false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(format string, args ...any)   { r.add(false, fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.add(true, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.add(true, fmt.Sprintf(format, args...)) }
func (r *recorder) Fail()                             { r.add(true, "") }

// FailNow ends the goroutine of the case.
func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// A case that does not run proves nothing: a skip is a failure.
func (r *recorder) Skip(args ...any)                 { r.Fatal("void: skipped:", fmt.Sprint(args...)) }
func (r *recorder) Skipf(format string, args ...any) { r.Fatalf("void: skipped: "+format, args...) }
func (r *recorder) SkipNow()                         { r.Fatal("void: skipped") }

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// cleanup runs what Cleanup collected, last first.
func (r *recorder) cleanup() {
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		f := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		protect(r, f)
	}
}

// result returns whether the case failed and all that it had to say.
func (r *recorder) result() (failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	if r.frame != nil {
		saw := strings.Join(r.saws, "\n          ")
		if r.more > 0 {
			saw += fmt.Sprintf("\n          … and %d things more", r.more)
		}
		lines = append([]string{r.frame(saw)}, lines...)
	}
	return r.failed, strings.Join(lines, "\n")
}

// protect runs f to its end, to its Goexit or to its panic, which is a failure.
func protect(r *recorder, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				stack := make([]byte, 8<<10)
				r.Errorf("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)])
			}
		}()
		f()
	}()
	<-done
}
