package items

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A grid fires at every multiple of its length.
type grid time.Duration

func (g grid) Next(after time.Time) (time.Time, bool) {
	t := after.Truncate(time.Duration(g))
	for !t.After(after) {
		t = t.Add(time.Duration(g))
	}
	return t, true
}

func (g grid) Prev(before, notBefore time.Time) (time.Time, bool) {
	t := before.Truncate(time.Duration(g))
	for !t.Before(before) {
		t = t.Add(-time.Duration(g))
	}
	return t, !t.Before(notBefore)
}

// zero is when tests begin, a multiple of all grids.
var zero = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }

// An outcome is what became of a fire of an item.
type outcome string

const (
	ran     outcome = "ran"
	folded  outcome = "folded"
	excused outcome = "excused" // nothing was recorded
	maybe   outcome = "maybe"   // a skip does not say under which of two schedules it was decided
)

// A world plays everybody around a machine: the recorder, the places, the leader,
// operators and the clock. It keeps the books of what becomes of each fire.
type world struct {
	*rapid.T
	m       *Machine
	now     time.Time
	set     Settings
	lines   []misfire.Line // all schedules that were in force, for the leader
	heard   int            // how many of them the machine has heard of
	led     *ledger.Ledger
	written bool // by the leader, and the machine has not seen it
	away    map[int]ledger.Item
	queue   []Action // for the recorder
	waiting []Action // for a place
	entered []Action // let in, and never called
	calls   bool     // none is any more
	running map[int]Action
	fate    map[int]map[time.Time]outcome
	start   map[int]time.Time // of the books
	notes   map[int][]ledger.Note
	told    map[int][]ledger.Note
	unknown map[int]bool
	blocked map[int]bool
	owed    map[int]time.Time // what is to run again
	runs    int
	again   int
	vain    int   // let in, and not called
	asks    []Ask // that are open
	asked   int64 // the last of all
	begun   map[int]int64
	lost    map[int]int64 // of what is owed again
	forAsks int
	early   int                  // runs whose begin was recorded before they were due
	joined  int                  // with the end of the run before
	undone  int                  // begins that were recalled before they were due
	off     map[string]time.Time // since when a switch says that nothing is to begin
}

const modelItems = 4

func newWorld(t *rapid.T) *world {
	w := &world{
		T: t, now: at(3), away: map[int]ledger.Item{}, running: map[int]Action{}, fate: map[int]map[time.Time]outcome{},
		start: map[int]time.Time{}, notes: map[int][]ledger.Note{}, told: map[int][]ledger.Note{},
		unknown: map[int]bool{}, blocked: map[int]bool{}, owed: map[int]time.Time{}, begun: map[int]int64{}, lost: map[int]int64{},
		off: map[string]time.Time{},
	}
	w.lines = []misfire.Line{{Now: grid(10 * time.Second)}}
	w.heard = 1
	w.set = Settings{Monitor: rapid.Bool().Draw(t, "monitor"), Fires: w.lines[0], Misfire: w.rule(), Failover: true, Ahead: w.ahead()}
	c := Config{Settings: w.set, Places: rapid.IntRange(0, 2).Draw(t, "places"), Up: at(rapid.SampledFrom([]float64{-1000, -35, 0}).Draw(t, "up"))}
	if rapid.Bool().Draw(t, "blocked") {
		c.Blocked = []int{1}
		w.blocked[1] = true
	}
	w.m = New(c)
	w.led = ledger.New(1, modelItems)
	for n := range modelItems {
		w.fate[n], w.unknown[n] = map[time.Time]outcome{}, true
		w.away[n] = ledger.Item{Through: at(rapid.SampledFrom([]float64{-300, -40, -5, 0}).Draw(t, "through"))}
		if w.chance(50) {
			w.fate[n][w.away[n].Through] = ran
			w.die(n)
		}
		w.assign(n, w.away[n])
		delete(w.away, n)
	}
	w.own()
	return w
}

func (w *world) ahead() time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 2 * time.Second}).Draw(w.T, "begins ahead")
}

func (w *world) rule() misfire.Rule {
	return rapid.SampledFrom([]misfire.Rule{
		once, skip, each, {Policy: misfire.Once}, {Policy: misfire.All, Cap: 3, Window: 30 * time.Second},
		{Policy: misfire.Skip}, {Policy: misfire.Once, Window: 25 * time.Second},
	}).Draw(w.T, "rule")
}

// assign is the leader's.
func (w *world) assign(n int, rec ledger.Item) {
	w.led.Set(n, rec)
	w.written = true
	if w.start[n].IsZero() {
		w.start[n] = rec.Through
	}
}

// own is the recorder, which has seen what the leader wrote.
func (w *world) own() {
	w.written = false
	another := w.m.epoch != w.led.Epoch
	for n, rec := range w.led.All() {
		it := w.m.items[n]
		fresh := it == nil || (another && it.phase == idle)
		if fresh && !w.set.Monitor {
			w.excuse(n, rec.Through, w.now) // nobody knows what ran; it may run yet
		}
	}
	w.do(w.m.Own(w.led.Clone(), w.now))
}

