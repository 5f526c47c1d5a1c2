package history

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asked is a sound history in which run 7 of both items was asked for as r1, ended well at item 0,
// and came too late for item 1; the last quiescence shows it.
func asked(edit func(h []Record, run *Asked) []Record) []Record {
	run := &Asked{
		Number: 7, Request: "r1", Epoch: 1, At: wall(2500), Items: []int{0, 1},
		Outcomes: []Outcomes{{Items: []int{0}, Outcome: succeeded}, {Items: []int{1}, Outcome: "refused"}},
	}
	h := append(sound(), at(2490, Record{Kind: Requested, Who: "driver", Job: "a", Of: "r1"}))
	more := ran(0, 2500)
	for i := range more {
		more[i].Request = 7
	}
	h = append(h, more...)
	if edit != nil {
		h = edit(h, run)
	}
	for i, r := range h {
		if r.Kind == Quiet {
			s := *r.Snapshot
			s.Asked = []Asked{*run}
			h[i].Snapshot = &s
		}
	}
	return h
}

func TestTheRulesOfRequests(t *testing.T) {
	of := func(kind Kind) func(Record) bool {
		return func(r Record) bool { return r.Kind == kind && r.Request == 7 }
	}
	outcome := func(item int, outcome ...string) func([]Record, *Asked) []Record {
		return func(h []Record, run *Asked) []Record {
			run.Outcomes = slices.Delete(slices.Clone(run.Outcomes), item, item+1)
			for _, o := range outcome {
				run.Outcomes = append(run.Outcomes, Outcomes{Items: []int{item}, Outcome: o})
			}
			return h
		}
	}
	unknown := func(h []Record, run *Asked) []Record {
		run.Number, run.Request = 8, "r8"
		return h
	}
	for name, c := range map[string]struct {
		edit   func([]Record, *Asked) []Record
		kept   time.Duration
		broken bool
	}{
		"sound":                       {nil, 0, false},
		"nobody answered":             {unknown, 0, true},
		"its answer is gone by now":   {unknown, time.Second, false},
		"an item without an outcome":  {outcome(1), 0, true},
		"an item with two":            {outcome(1, "refused", "expired"), 0, true},
		"refused, and entered":        {outcome(0, "refused"), 0, true},
		"failed, and ended well":      {outcome(0, failed), 0, true},
		"crashed, and told as ended":  {outcome(0, crashed), 0, true},
		"succeeded, and never called": {outcome(1, succeeded), 0, true},
		"nothing was accepted, and it has outcomes": {func(h []Record, run *Asked) []Record {
			run.Problem = "no such item"
			return h
		}, 0, true},
		"an outcome of an item that it did not want": {func(h []Record, run *Asked) []Record {
			run.Items = []int{0}
			return h
		}, 0, true},
		"crashed before its end was recorded": {func(h []Record, run *Asked) []Record {
			return without(outcome(0, crashed)(h, run), of(Ended))
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules := strict
			rules.Kept = c.kept
			got := Check(asked(c.edit), rules)
			require.Equal(t, c.broken, got.Broken[Requests] > 0, "%v", got.Violations)
		})
	}
}
