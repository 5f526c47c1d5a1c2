package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// An observation is what one run of a case has opened and injected. It tells a machine
// that stands still from an adapter that is broken, and a fault that hit from one that
// did nothing.
type observation struct {
	Harness

	proofs *proofs

	mu       sync.Mutex
	sessions []*observed
	counts   map[string]*count
	fates    []plannedFate
	used     map[string]bool // the proofs that are asked for: kinds, with their directions
	headless time.Duration   // how long it took at most until another member led
}

// A plannedFate is one that NextCommit was asked for.
type plannedFate struct {
	kind string
	hit  func() bool
}

// A count is how often a kind of fault was injected, and how often it hit.
type count struct{ injected, hit int }

func observe(h Harness) *observation {
	o := &observation{proofs: &proofs{}, counts: map[string]*count{}, used: map[string]bool{}}
	if shared, is := h.(sharedProofs); is {
		h, o.proofs = shared.Harness, shared.proofs
	}
	o.Harness = h
	return o
}

// observed is a session whose end is known to be the case's doing, or not.
type observed struct {
	registry.Session

	mu     sync.Mutex
	harmed bool // the case has closed it, or has had it ended, while it lived
	ended  bool // a fault may have ended it
	faults int  // that keep it from the service now
}

func (s *observed) Close(ctx context.Context) error {
	s.harm()
	return s.Session.Close(ctx)
}

// harm says that what ends the session from now on is the case's doing. What was lost
// before stays lost by itself, whoever closes it afterwards.
func (s *observed) harm() {
	lost := errors.Is(s.Err(), registry.ErrSessionLost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.harmed = s.harmed || !lost
}

// suffer begins a fault that keeps the session from the service. One that is healed while the session has at least spare
// to live is no reason to lose it.
func (s *observed) suffer(spare time.Duration) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Err() != nil {
		return func() {}
	}
	s.faults++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults--
		s.ended = s.ended || s.Err() != nil || time.Until(s.Deadline()) < spare
	})
}

// lostByItself says whether the session was lost and nothing that was done to it explains that.
func (s *observed) lostByItself() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.harmed && !s.ended && s.faults == 0 && s.Err() != nil
}

// lost says whether the session ended, and not by what the case did to it alone.
func (s *observed) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.harmed && s.Err() != nil
}

func inner(s registry.Session) registry.Session {
	if l, is := s.(*lifelessSession); is {
		return inner(l.Session)
	}
	if o, is := s.(*observed); is {
		return o.Session
	}
	return s
}

// unobserved opens sessions that nobody remembers.
func unobserved(r registry.Registry) registry.Registry {
	if o, is := r.(*observedRegistry); is {
		return o.Registry
	}
	return r
}

// observedRegistry hands out observed sessions.
type observedRegistry struct {
	registry.Registry

	o *observation

	mu   sync.Mutex
	open []*observed
}

func (r *observedRegistry) Open(ctx context.Context) (registry.Session, error) {
	s, err := r.Registry.Open(ctx)
	if err != nil {
		return nil, err
	}
	seen := &observed{Session: s}
	r.mu.Lock()
	r.open = append(r.open, seen)
	r.mu.Unlock()
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	r.o.sessions = append(r.o.sessions, seen)
	return seen, nil
}

func (r *observedRegistry) Close() error {
	r.mu.Lock()
	for _, s := range r.open {
		s.harm()
	}
	r.mu.Unlock()
	return r.Registry.Close()
}

func (o *observation) Registry(ctx context.Context, t testing.TB) registry.Registry {
	return &observedRegistry{Registry: o.Harness.Registry(ctx, t), o: o}
}

func (o *observation) LateRegistry(ctx context.Context, t testing.TB) registry.Registry {
	if late, special := o.Harness.(LateHarness); special {
		return &observedRegistry{Registry: late.LateRegistry(ctx, t), o: o}
	}
	return o.Registry(ctx, t)
}

func (o *observation) RegistryIn(ctx context.Context, t testing.TB, namespace string) registry.Registry {
	h, can := o.Harness.(NamespaceHarness)
	if !can {
		return nil
	}
	return &observedRegistry{Registry: h.RegistryIn(ctx, t, namespace), o: o}
}

// lostByThemselves are the sessions that were lost though nothing that explains it was done to them.
func (o *observation) lostByThemselves() (lost []registry.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.sessions {
		if s.lostByItself() {
			lost = append(lost, s)
		}
	}
	return lost
}

// excuse says why a failure may be the machine's doing, "" where nothing speaks for that, and how often its case is tried
// at most.
func (o *observation) excuse(seen slowness) (why string, most int) {
	if why := seen.excuse(o); why != "" {
		return why, stalledAttempts
	}
	if lost := o.lostByThemselves(); len(lost) > 0 {
		return fmt.Sprintf("session %s was lost without a fault that explains it: %v", lost[0].ID(), lost[0].Err()), attempts
	}
	if lost, without := o.lostWithoutLeader(); lost != nil {
		return fmt.Sprintf("session %s was lost, and no member led for %v", lost.ID(), without.Round(time.Millisecond)), attempts
	}
	return "", 1
}

