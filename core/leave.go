package core

import (
	"context"
	"errors"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// Gone implements execution.Owner: this registration is over.
func (m *member) Gone(err error) {
	if m.life.ctx.Err() != nil || errors.Is(m.life.session.Err(), registry.ErrSessionLost) {
		return // the whole life is
	}
	m.mu.Lock()
	m.dead = err
	m.mu.Unlock()
	m.task.Poke()
}

// replace registers the job anew after its life or ledger was deleted from outside.
func (m *member) replace(cause error) {
	m.warn("the registration was removed from outside; registering again", cause)
	m.job.enter(PhaseStarting, nil)
	m.halt(registry.ErrSessionLost)
	m.unwatchAll()
	m.life.join(m.job)
}

// halt stops firing and cancels runs.
func (m *member) halt(cause error) {
	m.mu.Lock()
	m.stopping, m.firing = true, false
	rec := m.rec
	m.mu.Unlock()
	m.alarm.Clear()
	m.check.Clear()
	m.stop(cause)
	if rec != nil {
		rec.Drop(cause)
	}
}

func (m *member) unwatchAll() {
	for _, p := range []string{m.path.Servers(), m.path.Instances(), m.path.Lives(), m.path.ShardingState()} {
		m.life.unwatch(p, registry.Children)
	}
	for _, p := range []string{m.path.Config(), m.path.Leader(), m.path.Notice(m.id.String())} {
		m.life.unwatch(p, registry.Self)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.items {
		m.life.unwatch(m.path.Disabled(n), registry.Self)
	}
	for n := range m.waitFor {
		m.life.unwatch(m.path.Running(n), registry.Self)
	}
}

// quiet reports whether no item is in hand.
func (m *member) quiet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, it := range m.items {
		if it.phase != itemIdle {
			return false
		}
	}
	return true
}

// pause begins nothing more; what runs goes on.
func (m *member) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = true
	m.alarm.Clear()
	m.check.Clear()
	for _, it := range m.items {
		it.backlog = nil
	}
}

// leave ends this instance alone, after what runs has ended.
func (m *member) leave(ctx context.Context) error {
	m.pause()
	id := m.id.String()
	m.mu.Lock()
	at, led, leader := m.stage, m.led, m.leader
	m.mu.Unlock()
	if at == stageLeft {
		return nil
	}
	if led {
		if err := m.abdicate(ctx, leader == id); err != nil {
			return err
		}
	}
	if !m.quiet() {
		return nil // Ended pokes again
	}
	_, err := m.life.session.Commit(ctx, registry.Delete(m.path.Life(id), registry.AnyVersion))
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	m.reach(stageLeft)
	m.halt(ErrStopped)
	m.unwatchAll()
	m.job.enter(PhaseStopped, nil)
	m.emit(event.Stopped{Job: m.name(), Instance: id, Reason: event.StopShutDown})
	return nil
}
