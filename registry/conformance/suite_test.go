package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// The table is complete: every case says what it is about, and has a name of
// its own that go test -run can address.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range suite() {
		for _, c := range g.cases {
			name := g.name + "/" + c.name
			require.False(t, seen[name], "%s occurs twice", name)
			require.Regexp(t, `^[A-Z0-9][A-Za-z0-9]+$`, c.name)
			require.NotEmpty(t, c.rule, name)
			require.NotEmpty(t, c.place, name)
			require.NotNil(t, c.run, name)
			seen[name] = true
		}
	}
}

func TestCases(t *testing.T) {
	one, three := Cases(1), Cases(3)
	require.Greater(t, len(one), 129)
	require.Subset(t, three, one)
	require.NotContains(t, one, "Sessions/LoseLeaderKeepsSession")
	require.Contains(t, three, "Sessions/LoseLeaderKeepsSession")
	require.Contains(t, three, "Sessions/StalledEndpointDoesNotKillSession")
}

// try runs one made-up case on a sound adapter.
func try(t *testing.T, run func(*caseRun)) (failed bool, text string) {
	return executeFor(t, newFlawedHarness(flaw{}), testCase{name: "MadeUp", rule: "a rule", place: "a place", run: run},
		500*time.Millisecond, 500*time.Millisecond)
}

func TestFailureIsInstructive(t *testing.T) {
	failed, text := try(t, func(t *caseRun) {
		t.create(t.s, t.path("a"), "")
		t.fatalf("nothing good")
	})
	require.True(t, failed)
	require.Regexp(t, `(?s)rule:     a rule\ndid:      opened session .*commit\(create .*/a\) = .*\nsaw:      nothing good\ncontract: a place`, text)
}

func TestCaseThatPasses(t *testing.T) {
	failed, text := try(t, func(t *caseRun) { t.create(t.s, t.path("a"), "") })
	require.False(t, failed)
	require.Empty(t, text)
}

func TestCaseThatPanics(t *testing.T) {
	failed, text := try(t, func(*caseRun) { panic("oops") })
	require.True(t, failed)
	require.Contains(t, text, "panic: oops")
	require.Contains(t, text, "suite_test.go")
}

func TestCaseThatSkipsFails(t *testing.T) {
	for name, skip := range map[string]func(*caseRun){
		"Skip": func(t *caseRun) { t.Skip("no") }, "Skipf": func(t *caseRun) { t.Skipf("%s", "no") }, "SkipNow": func(t *caseRun) { t.SkipNow() },
	} {
		failed, text := try(t, skip)
		require.True(t, failed, name)
		require.Contains(t, text, "void: skipped", name)
	}
}

func TestCaseThatWaitsForEver(t *testing.T) {
	failed, text := try(t, func(t *caseRun) { t.eventually("the moon", func() string { return "stars" }) })
	require.True(t, failed)
	require.Contains(t, text, "waited for: the moon; at the end of the case: stars")
}

// A session that is lost though nothing that explains it was done to it makes the case be tried again, also
// though the case closes it at its end; what a fault ended does not.
func TestCaseIsTriedAgain(t *testing.T) {
	unseen := func(t *caseRun, s registry.Session) error { return t.h.Harness.Faults().Expire(inner(s)) }
	for name, test := range map[string]struct {
		expire   func(*caseRun, registry.Session) error
		attempts int
	}{
		"lost by itself": {unseen, attempts},
		"lost after a fault that was healed early": {func(t *caseRun, s registry.Session) error {
			heal, err := t.h.Faults().Refuse(s)
			heal()
			return errors.Join(err, unseen(t, s))
		}, attempts},
		"lost after a pause that ended early": {func(t *caseRun, s registry.Session) error {
			resume, err := t.h.Faults().PauseServer()
			resume()
			return errors.Join(err, unseen(t, s))
		}, attempts},
		"lost before a fault": {func(t *caseRun, s registry.Session) error {
			err := unseen(t, s)
			<-s.Done()
			heal, refused := t.h.Faults().Refuse(s)
			heal()
			return errors.Join(err, refused)
		}, attempts},
		"lost after a fault that lasted": {func(t *caseRun, s registry.Session) error {
			heal, err := t.h.Faults().Refuse(s)
			t.elapse(time.Until(s.Deadline()) - t.h.SessionTimeout()/8)
			heal()
			return errors.Join(err, unseen(t, s))
		}, 1},
		"lost during a fault": {func(t *caseRun, s registry.Session) error {
			heal, err := t.h.Faults().Blackhole(s, Both)
			<-s.Done()
			heal()
			return err
		}, 1},
		"lost by a fault": {func(t *caseRun, s registry.Session) error { return t.h.Faults().Expire(s) }, 1},
	} {
		tried := 0
		failed, text := execute(t, newFlawedHarness(flaw{}), testCase{name: "MadeUp", run: func(t *caseRun) {
			tried++
			s := t.open()
			t.must("Expire", test.expire(t, s))
			<-s.Done()
			t.alive(s)
		}})
		require.True(t, failed, name)
		require.Equal(t, test.attempts, tried, name)
		require.Equal(t, test.attempts > 1, strings.Contains(text, "was lost without a fault"), text)
	}
}

