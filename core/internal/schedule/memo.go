package schedule

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// A memo remembers the fires of a cron expression that were found last. Jobs of one expression fire
// together, and each of them asks for the same few fires.
type memo struct {
	found [4]atomic.Pointer[found]
	turn  atomic.Uint32
}

// A found fire is the first one after each instant from the second after on, up to the fire itself.
type found struct {
	after int64 // Unix time
	fire  time.Time
}

// next returns what is remembered, or else what find finds. The answer is the same for all instants of a
// second, since expressions know nothing finer.
func (m *memo) next(after time.Time, find func(after time.Time) (time.Time, bool)) (time.Time, bool) {
	second := after.Unix()
	for i := range m.found {
		if f := m.found[i].Load(); f != nil && f.after <= second && second < f.fire.Unix() {
			return f.fire, true
		}
	}
	fire, ok := find(after)
	if ok {
		m.found[int(m.turn.Add(1))%len(m.found)].Store(&found{second, fire})
	}
	return fire, ok
}

// A shelf has the schedules in use, so that jobs of one configuration have one. The zero shelf is ready for use.
type shelf struct {
	mu        sync.Mutex
	schedules map[Config]weak.Pointer[Schedule]
}

var inUse shelf

// schedule returns the schedule of a configuration that is in use, or else a new one. Those of the local zone are
// not shared: it is what time.Local is at the moment.
func (s *shelf) schedule(c Config) (*Schedule, error) {
	if c.Zone == "" {
		return build(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if used := s.schedules[c].Value(); used != nil {
		return used, nil
	}
	made, err := build(c)
	if err != nil {
		return nil, err
	}
	if s.schedules == nil {
		s.schedules = map[Config]weak.Pointer[Schedule]{}
	}
	s.schedules[c] = weak.Make(made)
	runtime.AddCleanup(made, s.forget, c)
	return made, nil
}

// forget drops what nobody uses any more.
func (s *shelf) forget(c Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schedules[c].Value() == nil {
		delete(s.schedules, c)
	}
}
