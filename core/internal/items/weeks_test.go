package items

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// Weeks play instances of one job over weeks, without I/O: runs of all lengths, stalls,
// moves, crashes, nights in which nobody is up. It keeps the books of each fire.
type weeks struct {
	*testing.T
	*rand.Rand
	rule    misfire.Rule
	fires   *schedule.Schedule
	now, up time.Time
	total   int
	members []*owner
	books   []map[time.Time]string // by item
	count   map[string]int
}

// An owner is one instance with its ledger.
type owner struct {
	m       *Machine
	led     *ledger.Ledger
	running map[int]time.Time // until when
}

func (w *weeks) book(n int, due time.Time, what string) {
	if was := w.books[n][due.UTC()]; was != "" {
		w.Fatalf("item %d: %v is %s, and was %s", n, due, what, was)
	}
	w.books[n][due.UTC()] = what
	w.count[what]++
}

func (w *weeks) bookSkips(n int, skips []Skip) {
	for _, s := range skips {
		count, last := 0, s.First.Add(-1)
		for {
			due, ok := w.fires.Next(last)
			if !ok || due.After(s.Last) {
				break
			}
			w.book(n, due, string(toldAs(s)))
			last, count = due, count+1
		}
		if count != s.Count || !last.Equal(s.Last) {
			w.Fatalf("item %d: %+v", n, s)
		}
	}
}

// do is recorder and places of an owner: everything is committed at once.
func (w *weeks) do(o *owner, actions []Action) {
	for _, a := range actions {
		rec, _ := o.led.Get(a.Item)
		switch a.Kind {
		case Begin:
			w.prompt(a)
			w.bookSkips(a.Item, a.Skips)
			rec.Through, rec.Run = a.Due, a.Due
			o.led.Set(a.Item, rec)
			w.do(o, o.m.Begun(a.Item, a.Due, 1))
		case Run:
			require.True(w, o.m.Entered(a.Item, a.Due))
			w.book(a.Item, a.Due, "ran")
			length := time.Duration(w.IntN(300)) * time.Second
			switch w.IntN(40) {
			case 0:
				length *= 60
			case 1, 2, 3:
				length *= 10
			}
			o.running[a.Item] = w.now.Add(length)
		case End, GiveBack, Account:
			w.bookSkips(a.Item, a.Skips)
			rec.Through, rec.Run = later(rec.Through, a.Through), time.Time{}
			if next, ok := w.fires.Next(rec.Through); ok && w.books[a.Item][next.UTC()] != "" {
				w.Fatalf("item %d: %v has its outcome, and the record is at %v", a.Item, next, rec.Through)
			}
			o.led.Set(a.Item, rec)
			w.do(o, o.m.Committed(a.Item, rec.Through, w.now))
		default:
			w.Fatalf("%+v", a)
		}
	}
}

// prompt judges a begin by the policy.
func (w *weeks) prompt(a Action) {
	late := w.now.Sub(a.Due)
	next, _ := w.fires.Next(a.Due)
	switch {
	case w.rule.Policy == misfire.Skip && late > misfire.Prompt,
		w.rule.Policy == misfire.Once && !next.After(w.now),
		w.rule.Window > 0 && late > w.rule.Window,
		w.rule.Window == 0 && !a.Due.After(w.up):
		w.Fatalf("under %+v at %v, up since %v: %+v", w.rule, w.now, w.up, a)
	}
}

// start brings an instance up, which owns the items of some ledgers.
func (w *weeks) start(led *ledger.Ledger) {
	o := &owner{m: New(Config{Settings: Settings{Monitor: true, Fires: w.fires, Misfire: w.rule}, Up: w.up}), led: led,
		running: map[int]time.Time{}}
	w.members = append(w.members, o)
	w.own(o)
}

func (w *weeks) own(o *owner) {
	w.do(o, o.m.Own(o.led.Clone(), w.now))
	for _, n := range o.m.Numbers() {
		if !o.m.IsKnown(n) {
			w.do(o, o.m.Known(n, false, w.now))
		}
	}
}

// crash ends an instance: what it ran is cut, and others, or nobody, get its ledger.
func (w *weeks) crash(o *owner) *ledger.Ledger {
	for n, rec := range o.led.All() {
		if rec.Running() {
			rec.Run = time.Time{}
			o.led.Set(n, rec)
		}
	}
	return o.led
}

// move gives items that do not run from one owner to another.
func (w *weeks) move(from, to *owner) {
	for _, n := range from.led.Numbers() {
		if rec, _ := from.led.Get(n); !rec.Running() && w.IntN(2) == 0 {
			from.led.Delete(n)
			to.led.Set(n, rec)
		}
	}
	w.own(from)
	w.own(to)
}

