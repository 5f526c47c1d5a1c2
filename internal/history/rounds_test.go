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
	early := func(h []Record) []Record { return append(without(h, called(3000)), call(2500, "w1", "i1", 3000, 1)) }
	loose := func(n int) Record {
		return at(n, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2}})
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
		"before an item runs":                                     {heard(early), true},
		"before an item runs that is bound to an instance":        {static(heard(early)), false},
		"before an item runs that was bound until just before":    {append(static(heard(early)), loose(2400)), false},
		"before an item runs, long after it was bound to anybody": {append(static(heard(early)), loose(2200)), true},
		"late, since an item is folded late": {heard(func(h []Record) []Record {
			h = without(without(h, called(3000)), called(4000))
			h = without(h, called(5000))
			fold := Record{Kind: Folded, Who: "w1", Job: "a", Epoch: 1, Items: []int{1}, First: wall(3000), Due: wall(4000), Count: 2, Into: wall(5000)}
			return append(h, at(5400, fold), call(5450, "w1", "i1", 5000, 1))
		}), false},
		"with the next round": {heard(func(h []Record) []Record { return without(h, called(3000)) }), false},
		"never, since nothing is recorded any more": {heard(func(h []Record) []Record {
			h = slices.DeleteFunc(h, func(r Record) bool { return r.Kind == Called && !r.Due.Before(wall(4000)) })
			return append(h, at(3900, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2, Unmonitored: true}}))
		}), false},
		"never": {heard(func(h []Record) []Record {
			return slices.DeleteFunc(h, func(r Record) bool { return r.Kind == Called && !r.Due.Before(wall(4000)) })
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			rules := strict
			rules.Round, rules.Calm, rules.Heard = 1500*time.Millisecond, time.Millisecond, 200*time.Millisecond
			got := Check(c.history, rules)
			require.Equal(t, c.broken, got.Broken[Rounds] > 0, "%v", got.Violations)
		})
	}
}

func before(n int, who, instance string, due int, answer *Record) []Record {
	c := call(n, who, instance, due, 1)
	c.Reason = BeforeAll
	if answer == nil {
		return []Record{c}
	}
	a := *answer
	a.Kind, a.Who, a.Job, a.Instance, a.Session, a.Due, a.Count, a.Reason = Answered, c.Who, c.Job, c.Instance, c.Session, c.Due, c.Count, c.Reason
	return []Record{c, a}
}

// barred is a sound history in which a listener is called before each round: functions are
// entered some milliseconds after that.
func barred(edit func(h []Record) []Record) []Record {
	h := sound()
	for due := 1000; due <= 5000; due += 1000 {
		answer := at(due, Record{})
		h = append(h, before(due, "w1", "i1", due, &answer)...)
	}
	if edit != nil {
		h = edit(h)
	}
	return h
}