// The third attempt of a case has no other case beside it, but a dozen times a group.
func TestThirdAttemptHasNobodyBesideIt(t *testing.T) {
	for name, test := range map[string]struct {
		apart  int64 // attempts before
		beside bool
	}{
		"a few before":   {apartAttempts - 1, false},
		"a dozen before": {apartAttempts, true},
	} {
		h, shared := newFlawedHarness(flaw{}), &proofs{}
		shared.turnstile.apart.Store(test.apart)
		var tried, beside atomic.Int64
		neighbour := testCase{name: "Neighbour", run: func(t *caseRun) {
			beside.Add(1)
			defer beside.Add(-1)
			t.eventually("the third attempt, where it goes on beside this", func() string {
				if test.beside && tried.Load() < attempts {
					return fmt.Sprint(tried.Load())
				}
				return ""
			})
		}}
		over := make(chan struct{})
		var neighbours sync.WaitGroup
		for range 3 {
			neighbours.Go(func() {
				for {
					if failed, text := execute(t, sharedProofs{h, shared}, neighbour); failed {
						t.Errorf("%s: %s", name, text)
					}
					select {
					case <-over:
						return
					default:
					}
				}
			})
		}
		var seen int64
		failed, text := execute(t, sharedProofs{h, shared}, testCase{name: "MadeUp", run: func(t *caseRun) {
			if tried.Load() == attempts-1 {
				for range 20 {
					t.elapse(time.Millisecond)
					seen += beside.Load()
				}
			}
			if tried.Add(1) < attempts {
				s := t.open()
				t.must("Expire", t.h.Harness.Faults().Expire(inner(s)))
				<-s.Done()
				t.alive(s)
			}
		}})
		close(over)
		neighbours.Wait()
		require.False(t, failed, text)
		require.EqualValues(t, attempts, tried.Load(), name)
		require.Equal(t, test.beside, seen > 0, name)
	}
}

// What fails while the machine stands still is tried more often; once it does not, the case counts.
func TestCaseIsTriedAgainWhileTheMachineStandsStill(t *testing.T) {
	o := observe(newFlawedHarness(flaw{}))
	for _, test := range []struct {
		seen slowness
		most int
		why  string
	}{
		{slowness{}, 1, ""},
		{slowness{stood: flawedTimeout / 8}, 1, ""},
		{slowness{stood: flawedTimeout}, stalledAttempts, "the machine stood still for " + flawedTimeout.String()},
		{slowness{answered: time.Second}, stalledAttempts, "the service took 1s to answer a client to which nothing was done"},
	} {
		why, most := o.excuse(test.seen)
		require.Equal(t, test.most, most, test.seen)
		require.Equal(t, test.why, why)
	}
}

// slowLeaders is a service whose change of leader takes a while, during which a session ends.
type slowLeaders struct {
	*flawedHarness

	takes time.Duration
	lose  func()
	mu    sync.Mutex
	leads string
}

func (h *slowLeaders) Faults() Faults { return slowChange{h.flawedHarness.Faults(), h} }

func (h *slowLeaders) Leader() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leads, nil
}

type slowChange struct {
	Faults

	h *slowLeaders
}