// lostWithoutLeader is a session that was lost where no member led for longer than a quarter of a session timeout, which
// is how long the other faults last that a session has to outlive: nil where there is none.
func (o *observation) lostWithoutLeader() (lost registry.Session, without time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.headless <= o.SessionTimeout()/4 {
		return nil, 0
	}
	for _, s := range o.sessions {
		if s.lost() {
			return s, o.headless
		}
	}
	return nil, 0
}

func (o *observation) count(kind string, injected, hit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used[kind] = true
	kind, _, _ = strings.Cut(kind, " ")
	c := o.counts[kind]
	if c == nil {
		c = &count{}
		o.counts[kind] = c
	}
	c.injected += injected
	c.hit += hit
}

// disturbance is a kind of fault that was used and that everybody feels who uses the service; "" where none was.
func (o *observation) disturbance() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range []string{kindPause, kindRestart, kindLoseLeader, kindDeny} {
		if o.used[kind] {
			return kind
		}
	}
	return ""
}

func (o *observation) planned() []plannedFate {
	o.mu.Lock()
	defer o.mu.Unlock()
	planned := o.fates
	o.fates = nil
	return planned
}

// void says which kind of fault was injected and never hit, or does nothing at all.
func (o *observation) void(ctx context.Context) string {
	for _, f := range o.planned() {
		if f.hit() {
			o.count(f.kind, 0, 1)
		}
	}
	o.mu.Lock()
	kinds := make(map[string]count, len(o.counts))
	for kind, c := range o.counts {
		kinds[kind] = *c
	}
	used := maps.Clone(o.used)
	o.mu.Unlock()
	for kind, c := range kinds {
		if c.hit == 0 {
			return fmt.Sprintf("the fault %s was injected %d times and has hit nothing", kind, c.injected)
		}
	}
	for kind := range used {
		if problem := o.proofs.of(ctx, o.Harness, kind); problem != "" {
			return fmt.Sprintf("the fault %s does not do what it says: %s", kind, problem)
		}
	}
	return ""
}

func (o *observation) Faults() Faults { return &observedFaults{o, o.Harness.Faults()} }

// observedFaults counts each kind of fault for itself.
type observedFaults struct {
	o *observation
	Faults
}

// on injects a fault of one session, and counts it as hit if Hits rises until heal.
func (f *observedFaults) on(kind string, s registry.Session, inject func(registry.Session) (func(), error)) (func(), error) {
	before := f.Hits(s)
	over := func() {}
	if o, is := s.(*observed); is && kind != kindDelay { // what is slow is not lost
		over = o.suffer(f.o.spare())
	}
	heal, err := inject(inner(s))
	if err != nil || heal == nil {
		over()
		return func() {}, err
	}
	f.o.count(kind, 1, 0)
	return sync.OnceFunc(func() {
		heal()
		over()
		if f.Hits(s) > before {
			f.o.count(kind, 0, 1)
		}
	}), nil
}

func (f *observedFaults) harm(s registry.Session) {
	if o, is := s.(*observed); is {
		o.harm()
	}
}

// spare is what a session needs to find the service again.
func (o *observation) spare() time.Duration { return o.SessionTimeout() / 5 }

