package history

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var dawn = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ms is a common time; wall is the same by the wall clock.
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func wall(n int) time.Time { return dawn.Add(ms(n)) }

const (
	everySecond      = "@every 1s"
	everyThreeHalves = "@every 1.5s"
	everyTwo         = "@every 2s"
	neverAgain       = "never"
	after300ms       = "@delay 300ms"
)

func timetable(s Schedule) (Timetable, error) {
	switch s.Cron {
	case everySecond, everyThreeHalves, everyTwo:
		d, _ := time.ParseDuration(strings.TrimPrefix(s.Cron, "@every "))
		return Timetable{Next: func(after time.Time) (time.Time, bool) { return after.Truncate(d).Add(d), true }}, nil
	case after300ms:
		return Timetable{Delay: ms(300)}, nil
	case neverAgain:
		return Timetable{Next: func(time.Time) (time.Time, bool) { return time.Time{}, false }}, nil
	}
	return Timetable{}, errors.New("not a schedule of this test")
}

var strict = Rules{
	Timetable: timetable,
	Settle:    ms(500), Owned: ms(1000), Led: ms(1000), Changed: ms(1000),
	Late: ms(200), Again: ms(300), Cancel: ms(100), Tell: ms(500),
}

// at fills in the times.
func at(n int, r Record) Record {
	r.At, r.Wall = ms(n), wall(n)
	if r.At == 0 {
		r.At = 1
	}
	return r
}

// ran is one run of an item by w1 in life i1, whole.
func ran(item, due int) []Record { return ranBy("w1", "i1", "s1", item, due, due+10) }

func ranBy(who, instance, session string, item, due, entered int) []Record {
	r := Record{
		Kind: Entered, Who: who, Instance: instance, Session: session, Deadline: ms(entered + 2000), Job: "a",
		Epoch: 1, Total: 2, Item: item, Due: wall(due), Fence: int64(entered),
	}
	back, ended := r, r
	back.Kind, back.Deadline, back.Fence = Returned, 0, 0
	ended.Kind, ended.Deadline, ended.Fence, ended.Session = Ended, 0, 0, ""
	return []Record{at(entered, r), at(entered+10, back), at(entered+20, ended)}
}

// ranAhead is a run by w1's clock, which runs ahead.
func ranAhead(item, due, entered int) []Record {
	h := ranBy("w1", "i1", "s1", item, due, entered)
	for i := range h {
		h[i].Wall = wall(due + 10)
	}
	return h
}

func ahead(when int) Record {
	return at(when, Record{Kind: ClockSet, Who: "w1", Of: "w1", Took: 4 * time.Second})
}

// ranLong is a run of item 0 that goes on until an instant.
func ranLong(due, until int) []Record {
	h := ran(0, due)
	h[1], h[2] = at(until, h[1]), at(until+10, h[2])
	return h
}

// sound is a history without a fault: two processes, of which the first owns both items
// of job a; fires at 1, 2, 3, 4 and 5 s, then nothing more.
func sound() []Record {
	h := []Record{
		at(100, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2}}),
		at(200, Record{Kind: Opened, Who: "w1", Session: "s1", Deadline: ms(2200)}),
		at(210, Record{Kind: Registered, Who: "w1", Job: "a", Instance: "i1", Session: "s1"}),
		at(200, Record{Kind: Opened, Who: "w2", Session: "s2", Deadline: ms(2200)}),
		at(220, Record{Kind: Registered, Who: "w2", Job: "a", Instance: "i2", Session: "s2"}),
		at(300, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 1, Cron: everySecond, Since: wall(290)}}),
		at(300, Record{Kind: SawBase, Who: "observer", Job: "a", Base: &Base{Epoch: 1, To: 2, Through: wall(290)}}),
		at(300, Record{Kind: Started, Who: "w1", Job: "a", Instance: "i1"}),
		at(300, Record{Kind: Started, Who: "w2", Job: "a", Instance: "i2"}),
		at(310, Record{Kind: Led, Who: "w1", Job: "a", Of: "i1", Self: true}),
		at(320, Record{Kind: Owns, Who: "w1", Job: "a", Instance: "i1", Items: []int{0, 1}, Total: 2}),
	}
	for due := 1000; due <= 5000; due += 1000 {
		h = append(h, ran(0, due)...)
		h = append(h, ran(1, due)...)
	}
	return append(
		h,
		at(5500, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 2, Cron: neverAgain, Since: wall(5400)}}),
		at(9000, Record{Kind: Alive, Who: "w1", Session: "s1", Deadline: ms(11000)}),
		at(9000, Record{Kind: Alive, Who: "w2", Session: "s2", Deadline: ms(11000)}),
		at(9500, quiet()),
	)
}

func quiet() Record {
	return Record{Kind: Quiet, Who: "observer", Job: "a", Snapshot: &Snapshot{
		Instances: []string{"i1", "i2"}, Lives: []string{"i1", "i2"}, Leader: "i1", Term: "i1",
		Ledgers: []Ledger{
			{Instance: "i1", Epoch: 1, Total: 2, Items: []Holding{{Item: 0, Through: wall(5000)}, {Item: 1, Through: wall(5000)}}},
			{Instance: "i2", Epoch: 1, Total: 2},
		},
	}}
}

