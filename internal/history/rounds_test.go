package history

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func call(n int, who, instance string, due, attempt int) Record {
	session := map[string]string{"w1": "s1", "w2": "s2"}[who]
	return at(n, Record{
		Kind: Called, Who: who, Job: "a", Instance: instance, Session: session, Due: wall(due), Count: attempt, Reason: AfterAll,
	})
}

// heard is a sound history in which a listener is called for each round.
func heard(edit func(h []Record) []Record) []Record {
	h := sound()
	for due := 1000; due <= 5000; due += 1000 {
		h = append(h, call(due+40, "w1", "i1", due, 1))
	}
	if edit != nil {
		h = edit(h)
	}
	return h
}

func TestTheRulesOfRounds(t *testing.T) {
	called := func(due int) func(Record) bool {
		return func(r Record) bool { return r.Kind == Called && r.Due.Equal(wall(due)) }
	}
	add := func(more ...Record) func([]Record) []Record {
		return func(h []Record) []Record { return append(h, more...) }
	}
	died := at(3060, Record{Kind: Crashed, Who: "driver", Of: "w1"})
	for name, c := range map[string]struct {
		history []Record
		broken  bool
	}{
		"sound":                                  {heard(nil), false},
		"called twice":                           {heard(add(call(3050, "w2", "i2", 3000, 1))), true},
		"called again while the first one lives": {heard(add(call(3080, "w2", "i2", 3000, 2))), true},
		"called again after the first one's death": {heard(add(died, call(3080, "w2", "i2", 3000, 2))), false},
		"called again twice":                       {heard(add(died, call(3080, "w2", "i2", 3000, 2), call(3090, "w2", "i2", 3000, 2))), true},
		"in another order": {heard(func(h []Record) []Record {
			return append(without(h, called(2000)), call(3060, "w1", "i1", 2000, 1))
		}), true},
		"while an item runs": {heard(func(h []Record) []Record {
			return append(without(h, called(3000)), call(3015, "w1", "i1", 3000, 1))
		}), true},
		"before an item runs": {heard(func(h []Record) []Record {
			return append(without(h, called(3000)), call(2500, "w1", "i1", 3000, 1))
		}), true},
		"with the next round": {heard(func(h []Record) []Record { return without(h, called(3000)) }), false},
		"never": {heard(func(h []Record) []Record {
			return slices.DeleteFunc(h, func(r Record) bool { return r.Kind == Called && !r.Due.Before(wall(4000)) })
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			rules := strict
			rules.Round, rules.Calm = 1500*time.Millisecond, time.Millisecond
			got := Check(c.history, rules)
			require.Equal(t, c.broken, got.Broken[Rounds] > 0, "%v", got.Violations)
		})
	}
}