// excuse closes the books of a stretch.
func (w *world) excuse(n int, from, to time.Time) {
	for _, t := range w.fires(from, to) {
		if w.fate[n][t] == "" {
			w.fate[n][t] = excused
		}
	}
}

// fires returns the fires after from up to to, of the leader's schedule.
func (w *world) fires(from, to time.Time) (all []time.Time) {
	line := w.lines[len(w.lines)-1]
	for t, _ := line.Next(from); !t.After(to); t, _ = line.Next(t) {
		all = append(all, t)
	}
	return all
}

func (w *world) do(actions []Action) {
	for _, a := range actions {
		w.follows(a)
		switch a.Kind {
		case Run:
			w.waiting = append(w.waiting, a)
		case Drop:
			for i, x := range w.waiting {
				if x.Item == a.Item && x.Due.Equal(a.Due) {
					if w.notDue(x) {
						w.undone++
					}
					w.waiting = slices.Delete(w.waiting, i, i+1)
					w.do(w.m.Dropped(a.Item, a.Due))
					break
				}
			}
		case Tell:
			w.skipped(a)
			w.told[a.Item] = append(w.told[a.Item], a.Notes...)
		default:
			w.queue = append(w.queue, a)
		}
	}
}

// follows requires that what the machine has just decided is what the policy says.
func (w *world) follows(a Action) {
	if a.Kind == End && !a.Next.IsZero() && !a.Next.After(w.now) {
		w.follows(Action{Kind: Begin, Item: a.Item, Due: a.Next, Skips: a.NextSkips})
		a.Next = time.Time{}
	}
	begins := !a.Redo && (a.Kind == Begin || (a.Kind == Run && a.Fence == 0))
	if it := w.m.items[a.Item]; begins && it != nil && it.lent {
		w.Fatalf("%+v: it is lent", a)
	}
	late := w.now.Sub(a.Due)
	begins = begins && a.Request == 0
	if next := max(a.Due.Sub(w.now), a.Next.Sub(w.now)); (begins || !a.Next.IsZero()) && !w.led.Held && !w.set.Delayed && next > w.set.Ahead && w.heard == len(w.lines) {
		w.Fatalf("%+v: it is due in %v only", a, next)
	}
	switch r := w.set.Misfire; {
	case begins && r.Policy == misfire.Skip && late > misfire.Prompt:
		w.Fatalf("%+v: it was missed, and is made up", a)
	case begins && r.Window > 0 && late > max(r.Window, misfire.Prompt):
		w.Fatalf("%+v: it is %v late, and the window is %v", a, late, r.Window)
	}
	if n := len(a.Skips); n > 0 && a.Skips[n-1].Reason == event.SkipRunningElsewhere {
		return // decided with the begin that was refused
	}
	for _, s := range a.Skips {
		switch policy := w.set.Misfire.Policy; {
		case policy != misfire.Once && !s.Into.IsZero(), policy != misfire.Skip && s.Reason == event.SkipMissed,
			policy != misfire.Skip && s.Reason == event.SkipRunning, policy != misfire.All && s.Reason == event.SkipBeyond:
			w.Fatalf("%+v: told under policy %v", a, policy)
		case !s.Into.IsZero() && (!begins && a.Kind != Tell || !s.Last.Before(s.Into)):
			w.Fatalf("%+v: nothing runs for what is folded", a)
		}
	}
}

// toldAs is the outcome that a skip tells.
func toldAs(s Skip) outcome {
	if !s.Into.IsZero() {
		return folded
	}
	return outcome(s.Reason)
}

// skipped notes what is told as skipped.
func (w *world) skipped(a Action) {
	for _, s := range a.Skips {
		var why string
		sure := map[time.Time]int{}
		fits := 0
		for _, fires := range w.candidates(s) {
			if why = w.conflict(a.Item, s, fires); why == "" {
				fits++
				for _, t := range fires {
					sure[t]++
				}
			}
		}
		if fits == 0 {
			w.Fatalf("item %d: %+v: %s", a.Item, s, why)
		}
		for t, count := range sure {
			if count == fits {
				w.fate[a.Item][t] = toldAs(s)
			} else if w.fate[a.Item][t] == "" {
				w.fate[a.Item][t] = maybe
			}
		}
	}
}

// candidates returns the fires that a skip may be about: it was decided under one of the
// schedules, or is about what one has and an earlier one has not.
func (w *world) candidates(s Skip) (all [][]time.Time) {
	for i, l := range w.lines {
		for _, without := range append([]misfire.Fires{nil}, was(w.lines[:i])...) {
			var fires []time.Time
			for t, _ := l.Next(s.First.Add(-1)); !t.After(s.Last); t, _ = l.Next(t) {
				if without != nil {
					if same, _ := without.Next(t.Add(-1)); same.Equal(t) {
						continue
					}
				}
				fires = append(fires, t.UTC())
			}
			if len(fires) == s.Count && fires[0].Equal(s.First) && fires[len(fires)-1].Equal(s.Last) {
				all = append(all, fires)
			}
		}
	}
	return all
}

