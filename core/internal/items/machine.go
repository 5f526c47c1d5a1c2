package items

import (
	"maps"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// soon bounds how far ahead of the clock an epoch's last fire may be waited for.
const soon = 5 * time.Second

// Settings are what a job's configuration means to its items.
type Settings struct {
	// Monitor: begins and ends are recorded.
	Monitor bool
	// Delayed: an item is due Delay after its run before has ended; Fires means nothing.
	Delayed bool
	Delay   time.Duration
	// Fires is the schedule in force.
	Fires misfire.Fires
	// Misfire is what becomes of fires that came due and could not begin.
	Misfire misfire.Rule
	// Failover: a fire that a dead instance had begun runs again.
	Failover bool
	// Floor: an instance of ElasticJob led until then, and nothing due up to it is made up.
	Floor time.Time
	// Rounds: somebody listens to rounds, so that what disabled items skip is recorded at once.
	Rounds bool
	// Ahead is how long before it is due a fire's begin may be recorded, so that the time which
	// a commit takes makes nothing late; 0 is not at all.
	Ahead time.Duration
}

// A Config is what a machine starts with.
type Config struct {
	Settings
	// Up is since when the job has had a live instance without a break: fires up to it
	// were due to nobody.
	Up time.Time
	// Blocked are items whose functions, of a session before, have not returned yet.
	Blocked []int
	// Places is how many items of the job run at once here; 0 is any number.
	Places int
	// Spread, from 0 to 1, sets this machine apart from those of other jobs: they begin ahead at
	// different moments.
	Spread float64
}

// A Machine holds the items of one instance. The zero value is of no use.
type Machine struct {
	set           Settings
	up            time.Time
	places        int
	spread        float64
	awaited       time.Time // when a fire that is to run again comes due; past is none
	blocked       map[int]bool
	wary          map[int]*item // those whose redo waits to be the only one of its kind
	alone         *item         // the one that is
	withheld      bool          // others did not begin, since they would have waited for its place
	epoch, total  int
	held          bool
	until         time.Time
	serverEnabled bool
	foreign       bool // an instance of ElasticJob leads
	still         bool // the clock cannot be trusted
	stopping      bool
	items         map[int]*item
	strays        map[int]*item // items in hand that the ledger does not hold any more
	order         []int
	busy          int   // items that are not idle, strays among them
	asks          []Ask // open, by number
	askedUpTo     int64
	delays        delays
	memo          memo
	out           []Action
	visited       int // items looked at, for tests of the cost
}

type phase uint8

const (
	idle phase = iota
	accounting
	beginning
	queued
	running
	ending
	phases
)

// An item is one sharding item.
type item struct {
	number int
	phase  phase
	// cursor: every fire due at or before it has its outcome, the one in hand included.
	cursor time.Time
	// through is the cursor in the ledger, as it is known.
	through time.Time
	// before is the cursor that a refusal, or giving the fire in hand back, restores.
	before time.Time
	due    time.Time // the fire in hand
	ready  time.Time // with a fixed delay, when the next run is due
	place  int       // in delays, or -1
	// madeUp: the fire in hand was missed. folded is how many others it stands for.
	// owes: later fires were owed already when it began, or are anybody's.
	madeUp, owes bool
	folded       int
	// freed is when the item was busy last.
	freed time.Time
	// redo is the fire that is to run again, as the record has it. redoing: it is in hand.
	redo    ledger.Redo
	cut     event.CutReason // why it is not
	redoing bool
	// givenBack: the begin in hand is being undone.
	givenBack bool
	// ahead: the begin in hand was recorded, or is being, before it was due. next is the fire whose
	// begin the end in hand asks to have recorded too, or nil. recalled: it is to be given back.
	ahead, recalled bool
	next            *following
	// request is the run that somebody asked for which is in hand, or is to run again; else 0.
	// asked: it has begun every one that it is to, up to this number; before the one in hand it
	// was askedBefore. shut: one was closed before it began.
	request, asked, askedBefore, shut int64
	// recorded: the begin in hand stands in the ledger.
	recorded bool
	// unrecorded: no commit says what the cursor says, since monitoring was off.
	unrecorded bool
	// leaving: the leader wants it back. lent: it belongs to another instance, which is away, and
	// only what is to run again begins here. disabled: an operator does not want it run.
	// known: whether it is disabled has been seen.
	leaving, lent, disabled, known bool
	// skips are told with the begin in hand.
	skips []Skip
	// told are the leader's notes that were told, and stand in the ledger until a commit clears them.
	told ledger.Told
	// missed are fires of a new schedule that the item has passed under the one before;
	// they are told once the cursor cannot fall any more.
	missed *missed
}

// New returns a machine that owns nothing. Servers count as enabled until Server says otherwise.
func New(c Config) *Machine {
	m := &Machine{
		set: c.Settings, up: c.Up, places: c.Places, spread: c.Spread, serverEnabled: true,
		items: map[int]*item{},
	}
	for _, n := range c.Blocked {
		lazymap.Set(&m.blocked, n, true)
	}
	return m
}

// done returns the actions since the last call.
func (m *Machine) done() []Action {
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) put(a Action) { m.out = append(m.out, a) }

func (m *Machine) enter(it *item, p phase) {
	if it.phase == idle && p != idle {
		m.busy++
		m.delays.remove(it)
	} else if it.phase != idle && p == idle {
		m.busy--
	}
	it.phase = p
}

// Own takes over what the ledger says that this instance owns.
func (m *Machine) Own(l *ledger.Ledger, now time.Time) []Action {
	another := m.epoch != l.Epoch
	next := another && m.epoch != 0 // its items start where the one before has ended
	m.epoch, m.total, m.held, m.until = l.Epoch, l.Total, l.Held, l.Until
	changed := false
	for _, n := range m.order {
		if _, still := l.Get(n); !still {
			m.forget(m.items[n])
			changed = true
		}
	}
	for n, rec := range l.All() {
		was := m.items[n]
		if was != nil && (!another || was.phase != idle) {
			continue
		}
		changed = true
		if stray := m.strays[n]; stray != nil { // what is in hand of it goes on
			delete(m.strays, n)
			stray.back(rec, m.set.Monitor, now)
			m.items[n] = stray
			continue
		}
		it := m.adopt(n, rec, now)
		if !next && !rec.Lent() {
			m.inherit(it)
		}
		if was != nil { // another item by the same number
			m.delays.remove(was)
			delete(m.wary, n)
			it.known, it.disabled = was.known, was.disabled
		}
		m.items[n] = it
	}
	if changed {
		m.order = m.order[:0]
		for n := range l.All() {
			m.order = append(m.order, n)
		}
	}
	for n, rec := range l.All() {
		m.update(m.items[n], rec, now)
	}
	return m.done()
}

// forget drops an item. What is in hand of it goes on to its end.
func (m *Machine) forget(it *item) {
	if it.phase == queued {
		m.put(Action{Kind: Drop, Item: it.number, Due: it.due})
	}
	m.delays.remove(it)
	delete(m.wary, it.number)
	delete(m.items, it.number)
	if it.phase != idle {
		it.known = false
		lazymap.Set(&m.strays, it.number, it)
	}
}

// back makes a stray an item again. What came due while it was away is no overrun of the
// run in hand: others may have run it.
func (it *item) back(rec ledger.Item, recorded bool, now time.Time) {
	it.owes = true
	if it.phase == accounting || it.phase == ending {
		return // its commit says which cursor it has
	}
	through := rec.Through
	switch {
	case !recorded || through.IsZero():
		through = now
	case it.unrecorded:
		through = later(through, it.before)
	}
	if it.before, it.cursor = through, through; it.request == 0 {
		it.cursor = later(through, it.due)
	}
	if it.phase == beginning { // what is told with its begin stays told should it be given back
		it.before = later(through, lastOf(it.skips, through))
	}
}

// rest makes an item idle: nothing of it is in hand.
func (m *Machine) rest(it *item) {
	m.restIn(it)
	m.enter(it, idle)
	if m.strays[it.number] == it {
		delete(m.strays, it.number)
	}
}

// restIn forgets what was in hand of an item.
func (m *Machine) restIn(it *item) {
	it.redoing, it.givenBack, it.ahead, it.recalled, it.next = false, false, false, false, nil
	if !it.redo.Owed() {
		it.request = 0
	}
	if m.alone == it {
		m.alone = nil
	}
}

// inHand returns the item of which something is in hand here, owned or not; else nil.
func (m *Machine) inHand(n int) *item {
	it := m.items[n]
	if it == nil {
		it = m.strays[n]
	}
	if it == nil || it.phase == idle {
		return nil
	}
	return it
}

// adopt makes the state of an item that is new here.
func (m *Machine) adopt(n int, rec ledger.Item, now time.Time) *item {
	it := &item{number: n, cursor: rec.Through, place: -1, redo: rec.Redo, request: rec.Request, asked: rec.Asked}
	m.visited++
	if it.cursor.IsZero() {
		it.cursor = now
	}
	if !m.set.Monitor && it.cursor.Before(now) {
		it.cursor = now // without a record nobody knows what ran
	}
	it.unrecorded = !it.cursor.Equal(rec.Through)
	if m.set.Delayed {
		it.ready = earlier(rec.Through, now).Add(m.set.Delay)
		if rec.Through.IsZero() {
			it.ready = now.Add(m.set.Delay)
		}
	}
	return it
}

// update follows what the leader wrote about an item.
func (m *Machine) update(it *item, rec ledger.Item, now time.Time) {
	m.visited++
	own := it.lent && !rec.Lent()
	it.leaving, it.lent, it.through, it.redo = rec.Leaving, rec.Lent(), rec.Through, rec.Redo
	if it.told != rec.Told {
		if notes := rec.Told.Notes(); len(notes) > 0 {
			m.put(Action{Kind: Tell, Item: it.number, Notes: notes})
		}
		it.told = rec.Told
	}
	if it.phase == queued && it.leaving && it.recorded { // its next owner need not wait for its place here
		m.put(Action{Kind: Drop, Item: it.number, Due: it.due})
	}
	if it.phase != idle {
		return
	}
	it.request, it.asked = rec.Request, rec.Asked
	if !rec.Through.Equal(it.cursor) && (rec.Through.After(it.cursor) || (m.set.Monitor && !it.unrecorded && !rec.Through.IsZero())) {
		it.cursor = rec.Through
		it.ready = earlier(it.cursor, now).Add(m.set.Delay)
		m.delays.remove(it)
	}
	switch {
	case it.lent:
		m.delays.remove(it)
	case own:
		m.inherit(it)
	}
	m.offer(it, now)
}

// Known says whether an operator has disabled the item, when that is seen first and
// whenever it changes.
func (m *Machine) Known(n int, disabled bool, now time.Time) []Action {
	it := m.items[n]
	if it == nil {
		return nil
	}
	m.visited++
	was := it.disabled && it.known
	it.known, it.disabled = true, disabled
	switch {
	case was && !disabled:
		m.account(it, event.SkipDisabled, now)
	case disabled:
		m.recall(it, now)
	}
	m.offer(it, now)
	return m.done()
}

// Server says whether this instance's server is enabled.
func (m *Machine) Server(enabled bool, now time.Time) []Action {
	if m.serverEnabled == enabled {
		return nil
	}
	m.serverEnabled = enabled
	for _, n := range m.order {
		it := m.items[n]
		if !enabled {
			m.recall(it, now)
		}
		if !enabled || it.disabled {
			continue
		}
		if m.offerable(it) && it.redo.Owed() && m.set.Misfire.Window > 0 && now.Sub(it.redo.Due) > m.set.Misfire.Window {
			m.cutRedo(it, event.CutDisabled)
			continue
		}
		m.account(it, event.SkipDisabled, now) // what came due while it was disabled
	}
	m.offerAll(now)
	return m.done()
}

// Foreign says whether an instance of ElasticJob leads: nothing begins beside one, and what
// waits for a place is given back.
func (m *Machine) Foreign(leads bool, now time.Time) []Action {
	if m.foreign == leads {
		return nil
	}
	for _, n := range m.order {
		m.visited++
		switch it := m.items[n]; {
		case leads && it.phase == queued:
			m.put(Action{Kind: Drop, Item: n, Due: it.due})
		case leads && (it.phase == beginning || it.next != nil): // it would be queued next
			it.recalled = true
		case !leads && m.whyOff(it) == event.SkipElasticJob:
			m.account(it, event.SkipElasticJob, now)
		}
	}
	m.foreign = leads
	m.offerAll(now)
	return m.done()
}

// Still says whether the clock cannot be trusted: then nothing begins, and nothing that came due
// is decided, until it can be again.
func (m *Machine) Still(still bool, now time.Time) []Action {
	if m.still == still {
		return nil
	}
	if m.still = still; still {
		m.recallAll(now)
	} else {
		m.offerAll(now)
	}
	return m.done()
}

// Settings are those in force.
func (m *Machine) Settings() Settings { return m.set }

// Change puts other settings in force.
func (m *Machine) Change(s Settings, now time.Time) []Action {
	on := s.Monitor && !m.set.Monitor
	delayed := s.Delayed && (!m.set.Delayed || s.Delay != m.set.Delay)
	since, scheduled := m.changedAt(s)
	was := m.set.Fires
	if s != m.set {
		m.recallAll(now)
	}
	m.set, m.memo = s, memo{}
	for _, n := range m.order {
		it := m.items[n]
		m.visited++
		if scheduled && !delayed {
			m.reschedule(it, since, was)
		}
		m.delays.remove(it)
		if delayed {
			it.ready = earlier(it.cursor, now).Add(s.Delay)
		}
		if on {
			m.record(it)
		}
	}
	m.offerAll(now)
	return m.done()
}

// changedAt returns since when s fires otherwise than the settings before.
func (m *Machine) changedAt(s Settings) (time.Time, bool) {
	line, ok := s.Fires.(misfire.Line)
	if !ok || s.Delayed || m.set.Delayed {
		return time.Time{}, false
	}
	was, ok := m.set.Fires.(misfire.Line)
	return line.Since, ok && line.Since.After(was.Since)
}

// reschedule notes the fires of the new schedule that an item has passed already, busy
// under the one before.
func (m *Machine) reschedule(it *item, since time.Time, was misfire.Fires) {
	if it.lent {
		return // whoever it belongs to tells them
	}
	passed := it.cursor
	if it.next != nil && !it.recalled {
		passed = it.next.due
	}
	if passed.After(since) && it.missed == nil {
		it.missed = &missed{since: since, was: was}
	}
	if it.phase == idle || it.phase == running {
		m.tellMissed(it)
	}
}

// record makes up the record of an item for which there was none.
func (m *Machine) record(it *item) {
	switch it.phase {
	case idle:
		if it.lent {
			return // the record is its owner's
		}
		it.unrecorded = true
		m.catchUp(it)
	case queued, running:
		if !it.recorded {
			it.recorded, it.unrecorded = true, true
			m.put(Action{Kind: Record, Item: it.number, Due: it.due})
		}
	}
}

// Unblock says that the function which a session before left behind has returned.
func (m *Machine) Unblock(n int, now time.Time) []Action {
	delete(m.blocked, n)
	m.relieve(now)
	if it := m.items[n]; it != nil {
		m.visited++
		it.freed = now
		m.offer(it, now)
	}
	return m.done()
}

// Blocked reports whether the item waits for a function of an earlier session to return.
func (m *Machine) Blocked(n int) bool { return m.blocked[n] }

// UnblockBut is Unblock for all items but those whose functions are still running, in ascending order.
func (m *Machine) UnblockBut(running []int, now time.Time) (actions []Action) {
	for _, n := range slices.Sorted(maps.Keys(m.blocked)) {
		if _, runs := slices.BinarySearch(running, n); !runs {
			actions = append(actions, m.Unblock(n, now)...)
		}
	}
	return actions
}

// Tick offers what has come due.
func (m *Machine) Tick(now time.Time) []Action {
	if m.set.Delayed {
		for it := m.delays.first(); it != nil && !it.ready.After(now); it = m.delays.first() {
			m.delays.remove(it)
			m.visited++
			m.offer(it, now)
		}
		return m.done()
	}
	m.offerAll(now)
	if len(m.out) == 0 {
		return nil
	}
	// A commit is on its way: what disabled items owe rides along.
	for _, n := range m.order {
		if it := m.items[n]; it.phase == idle && m.off(it) {
			m.account(it, m.whyOff(it), now)
		}
	}
	return m.done()
}

func (m *Machine) offerAll(now time.Time) {
	for _, n := range m.order {
		m.visited++
		m.offer(m.items[n], now)
	}
}

// Next is when Tick is wanted next; false is never, as far as is known now.
func (m *Machine) Next(now time.Time) (time.Time, bool) {
	if m.stopping {
		return time.Time{}, false
	}
	if m.set.Delayed {
		if it := m.delays.first(); it != nil {
			return it.ready, true
		}
		return time.Time{}, false
	}
	next, ok := m.upcoming(now)
	if ok && m.ahead() {
		if at := next.Add(-m.lead()); at.After(now) {
			next = at
		}
	}
	if m.held && !m.until.IsZero() && m.waitsForUntil(now) && (!ok || m.until.Before(next)) {
		next, ok = m.until, true // when the epoch's last fire is over
	}
	if m.awaited.After(now) && (!ok || m.awaited.Before(next)) {
		next, ok = m.awaited, true
	}
	return next, ok
}

// NextFire is when the schedule fires next, here or, after Stop, elsewhere; or the first item whose delay is over,
// which is not known while all run. false is never, or not known.
func (m *Machine) NextFire(now time.Time) (time.Time, bool) {
	if m.set.Delayed {
		return m.Next(now)
	}
	return m.upcoming(now)
}

// Misses is when an item that runs a fire comes to owe the next one; zero where it never will.
func (m *Machine) Misses(due time.Time) time.Time {
	if m.set.Delayed || m.set.Misfire.Policy == misfire.Skip {
		return time.Time{}
	}
	if !m.memo.due.Equal(due) || m.memo.due.IsZero() {
		m.memo.due = due
		m.memo.misses, _ = m.set.Fires.Next(due)
	}
	return m.memo.misses
}

// Begun says that the begin of an item is committed.
func (m *Machine) Begun(n int, due time.Time, fence registry.Revision) []Action {
	it := m.hand(n, due, beginning)
	if it == nil {
		return nil
	}
	it.told, it.skips = Told(it.skips), nil
	switch {
	case it.redoing:
		it.redo.Due = time.Time{}
	case it.request == 0:
		it.through = due
	}
	m.begun(it, fence)
	return m.done()
}

// hand returns the item when the fire due is in hand in a phase.
func (m *Machine) hand(n int, due time.Time, p phase) *item {
	it := m.inHand(n)
	if it == nil || it.phase != p || !it.due.Equal(due) {
		return nil
	}
	m.visited++
	return it
}

// Refused says that a begin, an Account or a Record was not committed, and what the
// record says instead.
func (m *Machine) Refused(n int, due time.Time, why Refusal, rec ledger.Item, detail string, now time.Time) []Action {
	it := m.inHand(n)
	switch {
	case it == nil:
		return nil
	case it.phase == accounting:
	case it.phase == queued || it.phase == running:
		if it.due.Equal(due) {
			it.recorded = false // its record was refused: somebody else's is in the way
		}
		return nil
	case it.phase != beginning || !it.due.Equal(due):
		return nil
	}
	m.visited++
	begins, skips := it.phase == beginning, it.skips
	it.skips, it.recorded, it.redo = nil, false, rec.Redo
	redoing, asking := it.redoing, it.request
	it.request, it.asked = rec.Request, rec.Asked
	if why == Shut {
		it.shut = max(it.shut, asking)
	}
	m.rest(it)
	if it.cursor = it.before; !it.unrecorded && !rec.Through.IsZero() {
		it.cursor = rec.Through
	}
	if !begins || why != Elsewhere { // else the cursor goes on to due
		m.tellMissed(it)
	}
	switch {
	case m.items[n] != it || why == NotOwned || rec.Running(): // offered again when the ledger lets it
	case begins && why == Elsewhere && redoing:
		m.cutRedo(it, event.CutElsewhere)
	case begins && why == Elsewhere && asking != 0: // tried again with what happens next
	case begins && why == Elsewhere:
		it.recorded = true
		it.ready = now.Add(m.set.Delay)
		m.pass(it, due, ranElsewhere(skips, due, detail))
	default:
		if m.set.Delayed && begins && asking == 0 { // others have run it since
			it.ready = earlier(it.cursor, now).Add(m.set.Delay)
		}
		m.offer(it, now)
	}
	m.relieve(now)
	return m.done()
}

// Entered says that the item's function is called now. It reports false when the item
// is not to run any more: call Dropped then.
func (m *Machine) Entered(n int, due time.Time) bool {
	it := m.hand(n, due, queued)
	if it == nil || m.stopping || m.items[n] != it {
		return false
	}
	m.enter(it, running)
	return true
}

// Dropped says that the item was begun and its function will not be called.
func (m *Machine) Dropped(n int, due time.Time) []Action {
	it := m.hand(n, due, queued)
	if it == nil {
		return nil
	}
	m.giveBack(it)
	return m.done()
}

// Uncalled says that the item, which has entered, was not called after all.
func (m *Machine) Uncalled(n int, due time.Time) []Action {
	it := m.hand(n, due, running)
	if it == nil {
		return nil
	}
	m.giveBack(it)
	return m.done()
}

// giveBack undoes a begin: the fire is owed again, here or to the item's next owner.
func (m *Machine) giveBack(it *item) {
	it.cursor = it.before
	if !it.recorded {
		m.rest(it)
		m.tellMissed(it)
		return
	}
	m.enter(it, ending)
	it.skips, it.givenBack = nil, true
	if it.redoing {
		it.redo.Due = it.due
	}
	if it.request != 0 && !it.redoing {
		it.asked = it.askedBefore
	}
	m.put(Action{
		Kind: GiveBack, Item: it.number, Due: it.due, Through: it.before, Redo: it.redoing, Request: it.request, Asked: it.asked,
	})
}

// Returned says that the item's function has returned.
func (m *Machine) Returned(n int, due, now time.Time) []Action {
	it := m.hand(n, due, running)
	if it == nil {
		return nil
	}
	m.tellMissed(it)
	it.freed = now
	stray := m.items[n] != it
	var skips []Skip
	switch {
	case stray, it.request != 0:
	case m.set.Delayed:
		it.cursor = now
		it.ready = now.Add(m.set.Delay)
	case m.set.Misfire.Policy == misfire.Skip && !it.owes && !m.stopping && !it.leaving && !m.held && !m.still && !m.off(it):
		skips = m.skip(event.SkipRunning, it.cursor, now)
		it.cursor = lastOf(skips, it.cursor)
	}
	if it.recorded {
		m.enter(it, ending)
		it.skips = skips
		end := Action{Kind: End, Item: n, Due: due, Through: it.cursor, Skips: skips, Redo: it.redoing, Request: it.request}
		if !stray && it.request == 0 && !it.redoing && m.open(it) {
			if it.next = m.following(it, now); it.next != nil {
				end.Next, end.NextSkips = it.next.due, it.next.skips
			}
		}
		m.put(end)
		return m.done()
	}
	it.unrecorded = true
	m.rest(it)
	m.tell(it, skips)
	m.relieve(now)
	if !stray {
		m.offer(it, now)
	}
	return m.done()
}

// Committed says that an End, a GiveBack or an Account of the item is committed, with
// through as its cursor: an end that met a held ledger has not moved it.
func (m *Machine) Committed(n int, through, now time.Time) []Action {
	it := m.inHand(n)
	if it == nil || (it.phase != ending && it.phase != accounting) {
		return nil
	}
	m.visited++
	it.told, it.skips, it.recorded = Told(it.skips), nil, false
	// What runs again, was asked for, or is given back, moves no cursor: what is not recorded may stay so.
	it.through = through
	if it.unrecorded = (it.redoing || it.givenBack || it.request != 0) && through.Before(it.cursor); !it.unrecorded {
		it.cursor = through
	}
	switch {
	case it.redoing && it.phase == accounting:
		it.told, it.redo = ToldCut(it.redo, it.cut), ledger.Redo{}
	case it.redoing && it.givenBack:
		it.redo.Due = it.due // whatever the leader has written meanwhile
	case it.redoing && !it.redo.Owed():
		it.redo = ledger.Redo{}
	}
	m.rest(it)
	m.tellMissed(it)
	m.relieve(now)
	if m.items[n] == it {
		m.offer(it, now)
	}
	return m.done()
}

// Stop begins nothing more. What runs goes on; what waits for a place is given back.
func (m *Machine) Stop() []Action {
	if m.stopping {
		return nil
	}
	m.stopping = true
	for _, n := range m.order {
		if m.items[n].phase == queued {
			m.put(Action{Kind: Drop, Item: n, Due: m.items[n].due})
		}
	}
	return m.done()
}

// ClockSet says that the wall clock was set, forward when by is positive. Delays are
// measured from the end of a run, not by the clock: they are as far away as before. What was begun
// ahead by the clock as it was is decided anew: the next call's actions begin with it.
func (m *Machine) ClockSet(by time.Duration, now time.Time) {
	m.recallAll(now)
	if !m.set.Delayed {
		return
	}
	for _, n := range m.order {
		it := m.items[n]
		it.ready = it.ready.Add(by) // the same for all: their order stays
	}
}

// Ahead returns the idle items whose cursors are after an instant, but for those of which a
// fire is to run again first, and those that are lent.
func (m *Machine) Ahead(of time.Time) []int {
	var items []int
	for _, n := range m.order {
		if it := m.items[n]; it.phase == idle && it.cursor.After(of) && !it.redo.Owed() && !it.lent {
			items = append(items, n)
		}
	}
	return items
}

// Reset sets the cursors back that are after the instant of, to now.
func (m *Machine) Reset(of, now time.Time) []Action {
	for _, n := range m.Ahead(of) {
		it := m.items[n]
		it.before, it.cursor = it.cursor, now
		m.delays.remove(it)
		if m.set.Delayed {
			it.ready = now.Add(m.set.Delay)
		}
		if m.set.Monitor {
			m.enter(it, accounting)
			m.put(Action{Kind: Account, Item: n, Through: now, Reset: true})
		} else {
			m.offer(it, now)
		}
	}
	return m.done()
}

// Quiet reports whether no item is in hand.
func (m *Machine) Quiet() bool { return m.busy == 0 }

// RunsUnrecorded reports whether an item runs, or waits for its place, of which the record says nothing.
func (m *Machine) RunsUnrecorded() bool {
	if m.busy == 0 {
		return false
	}
	for _, it := range m.items {
		if (it.phase == queued || it.phase == running) && !it.recorded {
			return true
		}
	}
	return false
}

// Epoch and Total are those of the items.
func (m *Machine) Epoch() int { return m.epoch }

// Total is the sharding total count of the items.
func (m *Machine) Total() int { return m.total }

// Delayed reports whether the schedule in force is a fixed delay.
func (m *Machine) Delayed() bool { return m.set.Delayed }

// Failover reports whether what dead instances ran runs again.
func (m *Machine) Failover() bool { return m.set.Failover }

// Holds reports whether the item is one of those here.
func (m *Machine) Holds(n int) bool { return m.items[n] != nil }

// IsKnown reports whether it was seen if an operator has disabled the item.
func (m *Machine) IsKnown(n int) bool { return m.items[n] != nil && m.items[n].known }

// Wanted reports whether the leader wants the item elsewhere: it is leaving, its ledger is
// held, or it has gone already.
func (m *Machine) Wanted(n int) bool {
	it := m.items[n]
	return it == nil || it.leaving || m.held
}

// Size is how many items it holds.
func (m *Machine) Size() int { return len(m.order) }

// Numbers returns the items in ascending order.
func (m *Machine) Numbers() []int { return slices.Clone(m.order) }

// Lent returns the items that belong to instances which are away.
func (m *Machine) Lent() []int {
	var items []int
	for _, n := range m.order {
		if m.items[n].lent {
			items = append(items, n)
		}
	}
	return items
}

// Disabled returns the items that an operator has disabled.
func (m *Machine) Disabled() []int {
	var items []int
	for _, n := range m.order {
		if m.items[n].disabled {
			items = append(items, n)
		}
	}
	return items
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
