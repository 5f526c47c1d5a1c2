package leading

import (
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A Memory is what a process has seen of the base, the schedule and the claim in force of a job, over its
// registrations and sessions. Where somebody deletes such a node, or writes nonsense to it, the leader
// makes it again as it was: nothing else says where the epoch began, which schedule was in force before,
// and which rounds somebody was called for. Nor is a run that was asked for given the number of another:
// records say of a number that it was begun. The zero Memory has seen nothing. It is safe for concurrent use.
type Memory struct {
	mu                    sync.Mutex
	epoch                 int // of base
	base, schedule, claim seenValue
	run                   int64
	requests              map[string]sight // that stand, by path
	before                map[string]sight // as they were when the session before ended
}

// A sight is a node that was seen, and since when; zero: it stood before anybody here looked.
type sight struct {
	created registry.Revision
	since   time.Time
}

// A seenValue is a value that could be read, and the state of the node that had it.
type seenValue struct {
	value    []byte
	modified registry.Revision
}

func (v *seenValue) saw(n registry.Node) {
	if n.Modified > v.modified {
		*v = seenValue{n.Value, n.Modified}
	}
}

// Anew says that a session has been opened. What is seen in it counts, whatever was seen before: the registry may have
// been restored from a backup, or be another one, with revisions and epochs of its own. What is not seen in it is kept.
func (m *Memory) Anew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch = 0
	for _, v := range []*seenValue{&m.base, &m.schedule, &m.claim} {
		v.modified = 0
	}
	m.before, m.requests = m.requests, nil
}

// SawRequest notes that a request stands, or stands no more. made: it was made while this process looked, so that it
// knows how long it has stood, whatever any clock says.
func (m *Memory) SawRequest(n registry.Node, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !n.Exists() {
		delete(m.requests, n.Path)
		delete(m.before, n.Path)
		return
	}
	for _, known := range []map[string]sight{m.requests, m.before} {
		if s, is := known[n.Path]; is && s.created == n.Created {
			lazymap.Set(&m.requests, n.Path, s)
			return
		}
	}
	s := sight{created: n.Created}
	if made {
		s.since = time.Now()
	}
	lazymap.Set(&m.requests, n.Path, s)
}

// stands is how long a request has stood, by this process's own stopwatch; false: it stood before it looked.
func (m *Memory) stands(n registry.Node) (time.Duration, bool) {
	m.SawRequest(n, true) // what no watch has shown yet has just been made
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.requests[n.Path]
	return time.Since(s.since), !s.since.IsZero()
}

// SawBase keeps a base that could be read, b of n, unless a later epoch is known.
func (m *Memory) SawBase(n registry.Node, b layout.Base) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.Epoch >= m.epoch && checkBase(b) == nil {
		m.base.saw(n)
		m.epoch = b.Epoch
	}
}

// SawSchedule keeps a schedule that could be read.
func (m *Memory) SawSchedule(n registry.Node) { m.saw(&m.schedule, n) }

// SawClaim keeps a claim that could be read.
func (m *Memory) SawClaim(n registry.Node) { m.saw(&m.claim, n) }

func (m *Memory) saw(v *seenValue, n registry.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v.saw(n)
}

// SawRun keeps the number of a run that was asked for, unless a higher one is known.
func (m *Memory) SawRun(number int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if Believable(number) {
		m.run = max(m.run, number)
	}
}

// Believable reports whether a number can be that of a run. One that somebody has made up may be so high that there is none
// after it.
func Believable(number int64) bool { return number > 0 && number < ledger.MaxCount }

// baseOf reads a base. One whose numbers cannot be worked with is nobody's.
func baseOf(value []byte) (layout.Base, error) {
	b, err := layout.UnmarshalBase(value)
	if err == nil {
		err = checkBase(b)
	}
	return b, err
}

func checkBase(b layout.Base) error {
	if b.To > ledger.MaxTotal || int64(b.Epoch) >= ledger.MaxCount {
		return fmt.Errorf("core: a base of epoch %d, with %d items: there is none such", b.Epoch, b.To)
	}
	return nil
}

// wroteBase keeps a base that the leader has written in place of the one it had seen.
func (m *Memory) wroteBase(b layout.Base) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base.value, m.epoch = layout.MarshalBase(b), b.Epoch
}

// wrote keeps what the leader has written in place of the value that it had seen.
func (m *Memory) wrote(v *seenValue, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v.value = value
}

// seen is the value that was seen last, nil: none.
func (m *Memory) seen(v *seenValue) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return v.value
}

// lastBase is the base as it was seen last, nil: never.
func (m *Memory) lastBase() *layout.Base {
	b, err := baseOf(m.seen(&m.base))
	if err != nil {
		return nil
	}
	return &b
}

// lastRun is the highest number of a run that was seen, 0: none.
func (m *Memory) lastRun() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.run
}

// remembered is what a node holds. Where it stands no more, or holds nonsense, it is what was seen of it last: by that
// all members go. It is zero where nothing was.
func remembered[T any](l *Leader, n registry.Node, last *seenValue, what string, unmarshal func([]byte) (T, error)) (was T, stands bool) {
	was, err := unmarshal(n.Value)
	switch {
	case n.Exists() && err == nil:
		l.cfg.Memory.saw(last, n)
		return was, true
	case n.Exists():
		l.warn("the node "+n.Path+" holds no "+what+"; it is made again", err)
	}
	was, _ = unmarshal(l.cfg.Memory.seen(last)) // of no value it is zero
	return was, false
}
