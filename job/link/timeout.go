package link

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/elasticron/elasticron/core"
)

// ErrTimeout is the cause of a context that Timeout has ended, and is wrapped by the error of
// such a run.
var ErrTimeout = errors.New("timeout")

// A Limit bounds how long a run may take.
type Limit struct {
	// After is when the context of the run is cancelled, with the cause ErrTimeout. It
	// must be positive.
	After time.Duration
	// Grace is how long the run may take from then on until it is told as stuck
	// (event.ItemStuck). 0 is 10 s, negative is never.
	Grace time.Duration
	// Stack tells the stack of the run's goroutine with it. All goroutines stand still for
	// a moment while it is taken.
	Stack bool
}

// Timeout bounds each run of an item. It returns only when the run has returned: until then
// the item counts as running, here and in the registry, since nothing can end a function
// that does not heed its context. A run that returns without an error has succeeded, however
// late. Timeout panics when l.After is not positive.
func Timeout(l Limit) Link {
	if l.After <= 0 {
		panic(fmt.Sprintf("link: a timeout of %v; give a positive one", l.After))
	}
	grace := cmp.Or(l.Grace, 10*time.Second)
	return func(next core.Job) core.Job {
		return core.JobFunc(func(ctx context.Context, s core.Shard) error {
			ctx, cancel := context.WithTimeoutCause(ctx, l.After, ErrTimeout)
			defer cancel()
			if grace > 0 {
				defer watch(s, l, grace)()
			}
			err := next.Run(ctx, s)
			if err != nil && context.Cause(ctx) == ErrTimeout { //nolint:errorlint // the cause that was given, as it is
				err = fmt.Errorf("%w after %v: %w", ErrTimeout, l.After, err)
			}
			return err
		})
	}
}

// watch tells that the run is stuck, unless the function that it returns is called in time.
// That one waits until nothing is told any more.
func watch(s core.Shard, l Limit, grace time.Duration) (end func()) {
	begun, told := time.Now(), make(chan struct{})
	var self []byte
	if l.Stack {
		self = goroutine()
	}
	timer := time.AfterFunc(l.After+grace, func() {
		defer close(told)
		s.Stuck(time.Since(begun), stackOf(self))
	})
	return func() {
		if !timer.Stop() {
			<-told
		}
	}
}

// goroutine is how the caller's goroutine begins its line in a dump: "goroutine 7 ".
func goroutine() []byte {
	line := make([]byte, 64)
	line = line[:runtime.Stack(line, false)]
	if i := bytes.IndexByte(line, '['); i > 0 {
		return line[:i]
	}
	return nil
}

// maxDump bounds what is looked through for one stack.
const maxDump = 16 << 20

// stackOf is the stack of a goroutine, by how its line begins; "" for nil.
func stackOf(line []byte) string {
	if line == nil {
		return ""
	}
	for size := 64 << 10; ; size *= 4 {
		dump := make([]byte, size)
		n := runtime.Stack(dump, true)
		if n == size && size < maxDump {
			continue
		}
		for stack := range bytes.SplitSeq(dump[:n], []byte("\n\n")) {
			if bytes.HasPrefix(stack, line) {
				return string(stack)
			}
		}
		return ""
	}
}