// suffer begins a fault of the whole service.
func (o *observation) suffer() (heal func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	heals := make([]func(), len(o.sessions))
	for i, s := range o.sessions {
		heals[i] = s.suffer(o.spare())
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

func (f *observedFaults) Hits(s registry.Session) int { return f.Faults.Hits(inner(s)) }

func (f *observedFaults) Expire(s registry.Session) error {
	f.harm(s)
	err := f.Faults.Expire(inner(s))
	if err == nil {
		f.o.count(kindExpire, 1, 1)
	}
	return err
}

// Drop counts as one with the others of its kind: there may be nothing to cut.
func (f *observedFaults) Drop(s registry.Session) error {
	before := f.Hits(s)
	err := f.Faults.Drop(inner(s))
	if err == nil {
		f.o.count(kindDrop, 1, min(1, f.Hits(s)-before))
	}
	return err
}

func (f *observedFaults) Blackhole(s registry.Session, d Direction) (func(), error) {
	return f.on(kindBlackhole+" "+d.String(), s, func(s registry.Session) (func(), error) { return f.Faults.Blackhole(s, d) })
}

func (f *observedFaults) Refuse(s registry.Session) (func(), error) {
	return f.on(kindRefuse, s, f.Faults.Refuse)
}

func (f *observedFaults) NextCommit(s registry.Session, fate Fate) (func() bool, error) {
	hit, err := f.Faults.NextCommit(inner(s), fate)
	if err != nil {
		return hit, err
	}
	f.o.count(fate.String(), 1, 0)
	if fate == AppliedLate {
		f.harm(s) // the client may be kept away
		f.o.proofs.begin(f.o.Harness, fate.String())
	}
	f.o.mu.Lock()
	defer f.o.mu.Unlock()
	f.o.fates = append(f.o.fates, plannedFate{fate.String(), hit})
	return hit, nil
}

func (f *observedFaults) PauseServer() (func(), error) {
	heal := f.o.suffer()
	resume, err := f.Faults.PauseServer()
	if err != nil {
		heal()
		return resume, err
	}
	f.o.count(kindPause, 1, 1) // the case proves it: caseRun.pause
	return func() {
		resume()
		heal()
	}, nil
}

// RestartServer is proved each time: it breaks a commit that waits for its answer.
func (f *observedFaults) RestartServer() error {
	defer f.o.suffer()()
	f.o.count(kindRestart, 1, 0)
	var took time.Duration
	broke, err := f.waiting(func() error {
		started := time.Now()
		defer func() { took = time.Since(started) }()
		return f.Faults.RestartServer()
	})
	// What took so long was more than nothing, and the commit's session may not have outlived it.
	if err == nil && (broke || took > f.o.SessionTimeout()/4) {
		f.o.count(kindRestart, 0, 1)
	}
	return err
}

// waiting lets a commit wait for its answer while fault is injected, and says whether
// that broke it.
func (f *observedFaults) waiting(fault func() error) (broke bool, err error) {
	p, err := newProbe(f.o.Harness)
	if err != nil {
		return false, errors.Join(err, fault())
	}
	defer p.close()
	heal, err := f.Faults.Blackhole(p.s, Answers)
	if err != nil {
		return false, errors.Join(err, fault())
	}
	defer heal()
	answered := p.commitInFlight()
	if isClosed(answered) {
		return false, fault() // its answer was not swallowed
	}
	if err := fault(); err != nil {
		return false, err
	}
	select {
	case <-answered:
		return p.s.Err() == nil, nil
	case <-time.After(f.o.SessionTimeout() / 2):
		return false, nil
	}
}

func (f *observedFaults) LoseLeader() error {
	defer f.o.suffer()()
	leaders, can := f.o.Harness.(LeaderHarness)
	if !can {
		err := f.Faults.LoseLeader()
		if err == nil {
			f.o.count(kindLoseLeader, 1, 1)
		}
		return err
	}
	before, err := leaders.Leader()
	if err != nil {
		return err
	}
	changed := f.o.changeOfLeader(leaders, before)
	err = f.Faults.LoseLeader()
	changed()
	if err != nil {
		return err
	}
	after, err := leaders.Leader()
	f.o.count(kindLoseLeader, 1, boolToInt(err == nil && after != before))
	return err
}

// changeOfLeader takes the time from now on until another member leads. The fault that changes it is over when end is
// called, which joins what looks for it.
func (o *observation) changeOfLeader(h LeaderHarness, before string) (end func()) {
	begun, over := time.Now(), make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for leader := before; leader == before && !isClosed(over); {
			var err error
			if leader, err = h.Leader(); err != nil {
				return
			}
			select {
			case <-over:
			case <-time.After(pollEvery):
			}
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.headless = max(o.headless, time.Since(begun))
	})
	return func() { close(over); looking.Wait() }
}

func (f *observedFaults) ForgetHistory() error {
	h, can := f.o.Harness.(HistoryHarness)
	err := f.Faults.ForgetHistory()
	if err != nil {
		return err
	}
	f.o.count(kindForget, 1, boolToInt(!can || h.Forgot()))
	return nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f *observedFaults) StallMember(s registry.Session) (func(), error) {
	return f.on(kindStall, s, func(s registry.Session) (func(), error) {
		m, can := f.Faults.(MemberFaults)
		if !can {
			return func() {}, fmt.Errorf("%w: Faults does not implement conformance.MemberFaults", ErrUnsupported)
		}
		return m.StallMember(s)
	})
}

func (f *observedFaults) Delay(s registry.Session, d time.Duration) (func(), error) {
	return f.on(kindDelay, s, func(s registry.Session) (func(), error) {
		m, can := f.Faults.(DelayFaults)
		if !can {
			return func() {}, fmt.Errorf("%w: Faults does not implement conformance.DelayFaults", ErrUnsupported)
		}
		return m.Delay(s, d)
	})
}

// Deny counts as hit; the case looks at what is denied.
func (f *observedFaults) Deny(path string) (func(), error) {
	m, can := f.Faults.(DenyFaults)
	if !can {
		return func() {}, fmt.Errorf("%w: Faults does not implement conformance.DenyFaults", ErrUnsupported)
	}
	f.o.count(kindDeny, 1, 1)
	return m.Deny(path)
}
