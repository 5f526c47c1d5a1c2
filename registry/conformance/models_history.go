package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/elasticron/elasticron/registry"
)

// An act is one call of one client as the client saw it.
type act struct {
	client   string
	key      string // the part of the history that it belongs to
	call     time.Duration
	ret      time.Duration
	in       any // of the model
	out      any // of the model; nil: the outcome is unknown, or it had not returned
	harmless bool
}

// unknown acts may take effect at any time after their call, or never.
func (a act) unknown() bool { return a.out == nil }

func (a act) String() string {
	ms := func(d time.Duration) string { return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 3, 64) }
	if a.unknown() {
		return fmt.Sprintf("%11s … %-11s %s: %v", ms(a.call), "?", a.client, a.in)
	}
	return fmt.Sprintf("%11s … %-11s %s: %v = %v", ms(a.call), ms(a.ret), a.client, a.in, a.out)
}

// A history is what the clients of a case have done and seen.
type history struct {
	*caseRun
	began time.Time

	mu   sync.Mutex
	acts []act
	hits map[string]int // by kind of fault
}

func newHistory(t *caseRun) *history {
	return &history{caseRun: t, began: time.Now(), hits: map[string]int{}}
}

func (h *history) now() time.Duration { return time.Since(h.began) }

// add records acts that have returned, or never will.
func (h *history) add(acts ...act) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acts = append(h.acts, acts...)
}

func (h *history) hit(kind string, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if yes {
		h.hits[kind]++
	}
}

// explained demands that for each key some order of its acts, each within its
// time, gives all that the clients saw.
func (h *history) explained(model porcupine.Model, kinds ...string) {
	h.step("%d calls under the faults %v", len(h.acts), h.hits)
	parts := map[string][]act{}
	for _, a := range h.acts {
		parts[a.key] = append(parts[a.key], a)
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		acts := parts[key]
		switch h.check(model, acts) {
		case porcupine.Unknown:
			h.fatalf("inconclusive: %d calls of %s were not decided within %v", len(acts), key, historyCheck)
		case porcupine.Illegal:
			h.unexplained(model, key, acts)
		}
	}
	for _, kind := range kinds {
		if h.hits[kind] == 0 {
			h.void("no fault of the kind %s has hit", kind)
		}
	}
}

// check asks porcupine. An unknown outcome is a call that never returns.
func (h *history) check(model porcupine.Model, acts []act) porcupine.CheckResult {
	ops := make([]porcupine.Operation, len(acts))
	for i, a := range acts {
		ops[i] = porcupine.Operation{Input: a.in, Output: a.out, Call: int64(a.call), Return: int64(a.ret)}
		if a.unknown() {
			ops[i].Return = math.MaxInt64
		}
	}
	limit := min(historyCheck, max(h.left()/2, time.Millisecond))
	return porcupine.CheckOperationsTimeout(model, ops, limit)
}

// unexplained fails with the shortest beginning of the history that has no order.
func (h *history) unexplained(model porcupine.Model, key string, acts []act) {
	byReturn := func(a, b act) int { return cmp.Compare(a.ret, b.ret) }
	known := slices.DeleteFunc(slices.Clone(acts), act.unknown)
	slices.SortFunc(known, byReturn)
	shortest := acts
	n, _ := slices.BinarySearchFunc(known, true, func(a act, _ bool) int {
		if h.check(model, until(acts, a.ret)) == porcupine.Illegal {
			return 0
		}
		return -1
	})
	last := "the last"
	if n < len(known) {
		shortest = until(acts, known[n].ret)
		last = strings.TrimSpace(known[n].String())
	}
	slices.SortFunc(shortest, func(a, b act) int { return cmp.Compare(a.call, b.call) })
	lines := make([]string, 0, historyListing+1)
	if more := len(shortest) - historyListing; more > 0 {
		lines = append(lines, fmt.Sprintf("… %d calls before", more))
		shortest = shortest[more:]
	}
	for _, a := range shortest {
		lines = append(lines, a.String())
	}
	h.fatalf("no order of the calls of %s explains %q; until it returned (milliseconds from call to return; ?: unknown or under way):\n  %s",
		key, last, strings.Join(lines, "\n  "))
}

// until is the history as it was known at one time.
func until(acts []act, end time.Duration) []act {
	var seen []act
	for _, a := range acts {
		switch {
		case a.call > end, a.ret > end && a.harmless:
			continue
		case a.ret > end:
			a.out = nil
		}
		seen = append(seen, a)
	}
	return seen
}

