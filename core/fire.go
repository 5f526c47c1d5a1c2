package core

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

// makeUpLimit is how many missed fires of an item are made up, the latest ones.
const makeUpLimit = 10

// An item is a sharding item that this instance owns. Guarded by member.mu.
type item struct {
	number int
	phase  itemPhase
	// through: every fire up to here was offered to the item or skipped.
	through time.Time
	// due is the fire in hand while phase is not itemIdle.
	due time.Time
	// backlog are fires to run after the one in hand.
	backlog []time.Time
	// late is set while the fire in hand came due before it could begin here:
	// what comes due meanwhile is not an overrun of the job and joins the backlog.
	late bool
	// leaving: the leader wants the item back. disabled: an operator does not
	// want it run. known: the disabled node has been looked at.
	leaving, disabled, known bool
}

type itemPhase uint8

const (
	itemIdle itemPhase = iota
	itemBeginning
	itemRunning
	itemEnding
)

// A fire collects the items of one due time that run here.
type fire struct {
	due     time.Time
	begun   time.Time
	items   []int
	pending int
	failed  int
}

// tick is called by the alarm when the schedule's instant due has come.
func (m *member) tick(due time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.firing || m.stopping {
		return
	}
	if _, fixed := m.set.schedule.Delay(); fixed {
		m.tickDelayed()
		return
	}
	// The first fire and those that a late alarm or a clock set forward has made
	// due since: they are offered together, so that few of many are made up.
	late := m.between(due, m.now())
	m.ticked = late.last(due)
	m.arm(m.ticked)
	if late.dropped > 0 {
		m.offerDropped(due, late)
	} else {
		m.offer(due)
	}
	for _, t := range late.recent {
		m.offer(t)
	}
	m.launch()
}

// missed are fires that came due together.
type missed struct {
	recent      []time.Time // the latest, at most makeUpLimit
	dropped     int         // how many are older
	lastDropped time.Time
}

func (f missed) last(otherwise time.Time) time.Time {
	if len(f.recent) == 0 {
		return otherwise
	}
	return f.recent[len(f.recent)-1]
}

// countLimit bounds the fires that are counted one by one: past it a count is a
// lower bound.
const countLimit = 100_000

// between returns the fires after one instant up to another.
func (m *member) between(after, upTo time.Time) (f missed) {
	for t := after; ; {
		next, ok := m.set.schedule.Next(t)
		if !ok || next.After(upTo) {
			return f
		}
		if f.dropped == countLimit {
			if last, ok := m.set.schedule.Prev(upTo.Add(1), next); ok {
				next = last
			}
		}
		t = next
		if f.recent = append(f.recent, next); len(f.recent) > makeUpLimit {
			f.lastDropped, f.dropped = f.recent[0], f.dropped+1
			f.recent = f.recent[1:]
		}
	}
}

// offerDropped tells every item that could have run of fires that are too many.
func (m *member) offerDropped(first time.Time, f missed) {
	var items []int
	for _, n := range m.numbers() {
		if it := m.items[n]; it.known && !m.held(it) && it.through.Before(f.lastDropped) {
			it.through = f.lastDropped
			items = append(items, n)
		}
	}
	if len(items) > 0 {
		e := skipped(m.name(), items, f.lastDropped, SkipMissed, "since "+first.String())
		e.Count = f.dropped + 1
		m.emit(e)
	}
}

// arm sets the alarm to the first fire after t.
func (m *member) arm(t time.Time) {
	if m.stopping || !m.firing {
		return
	}
	if _, fixed := m.set.schedule.Delay(); fixed {
		m.armDelayed()
		return
	}
	next, ok := m.set.schedule.Next(t)
	m.next, m.never = next, !ok
	if ok {
		m.alarm.Set(next)
	} else {
		m.alarm.Clear()
	}
}

// offer gives the fire due to every item, or says why not.
func (m *member) offer(due time.Time) {
	var behind, disabled, busy []int
	for _, n := range m.numbers() {
		it := m.items[n]
		switch {
		case !it.known || m.held(it):
			continue // whoever owns it next makes the fire up
		case !due.After(it.through):
			behind = append(behind, n)
		case it.disabled || !m.serverEnabled:
			it.through = due
			disabled = append(disabled, n)
		case it.phase == itemRunning && !it.late && len(it.backlog) == 0:
			it.through = due
			busy = append(busy, n)
		default:
			m.enqueue(it, due)
		}
	}
	m.account(disabled, due)
	m.skip(behind, due, SkipClock, "a clock was set back, or is behind the one of the instance that ran it")
	m.skip(disabled, due, SkipDisabled, "")
	m.skip(busy, due, SkipRunning, "")
}

func (m *member) skip(items []int, due time.Time, why SkipReason, detail string) {
	if len(items) > 0 {
		m.emit(skipped(m.name(), items, due, why, detail))
	}
}

// account records skipped fires of items that do not run, where there is a record.
func (m *member) account(items []int, through time.Time) {
	if len(items) > 0 && m.set.stored.MonitorExecution && m.rec != nil {
		m.rec.Account(items, through)
	}
}