// pass lets time go by: timers in time, but for stalls, and ends of runs.
func (w *weeks) pass(until time.Time) {
	for w.now.Before(until) {
		next := until
		for _, o := range w.members {
			if at, ok := o.m.Next(w.now); ok && at.Before(next) {
				next = at
			}
			for _, end := range o.running {
				if end.Before(next) {
					next = end
				}
			}
		}
		w.now = later(w.now, next)
		switch w.IntN(200) {
		case 0:
			w.now = w.now.Add(time.Duration(w.IntN(100)) * time.Minute)
		case 1, 2:
			w.now = w.now.Add(time.Duration(w.IntN(1500)) * time.Millisecond)
		}
		for _, o := range w.members {
			w.do(o, o.m.Tick(w.now))
			for n := range w.total {
				if end, runs := o.running[n]; runs && !end.After(w.now) {
					delete(o.running, n)
					rec, _ := o.led.Get(n)
					w.do(o, o.m.Returned(n, rec.Run, w.now))
				}
			}
		}
	}
}

func (w *weeks) disturb() {
	switch k := w.IntN(len(w.members)); w.IntN(6) {
	case 0: // everybody is down for a while
		led := ledger.New(1, w.total)
		for _, o := range w.members {
			for n, rec := range w.crash(o).All() {
				led.Set(n, rec)
			}
		}
		w.members = nil
		w.now = w.now.Add(time.Duration(w.IntN(20*60)) * time.Minute)
		w.up = w.now
		w.start(led)
	case 1, 2:
		w.start(ledger.New(1, w.total))
		w.move(w.members[k], w.members[len(w.members)-1])
	case 3:
		if len(w.members) == 1 {
			return
		}
		led := w.crash(w.members[k])
		w.members = append(w.members[:k:k], w.members[k+1:]...)
		w.now = w.now.Add(time.Duration(w.IntN(60)) * time.Second) // until its life is seen gone
		for n, rec := range led.All() {
			w.members[n%len(w.members)].led.Set(n, rec)
		}
		for _, o := range w.members {
			w.own(o)
		}
	default:
		if other := w.IntN(len(w.members)); other != k {
			w.move(w.members[k], w.members[other])
		}
	}
}

// Over weeks each fire of each item has exactly one outcome under each policy.
func TestWeeksUnderEachPolicy(t *testing.T) {
	for name, rule := range map[string]misfire.Rule{
		"once": once, "skip": skip, "all": each, "once without a window": {Policy: misfire.Once},
		"all without a window": {Policy: misfire.All, Cap: 3}, "once within ten minutes": {Policy: misfire.Once, Window: 10 * time.Minute},
	} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				fires, err := schedule.Parse(schedule.Config{Expr: "0 0/10 * * * ?", Zone: "Europe/Berlin"})
				require.NoError(t, err)
				start := time.Date(2026, 10, 12, 0, 3, 0, 0, time.UTC) // summer time ends on the 25th
				w := &weeks{
					T: t, Rand: rand.New(rand.NewPCG(seed, 7)), rule: rule, fires: fires, now: start, up: start, total: 5,
					count: map[string]int{},
				}
				led := ledger.New(1, w.total)
				for n := range w.total {
					w.books = append(w.books, map[time.Time]string{})
					led.Set(n, ledger.Item{Through: start})
				}
				w.start(led)
				for end := start.AddDate(0, 0, 21); w.now.Before(end); {
					w.pass(w.now.Add(time.Duration(1+w.IntN(600)) * time.Minute))
					w.disturb()
				}
				w.settle(start)
			})
		}
	}
}

// settle lets runs end, and requires an outcome of every fire.
func (w *weeks) settle(start time.Time) {
	w.pass(w.now.Add(48 * time.Hour))
	for _, o := range w.members {
		for n, rec := range o.led.All() {
			for due, _ := w.fires.Next(start); !due.After(rec.Through); due, _ = w.fires.Next(due) {
				if w.books[n][due.UTC()] == "" {
					w.Fatalf("item %d: %v has no outcome", n, due)
				}
			}
			if !rec.Running() {
				due, _ := w.fires.Next(rec.Through)
				require.True(w, due.After(w.now), "item %d is owed %v", n, due)
			}
		}
	}
	wants := map[misfire.Policy][]string{
		misfire.Once: {"ran", string(folded)}, misfire.Skip: {"ran", "missed", "the item still ran", "no instance was registered"},
		misfire.All: {"ran", "no instance was registered"},
	}
	for _, what := range wants[w.rule.Policy] {
		require.Positive(w, w.count[what], "%s: %v", what, w.count)
	}
}