func was(lines []misfire.Line) (all []misfire.Fires) {
	for _, l := range lines {
		all = append(all, l)
	}
	return all
}

func (w *world) conflict(n int, s Skip, fires []time.Time) string {
	for _, t := range fires {
		switch was := w.fate[n][t]; {
		case was == ran:
			return fmt.Sprint(t, " ran")
		case was != "" && was != excused && was != maybe && s.Reason != event.SkipSchedule &&
			was != outcome(event.SkipSchedule):
			return fmt.Sprint(t, " was told already: ", was)
		}
	}
	return ""
}

// commit is the recorder with the change at i of its queue.
func (w *world) commit(i int, obstructed bool) {
	if w.written {
		w.own()
	}
	if i >= len(w.queue) {
		return
	}
	a := w.queue[i]
	for _, x := range w.queue[:i] {
		if x.Item == a.Item {
			return // an item's changes are in order
		}
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	rec, owned := w.led.Get(a.Item)
	if !owned {
		if a.Kind == End || a.Kind == GiveBack {
			w.applied(a)
		} else {
			w.do(w.m.Refused(a.Item, a.Due, NotOwned, ledger.Item{}, "", w.now))
		}
		return
	}
	after := rec
	followed := false
	if a.Kind == Begin && a.Request != 0 && !slices.ContainsFunc(w.asks, func(x Ask) bool { return x.Number == a.Request }) {
		w.do(w.m.Refused(a.Item, a.Due, Shut, rec, "", w.now))
		return
	}
	if !w.apply(&a, &after) {
		why := NotOwned
		if rec.Running() || rec.Redo.Owed() || !a.Due.After(rec.Through) {
			why = Behind
		}
		if (a.Redo && rec.Redo.Due.Equal(a.Due)) || (a.Request != 0 && !rec.Redo.Owed() && rec.Asked < a.Request) {
			why = NotOwned
		}
		w.do(w.m.Refused(a.Item, a.Due, why, rec, "", w.now))
		return
	}
	if obstructed && (a.Kind == Begin || a.Kind == Record) {
		w.do(w.m.Refused(a.Item, a.Due, Elsewhere, rec, "b", w.now))
		return
	}
	if a.Kind != CutRedo {
		after.Told = ledger.Told{}
	}
	overtaken := slices.ContainsFunc(a.NextSkips, func(s Skip) bool { return !s.First.After(after.Through) })
	if a.Kind == End && !a.Next.IsZero() && rec.Run.Equal(a.Due) && a.Next.After(after.Through) && !overtaken &&
		!w.led.Held && !rec.Leaving && !rec.Lent() && !after.Redo.Owed() {
		after.Run, after.Through, followed = a.Next, a.Next, true
		a.Skips = append(slices.Clip(a.Skips), a.NextSkips...)
	}
	if after.Asked <= w.m.Closed() {
		after.Asked = 0
	}
	if a.Request != 0 && after.Through != rec.Through && a.Kind != CutRedo {
		w.Fatalf("%+v: a request moves through from %v to %v", a, rec.Through, after.Through)
	}
	if after.Through.Before(rec.Through) && a.Kind != GiveBack && !a.Reset {
		w.Fatalf("%+v: through falls from %v to %v", a, rec.Through, after.Through)
	}
	w.led.Set(a.Item, after)
	if followed {
		w.joined++
		w.skipped(a)
		w.do(w.m.Followed(a.Item, a.Through, a.Next, registry.Revision(7), w.now))
		return
	}
	w.applied(a)
}

// apply is what package firing does with a record.
func (w *world) apply(a *Action, rec *ledger.Item) bool {
	in := w.led
	switch a.Kind {
	case Begin:
		if rec.Leaving || rec.Running() || (in.Held && (in.Until.IsZero() || a.Due.After(in.Until))) {
			return false
		}
		if a.Redo || rec.Redo.Owed() {
			if !a.Redo || !rec.Redo.Due.Equal(a.Due) {
				return false
			}
			rec.Run, rec.Redo.Due = a.Due, time.Time{}
			return true
		}
		if rec.Lent() {
			return false
		}
		if a.Request != 0 {
			if in.Held || a.Request <= rec.Asked {
				return false
			}
			rec.Run, rec.Request, rec.Asked = a.Due, a.Request, a.Request
			return true
		}
		if !a.Due.After(rec.Through) {
			return false
		}
		rec.Through, rec.Run = a.Due, a.Due
	case CutRedo:
		if rec.Leaving || rec.Running() || (in.Held && in.Until.IsZero()) || !rec.Redo.Due.Equal(a.Due) {
			return false
		}
		rec.Through, rec.Told, rec.Redo = later(rec.Through, a.Through), ToldCut(rec.Redo, a.Cut), ledger.Redo{}
		rec.Request = 0
	case Record:
		rec.Through, rec.Run = later(rec.Through, a.Due), a.Due
	case End:
		if rec.Run.Equal(a.Due) {
			rec.Run, rec.Redo, rec.Request = time.Time{}, ledger.Redo{}, 0
		}
		if a.Request != 0 {
			a.Through = rec.Through
			break
		}
		if in.Held && a.Through.After(a.Due) { // a held ledger does not move on
			if a.Through, a.Skips = a.Due, nil; a.Redo {
				a.Through = rec.Through
			}
		}
		rec.Through = later(rec.Through, a.Through)
	case GiveBack:
		if !rec.Run.Equal(a.Due) {
			if !in.Held {
				rec.Through = later(rec.Through, a.Through)
			}
			a.Through = rec.Through
			break
		}
		switch rec.Run = (time.Time{}); {
		case a.Redo:
			rec.Redo.Due, a.Through = a.Due, rec.Through
		case a.Request != 0:
			rec.Request, rec.Asked, a.Through = 0, a.Asked, rec.Through
		default:
			rec.Through = a.Through
		}
	case Account:
		if rec.Running() || rec.Redo.Owed() || (in.Held && (in.Until.IsZero() || (len(a.Skips) > 0 && a.Through.After(in.Until)))) {
			return false
		}
		if rec.Lent() && (a.Through.After(rec.Through) || a.Reset || len(a.Skips) > 0) {
			return false
		}
		if rec.Through = later(rec.Through, a.Through); a.Reset {
			rec.Through = a.Through
		}
	}
	return true
}

func (w *world) applied(a Action) {
	w.skipped(a)
	switch a.Kind {
	case Begin:
		w.do(w.m.Begun(a.Item, a.Due, registry.Revision(7)))
	case Record:
	case CutRedo:
		if !w.owed[a.Item].Equal(a.Due) {
			w.Fatalf("%+v: it is not owed: %v is", a, w.owed[a.Item])
		}
		delete(w.owed, a.Item)
		w.do(w.m.Committed(a.Item, a.Through, w.now))
	default:
		w.do(w.m.Committed(a.Item, a.Through, w.now))
	}
}

// notDue reports whether a run waits until it is due.
func (w *world) notDue(a Action) bool { return a.Ahead && a.Due.After(w.now) }

// enter gives the first of those who wait a place.
func (w *world) enter() {
	i := slices.IndexFunc(w.waiting, func(a Action) bool { return !w.notDue(a) })
	if i < 0 {
		return
	}
	a := w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)
	if !w.m.Entered(a.Item, a.Due) {
		w.do(w.m.Dropped(a.Item, a.Due))
		return
	}
	if !w.calls && w.chance(10) {
		w.entered = append(w.entered, a)
		return
	}
	if was, twice := w.running[a.Item]; twice {
		w.Fatalf("item %d runs %v while it runs %v", a.Item, a.Due, was.Due)
	}
	due := a.Due.UTC()
	if a.Ahead {
		w.early++
		for what, since := range w.off {
			if what != fmt.Sprint("item ", a.Item) && strings.HasPrefix(what, "item ") {
				continue
			}
			if since.Before(a.Due) {
				w.Fatalf("%+v: the switch of %s was seen at %v, before it was due", a, what, since)
			}
		}
	}
	if a.Redo && ledger.Soon(a.Due, w.now) {
		w.Fatalf("%+v: it runs again before it is due", a)
	}
	if w.blocked[a.Item] {
		w.Fatalf("item %d runs beside the function of a session before", a.Item)
	}
	if a.Request != 0 {
		w.enterAsked(a)
		return
	}
	if a.Redo {
		if !w.owed[a.Item].Equal(a.Due) || a.Lost != "dead" {
			w.Fatalf("%+v: it is not owed: %v is", a, w.owed[a.Item])
		}
		delete(w.owed, a.Item)
		delete(w.fate[a.Item], due)
		w.again++
	} else if t := w.owed[a.Item]; !t.IsZero() {
		w.Fatalf("item %d: %v runs before %v, which is to run again", a.Item, due, t)
	}
	if was := w.fate[a.Item][due]; was != "" && was != maybe && was != excused {
		w.Fatalf("item %d: %v runs, and %s already", a.Item, due, was)
	}
	w.fate[a.Item][due] = ran
	w.runs++
	w.running[a.Item] = a
}

