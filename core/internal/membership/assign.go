package membership

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/strategy"
)

// assign asks the sharding strategy, which may be the program's own. It fails where that panics, or has no answer. What
// is wrong with an answer is told, once for as long as it is the same: an item that two instances get has one owner
// all the same, one that none gets has none, and what nobody has asked for counts for nothing.
func (m *Member) assign(s *settings.Settings, in strategy.Input) (map[string][]int, error) {
	assigned, err := answerOf(s.Strategy, in)
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

// answerOf calls a strategy, on a goroutine of its own that ends with the call: whatever it does there ends no task.
func answerOf(s strategy.Strategy, in strategy.Input) (assigned strategy.Assignment, err error) {
	err = places.ErrGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = &places.PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		if assigned, err = s.Assign(in), nil; assigned == nil {
			err = errNoAnswer
		}
	}()
	<-done
	return assigned, err
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