func (f slowChange) LoseLeader() error {
	<-time.After(f.h.takes)
	f.h.mu.Lock()
	f.h.leads += "x"
	f.h.mu.Unlock()
	f.h.lose()
	return nil
}

// Who loses a session while the service has no leader for a quarter of a timeout is tried again; otherwise it counts.
func TestCaseIsTriedAgainWhereNobodyLed(t *testing.T) {
	for name, test := range map[string]struct {
		takes    time.Duration
		lost     bool
		attempts int
	}{
		"Slow": {flawedTimeout / 3, true, attempts}, "SlowForNothing": {flawedTimeout / 3, false, 1}, "Quick": {0, true, 1},
	} {
		tried := 0
		h := &slowLeaders{flawedHarness: newFlawedHarness(flaw{}), takes: test.takes}
		failed, text := execute(t, h, testCase{name: "MadeUp", needs: alone, run: func(t *caseRun) {
			tried++
			s := t.open()
			h.lose = func() {
				if test.lost {
					t.must("Expire", h.flawedHarness.Faults().Expire(inner(s)))
					<-s.Done()
				}
			}
			t.must("LoseLeader", t.h.Faults().LoseLeader())
			t.fatalf("it failed")
		}})
		require.True(t, failed, name)
		require.Equal(t, test.attempts, tried, name)
		require.Equal(t, test.attempts > 1, strings.Contains(text, "was lost, and no member led for"), text)
	}
}

// A machine that stood still once does not fail an adapter.
func TestCaseThatIsTriedAgainPasses(t *testing.T) {
	tried := 0
	failed, text := execute(t, newFlawedHarness(flaw{}), testCase{name: "MadeUp", run: func(t *caseRun) {
		if tried++; tried > 1 {
			return
		}
		s := t.open()
		t.must("Expire", t.h.Harness.Faults().Expire(inner(s)))
		<-s.Done()
		t.alive(s)
	}})
	require.False(t, failed, text)
	require.Equal(t, 2, tried)
	require.Contains(t, text, "tried again, attempt 2")
}

func TestCaseThatIgnoresItsContext(t *testing.T) {
	release, left := make(chan struct{}), make(chan struct{})
	failed, text := try(t, func(t *caseRun) {
		defer close(left)
		t.step("called what hangs")
		<-release
	})
	close(release)
	<-left
	require.True(t, failed)
	require.Contains(t, text, "called what hangs")
	require.Contains(t, text, "ignores its context")
}

func TestCleanupsRunInReverseAfterFailure(t *testing.T) {
	var order []int
	failed, _ := try(t, func(t *caseRun) {
		t.Cleanup(func() { order = append(order, 1) })
		t.Cleanup(func() { order = append(order, 2); panic("in a cleanup") })
		t.FailNow()
	})
	require.True(t, failed)
	require.Equal(t, []int{2, 1}, order)
}

func TestFaultThatIsUnsupportedIsVoid(t *testing.T) {
	failed, text := try(t, func(t *caseRun) { t.must("LoseLeader", t.h.Faults().LoseLeader()) })
	require.True(t, failed)
	require.Contains(t, text, "void")
	require.Contains(t, text, ErrUnsupported.Error())
}

// An adapter that is late once may stand on a busy machine.
func TestPunctual(t *testing.T) {
	attempts := func(late ...time.Duration) (failed bool, text string) {
		return try(t, func(t *caseRun) {
			t.punctual("Done", func() time.Duration {
				next := late[0]
				late = late[1:]
				return next
			})
		})
	}
	failed, _ := attempts(time.Second, time.Second, -time.Millisecond)
	require.False(t, failed)
	failed, text := attempts(time.Second, 2*time.Second, 3*time.Second)
	require.True(t, failed)
	require.Contains(t, text, "Done was closed after Deadline in each of 3 attempts: [1s 2s 3s]")
}

// The context of a case ends with its time.
func TestCaseHasItsOwnTime(t *testing.T) {
	start := time.Now()
	failed, _ := try(t, func(t *caseRun) {
		<-t.ctx.Done()
		if t.ctx.Err() != context.DeadlineExceeded {
			t.fatalf("%v", t.ctx.Err())
		}
	})
	require.False(t, failed)
	require.Less(t, time.Since(start), 10*time.Second)
}