// enterAsked is a run for a request: each is begun once, in their order.
func (w *world) enterAsked(a Action) {
	switch {
	case a.Redo:
		if !w.owed[a.Item].Equal(a.Due) || w.lost[a.Item] != a.Request {
			w.Fatalf("%+v: it is not owed: %v, run %d, is", a, w.owed[a.Item], w.lost[a.Item])
		}
		delete(w.owed, a.Item)
		w.again++
	case !w.owed[a.Item].IsZero():
		w.Fatalf("%+v: it runs before %v, which is to run again", a, w.owed[a.Item])
	case a.Request <= w.begun[a.Item]:
		w.Fatalf("%+v: run %d has begun already", a, w.begun[a.Item])
	}
	w.begun[a.Item] = max(w.begun[a.Item], a.Request)
	w.forAsks++
	w.running[a.Item] = a
}

// ask asks for a run of some items.
func (w *world) ask() {
	w.asked++
	x := Ask{Number: w.asked, Epoch: w.led.Epoch, At: w.now.Add(time.Duration(w.asked)), Items: map[int]bool{}}
	for n := range modelItems {
		x.Items[n] = w.chance(70)
	}
	w.asks = append(slices.Clone(w.asks), x)
	w.shown()
}

// close closes the run at i of those that are open: the leader does so when nothing of it is
// in hand.
func (w *world) close(i int) {
	if i >= len(w.asks) {
		return
	}
	number := w.asks[i].Number
	inHand := func(a Action) bool { return a.Request == number }
	for _, a := range w.running {
		if inHand(a) {
			return
		}
	}
	if slices.ContainsFunc(w.waiting, inHand) || slices.ContainsFunc(w.entered, inHand) {
		return
	}
	for _, n := range w.led.Numbers() {
		if rec, _ := w.led.Get(n); rec.Request == number {
			return
		}
	}
	for _, rec := range w.away {
		if rec.Request == number {
			return
		}
	}
	w.asks = slices.Delete(slices.Clone(w.asks), i, i+1)
	if w.chance(70) {
		w.shown()
	}
}