// An actor acts on sessions of its own, one after the other, and harms itself.
type actor struct {
	*history
	nr, round int
	name      string
	s         registry.Session
	dice      *rand.Rand // the same for every run
}

// run lets clients act side by side, each for so many rounds.
func (h *history) run(clients, rounds int, act func(c *actor)) {
	var wg sync.WaitGroup
	for nr := range clients {
		wg.Go(func() {
			c := &actor{history: h, nr: nr, name: fmt.Sprint("client ", nr), dice: rand.New(rand.NewPCG(firstSeed, uint64(nr)))}
			for c.round = 0; c.round < rounds && h.ctx.Err() == nil && !h.Failed(); c.round++ {
				if c.s == nil || c.s.Err() != nil {
					c.s = h.open()
				}
				act(c)
			}
		})
	}
	wg.Wait()
	if h.Failed() {
		h.FailNow()
	}
}

// harms are the faults of the clients of registers and commits, one a round.
var harms = []string{"AnswerLost", "none", "drop", "none", "RequestLost", "none", "swallowed answers", "none", "none", "swallowed requests", "none", "AnswerLost", "none"}

// harm is the fault of this round.
func (c *actor) harm() string { return harms[(c.round+3*c.nr)%len(harms)] }

// kindsOf are the faults that a history must have met.
func kindsOf() []string {
	return []string{"AnswerLost", "RequestLost", "drop", "swallowed answers", "swallowed requests"}
}

// under lets one call meet the fault of the round. ctx is short when no answer
// can come.
func (c *actor) under(kind string, call func(ctx context.Context)) {
	f := c.h.Faults()
	before := f.Hits(c.s)
	met, heal, err := func() bool { return f.Hits(c.s) > before }, func() {}, error(nil)
	ctx := c.ctx
	switch kind {
	case "AnswerLost":
		met, err = f.NextCommit(c.s, AnswerLost)
	case "RequestLost":
		met, err = f.NextCommit(c.s, RequestLost)
	case "drop":
		err = f.Drop(c.s)
	case "swallowed answers":
		heal, err = f.Blackhole(c.s, Answers)
	case "swallowed requests":
		heal, err = f.Blackhole(c.s, Requests)
	}
	if strings.HasPrefix(kind, "swallowed") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(c.ctx, c.h.SessionTimeout()/10)
		defer cancel()
	}
	if err != nil {
		if c.s.Err() == nil {
			c.errorf("void, nothing is proved: fault %s: %v", kind, err)
		}
		return
	}
	call(ctx)
	heal()
	c.hit(kind, met())
}

// outcome of a commit for a model: out when it is known, nil when it is not, and
// false when the commit was certainly not applied and says nothing.
func (c *actor) outcome(err error, done, refused any) (out any, tells bool) {
	switch ce := (*registry.CommitError)(nil); {
	case err == nil:
		return done, true
	case errors.As(err, &ce):
		return refused, true
	case errors.Is(err, registry.ErrUncertain):
		return nil, true
	case errors.Is(err, registry.ErrUnavailable), errors.Is(err, registry.ErrSessionLost),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil, false
	}
	c.errorf("%s: commit: %v; want one of ErrUncertain, ErrUnavailable, ErrSessionLost or a *CommitError", c.name, err)
	return nil, false
}

// reads syncs and reads; nothing when the service could not be reached. The time
// of the reads begins where Sync was called.
func (c *actor) reads(ctx context.Context, paths ...string) (nodes []registry.Node, call, ret time.Duration) {
	call = c.now()
	err := c.s.Sync(ctx)
	if err == nil {
		nodes, err = c.s.Get(ctx, paths...)
	}
	ret = c.now()
	switch {
	case err == nil && len(nodes) == len(paths):
	case err == nil:
		c.errorf("%s: Get of %d paths returned %d nodes", c.name, len(paths), len(nodes))
	case !errors.Is(err, registry.ErrUnavailable) && !errors.Is(err, registry.ErrSessionLost) && c.ctx.Err() == nil:
		c.errorf("%s: Sync and Get: %v; want ErrUnavailable or ErrSessionLost", c.name, err)
	}
	if err != nil || len(nodes) != len(paths) {
		return nil, call, ret
	}
	return nodes, call, ret
}