// without leaves out the records that match.
func without(h []Record, match func(r Record) bool) []Record {
	var kept []Record
	for _, r := range h {
		if !match(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// of matches a kind, an item and a due time.
func of(k Kind, item, due int) func(Record) bool {
	return func(r Record) bool { return r.Kind == k && r.Item == item && r.Due.Equal(wall(due)) }
}

// fireOf matches all of one fire of an item.
func fireOf(item, due int) func(Record) bool {
	return func(r Record) bool { return r.Item == item && r.Due.Equal(wall(due)) }
}

// change edits the records that match.
func change(h []Record, match func(Record) bool, edit func(*Record)) []Record {
	h = append([]Record(nil), h...)
	for i := range h {
		if match(h[i]) {
			edit(&h[i])
		}
	}
	return h
}

// crash kills w1 at an instant: what it wrote later is left out, its life is seen gone
// 2 s later, and w2 owns and runs what is left.
func crash(died int, owned int) []Record {
	h := without(sound(), func(r Record) bool {
		return r.At > ms(died) && (r.Who == "w1" || r.Kind == Quiet) || r.Kind == Alive && r.Who == "w1"
	})
	h = append(
		h,
		at(died, Record{Kind: Crashed, Who: "driver", Of: "w1"}),
		at(died+2000, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i1", Node: Life}),
		at(died+2100, Record{Kind: Led, Who: "w2", Job: "a", Of: "i2", Self: true}),
		at(owned, Record{Kind: Owns, Who: "w2", Job: "a", Instance: "i2", Items: []int{0, 1}, Total: 2}),
	)
	for due := (died/1000 + 1) * 1000; due <= 5000; due += 1000 {
		for item := range 2 {
			h = append(h, ranBy("w2", "i2", "s2", item, due, max(due+10, died+2200+due/100))...)
		}
	}
	q := quiet()
	q.Snapshot.Lives, q.Snapshot.Instances, q.Snapshot.Leader, q.Snapshot.Term = []string{"i2"}, []string{"i2"}, "i2", "i2"
	q.Snapshot.Ledgers = []Ledger{{Instance: "i2", Epoch: 1, Total: 2, Items: q.Snapshot.Ledgers[0].Items}}
	return append(h, at(9500, q))
}

func skip(n, item, first, due, count int) Record {
	return at(n, Record{
		Kind: Skipped, Who: "w1", Job: "a", Epoch: 1, Items: []int{item}, First: wall(first), Due: wall(due), Count: count, Reason: "disabled",
	})
}

func fold(n, item, first, due, count, into int) Record {
	return at(n, Record{
		Kind: Folded, Who: "w1", Job: "a", Epoch: 1, Items: []int{item}, First: wall(first), Due: wall(due), Count: count, Into: wall(into),
	})
}

// late is a history in which w1 does not hear before 3 s that from 1.1 s on a job is due at each second and
// a half. Its item 1 ran by the schedule before; what it told of item 0 is given.
func late(told Record) []Record {
	h := without(sound(), func(r Record) bool {
		return !r.Due.IsZero() && (r.Due.After(wall(3000)) || r.Item == 0 && r.Due.Before(wall(3000)))
	})
	h = append(h,
		at(2900, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 2, Cron: everyThreeHalves, Since: wall(1100)}}),
		at(3600, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 3, Cron: neverAgain, Since: wall(3500)}}),
		skip(3060, 0, 1500, 1500, 1), skip(3060, 1, 1500, 1500, 1), told)
	return without(h, func(r Record) bool {
		return r.Kind == SawSchedule && r.Schedule.N == 2 && r.Schedule.Cron == neverAgain
	})
}

// under is a history of a job with a policy for missed fires.
func under(policy string, h []Record) []Record {
	return change(h, func(r Record) bool { return r.Kind == Configured }, func(r *Record) {
		c := *r.Config
		c.Misfire = policy
		r.Config = &c
	})
}

func cutRecord(n, item, due int) Record {
	return at(n, Record{Kind: Cut, Who: "w2", Job: "a", Epoch: 1, Item: item, Due: wall(due), Of: "i1"})
}

// snapshot edits the quiescence.
func snapshot(edit func(*Snapshot)) []Record {
	h := without(sound(), func(r Record) bool { return r.Kind == Quiet })
	q := quiet()
	edit(q.Snapshot)
	return append(h, at(9500, q))
}

// lost is a sound history in which w1's run of item 0 at 5 s goes on until its session,
// lost at 6.9 s, is past its Deadline of 7 s; w2 takes over.
func lost(cancelled, returned, next int) []Record {
	h := without(sound(), fireOf(0, 5000))
	h = without(h, func(r Record) bool { return r.Kind == Quiet || r.Kind == Alive && r.Who == "w1" })
	h = change(h, func(r Record) bool { return r.Kind == Entered && r.Who == "w1" }, func(r *Record) { r.Deadline = min(r.Deadline, ms(7000)) })
	run := ranBy("w1", "i1", "s1", 0, 5000, 5010)
	run[0].Deadline = ms(7000)
	cancel := run[1]
	cancel.Kind = Cancelled
	h = append(
		h, run[0], at(cancelled, cancel), at(returned, run[1]),
		at(6900, Record{Kind: Lost, Who: "w1", Session: "s1", Deadline: ms(7000), Err: "session lost"}),
		at(7100, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i1", Node: Life}),
		at(7200, Record{Kind: Led, Who: "w2", Job: "a", Of: "i2", Self: true}),
		at(7300, Record{Kind: Owns, Who: "w2", Job: "a", Instance: "i2", Items: []int{0, 1}, Total: 2}),
		cutRecord(7300, 0, 5000),
		at(6000, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 2, Cron: everyTwo, Since: wall(5400)}}),
		at(7900, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 3, Cron: neverAgain, Since: wall(7800)}}),
	)
	h = without(h, func(r Record) bool {
		return r.Kind == SawSchedule && r.Schedule.N == 2 && r.Schedule.Cron == neverAgain
	})
	h = append(h, ranBy("w2", "i2", "s2", 0, 6000, next)...)
	h = append(h, ranBy("w2", "i2", "s2", 1, 6000, 7400)...)
	q := quiet()
	q.Snapshot.Lives, q.Snapshot.Leader, q.Snapshot.Term = []string{"i2"}, "i2", "i2"
	q.Snapshot.Ledgers[0].Instance = "i2"
	q.Snapshot.Ledgers = q.Snapshot.Ledgers[:1]
	return append(h, at(9500, q))
}