// shown is the member, which has read which runs are open.
func (w *world) shown() { w.do(w.m.Asked(w.asks, w.asked, w.now)) }

// uncall says of the first of those that were let in that it is not called after all.
func (w *world) uncall() {
	if len(w.entered) == 0 {
		return
	}
	a := w.entered[0]
	w.entered = w.entered[1:]
	w.vain++
	w.do(w.m.Uncalled(a.Item, a.Due))
}

func (w *world) leave(n int) {
	a, runs := w.running[n]
	if !runs {
		return
	}
	delete(w.running, n)
	w.do(w.m.Returned(n, a.Due, w.now))
}

// check holds after every step.
func (w *world) check() {
	if quiet := len(w.queue)+len(w.waiting)+len(w.entered)+len(w.running) == 0; quiet != w.m.Quiet() {
		w.Fatalf("quiet is %v; queue %+v, waiting %+v, entered %+v, running %+v", w.m.Quiet(), w.queue, w.waiting, w.entered, w.running)
	}
	busy := 0
	for n, it := range w.m.items {
		if it.phase != idle {
			busy++
			continue
		}
		if it.place >= 0 {
			w.Fatalf("item %d is in the heap of delays", n)
		}
		w.books(n, it.cursor)
	}
	if busy+len(w.m.strays) != w.m.busy {
		w.Fatalf("%d are busy, counted are %d", busy, w.m.busy)
	}
}

// books requires that each fire up to the cursor has one outcome, and none after it.
func (w *world) books(n int, cursor time.Time) {
	upTo := cursor
	if !w.m.until.IsZero() { // what is due after it is the next epoch's
		upTo = earlier(upTo, w.m.until)
	}
	for _, t := range w.fires(w.start[n], upTo) {
		atCursor := t.Equal(cursor) && len(w.lines) > 1 // it may be no fire of the schedule that the item went by
		if w.heard == len(w.lines) && w.fate[n][t] == "" && !t.After(w.now) && !atCursor {
			w.Fatalf("item %d: %v has no outcome, and the cursor is %v", n, t, cursor)
		}
	}
	for t, what := range w.fate[n] {
		if t.After(cursor) && what != excused && what != maybe {
			w.Fatalf("item %d: %v %s, and the cursor is %v", n, t, what, cursor)
		}
	}
}

func (w *world) chance(percent int) bool {
	return rapid.IntRange(0, 99).Draw(w.T, "chance") >= 100-percent
}

func (w *world) item() int { return rapid.IntRange(0, modelItems-1).Draw(w.T, "item") }

func (w *world) change(s Settings) {
	w.set = s
	w.do(w.m.Change(s, w.now))
}