func TestTheRulesOfTheBarrier(t *testing.T) {
	of := func(kind Kind, due int) func(Record) bool {
		return func(r Record) bool { return r.Kind == kind && r.Due.Equal(wall(due)) }
	}
	change := func(match func(Record) bool, to func(*Record)) func([]Record) []Record {
		return func(h []Record) []Record {
			for i := range h {
				if match(h[i]) {
					to(&h[i])
				}
			}
			return h
		}
	}
	refused := change(of(Answered, 3000), func(r *Record) { r.Err = "no" })
	failed := func(h []Record) []Record { // nobody refused, and nothing was entered
		h = without(without(h, of(Entered, 3000)), of(Returned, 3000))
		return change(of(Ended, 3000), func(r *Record) { r.Refused = true })(h)
	}
	answered := at(4000, Record{})
	joins := func(h []Record, n int) []Record { // nobody else listens
		h = slices.DeleteFunc(h, func(r Record) bool { return r.Kind == Called || r.Kind == Answered })
		h = append(h, before(5000, "w3", "i3", 5000, &Record{At: at(5000, Record{}).At})...)
		return append(h, at(n, Record{Kind: Registered, Who: "w3", Job: "a", Instance: "i3", Session: "s3"}))
	}
	for name, c := range map[string]struct {
		history []Record
		broken  bool
	}{
		"sound":               {barred(nil), false},
		"nobody was called":   {barred(func(h []Record) []Record { return without(without(h, of(Called, 3000)), of(Answered, 3000)) }), true},
		"it has not returned": {barred(change(of(Answered, 3000), func(r *Record) { r.At += 500 * time.Millisecond })), true},
		"it never does":       {barred(func(h []Record) []Record { return without(h, of(Answered, 3000)) }), true},
		"it was too slow":     {barred(change(of(Called, 3000), func(r *Record) { r.At -= 2 * time.Second })), false},
		"it refuses":          {barred(refused), true},
		"it refuses too late": {barred(change(of(Answered, 3000), func(r *Record) { r.Err, r.Slow = "no", true })), false},
		"its process stops, and it never does": {barred(func(h []Record) []Record {
			h = without(h, of(Answered, 3000))
			call := h[slices.IndexFunc(h, of(Called, 3000))]
			return append(h, Record{At: call.At, Who: call.Who, Kind: Stopping})
		}), false},
		"what is asked for": {barred(func(h []Record) []Record {
			return change(of(Entered, 3000), func(r *Record) { r.Request = 1 })(without(h, of(Answered, 3000)))
		}), false},
		"nothing is recorded": {barred(func(h []Record) []Record {
			return change(of(Entered, 3000), func(r *Record) { r.Fence = 0 })(without(h, of(Answered, 3000)))
		}), false},
		"monitoring ends meanwhile": {barred(func(h []Record) []Record {
			off := at(3001, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2, Unmonitored: true}})
			return append(without(h, of(Answered, 3000)), off)
		}), false},
		"called for a later one": {barred(func(h []Record) []Record {
			h = without(without(h, of(Called, 2000)), of(Answered, 2000))
			h = change(of(Called, 3000), func(r *Record) { r.At = at(2000, Record{}).At })(h)
			return change(of(Answered, 3000), func(r *Record) { r.At = at(2001, Record{}).At })(h)
		}), false},
		"all say that they waited": {barred(func(h []Record) []Record {
			h = without(h, of(Answered, 3000))
			for _, r := range h {
				if of(Entered, 3000)(r) {
					h = append(h, at(3010, Record{Kind: LateRound, Who: r.Who, Job: r.Job, Due: r.Due, Items: []int{r.Item}}))
				}
			}
			return h
		}), false},
		"one does not": {barred(func(h []Record) []Record {
			h = without(h, of(Answered, 3000))
			for _, r := range h {
				if of(Entered, 3000)(r) && r.Item != 0 {
					h = append(h, at(3010, Record{Kind: LateRound, Who: r.Who, Job: r.Job, Due: r.Due, Items: []int{r.Item}}))
				}
			}
			return h
		}), true},
		"who was called died": {barred(func(h []Record) []Record {
			return append(without(h, of(Answered, 3000)), at(2999, Record{Kind: Crashed, Who: "driver", Of: "w1"}))
		}), false},
		"who waited was killed": {barred(func(h []Record) []Record {
			return append(without(h, of(Answered, 3000)), at(3012, Record{Kind: Crashed, Who: "driver", Of: "w1"}))
		}), false},
		"and much later": {barred(func(h []Record) []Record {
			return append(without(h, of(Answered, 3000)), at(9400, Record{Kind: Crashed, Who: "driver", Of: "w1"}))
		}), true},
		"nobody listened yet": {barred(func(h []Record) []Record {
			return append(joins(h, 3500), before(4000, "w3", "i3", 4000, &answered)...)
		}), false},
		"somebody listened already": {barred(func(h []Record) []Record {
			return append(joins(h, 2500), before(4000, "w3", "i3", 4000, &answered)...)
		}), true},
		"an end without a refusal": {barred(change(of(Ended, 3000), func(r *Record) { r.Refused = true })), true},
		"ends for a refusal": {barred(func(h []Record) []Record {
			return failed(refused(h))
		}), false},
		"who had it fail was killed": {barred(func(h []Record) []Record {
			h = append(failed(h), at(3812, Record{Kind: Crashed, Who: "driver", Of: "w1"}))
			return append(h, at(3812, Record{Kind: Crashed, Who: "driver", Of: "w2"}))
		}), false},
		"and much later than that": {barred(func(h []Record) []Record {
			h = append(failed(h), at(9400, Record{Kind: Crashed, Who: "driver", Of: "w1"}))
			return append(h, at(9400, Record{Kind: Crashed, Who: "driver", Of: "w2"}))
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			rules := strict
			rules.Listen = time.Second
			got := Check(c.history, rules)
			require.Equal(t, c.broken, got.Broken[Barrier] > 0, "%v", got.Violations)
			if !c.broken {
				require.Zero(t, got.Broken[Outcome], "%v", got.Violations)
			}
		})
	}
}

// What failed for a late listener may be told by nobody, where its owner's life broke then; and
// where it did not, it is missing.
func TestAFireThatIsHeldUpMayGoUntold(t *testing.T) {
	mine := func(r Record) bool {
		return r.Due.Equal(wall(5000)) && r.Item == 1 && r.Kind != Called && r.Kind != Answered
	}
	late := at(5030, Record{Kind: LateRound, Who: "w1", Job: "a", Due: wall(5000), Items: []int{1}})
	lost := at(5040, Record{Kind: Lost, Who: "w1", Session: "s1", Err: "by the test"})
	for name, c := range map[string]struct {
		more   []Record
		broken bool
	}{
		"nothing is known":       {nil, true},
		"it was late":            {[]Record{late}, true},
		"its owner's life broke": {[]Record{lost}, true},
		"both":                   {[]Record{late, lost}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules := strict
			rules.Listen = time.Second
			h := append(without(barred(nil), mine), c.more...)
			got := Check(h, rules)
			require.Equal(t, c.broken, got.Broken[Coverage] > 0, "%v", got.Violations)

			before := func(r Record) bool { return mine(Record{Kind: r.Kind, Item: r.Item, Due: r.Due.Add(time.Second)}) }
			folded := at(4990, Record{
				Kind: Folded, Who: "w1", Job: "a", Epoch: 1, Items: []int{1}, First: wall(4000), Due: wall(4000), Count: 1, Into: wall(5000),
			})
			got = Check(append(without(h, before), folded), rules)
			require.Equal(t, c.broken, got.Broken[Coverage] > 0, "%v", got.Violations)
		})
	}
}
