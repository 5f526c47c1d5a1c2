package core

import (
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/execution"
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
	if _, fixed := m.set.Schedule.Delay(); fixed {
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

// arm sets the alarm to the first fire after t.
func (m *member) arm(t time.Time) {
	if m.stopping || !m.firing {
		return
	}
	if _, fixed := m.set.Schedule.Delay(); fixed {
		m.armDelayed()
		return
	}
	next, ok := m.set.Schedule.Next(t)
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
	m.skip(behind, due, skipClock, "a clock was set back, or is behind the one of the instance that ran it")
	m.skip(disabled, due, event.SkipDisabled, "")
	m.skip(busy, due, event.SkipRunning, "")
}

func (m *member) skip(items []int, due time.Time, why event.SkipReason, detail string) {
	if len(items) > 0 {
		m.emit(skipped(m.name(), items, due, why, detail))
	}
}

// account records skipped fires of items that do not run, where there is a record.
func (m *member) account(items []int, through time.Time) {
	if len(items) > 0 && m.set.Monitor && m.rec != nil {
		m.rec.Account(items, through)
	}
}

// enqueue appends a fire to the item's backlog, within the limit.
func (m *member) enqueue(it *item, due time.Time) {
	it.through = due
	it.backlog = append(it.backlog, due)
	if n := len(it.backlog) - makeUpLimit; n > 0 {
		e := skipped(m.name(), []int{it.number}, it.backlog[n-1], event.SkipMissed, "")
		e.Count = n
		m.emit(e)
		it.backlog = slices.Delete(it.backlog, 0, n)
	}
}

// held reports whether the item begins nothing for now.
func (m *member) held(it *item) bool { return it.leaving || m.total != m.set.Stored.ShardingTotalCount }

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
		if m.set.Monitor {
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
	m.skip(stale, due, event.SkipRunning, "its function has not returned since the session before was lost")
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
	m.emit(event.FireBegun{Job: m.name(), Due: due, Items: run, Late: now.Sub(due), MadeUp: due.Before(m.ticked)})
	for _, n := range run {
		m.job.start(m.launchOf(n, due, fence))
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
		m.skip(items, due, skipClock, "")
	case execution.Elsewhere:
		m.skip(items, due, event.SkipRunningElsewhere, detail)
	case execution.Lost:
		m.skip(items, due, skipLost, "")
	}
	m.life.scheduler.bump()
}
