package conformance

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"sync/atomic"
)

// caseLabel is the label of the goroutines that a case has started, directly or not. A count of
// all goroutines of the process would see those of cases that run beside it come and go.
const caseLabel = "conformance case"

var cases atomic.Int64

// label marks the present goroutine, and all that it starts from now on, as the case's.
func (t *caseRun) label() {
	t.labelled = fmt.Sprint(cases.Add(1))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(caseLabel, t.labelled)))
}

// goroutines counts the case's own.
func (t *caseRun) goroutines() (n int) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.fatalf("the profile of goroutines: %v", err)
	}
	mark := fmt.Appendf(nil, "%q:%q", caseLabel, t.labelled)
	alike := 0 // goroutines of one stack stand in one paragraph
	for line := range bytes.Lines(profile.Bytes()) {
		if count, _, is := bytes.Cut(line, []byte(" @ ")); is {
			if _, err := fmt.Sscan(string(count), &alike); err != nil {
				alike = 0
			}
		}
		if bytes.HasPrefix(line, []byte("# labels: ")) && bytes.Contains(line, mark) {
			n += alike
		}
	}
	return n
}