// enqueue appends a fire to the item's backlog, within the limit.
func (m *member) enqueue(it *item, due time.Time) {
	it.through = due
	it.backlog = append(it.backlog, due)
	if n := len(it.backlog) - makeUpLimit; n > 0 {
		e := skipped(m.name(), []int{it.number}, it.backlog[n-1], SkipMissed, "")
		e.Count = n
		m.emit(e)
		it.backlog = slices.Delete(it.backlog, 0, n)
	}
}

// held reports whether the item begins nothing for now.
func (m *member) held(it *item) bool { return it.leaving || m.total != m.set.stored.ShardingTotalCount }

// catchUp makes up the fires that came due before the item could be offered them.
func (m *member) catchUp(it *item) {
	if !m.firing || !it.known || m.held(it) || it.phase != itemIdle {
		return
	}
	if it.through.IsZero() {
		it.through = m.ticked
	}
	if _, fixed := m.set.schedule.Delay(); fixed {
		m.armDelayed()
		return
	}
	f := m.between(it.through, m.ticked)
	if len(f.recent) == 0 {
		return
	}
	why, count, last := SkipMissed, f.dropped, f.lastDropped
	if it.disabled || !m.serverEnabled {
		why, count, last = SkipDisabled, f.dropped+len(f.recent), f.last(last)
		f.recent = nil
	}
	if count > 0 {
		it.through = last
		e := skipped(m.name(), []int{it.number}, last, why, "")
		e.Count = count
		m.emit(e)
		m.account([]int{it.number}, last)
	}
	for _, t := range f.recent {
		m.enqueue(it, t)
	}
}

// launch begins the first fire in the backlog of every idle item.
func (m *member) launch() {
	if m.stopping {
		return
	}
	groups := map[int64][]int{}
	var order []time.Time
	for _, n := range m.numbers() {
		it := m.items[n]
		if it.phase != itemIdle || len(it.backlog) == 0 || m.held(it) {
			continue
		}
		due := it.backlog[0]
		it.backlog = slices.Delete(it.backlog, 0, 1)
		it.phase, it.due = itemBeginning, due
		it.late = due.Before(m.ticked)
		if groups[due.UnixNano()] == nil {
			order = append(order, due)
		}
		groups[due.UnixNano()] = append(groups[due.UnixNano()], n)
	}
	slices.SortFunc(order, time.Time.Compare)
	for _, due := range order {
		items := groups[due.UnixNano()]
		if m.set.stored.MonitorExecution {
			m.rec.Begin(due, items)
		} else {
			m.begin(due, items, 0)
		}
	}
}

// Begun implements execution.Owner.
func (m *member) Begun(due time.Time, items []int, fence registry.Revision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(due, items, fence)
}

// begin hands items to the job's function.
func (m *member) begin(due time.Time, items []int, fence registry.Revision) {
	var run, stale []int
	for _, n := range items {
		it := m.items[n]
		switch {
		case it == nil:
		case m.stopping || m.ctx.Err() != nil || !time.Now().Before(m.life.session.Deadline()):
			m.giveBack(it)
		case m.job.runs(n):
			stale = append(stale, n)
			m.end(it)
		default:
			it.phase = itemRunning
			run = append(run, n)
		}
	}
	m.skip(stale, due, SkipRunning, "its function has not returned since the session before was lost")
	if len(run) == 0 {
		return
	}
	f := m.fires[due.UnixNano()]
	now := m.now()
	if f == nil {
		f = &fire{due: due, begun: now}
		m.fires[due.UnixNano()] = f
	}
	f.items = append(f.items, run...)
	f.pending += len(run)
	m.emit(FireBegun{Job: m.name(), Due: due, Items: run, Late: now.Sub(due), MadeUp: due.Before(m.ticked)})
	for _, n := range run {
		m.job.start(m.launchOf(n, due, fence))
	}
}

// giveBack undoes a begin that is recorded, so that who owns the item next makes the fire up.
func (m *member) giveBack(it *item) {
	it.phase = itemEnding
	if m.rec != nil && m.set.stored.MonitorExecution {
		m.rec.End(it.number, it.due, it.due.Add(-time.Nanosecond))
	} else {
		it.phase = itemIdle
	}
}

// launchOf is the run of one item.
func (m *member) launchOf(n int, due time.Time, fence registry.Revision) launch {
	shard := Shard{
		Job: m.name(), Item: n, Total: m.total, Param: m.set.params[n], JobParam: m.set.stored.JobParameter,
		Due: due, Instance: m.id.String(), Fence: fence,
	}
	ctx := m.ctx
	return launch{
		item: n,
		run: func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx) // cancelled while it waited for a place
			}
			return call(ctx, m.job.work, shard)
		},
		done: func(err error) { m.finished(n, due, err) },
	}
}

// call runs the job and makes a panic an error.
func call(ctx context.Context, work Job, s Shard) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return work.Run(ctx, s)
}