func TestASoundHistory(t *testing.T) {
	got := Check(sound(), strict)
	require.Empty(t, got.Violations)
	require.Equal(t, 10, got.Tally.Runs)
	require.Equal(t, 10, got.Tally.Due)
	require.Equal(t, 10, got.Tally.Ended)
	require.Equal(t, 8, got.Tally.Judged[Late]) // not right after the configuration
	require.Len(t, got.Tally.Lateness, 8)
}

// Each invariant: histories that hold it, and beside them such that break it.
func TestInvariants(t *testing.T) {
	fault := func(from, to int) []Record {
		return []Record{
			at(from, Record{Kind: FaultBegun, Who: "driver", Fault: "cut", Of: "w1", Disturbs: true}),
			at(to, Record{Kind: FaultEnded, Who: "driver", Fault: "cut", Of: "w1", Count: 2}),
		}
	}
	for _, tc := range []struct {
		name    string
		history []Record
		rules   func(*Rules)
		want    map[Invariant]int
	}{
		// No two live owners run one item.
		{name: "another instance, one after the other", history: append(without(sound(), fireOf(0, 3000)), ranBy("w2", "i2", "s2", 0, 3000, 3010)...)},
		{
			name:    "another instance before the first has returned",
			history: append(change(without(sound(), fireOf(0, 4000)), of(Returned, 0, 3000), func(r *Record) { *r = at(4100, *r) }), ranBy("w2", "i2", "s2", 0, 4000, 4010)...),
			want:    map[Invariant]int{Overlap: 1, Outcome: 1}, // it was told as ended before it returned
		},
		{
			name:    "the same instance before the first has returned",
			history: change(change(sound(), of(Returned, 0, 3000), func(r *Record) { *r = at(4011, *r) }), of(Ended, 0, 3000), func(r *Record) { *r = at(4012, *r) }),
			want:    map[Invariant]int{Overlap: 1},
		},
		{name: "a function that outlives its session's Deadline", history: lost(7050, 7600, 7350), rules: func(r *Rules) { r.Late = 0 }},
		{name: "its item is begun by another before that Deadline", history: lost(6900, 7600, 6950), rules: func(r *Rules) { r.Late = 0 }},
		{
			name: "and it had ended the session itself",
			history: append(lost(6900, 7600, 6950),
				at(6905, Record{Kind: Closing, Who: "w1", Session: "s1"})),
			rules: func(r *Rules) { r.Late = 0 },
			want:  map[Invariant]int{Overlap: 1},
		},
		{
			name: "items of another total while one of the old total runs",
			history: append(change(change(sound(), of(Returned, 0, 5000), func(r *Record) { *r = at(6100, *r) }), of(Ended, 0, 5000), func(r *Record) { *r = at(6110, *r) }),
				append(change(ranBy("w2", "i2", "s2", 1, 6000, 6010), func(Record) bool { return true }, func(r *Record) { r.Epoch, r.Total = 2, 3 }),
					at(5100, Record{Kind: SawBase, Who: "observer", Job: "a", Base: &Base{Epoch: 2, From: 2, To: 3, Through: wall(5050)}}))...),
			rules: func(r *Rules) { r.Changed = 0 },             // no configuration says so
			want:  map[Invariant]int{Overlap: 1, Quiescence: 3}, // nobody owns items of the new total
		},

		// Fences.
		{name: "a fence that is not above", history: change(sound(), of(Entered, 0, 3000), func(r *Record) { r.Fence = 2010 }), want: map[Invariant]int{Fences: 1}},
		{
			name: "a fence that is not above, of a process that was stopped on its way in",
			history: append(change(sound(), of(Entered, 0, 3000), func(r *Record) { r.Fence, r.Deadline = 2010, ms(3005) }),
				at(3002, Record{Kind: Paused, Who: "driver", Of: "w1"}), at(3008, Record{Kind: Resumed, Who: "driver", Of: "w1"})),
		},
		{
			name: "a fence that is not above, of a process that was stopped and is within its Deadline",
			history: append(change(sound(), of(Entered, 0, 3000), func(r *Record) { r.Fence = 2010 }),
				at(3002, Record{Kind: Paused, Who: "driver", Of: "w1"}), at(3008, Record{Kind: Resumed, Who: "driver", Of: "w1"})),
			want: map[Invariant]int{Fences: 1},
		},
		{name: "no fence", history: change(sound(), of(Entered, 0, 3000), func(r *Record) { r.Fence = 0 }), want: map[Invariant]int{Fences: 1}},

		// Outcomes.
		{name: "skipped, told twice", history: append(without(sound(), fireOf(0, 3000)), skip(3010, 0, 3000, 3000, 1), skip(3500, 0, 3000, 3000, 1))},
		{name: "skipped and entered", history: append(sound(), skip(3500, 0, 3000, 3000, 1)), want: map[Invariant]int{Outcome: 2}},
		{name: "skipped in bulk", history: append(without(without(sound(), fireOf(0, 3000)), fireOf(0, 4000)), skip(4500, 0, 3000, 4000, 2))},
		{
			name:    "skipped in bulk with a wrong count",
			history: append(without(without(sound(), fireOf(0, 3000)), fireOf(0, 4000)), skip(4500, 0, 3000, 4000, 3)),
			want:    map[Invariant]int{Outcome: 1},
		},
		{name: "entered twice", history: append(sound(), ranBy("w2", "i2", "s2", 0, 3000, 3100)[:2]...), want: map[Invariant]int{Outcome: 1}},
		{name: "returned, and nothing told", history: without(sound(), of(Ended, 0, 3000)), want: map[Invariant]int{Outcome: 1}},
		{
			name:    "returned, and nothing told until its life broke much later",
			history: without(crash(4035, 5100), of(Ended, 0, 3000)),
			want:    map[Invariant]int{Outcome: 1},
		},
		{
			name:    "never returned, and nothing told",
			history: without(without(sound(), of(Ended, 0, 5000)), of(Returned, 0, 5000)),
			want:    map[Invariant]int{Outcome: 1},
		},
		{name: "told as ended, never entered", history: without(sound(), of(Entered, 0, 3000)), want: map[Invariant]int{Outcome: 1}},
		{name: "told as ended twice", history: append(sound(), ran(0, 3000)[2]), want: map[Invariant]int{Outcome: 1}},
		{name: "cut by a crash, told twice", history: append(crash(3015, 5100), cutRecord(5100, 0, 3000), cutRecord(5200, 0, 3000), cutRecord(5200, 1, 3000))},
		{name: "cut by a crash, and not told", history: append(crash(3015, 5100), cutRecord(5100, 0, 3000)), want: map[Invariant]int{Outcome: 1}},
		{name: "crashed between the return and the telling", history: crash(3025, 5100)},
		{name: "cut while its life stands", history: append(without(sound(), of(Ended, 0, 3000)), cutRecord(3500, 0, 3000)), want: map[Invariant]int{Outcome: 1}},
		{name: "cut and ended", history: append(crash(3035, 5100), cutRecord(5100, 0, 3000)), want: map[Invariant]int{Outcome: 1}},

		// Coverage.
		{name: "a fire lost", history: without(sound(), fireOf(1, 3000)), want: map[Invariant]int{Coverage: 1}},
		{
			name:    "a fire that no schedule had",
			history: append(sound(), ranBy("w1", "i1", "s1", 0, 3500, 3510)...),
			want:    map[Invariant]int{Coverage: 1},
		},
		{
			name:    "an item that its epoch did not have",
			history: append(sound(), ranBy("w1", "i1", "s1", 2, 3000, 3010)...),
			want:    map[Invariant]int{Coverage: 1},
		},
		{name: "a fire of the schedule before, by one who had not heard", history: append(sound(), ranBy("w1", "i1", "s1", 0, 6000, 6010)...)},
		{
			name: "missed fires that are counted by the schedule before",
			history: append(sound(), at(7010, Record{
				Kind: Skipped, Who: "w1", Job: "a", Epoch: 1, Items: []int{0}, First: wall(6000), Due: wall(7000), Count: 2, Reason: "missed",
			})),
		},
		{
			name: "by one who should have heard of the next",
			history: append(sound(), at(8010, Record{
				Kind: Skipped, Who: "w1", Job: "a", Epoch: 1, Items: []int{0}, First: wall(6000), Due: wall(7000), Count: 2, Reason: "missed",
			})),
			want: map[Invariant]int{Outcome: 1},
		},
		{
			name: "and that are counted by none",
			history: append(sound(), at(7010, Record{
				Kind: Skipped, Who: "w1", Job: "a", Epoch: 1, Items: []int{0}, First: wall(6000), Due: wall(7000), Count: 3, Reason: "missed",
			})),
			want: map[Invariant]int{Outcome: 1},
		},
		{
			name:    "by one who should have",
			history: append(sound(), ranBy("w1", "i1", "s1", 0, 8000, 8010)...),
			want:    map[Invariant]int{Coverage: 1},
		},
		{
			name:    "by one who should have, but for a fault",
			history: append(sound(), append(ranBy("w1", "i1", "s1", 0, 8000, 8010), fault(5400, 6500)...)...),
		},
		{
			name:    "by one who should have, since the fault was over",
			history: append(sound(), append(ranBy("w1", "i1", "s1", 0, 8000, 8010), fault(3500, 5500)...)...),
			want:    map[Invariant]int{Coverage: 1},
		},
		{
			name:    "by one whose clock was set ahead, before the change",
			history: append(change(sound(), fireOf(0, 5000), func(r *Record) { r.Due, r.Wall = wall(9000), wall(9010) }), ahead(4000)),
			want:    map[Invariant]int{Coverage: 1}, // the fire at 5000 is not told
		},
		{
			name:    "by one whose clock was set ahead only later",
			history: append(change(sound(), fireOf(0, 5000), func(r *Record) { r.Due, r.Wall = wall(9000), wall(9010) }), ahead(6000)),
			want:    map[Invariant]int{Coverage: 2},
		},
		{
			name:    "by one whose clock was set ahead, after the change",
			history: append(sound(), append(ranAhead(0, 9000, 8000), ahead(4000))...),
			want:    map[Invariant]int{Coverage: 1},
		},
		{
			name: "a smaller total",
			history: append(without(without(without(sound(), fireOf(1, 4000)), fireOf(1, 5000)), func(r Record) bool { return r.Kind == Quiet }),
				at(3200, Record{Kind: SawBase, Who: "observer", Job: "a", Base: &Base{Epoch: 2, From: 2, To: 1, Through: wall(3000)}})),
			rules: func(r *Rules) { r.Timetable, r.Changed = nil, 0 },
		},
		{
			name: "fires of the old epoch after its end",
			history: append(sound(),
				at(4200, Record{Kind: SawBase, Who: "observer", Job: "a", Base: &Base{Epoch: 2, From: 2, To: 2, Through: wall(4000)}})),
			want: map[Invariant]int{Coverage: 4, Quiescence: 2}, // two of epoch 2 are missing, two of epoch 1 are too many
		},

		// Quiescence.
		{name: "an item in two ledgers", history: snapshot(func(s *Snapshot) { s.Ledgers[1].Items = []Holding{{Item: 1}} }), want: map[Invariant]int{Quiescence: 1}},
		{name: "in two of different epochs", history: snapshot(func(s *Snapshot) {
			s.Ledgers[1].Epoch, s.Ledgers[1].Items = 0, []Holding{{Item: 1}}
		})},
		{name: "in none", history: snapshot(func(s *Snapshot) { s.Ledgers[0].Items = s.Ledgers[0].Items[:1] }), want: map[Invariant]int{Quiescence: 1}},
		{name: "a flag", history: snapshot(func(s *Snapshot) { s.Flags = []string{"processing"} }), want: map[Invariant]int{Quiescence: 1}},
		{name: "a running node", history: snapshot(func(s *Snapshot) { s.Running = map[int]string{0: "i1"} }), want: map[Invariant]int{Quiescence: 1}},
		{name: "a run in a ledger", history: snapshot(func(s *Snapshot) { s.Ledgers[0].Items[0].Run = wall(5000) }), want: map[Invariant]int{Quiescence: 1}},
		{name: "a run that is not due yet", history: snapshot(func(s *Snapshot) { s.Ledgers[0].Items[0].Run = wall(9900) })},
		{name: "one that is far ahead", history: snapshot(func(s *Snapshot) { s.Ledgers[0].Items[0].Run = wall(19500) }), want: map[Invariant]int{Quiescence: 1}},
		{
			name: "entered before it was due", history: append(without(sound(), func(r Record) bool { return r.Item == 1 && r.Due.Equal(wall(3000)) }),
				ranBy("w1", "i1", "s1", 1, 3000, 2700)...),
			want: map[Invariant]int{NotDue: 1},
		},
		{name: "a held ledger", history: snapshot(func(s *Snapshot) { s.Ledgers[0].Held = true }), want: map[Invariant]int{Quiescence: 1}},
		{name: "no leader", history: snapshot(func(s *Snapshot) { s.Leader = "" }), want: map[Invariant]int{Quiescence: 1}},
		{name: "no term", history: snapshot(func(s *Snapshot) { s.Term = "" }), want: map[Invariant]int{Quiescence: 1}},
		{name: "another's term", history: snapshot(func(s *Snapshot) { s.Term = "i2" }), want: map[Invariant]int{Quiescence: 1}},
		{name: "a dead leader", history: snapshot(func(s *Snapshot) { s.Leader, s.Term = "i0", "i0" }), want: map[Invariant]int{Quiescence: 1}},
		{name: "a dead life's ledger", history: snapshot(func(s *Snapshot) {
			s.Ledgers = append(s.Ledgers, Ledger{Instance: "i0", Items: []Holding{{Item: 0}}})
		}), want: map[Invariant]int{Quiescence: 1}},
		{
			name: "through falls",
			history: append(sound(), at(9600, func() Record {
				q := quiet()
				q.Snapshot.Ledgers[0].Items[1].Through = wall(4000)
				return q
			}())),
			want: map[Invariant]int{Cursor: 1},
		},

		// A life is not gone too early.
		{
			name:    "gone before its Deadline",
			history: append(sound(), at(6000, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: Life})),
			want:    map[Invariant]int{Early: 1},
		},
		{
			name: "gone as a paused server woke, which etcd does",
			history: append(sound(),
				at(5950, Record{Kind: FaultEnded, Who: "driver", Fault: PauseServer, Of: "server 1", Count: 1}),
				at(6000, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: Life})),
			rules: func(r *Rules) { r.Woke = time.Second },
		},
		{
			name: "gone too early, long after a paused server woke",
			history: append(sound(),
				at(4500, Record{Kind: FaultEnded, Who: "driver", Fault: PauseServer, Of: "server 1", Count: 1}),
				at(6000, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: Life})),
			rules: func(r *Rules) { r.Woke = time.Second },
			want:  map[Invariant]int{Early: 1},
		},
		{name: "gone because it stopped", history: append(sound(),
			at(5900, Record{Kind: Stopping, Who: "w2"}),
			at(6000, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: Life}))},
		{name: "gone because it left", history: append(sound(),
			at(5900, Record{Kind: Leaving, Who: "w2", Job: "a", Instance: "i2"}),
			at(6000, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: Life}))},
		{name: "given up with nothing in it", history: append(sound(),
			at(5900, Record{Kind: Lost, Who: "w2", Session: "s2", Deadline: ms(11000)}),
			at(6000, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: Life}))},

		// Owned again, and led.
		{name: "owned again in time", history: crash(3035, 5800)},
		{name: "owned again late", history: crash(3035, 6200), want: map[Invariant]int{Owned: 2}},
		{name: "late, under a fault", history: append(crash(3035, 6200), fault(5500, 5600)...)},
		{
			name:    "led late",
			history: change(crash(3035, 5100), func(r Record) bool { return r.Kind == Led && r.Who == "w2" }, func(r *Record) { *r = at(6200, *r) }),
			want:    map[Invariant]int{Leader: 1},
		},
		{
			name: "led late, as the other had been shut down",
			history: append(change(crash(3035, 5100), func(r Record) bool { return r.Kind == Led && r.Who == "w2" }, func(r *Record) { *r = at(6200, *r) }),
				at(2900, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: InstanceNode})),
		},
		{
			name: "led late, although the other had only seemed to be shut down",
			history: append(change(crash(3035, 5100), func(r Record) bool { return r.Kind == Led && r.Who == "w2" }, func(r *Record) { *r = at(6200, *r) }),
				at(2900, Record{Kind: Gone, Who: "observer", Job: "a", Instance: "i2", Node: InstanceNode}),
				at(2920, Record{Kind: Come, Who: "observer", Job: "a", Instance: "i2", Node: InstanceNode})),
			want: map[Invariant]int{Leader: 1},
		},

		// A changed total.
		{
			name: "a changed total in time",
			history: append(sound(),
				at(5600, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2}}),
				at(7600, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 3}}),
				at(7900, Record{Kind: Owns, Who: "w1", Job: "a", Instance: "i1", Items: []int{0, 1}, Total: 3})),
		},
		{
			name: "a changed total late",
			history: append(sound(),
				at(7600, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 1}}),
				at(8900, Record{Kind: Owns, Who: "w1", Job: "a", Instance: "i1", Items: []int{0}, Total: 1})),
			want: map[Invariant]int{Changed: 1},
		},

		// Lateness.
		{
			name:    "a late run",
			history: append(without(sound(), fireOf(0, 3000)), ranBy("w1", "i1", "s1", 0, 3000, 3300)...),
			want:    map[Invariant]int{Late: 1},
		},
		{
			name: "a late run behind a long one",
			history: append(append(without(without(sound(), fireOf(0, 3000)), fireOf(0, 2000)), ranBy("w1", "i1", "s1", 0, 3000, 3300)...),
				ranLong(2000, 3250)...),
		},
		{name: "a late run under a fault", history: append(append(without(sound(), fireOf(0, 3000)), ranBy("w1", "i1", "s1", 0, 3000, 3300)...), fault(3100, 3200)...)},

		{
			name: "a late run after nobody was up",
			history: change(append(without(sound(), fireOf(0, 3000)), ranBy("w1", "i1", "s1", 0, 3000, 3300)...),
				func(r Record) bool { return r.Kind == Started || r.Kind == Registered }, func(r *Record) { *r = at(3290, *r) }),
		},
		{
			name: "a late run, and nothing is made up",
			history: under("skip", append(append(without(without(sound(), fireOf(0, 3000)), fireOf(0, 2000)), ranBy("w1", "i1", "s1", 0, 3000, 3300)...),
				ranLong(2000, 3250)...)),
			rules: func(r *Rules) { r.Missed, r.Unmissed = 100*time.Millisecond, "skip" },
			want:  map[Invariant]int{Late: 1},
		},

		// Missed fires.
		{name: "folded", history: append(without(sound(), fireOf(0, 3000)), fold(3005, 0, 3000, 3000, 1, 4000))},
		{
			name:    "folded, and run",
			history: append(sound(), fold(3005, 0, 3000, 3000, 1, 4000)),
			want:    map[Invariant]int{Outcome: 2}, // entered, and ended
		},
		{
			name:    "folded, and told as skipped",
			history: append(without(sound(), fireOf(0, 3000)), fold(3005, 0, 3000, 3000, 1, 4000), skip(3006, 0, 3000, 3000, 1)),
			want:    map[Invariant]int{Outcome: 1},
		},
		{
			name:    "folded into two",
			history: append(without(sound(), fireOf(0, 3000)), fold(3005, 0, 3000, 3000, 1, 4000), fold(3006, 0, 3000, 3000, 1, 5000)),
			want:    map[Invariant]int{Outcome: 1},
		},
		{
			name:    "folded into an earlier one",
			history: append(without(sound(), fireOf(0, 3000)), fold(3005, 0, 3000, 3000, 1, 2000)),
			want:    map[Invariant]int{Outcome: 1},
		},
		{
			name: "folded into what is the next epoch's",
			history: append(change(without(sound(), fireOf(0, 3000)), func(Record) bool { return true }, func(r *Record) {
				if r.Due.After(wall(3500)) {
					r.Epoch = 2
				}
				if r.Kind == Quiet {
					r.Snapshot.Ledgers[0].Epoch = 2
				}
			}), fold(3005, 0, 3000, 3000, 1, 4000), at(3600, Record{Kind: SawBase, Who: "observer", Job: "a", Base: &Base{Epoch: 2, From: 2, To: 2, Through: wall(3500)}})),
		},
		{
			name:    "folded into what never ran",
			history: append(without(without(sound(), fireOf(0, 3000)), fireOf(0, 4000)), fold(3005, 0, 3000, 3000, 1, 4000)),
			want:    map[Invariant]int{Coverage: 2},
		},
		{
			name:    "folded under a policy that does not fold",
			history: under("skip", append(without(sound(), fireOf(0, 3000)), fold(3005, 0, 3000, 3000, 1, 4000))),
			rules: func(r *Rules) {
				r.MayTell = func(policy, reason string) bool { return policy != "skip" || reason != "folded" }
			},
			want: map[Invariant]int{Outcome: 1},
		},
		{name: "folded by the schedule before", history: late(fold(3050, 0, 1000, 2000, 2, 3000))},
		{
			name:    "and what the schedule in force had in between is not told",
			history: without(late(fold(3050, 0, 1000, 2000, 2, 3000)), func(r Record) bool { return r.Kind == Skipped && one(r.Items) == 0 }),
			want:    map[Invariant]int{Coverage: 1},
		},
		{
			name:    "folded by the schedule before, of which that is no fire",
			history: late(fold(3050, 0, 1500, 2000, 2, 3000)),
			want:    map[Invariant]int{Coverage: 1, Outcome: 2},
		},

		// The Deadline.
		{
			name:    "entered after its Deadline",
			history: change(sound(), of(Entered, 0, 3000), func(r *Record) { r.Deadline = r.At - 1 }),
			want:    map[Invariant]int{Deadline: 1},
		},
		{
			name: "stopped on its way in",
			history: append(change(sound(), of(Entered, 0, 3000), func(r *Record) { r.Deadline = ms(3005) }),
				at(3002, Record{Kind: Paused, Who: "driver", Of: "w1"}), at(3008, Record{Kind: Resumed, Who: "driver", Of: "w1"})),
		},
		{
			name: "entered after its Deadline, for a fire that came due while its process stood still",
			history: append(change(sound(), of(Entered, 0, 3000), func(r *Record) { r.Deadline = ms(2905) }),
				at(2900, Record{Kind: Paused, Who: "driver", Of: "w1"}), at(3008, Record{Kind: Resumed, Who: "driver", Of: "w1"})),
			want: map[Invariant]int{Deadline: 1},
		},
		{name: "uncancelled past its Deadline", history: lost(7150, 7600, 7350), rules: func(r *Rules) { r.Late = 0 }, want: map[Invariant]int{Deadline: 1}},
		{
			name: "uncancelled, as its process stood still",
			history: append(lost(7550, 7600, 7350),
				at(6500, Record{Kind: Paused, Who: "driver", Of: "w1"}), at(7500, Record{Kind: Resumed, Who: "driver", Of: "w1"})),
			rules: func(r *Rules) { r.Late = 0 },
		},

		// No job ends for good.
		{
			name:    "a job that failed",
			history: append(sound(), at(9200, Record{Kind: Stopped, Who: "w2", Job: "a", Instance: "i2", Err: "it is broken"})),
			want:    map[Invariant]int{Failed: 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rules := strict
			if tc.rules != nil {
				tc.rules(&rules)
			}
			got := Check(tc.history, rules)
			if tc.want == nil {
				tc.want = map[Invariant]int{}
			}
			if diff := cmp.Diff(tc.want, got.Broken); diff != "" {
				t.Errorf("broken (-want +got):\n%s%v", diff, got.Violations)
			}
		})
	}
}