func (w *world) step() {
	switch rapid.SampledFrom([]string{
		"tick", "tick", "tick", "commit", "commit", "commit", "commit", "enter", "enter", "leave", "leave", "uncall", "late",
		"known", "known",
		"policy", "server", "failover", "redo", "redo", "redo", "redo", "leaving", "take", "hold", "until", "epoch", "note", "monitor", "schedule", "hear", "unblock", "ahead",
		"own", "java", "clock", "floor", "ask", "ask", "close", "shown",
	}).Draw(w.T, "step") {
	case "tick":
		seconds := rapid.SampledFrom([]int{0, 0, 1, 4, 9, 10, 25, 400}).Draw(w.T, "seconds")
		w.now = w.now.Add(time.Duration(seconds) * time.Second)
		if next, _ := w.set.Fires.Next(w.now); seconds == 0 { // shortly before it
			w.now = later(w.now, next.Add(-1500*time.Millisecond))
		}
		w.do(w.m.Tick(w.now))
	case "commit":
		if len(w.queue) > 0 {
			w.commit(rapid.IntRange(0, len(w.queue)-1).Draw(w.T, "change"), w.chance(10))
		}
	case "enter":
		w.enter()
	case "leave":
		w.leave(w.item())
	case "uncall":
		w.uncall()
	case "late":
		w.late()
	case "known":
		n := w.item()
		w.unknown[n] = false
		w.do(w.m.Known(n, w.is(fmt.Sprint("item ", n), 30), w.now))
	case "server":
		w.do(w.m.Server(!w.is("server", 30), w.now))
	case "java":
		w.do(w.m.Foreign(w.is("java", 30), w.now))
	case "clock":
		w.do(w.m.Still(w.is("clock", 30), w.now))
	case "floor":
		s := w.set
		s.Floor = w.now
		w.change(s)
	case "unblock":
		if w.blocked[1] {
			delete(w.blocked, 1)
			w.do(w.m.Unblock(1, w.now))
		}
	case "own":
		w.own()
	case "ask":
		w.ask()
	case "close":
		w.close(rapid.IntRange(0, 2).Draw(w.T, "which"))
	case "shown":
		w.shown()
	case "monitor":
		w.hear() // what runs unrecorded under a schedule that is not in force any more is anybody's guess
		w.own()  // what is taken away while nothing is recorded runs twice
		s := w.set
		s.Monitor = !s.Monitor
		s.Ahead = w.ahead()
		w.change(s)
	case "policy":
		s := w.set
		s.Misfire = w.rule()
		w.change(s)
	case "failover":
		s := w.set
		s.Failover = w.chance(70)
		w.change(s)
	case "hear":
		w.hear()
	default:
		w.lead()
	}
}

// is draws whether a switch says that nothing is to begin, and notes since when.
func (w *world) is(what string, percent int) bool {
	off := w.chance(percent)
	if _, was := w.off[what]; off && !was {
		w.off[what] = w.now
	} else if !off {
		delete(w.off, what)
	}
	return off
}

// die has an item come from an owner that died while it ran the fire where its record stands.
func (w *world) die(n int) {
	rec := w.away[n]
	if x := w.openOf(n); x != nil && w.set.Monitor && !rec.Redo.Owed() && w.chance(50) && w.begun[n] >= x.Number {
		rec.Redo = ledger.Redo{Due: x.At, Lost: "dead", Tries: 1}
		rec.Request, rec.Asked = x.Number, max(rec.Asked, x.Number)
		w.owed[n], w.lost[n], w.away[n] = x.At, x.Number, rec
		return
	}
	next, _ := w.lines[len(w.lines)-1].Next(rec.Through)
	if w.set.Monitor && !rec.Redo.Owed() && !w.led.Held && ledger.Soon(next, w.now) && w.chance(50) {
		rec.Through, w.fate[n][next.UTC()] = next, ran // it was begun ahead there
		rec.Redo = ledger.Redo{Due: next, Lost: "dead", Tries: 1}
		w.owed[n], w.away[n] = next, rec
		return
	}
	was := w.fate[n][rec.Through.UTC()]
	if !w.set.Monitor || rec.Redo.Owed() || (was != ran && was != excused) {
		return
	}
	rec.Redo = ledger.Redo{Due: rec.Through, Lost: "dead", Tries: rapid.IntRange(1, 2).Draw(w.T, "tries")}
	w.owed[n] = rec.Through
	w.away[n] = rec
}

// openOf is the last open run that wants an item.
func (w *world) openOf(n int) *Ask {
	for i := range slices.Backward(w.asks) {
		if w.asks[i].Items[n] && w.asks[i].Epoch == w.led.Epoch {
			return &w.asks[i]
		}
	}
	return nil
}

func (w *world) hear() {
	if w.heard < len(w.lines) {
		w.heard++
		s := w.set
		s.Fires = w.lines[w.heard-1]
		w.change(s)
	}
}