// finished is told when the function of an item has returned.
func (m *member) finished(n int, due time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.emit(ItemFailed{Job: m.name(), Item: n, Due: due, Err: err})
	}
	m.tally(due, err)
	it := m.items[n]
	if it == nil || it.phase != itemRunning || !it.due.Equal(due) {
		return
	}
	m.end(it)
	m.life.scheduler.bump()
}

func (m *member) tally(due time.Time, err error) {
	f := m.fires[due.UnixNano()]
	if f == nil {
		return
	}
	f.pending--
	if err != nil {
		f.failed++
	}
	if f.pending == 0 {
		delete(m.fires, due.UnixNano())
		slices.Sort(f.items)
		m.emit(FireEnded{Job: m.name(), Due: due, Items: f.items, Failed: f.failed, Took: m.now().Sub(f.begun)})
	}
}

// end records the end of the fire in hand.
func (m *member) end(it *item) {
	through := it.through
	if len(it.backlog) > 0 {
		through = it.due
	}
	if _, fixed := m.set.schedule.Delay(); fixed {
		through = m.now()
		it.through = through
	}
	it.phase = itemEnding
	if m.set.stored.MonitorExecution && m.rec != nil {
		m.rec.End(it.number, it.due, through)
		return
	}
	m.rest(it)
	m.launch()
}

// rest makes the item idle again.
func (m *member) rest(it *item) {
	it.phase, it.late = itemIdle, false
	if _, fixed := m.set.schedule.Delay(); fixed {
		m.armDelayed()
	}
}

// Ended implements execution.Owner.
func (m *member) Ended(items []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range items {
		if it := m.items[n]; it != nil && it.phase == itemEnding {
			m.rest(it)
			m.catchUp(it)
		}
	}
	m.launch()
	m.life.scheduler.bump()
	if m.evicted {
		m.task.Poke()
	}
}

// Refused implements execution.Owner.
func (m *member) Refused(due time.Time, items []int, why execution.Refusal, detail string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range items {
		if it := m.items[n]; it != nil && it.phase == itemBeginning {
			m.rest(it)
		}
	}
	switch why {
	case execution.Behind:
		m.skip(items, due, SkipClock, "")
	case execution.Elsewhere:
		m.skip(items, due, SkipRunningElsewhere, detail)
	case execution.Lost:
		m.skip(items, due, SkipLost, "")
	}
	m.life.scheduler.bump()
}

// Changed implements execution.Owner: somebody else wrote the ledger.
func (m *member) Changed(l *ledger.Ledger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own(l)
}

// own takes over what the ledger says this instance owns.
func (m *member) own(l *ledger.Ledger) {
	changed := m.total != l.Total
	m.total = l.Total
	for n, it := range m.items {
		if _, still := l.Items[n]; !still {
			changed = true
			delete(m.items, n)
			m.life.unwatch(m.paths().Disabled(n), registry.Self)
			it.backlog = nil
		}
	}
	for n, rec := range l.Items {
		it := m.items[n]
		if it == nil {
			changed = true
			m.items[n] = &item{number: n, through: rec.Through, leaving: rec.Leaving}
			m.watchDisabled(n)
			continue
		}
		it.leaving = rec.Leaving
		if it.phase == itemIdle && m.held(it) {
			it.through, it.backlog = rec.Through, nil
		}
		m.catchUp(it)
	}
	if changed {
		m.emit(ItemsChanged{Job: m.name(), Items: m.numbers(), Total: m.total})
		m.life.scheduler.bump()
	}
	m.launch()
}

func (m *member) watchDisabled(n int) {
	m.life.watch(m.paths().Disabled(n), registry.Self, func(e registry.Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		it := m.items[n]
		if it == nil {
			return
		}
		if e.Synced {
			it.known = true
			m.catchUp(it)
			m.launch()
			return
		}
		it.disabled = e.Node.Exists()
	})
}

// numbers returns the owned items in ascending order.
func (m *member) numbers() []int {
	numbers := make([]int, 0, len(m.items))
	for n := range m.items {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// tickDelayed begins the items whose delay is over.
func (m *member) tickDelayed() {
	now := m.now()
	m.ticked = now
	d, _ := m.set.schedule.Delay()
	var disabled []int
	for _, n := range m.numbers() {
		it := m.items[n]
		if it.phase != itemIdle || !it.known || m.held(it) || len(it.backlog) > 0 || it.through.IsZero() {
			continue
		}
		due := it.through.Add(d)
		if due.After(now) {
			continue
		}
		if it.disabled || !m.serverEnabled {
			it.through = now
			disabled = append(disabled, n)
			continue
		}
		it.through = due
		it.backlog = append(it.backlog, due)
	}
	m.account(disabled, now)
	m.skip(disabled, now, SkipDisabled, "")
	m.launch()
	m.armDelayed()
}

// armDelayed sets the alarm to the first item whose delay ends.
func (m *member) armDelayed() {
	d, _ := m.set.schedule.Delay()
	var first time.Time
	for _, it := range m.items {
		if it.phase != itemIdle || !it.known || m.held(it) || it.through.IsZero() {
			continue
		}
		if due := it.through.Add(d); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	m.next, m.never = first, false
	if !first.IsZero() && m.firing {
		m.alarm.Set(first)
	}
}