// delayed is a history of a fixed delay of 300 ms, with one run later than it should be.
func delayed(gap int) []Record {
	h := change(sound(), func(r Record) bool { return r.Kind == Configured || r.Kind == SawSchedule && r.Schedule.N == 1 }, func(r *Record) {
		if r.Config != nil {
			r.Config = &Config{Cron: after300ms, Total: 2}
		} else {
			r.Schedule = &Schedule{N: 1, Cron: after300ms, Since: wall(290)}
		}
	})
	h = without(h, func(r Record) bool { return !r.Due.IsZero() })
	for item := range 2 {
		entered := 600
		for n := range 10 {
			h = append(h, ranBy("w1", "i1", "s1", item, entered, entered)...)
			if entered += 320; n == 5 && item == 1 {
				entered += gap
			}
		}
	}
	return append(without(h, func(r Record) bool { return r.Kind == SawSchedule && r.Schedule.N == 2 }),
		at(4000, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: neverAgain, Total: 2}}))
}

func TestAFixedDelayRunsAgain(t *testing.T) {
	rules := strict
	rules.Settle, rules.Changed = 0, 0
	got := Check(delayed(0), rules)
	require.Empty(t, got.Violations)
	require.Equal(t, 18, got.Tally.Judged[Coverage]) // the last of each item is still to come
	require.Equal(t, map[Invariant]int{Coverage: 1}, Check(delayed(400), rules).Broken)
}

