package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/strategy"
)

// assign asks the sharding strategy, which may be the program's own. It fails where that panics, or has no answer. What
// is wrong with an answer is told, once for as long as it is the same: an item that two instances get has one owner
// all the same, one that none gets has none, and what nobody has asked for counts for nothing.
func (m *Member) assign(s *settings.Settings, in strategy.Input) (map[string][]int, error) {
	assigned, err := m.answerOf(s, in)
	if err != nil {
		return nil, fmt.Errorf("the sharding strategy %q has no assignment: %w", s.Stored.JobShardingStrategyType, err)
	}
	wrong := ""
	if err := inOrder(assigned).Check(in); err != nil {
		wrong = err.Error()
	}
	m.mu.Lock()
	told := m.misassigned == wrong
	m.misassigned = wrong
	m.mu.Unlock()
	if wrong != "" && !told {
		m.warn(fmt.Sprintf("the sharding strategy %q gives a wrong answer: what it gives to nobody does not run", s.Stored.JobShardingStrategyType), errors.New(wrong))
	}
	return assigned, nil
}

var errNoAnswer = errors.New("it returned none")

// assignWait is how long a strategy may take until it is told that it is waited for.
const assignWait = 10 * time.Second

// answerOf calls a strategy, on a goroutine of its own that ends with the call: whatever it does there ends no task. One that
// does not return is waited for until the session ends, and holds up neither that end nor another job.
func (m *Member) answerOf(s *settings.Settings, in strategy.Input) (strategy.Assignment, error) {
	type answer struct {
		assigned strategy.Assignment
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		is := answer{err: places.ErrGoexit}
		defer func() {
			if v := recover(); v != nil {
				is.err = &places.PanicError{Value: v, Stack: debug.Stack()}
			}
			answers <- is
		}()
		if is = (answer{assigned: s.Strategy.Assign(in)}); is.assigned == nil {
			is.err = errNoAnswer
		}
	}()
	late := time.NewTimer(assignWait)
	defer late.Stop()
	for {
		select {
		case is := <-answers:
			return is.assigned, is.err
		case <-m.cfg.Session.Context.Done():
			return nil, context.Cause(m.cfg.Session.Context)
		case <-late.C:
			m.warn(fmt.Sprintf("the sharding strategy %q has not returned within %v: items stay where they are until it does",
				s.Stored.JobShardingStrategyType, assignWait), nil)
		}
	}
}

// inOrder is the same assignment with the items of each instance in order.
func inOrder(a strategy.Assignment) strategy.Assignment {
	sorted := maps.Clone(a)
	for id, items := range sorted {
		if !slices.IsSorted(items) {
			sorted[id] = slices.Sorted(slices.Values(items))
		}
	}
	return sorted
}
