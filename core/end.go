package core

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// giveBack undoes a begin that is recorded, so that who owns the item next makes the fire up.
func (m *member) giveBack(it *item) {
	it.phase = itemEnding
	if m.rec != nil && m.set.Monitor {
		m.rec.End(it.number, it.due, it.due.Add(-time.Nanosecond))
	} else {
		it.phase = itemIdle
	}
}

// launchOf is the run of one item.
func (m *member) launchOf(n int, due time.Time, fence registry.Revision) launch {
	shard := Shard{
		Job: m.name(), Item: n, Total: m.total, Param: m.set.ItemParams[n], JobParam: m.set.Stored.JobParameter,
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
	m.emit(event.ItemEnded{Job: m.name(), Total: m.total, Item: n, Due: due, Err: err})
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
		m.emit(event.FireEnded{Job: m.name(), Due: due, Items: f.items, Failed: f.failed, Took: m.now().Sub(f.begun)})
	}
}

// end records the end of the fire in hand.
func (m *member) end(it *item) {
	through := it.through
	if len(it.backlog) > 0 {
		through = it.due
	}
	if _, fixed := m.set.Schedule.Delay(); fixed {
		through = m.now()
		it.through = through
	}
	it.phase = itemEnding
	if m.set.Monitor && m.rec != nil {
		m.rec.End(it.number, it.due, through)
		return
	}
	m.rest(it)
	m.launch()
}

// rest makes the item idle again.
func (m *member) rest(it *item) {
	it.phase, it.late = itemIdle, false
	if _, fixed := m.set.Schedule.Delay(); fixed {
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