// A schedule that the observer did not see is known by the one after it.
func TestAScheduleThatWasNotSeen(t *testing.T) {
	h := without(sound(), func(r Record) bool { return r.Kind == SawSchedule })
	second := Schedule{N: 2, Cron: everyTwo, Since: wall(2500)}
	h = append(h,
		at(300, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 1, Cron: everySecond}}),
		at(5500, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 3, Cron: neverAgain, Since: wall(5400), Before: &second}}))
	for _, due := range []int{3000, 5000} {
		for item := range 2 {
			h = without(h, fireOf(item, due))
		}
	}
	require.Empty(t, Check(h, strict).Violations)
	require.Equal(t, map[Invariant]int{Coverage: 1}, Check(without(h, fireOf(0, 4000)), strict).Broken)
	require.Equal(t, map[Invariant]int{Coverage: 1}, Check(append(h, ran(0, 5000)...), strict).Broken)
	h = append(without(h, func(r Record) bool { return r.Kind == SawSchedule && r.Schedule.N == 3 }),
		at(5500, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 3, Cron: neverAgain, Since: wall(5400)}}))
	require.Empty(t, Check(without(h, fireOf(0, 4000)), strict).Violations) // nobody knows
}

// A schedule that a leader whose clock was ahead put in force in a year never is, where another follows before; and the
// one before it ends with that.
func TestAScheduleThatNeverIsInForce(t *testing.T) {
	h := without(sound(), func(r Record) bool { return r.Kind == SawSchedule })
	h = append(h,
		at(300, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 1, Cron: everySecond}}),
		at(2600, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 2, Cron: neverAgain, Since: wall(31_536_000_000)}}),
		at(2700, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 3, Cron: everyTwo, Since: wall(2600)}}),
		at(5500, Record{Kind: SawSchedule, Who: "observer", Job: "a", Schedule: &Schedule{N: 4, Cron: neverAgain, Since: wall(5400)}}))
	for _, due := range []int{3000, 5000} {
		for item := range 2 {
			h = without(h, fireOf(item, due))
		}
	}
	require.Empty(t, Check(h, strict).Violations)
	require.Equal(t, map[Invariant]int{Coverage: 1}, Check(without(h, fireOf(0, 4000)), strict).Broken)
}

