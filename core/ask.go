package core

import (
	"slices"
	"strings"

	"github.com/elasticron/elasticron/internal/layout"
)

// State says what the scheduler and its jobs are doing now. It costs no request.
func (s *Scheduler) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Stopping: s.stopping}
	if s.life != nil {
		st.Session, st.Deadline = s.life.session.ID(), s.life.session.Deadline()
	}
	for _, j := range s.jobs {
		st.Jobs = append(st.Jobs, j.state())
	}
	return st
}

func (j *job) state() JobState {
	j.mu.Lock()
	st := JobState{Name: j.local.Name, Phase: j.phase, Err: j.err, WaitingFor: j.wait}
	m := j.member
	j.mu.Unlock()
	st.Running = j.runningItems()
	if m == nil {
		return st
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.id.Life != "" {
		st.Instance = m.id.String()
	}
	st.Leader, st.Total, st.Items = m.leader, m.total, m.numbers()
	st.Next, st.Never = m.next, m.never
	for id := range m.instances {
		st.Instances = append(st.Instances, id)
	}
	slices.Sort(st.Instances)
	return st
}

func (j *job) phaseNow() Phase {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.phase
}

func (s *Scheduler) jobError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[0]
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// quiet reports whether no item of any job is in hand or has a function running.
func (l *life) quiet() bool {
	for _, m := range l.all() {
		if !m.quiet() || len(m.job.runningItems()) > 0 {
			return false
		}
	}
	return true
}

// ipOf is the server of an instance id.
func ipOf(id string) string {
	ip, _, _ := strings.Cut(id, "@-@")
	return ip
}

func itemNumber(name string) (int, bool) { return layout.ParseItem(name) }
