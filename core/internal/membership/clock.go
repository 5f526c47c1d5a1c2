package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

const (
	// compareEvery is how often a clock is compared with the leader's.
	compareEvery = time.Minute
	// compareSoon is how often one is that is off, or was not compared when it should have been.
	compareSoon = 10 * time.Second
	// answerWait is how long a start, or a clock that was set, waits for the leader's answer.
	answerWait = 5 * time.Second
	// askWait bounds one attempt to ask.
	askWait = 3 * time.Second
)

// A comparison is what a member knows of its clock beside the leader's, where the configuration
// bounds their difference. The member's mu guards it.
type comparison struct {
	task     *workqueue.Task
	next     *time.Timer // asks again
	patience *time.Timer // ends the wait for an answer
	node     string      // is watched, and made; "" while nothing is
	made     bool        // it stands, as far as is known
	number   int64       // of what was asked last
	open     bool        // that is not answered yet
	asked    time.Time   // when, by this clock
	since    time.Time   // and by the monotonic one
	bound    time.Duration
	begun    bool          // a start waits for it
	settled  bool          // compared once, or nobody is to compare with: a start may go on
	doubt    bool          // this clock was set, and not compared since
	off      string        // why nothing begins: the clock is off; "" while it is not, for all that is known
	worded   time.Duration // the bound that off names
	silent   string        // the leader that did not answer, and was told
}

// maxTimeDiff is how far this clock may be off, 0 for any distance. The caller holds mu.
func (m *Member) maxTimeDiff() time.Duration {
	return time.Duration(max(m.set.Stored.MaxTimeDiffSeconds, 0)) * time.Second
}

// comparing returns what is known of this clock, which nobody wants to know of most jobs. The caller holds mu.
func (m *Member) comparing() *comparison {
	if m.clock == nil {
		m.clock = &comparison{task: m.cfg.Session.Control.Task(m.compare)}
	}
	return m.clock
}

// still reports whether nothing may begin because of this clock. The caller holds mu.
func (m *Member) still() bool {
	if m.maxTimeDiff() == 0 || failpoint.Mutant(failpoint.ClockIgnored) {
		return false
	}
	c := m.comparing()
	return c.off != "" || c.doubt
}

// agrees reports whether the member may register, as far as clocks go. Where it is not known
// yet it asks, and the answer pokes. A clock that is off is an error.
func (m *Member) agrees() (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.maxTimeDiff() == 0 || m.former != nil { // what runs is registered again all the same
		return true, nil
	}
	c := m.comparing()
	switch {
	case c.off != "":
		return false, &field.Error{Job: m.name(), Field: "MaxTimeDiff", Problem: c.off}
	case !c.begun:
		c.begun = true
		c.task.Poke()
	}
	return c.settled, nil
}

// compare asks the leader what its clock says, and the answer comes by the watch of the node in
// which it is asked. It runs on a task.
func (m *Member) compare() {
	ctx := m.cfg.Session.Context
	m.mu.Lock()
	bound, l, unregistered := m.maxTimeDiff(), m.leader, m.stage < stageRegistered
	idle := m.paused || m.stage < stageWatching || m.stage == stageLeft || ctx.Err() != nil
	m.mu.Unlock()
	switch {
	case idle:
		return
	case bound == 0:
		m.compareNoMore(ctx)
		return
	}
	id, err := m.identify()
	if err != nil {
		return // registration says so
	}
	var leads string
	if l != nil {
		leads = l.Leading()
	} else {
		nodes, err := m.cfg.Session.Get(ctx, m.cfg.Job.Leader())
		if err != nil {
			m.compareAfter(time.Second)
			return
		}
		leads = string(nodes[0].Value)
	}
	switch {
	case leads == id: // its clock is the one that counts
		m.mu.Lock()
		m.clock.open = false
		m.mu.Unlock()
		m.conclude("", true)
	case leads == "" || layout.IsJava(leads): // what was found before stays, but hinders no start
		m.conclude("", unregistered)
	default:
		m.ask(ctx, id, leads, bound)
	}
}