// Without an observer of the nodes, the driver's configurations say what was due.
func TestWithoutNodesInForce(t *testing.T) {
	h := without(sound(), func(r Record) bool { return r.Kind == SawSchedule || r.Kind == SawBase })
	h = change(h, func(Record) bool { return true }, func(r *Record) { r.Epoch = 0 })
	h = without(h, func(r Record) bool { return r.Kind == Quiet })
	h = append(h, at(5500, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: neverAgain, Total: 2}}))
	q := quiet()
	for i := range q.Snapshot.Ledgers {
		q.Snapshot.Ledgers[i].Epoch = 0
	}
	h = append(h, at(9500, q))
	rules := strict
	rules.Unsure = ms(1000)
	require.Empty(t, Check(h, rules).Violations)
	require.Equal(t, map[Invariant]int{Coverage: 1}, Check(without(h, fireOf(0, 2000)), rules).Broken)
	require.Empty(t, Check(without(h, fireOf(0, 5000)), rules).Violations) // nobody knows
}

// Without monitoring there is no record: another owner may run a fire again, and the same
// one once its clock was set back.
func TestWithoutMonitoring(t *testing.T) {
	h := change(sound(), func(r Record) bool { return r.Kind == Configured }, func(r *Record) {
		r.Config = &Config{Cron: everySecond, Total: 2, Unmonitored: true}
	})
	h = change(h, func(Record) bool { return true }, func(r *Record) { r.Fence = 0 })
	again := func(who, instance, session string) []Record {
		runs := ranBy(who, instance, session, 0, 3000, 3100)
		runs[0].Fence = 0
		return append(append([]Record(nil), h...), runs...)
	}
	require.Empty(t, Check(h, strict).Violations)
	require.Empty(t, Check(again("w2", "i2", "s2"), strict).Violations)
	require.Equal(t, map[Invariant]int{Outcome: 1}, Check(again("w1", "i1", "s1"), strict).Broken)
	set := at(3050, Record{Kind: ClockSet, Who: "w1", Of: "w1"})
	require.Empty(t, Check(append(again("w1", "i1", "s1"), set), strict).Violations)
}