// late sends events that nothing waits for: none may do anything.
func (w *world) late() {
	n, due := w.item(), w.now.Add(-time.Duration(rapid.IntRange(1, 9).Draw(w.T, "ago"))*time.Second-1)
	out := slices.Concat(w.m.Begun(n, due, 1), w.m.Dropped(n, due), w.m.Uncalled(n, due), w.m.Returned(n, due, w.now))
	if w.m.Entered(n, due) {
		w.Fatalf("item %d enters a fire that it has not", n)
	}
	if it := w.m.inHand(n); it == nil || (it.phase != accounting && it.phase != ending) {
		out = append(out, w.m.Committed(n, due, w.now)...)
		out = append(out, w.m.Refused(n, due, Elsewhere, ledger.Item{}, "", w.now)...)
	}
	if len(out) > 0 {
		w.Fatalf("late events did %+v", out)
	}
}

// lead does what a leader may do to the ledger.
func (w *world) lead() {
	n := w.item()
	rec, owned := w.led.Get(n)
	switch what := rapid.SampledFrom([]string{"leaving", "leaving", "redo", "redo", "take", "take", "hold", "until", "until", "epoch",
		"epoch", "note", "schedule", "lend", "lend"}).Draw(w.T, "lead"); {
	case what == "lend" && owned && !rec.Running() && w.recorded(n) && !w.led.Held:
		if rec.Bound = ""; !w.m.items[n].lent {
			rec.Bound = "another"
		}
		w.led.Set(n, rec)
		w.written = true
	case what == "leaving" && owned:
		rec.Leaving = !rec.Leaving
		w.led.Set(n, rec)
		w.written = true
	case what == "redo" && !owned:
		w.own()
		w.die(n)
	case what == "redo" && !rec.Running() && w.recorded(n): // others had it, and died
		w.away[n] = rec
		w.led.Delete(n)
		w.own()
		w.die(n)
		w.assign(n, w.away[n])
		delete(w.away, n)
	case what == "take" && !owned:
		w.assign(n, w.away[n])
		delete(w.away, n)
	case what == "take" && !rec.Running() && w.recorded(n):
		rec.Leaving, rec.Bound = false, ""
		w.away[n] = rec
		w.led.Delete(n)
		w.written = true
	case what == "hold":
		w.hold(!w.led.Held)
	case what == "until" && w.led.Held && w.led.Until.IsZero():
		w.own() // all have seen that they are held
		w.led.Until = w.led.Latest()
		for _, rec := range w.away { // they stand in other ledgers
			w.led.Until = later(w.led.Until, rec.Through)
		}
		if !w.set.Monitor {
			w.led.Until = later(w.led.Until, w.now.Add(2*time.Second))
		}
		for _, it := range w.m.items { // a guess would do: it is not recorded
			if !w.set.Monitor || it.unrecorded {
				w.led.Until = later(w.led.Until, it.cursor)
			}
		}
		for _, n := range w.led.Numbers() { // nothing is lent any more
			rec, _ := w.led.Get(n)
			rec.Bound = ""
			w.led.Set(n, rec)
		}
		w.written = true
	case what == "epoch":
		w.epoch()
	case what == "note" && owned:
		note := ledger.Note{Due: at(float64(-1000 + len(w.notes[n]))), Instance: "b"}
		rec.Told = rec.Told.With(note)
		w.led.Set(n, rec)
		w.notes[n] = append(w.notes[n], note)
		w.written = true
	case what == "schedule" && !w.led.Held && w.set.Monitor && len(w.lines) < 3 && w.heard == len(w.lines):
		was := w.lines[len(w.lines)-1]
		w.lines = append(w.lines, misfire.Line{
			Before: was, Since: later(later(w.now, w.led.Latest()), was.Since.Add(1)),
			Now: grid(time.Duration(rapid.SampledFrom([]int{3, 5, 10, 15}).Draw(w.T, "grid")) * time.Second),
		})
	}
}

// recorded reports whether the record of an item says what the machine knows.
func (w *world) recorded(n int) bool {
	rec, _ := w.led.Get(n)
	it := w.m.items[n]
	return w.set.Monitor && w.heard == len(w.lines) && it != nil && it.phase == idle && it.cursor.Equal(rec.Through)
}

func (w *world) hold(held bool) {
	if !w.led.Until.IsZero() {
		return // there is no way back from a base
	}
	w.led.Held = held
	w.written = true
}

// epoch begins the next one when every item has accounted for the one before.
func (w *world) epoch() {
	base := w.led.Until
	if base.IsZero() || len(w.away) > 0 {
		return
	}
	for _, rec := range w.led.All() {
		if rec.Running() || rec.Redo.Owed() || rec.Told != (ledger.Told{}) || rec.Through.Before(base) {
			return
		}
	}
	next := ledger.New(w.led.Epoch+1, modelItems)
	for n := range modelItems {
		next.Set(n, ledger.Item{Through: base})
	}
	w.led, w.written = next, true
}