// ask has one question stand in the registry.
func (m *Member) ask(ctx context.Context, id, leader string, bound time.Duration) {
	node := m.cfg.Job.Clock(id)
	m.mu.Lock()
	c := m.clock
	before, fresh := "", c.node != node
	if fresh {
		before, c.node, c.made = c.node, node, false
	}
	c.number++
	c.open, c.bound = true, bound
	c.asked, c.since = m.cfg.Now().Round(0), time.Now()
	number := c.number
	if c.patience != nil {
		c.patience.Stop()
	}
	c.patience = time.AfterFunc(answerWait, func() { m.unanswered(number, leader) })
	m.mu.Unlock()
	if before != "" { // of a registration before
		m.cfg.Session.Unfollow(before, registry.Self)
		m.forgetClock(ctx, before)
	}
	if fresh {
		m.cfg.Session.Follow(node, registry.Self, m.onClock)
	}
	if err := m.putQuestion(ctx, id, number); err != nil && ctx.Err() == nil && !errors.Is(err, registry.ErrSessionLost) {
		m.warn("the leader's clock cannot be asked for (MaxTimeDiff); trying again", err)
	}
	m.compareAfter(0)
}

// putQuestion writes it. Whichever of its attempts is applied last asks the same.
func (m *Member) putQuestion(ctx context.Context, id string, number int64) error {
	once, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	for pause := time.Duration(0); settle.Pause(once, pause); pause = min(max(2*pause, firstPause), lastPause) {
		m.mu.Lock()
		node, made, registered := m.clock.node, m.clock.made, m.stage >= stageRegistered && m.id == id
		value := layout.MarshalClock(layout.Clock{Number: number, Off: m.clock.off})
		m.mu.Unlock()
		var ops []registry.Op
		if registered { // else it could come to stand after the instance has left
			ops = append(ops, registry.Check(m.cfg.Job.Life(id), registry.AnyVersion))
		}
		if made {
			ops = append(ops, registry.Set(node, value, registry.AnyVersion))
		} else {
			ops = append(ops, registry.CreateEphemeral(node, value))
		}
		_, err := m.cfg.Session.Commit(once, ops...)
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case err == nil:
			made = true
		case refused && failed.Index < len(ops)-1:
			return nil // the registration is over; the next one asks
		case errors.Is(err, registry.ErrExists):
			made = true
		case errors.Is(err, registry.ErrNotFound):
			made = false
		case errors.Is(err, registry.ErrNoParent):
			if err := registry.EnsurePath(once, m.cfg.Session, m.cfg.Job.Clocks()); err != nil {
				return err
			}
		default:
			return err
		}
		m.mu.Lock()
		m.clock.made = made
		m.mu.Unlock()
		if err == nil {
			return nil
		}
	}
	return once.Err()
}

// onClock takes the leader's answer.
func (m *Member) onClock(e registry.Event) {
	if e.Synced {
		return
	}
	to, elapsed := m.cfg.Now().Round(0), time.Now()
	is, err := layout.UnmarshalClock(e.Node.Value)
	m.mu.Lock()
	c := m.clock
	if e.Node.Path == c.node && !e.Node.Exists() {
		c.made = false
	}
	if err != nil || !c.open || is.Number != c.number || is.Leader == "" || e.Node.Path != c.node {
		m.mu.Unlock()
		return
	}
	c.open = false
	c.patience.Stop()
	took := elapsed.Sub(c.since)
	from := earlier(c.asked, to.Add(-took)) // wherever in between this clock was set
	if after := c.asked.Add(took); to.Before(after) {
		to = after
	}
	bound := c.bound
	m.mu.Unlock()
	switch by, known := judge(from, to, is.At, bound); {
	case known && by != 0:
		m.conclude(offBy(by, to, is, bound), true)
	default:
		m.conclude("", known)
	}
}

// judge says by how far a clock is off another that said at when this one said something between
// from and to: 0 where it is within the bound. It is not known where both are possible.
func judge(from, to, at time.Time, bound time.Duration) (by time.Duration, known bool) {
	least, most := from.Sub(at), to.Sub(at)
	if least > bound || most < -bound {
		return least + (most-least)/2, true
	}
	return 0, least >= -bound && most <= bound
}