// What a process has to do in a time it need not do while it stands still.
func TestAwake(t *testing.T) {
	p := process{pauses: []span{{ms(100), ms(200)}, {ms(201), ms(900)}, {ms(2000), never}}}
	for _, c := range [][3]int{{0, 50, 50}, {50, 40, 90}, {150, 700, 1599}, {50, 51, 201}, {50, 52, 901}, {250, 10, 910}, {950, 700, 1650}} {
		require.Equal(t, ms(c[2]), p.awake(ms(c[0]), ms(c[1])), "%v", c)
	}
	require.Equal(t, never, p.awake(ms(1990), ms(20)))
}

func TestAViolationShowsItsLines(t *testing.T) {
	got := Check(append(sound(), skip(3500, 0, 3000, 3000, 1)), strict)
	text := got.Violations[0].String()
	require.Contains(t, text, "a/0 epoch 1 due 12:00:03.000: told as ended and as skipped: disabled")
	require.Contains(t, text, "entered a/0 epoch 1 of 2 due 12:00:03.000 fence 3010 instance i1 session s1 deadline 5.010000")
	require.Contains(t, text, "skipped a items [0] epoch 1")
	require.NotContains(t, text, "a/1")
}

func TestViolationsAreCountedAndFewAreShown(t *testing.T) {
	h := sound()
	for due := 1000; due <= 5000; due += 1000 {
		h = without(h, fireOf(0, due))
	}
	rules := strict
	rules.Show = 2
	got := Check(h, rules)
	require.Equal(t, 5, got.Broken[Coverage])
	require.Len(t, got.Violations, 2)

	// What is excused hides nothing that is not.
	rules.Excuse = func(v Violation) string {
		if v.At < 4*time.Second {
			return "early"
		}
		return ""
	}
	got = Check(h, rules)
	require.Equal(t, map[string]int{"early": 3}, got.Excused)
	require.Equal(t, 2, got.Broken[Coverage])
	require.Len(t, got.Violations, 2)
}