// finish lets everything come to rest.
func (w *world) finish() {
	for w.heard < len(w.lines) {
		w.hear()
	}
	for range 1000 {
		if w.written {
			w.own()
		}
		switch {
		case len(w.queue) > 0:
			w.commit(0, false)
		case slices.ContainsFunc(w.waiting, func(a Action) bool { return !w.notDue(a) }):
			w.enter()
		case len(w.entered) > 0:
			w.uncall()
		case len(w.running) > 0:
			w.leave(slices.Min(slices.Collect(maps.Keys(w.running))))
		case len(w.waiting) > 0:
			w.now = w.waiting[0].Due
		default:
			return
		}
		w.check()
	}
	w.Fatalf("no rest: %+v", w.queue)
}

// calm ends every wish of a leader and of operators, and requires that the machine
// catches up.
func (w *world) calm() {
	w.finish()
	w.calls = true
	if !w.led.Until.IsZero() {
		w.now = later(w.now, w.led.Until)
	}
	for _, fires := range w.fate { // what was begun ahead where it died may be cut before it is due
		for t := range fires {
			w.now = later(w.now, t)
		}
	}
	for n, rec := range w.away {
		w.assign(n, rec)
		delete(w.away, n)
	}
	for _, n := range w.led.Numbers() {
		rec, _ := w.led.Get(n)
		rec.Leaving, rec.Bound = false, ""
		w.led.Set(n, rec)
	}
	w.written = true
	w.hold(false)
	if w.blocked[1] {
		delete(w.blocked, 1)
		w.do(w.m.Unblock(1, w.now))
	}
	clear(w.off)
	w.do(w.m.Server(true, w.now))
	w.do(w.m.Foreign(false, w.now))
	w.do(w.m.Still(false, w.now))
	w.finish()
	for n := range modelItems {
		w.do(w.m.Known(n, false, w.now))
	}
	w.do(w.m.Tick(w.now))
	w.finish()
	for _, t := range slices.SortedFunc(maps.Values(w.owed), time.Time.Compare) { // it was begun ahead where it died
		for t.After(w.now) {
			next, _ := w.m.Next(w.now)
			require.False(w, next.After(t), "nobody looks when %v comes due", t)
			w.now = next
			w.do(w.m.Tick(w.now))
			w.finish()
		}
	}
	w.shown()
	w.finish()
	for _, x := range w.asks {
		for n := range modelItems {
			if x.Items[n] && x.Epoch == w.led.Epoch && w.begun[n] < x.Number && w.set.Monitor && !w.led.Held {
				w.Fatalf("item %d: run %d is open, and has not begun", n, x.Number)
			}
		}
	}
	if !w.led.Until.IsZero() {
		w.do(w.m.Tick(w.now))
		w.finish()
		epoch := w.led.Epoch
		w.epoch()
		require.Greater(w, w.led.Epoch, epoch, "the epoch does not end: %s", w.led.Encode())
		w.finish()
	}
	for n := range modelItems {
		it := w.m.items[n]
		for _, t := range w.fires(it.cursor, w.now) {
			w.Fatalf("item %d: %v is owed by an idle machine", n, t)
		}
		if t := w.owed[n]; !t.IsZero() {
			w.Fatalf("item %d: %v is to run again, and does not: %+v", n, t, it)
		}
		w.books(n, w.now)
		for _, note := range w.notes[n] {
			require.Contains(w, w.told[n], note)
		}
	}
}

// Whatever happens, each fire has one outcome or is owed.
func TestEveryFireHasOneOutcome(t *testing.T) {
	runs, again, asked, early, joined, undone, vain := 0, 0, 0, 0, 0, 0, 0
	play := func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			w.step()
			w.check()
		}
		if w.chance(30) {
			w.do(w.m.Stop())
			w.finish()
			require.True(t, w.m.Quiet())
			w.stopsOwing()
		} else {
			w.calm()
		}
		runs += w.runs
		again += w.again
		asked += w.forAsks
		early += w.early
		joined += w.joined
		undone += w.undone
		vain += w.vain
	}
	for range 5 { // -short plays so little that chance may leave one of these out
		rapid.Check(t, play)
		if runs > 100 && min(again, asked, early, joined, vain) > 0 {
			break
		}
	}
	t.Logf("%d begun ahead, %d of them with the end before, %d given back before they were due", early, joined, undone)
	require.Positive(t, early, "nothing has begun ahead")
	require.Positive(t, joined, "nothing has begun with the end before")
	t.Logf("%d runs, %d of them again, %d that were asked for", runs, again, asked)
	require.Positive(t, vain, "all that was let in was called")
	require.Positive(t, again, "nothing has run again")
	require.Positive(t, asked, "nothing has run that was asked for")
	require.Greater(t, runs, 100, "chance has played too little")
}

// stopsOwing requires that the record of a machine that has stopped says what was done,
// and no more. Findings 3 and 12.
func (w *world) stopsOwing() {
	for n, it := range w.m.items {
		rec, _ := w.led.Get(n)
		if rec.Running() {
			w.Fatalf("item %d: %+v", n, rec)
		}
		if w.set.Monitor && w.recorded(n) {
			w.books(n, rec.Through)
		}
		require.Equal(w, idle, it.phase)
	}
}