// offBy says it, with both times and what to do.
func offBy(by time.Duration, here time.Time, leader layout.Clock, bound time.Duration) string {
	const form = "2006-01-02 15:04:05.000Z"
	way := "ahead of"
	if by < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this host's clock says %s, that of the leader %s says %s: it is %v %s the leader's, and at most %v are allowed; "+
		"nothing begins here until they agree: set the clocks right (NTP; it is the leader's that counts), or raise MaxTimeDiff",
		here.UTC().Format(form), leader.Leader, leader.At.UTC().Format(form), by.Abs().Round(time.Millisecond), way, bound)
}

// conclude takes what a comparison has found: that the clock is off, and why, or that it is not;
// with known false, that nothing is known, and what was found before stays.
func (m *Member) conclude(off string, known bool) {
	m.mu.Lock()
	c := m.clock
	was, doubted, bound := c.off != "", c.doubt, c.bound
	c.doubt, c.settled = false, true
	if known && (off == "" || !was || c.worded != bound) { // else the first words stay: each comparison has others
		c.off, c.worded = off, bound
	}
	off = c.off
	is, registered := off != "", m.stage >= stageRegistered
	gone := m.maxTimeDiff() == 0
	m.mu.Unlock()
	if is != was && registered {
		if is {
			m.warn("the clock is off: "+off, nil)
		} else if !gone {
			m.warn(fmt.Sprintf("the clock agrees with the leader's again, within %v: what came due meanwhile is decided as missed", bound), nil)
		}
	}
	if doubted || is != was {
		m.putInForce()
		m.look()
		m.believe()
	}
	if !registered {
		m.task.Poke() // its start waits for it
	}
	switch {
	case gone:
	case is != was && registered:
		c.task.Poke() // so that tools see it
	default:
		m.compareAfter(0)
	}
}

// compareAfter has the clocks compared again, after a while that the state says, or after.
func (m *Member) compareAfter(after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clock
	switch {
	case m.paused || m.stage == stageLeft:
		return
	case after > 0:
	case c.off != "" || c.open || m.leader == nil:
		after = compareSoon
	default:
		after = compareEvery
	}
	if c.next != nil {
		c.next.Stop()
	}
	c.next = time.AfterFunc(after, c.task.Poke)
}

// unanswered goes on without an answer: the leader may be of a version that gives none.
func (m *Member) unanswered(number int64, leader string) {
	m.mu.Lock()
	c := m.clock
	over := !c.open || c.number != number || m.paused || m.stage == stageLeft || m.cfg.Session.Context.Err() != nil
	tell := !over && c.silent != leader
	if tell {
		c.silent = leader
	}
	m.mu.Unlock()
	if over {
		return
	}
	if tell {
		m.warn(fmt.Sprintf("the leader %s has not said within %v what its clock says: this one is not compared with it (MaxTimeDiff)", leader, answerWait), nil)
	}
	m.conclude("", false)
}

// doubtClock says that this clock was set: nothing begins by it until it is compared.
func (m *Member) doubtClock() {
	m.mu.Lock()
	l, id := m.leader, m.id
	doubt := m.maxTimeDiff() > 0 && m.stage == stageFiring && l != nil
	if doubt {
		leads := l.Leading()
		doubt = leads != "" && leads != id && !layout.IsJava(leads)
	}
	if doubt {
		m.comparing().doubt = true
	}
	c := m.clock
	m.mu.Unlock()
	if doubt {
		m.putInForce()
		c.task.Poke()
	}
}

// compareNoMore forgets all of it: the configuration allows any difference.
func (m *Member) compareNoMore(ctx context.Context) {
	m.mu.Lock()
	c := m.clock
	node := c.node
	m.stopComparing()
	c.node, c.made, c.open = "", false, false
	m.mu.Unlock()
	if node == "" {
		return
	}
	m.cfg.Session.Unfollow(node, registry.Self)
	m.forgetClock(ctx, node)
	m.conclude("", true)
}

// forgetClock removes a node of this session's. What is left goes with the session.
func (m *Member) forgetClock(ctx context.Context, node string) {
	once, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	_, _ = m.cfg.Session.Commit(once, registry.Delete(node, registry.AnyVersion))
}

// stopComparing stops the timers. The caller holds mu.
func (m *Member) stopComparing() {
	if m.clock == nil {
		return
	}
	for _, t := range []*time.Timer{m.clock.next, m.clock.patience} {
		if t != nil {
			t.Stop()
		}
	}
}