// Whatever the records say, the checker comes back.
func FuzzCheck(f *testing.F) {
	for _, h := range [][]Record{sound(), crash(3015, 5100), lost(7050, 7600, 7350), delayed(0), snapshot(func(s *Snapshot) { s.Leader = "" })} {
		var b bytes.Buffer
		w := NewWriter(&b, "seed", func() (time.Duration, time.Time) { return 1, dawn })
		for _, r := range h {
			w.Write(r)
		}
		f.Add(b.Bytes(), uint16(0))
		f.Add(b.Bytes(), uint16(777))
	}
	f.Fuzz(func(_ *testing.T, text []byte, shuffle uint16) {
		records, _ := Read(bytes.NewReader(text))
		if len(records) > 200 {
			records = records[:200]
		}
		for i := range records { // mixes fields of different records
			other := records[(i*31+int(shuffle))%len(records)]
			switch (i + int(shuffle)) % 7 {
			case 1:
				records[i].Kind = other.Kind
			case 2:
				records[i].At = other.At
			case 3:
				records[i].Who, records[i].Instance = other.Who, other.Instance
			case 4:
				records[i].Item, records[i].Due = other.Item, other.Due
			}
		}
		rules := strict
		rules.Most = 10_000
		report := Check(records, rules)
		for _, v := range report.Violations {
			_ = v.String()
		}
		for _, r := range records {
			_ = fmt.Sprint(r.String())
		}
	})
}

// An epoch whose total nobody has configured for long: who leads has not heard of it.
func TestAnEpochOfATotalThatIsNotConfigured(t *testing.T) {
	epoch := func(to int) []Record {
		return append(sound(),
			at(4800, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 3}}),
			at(9000, Record{Kind: SawBase, Who: "observer", Job: "a", Base: &Base{Epoch: 2, From: 2, To: to, Through: wall(8900)}}))
	}
	rules := strict
	rules.Changed = 4 * time.Second
	blamed := func(h []Record) bool {
		return slices.ContainsFunc(Check(h, rules).Violations, func(v Violation) bool { return strings.Contains(v.Text, "an epoch of 2 items begins") })
	}
	require.False(t, blamed(epoch(3)))
	require.True(t, blamed(epoch(2)))
	rules.Changed = 5 * time.Second
	require.False(t, blamed(epoch(2)), "it was, just before")
	rules.Changed = 4 * time.Second
	for after, blame := range map[int]bool{500: false, 3000: true} {
		again := at(9000+after, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2}})
		require.Equal(t, blame, blamed(append(epoch(2), again)), "who configures tells it once that is acknowledged, %d ms later", after)
	}
}

// A base that somebody has deleted is made again: the epoch began where it was seen to begin first.
func TestABaseThatIsMadeAgain(t *testing.T) {
	again := at(4700, Record{Kind: SawBase, Who: "observer", Job: "a", Base: &Base{Epoch: 1, To: 2, Through: wall(4600)}})
	require.Empty(t, Check(append(sound(), again), strict).Violations)
	unseen := without(sound(), func(r Record) bool { return r.Kind == SawBase })
	require.NotEmpty(t, Check(append(unseen, again), strict).Violations, "what was due before is no epoch's")
}
