package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// Kinds of faults, as they are counted. A Blackhole's direction follows; a Fate is its own.
const (
	kindExpire     = "Expire"
	kindDrop       = "Drop"
	kindBlackhole  = "Blackhole"
	kindRefuse     = "Refuse"
	kindPause      = "PauseServer"
	kindRestart    = "RestartServer"
	kindLoseLeader = "LoseLeader"
	kindForget     = "ForgetHistory"
	kindStall      = "StallMember"
	kindDelay      = "Delay"
	kindDeny       = "Deny"
)

// proofs are the self-tests of one harness: each kind of fault that somebody used is
// tried once, on clients of its own, and has to do what it says. What is broken in the
// adapter may spoil one; so they count only for cases that pass.
type proofs struct {
	witness   atomic.Pointer[witness] // of the service; nil while it may be paused
	turnstile turnstile               // of the attempts of the cases that share the proofs

	mu   sync.Mutex
	kind map[string]*proof
}

type proof struct {
	done    chan struct{}
	problem string // once done
}

// sharedProofs is a harness with the proofs that its cases share.
type sharedProofs struct {
	Harness

	proofs *proofs
}

// begin starts the proof of a kind, unless it was; nil: the kind is proved elsewhere.
func (p *proofs) begin(h Harness, kind string) *proof {
	try := selfTests()[kind]
	if try == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kind == nil {
		p.kind = map[string]*proof{}
	}
	if known := p.kind[kind]; known != nil {
		return known
	}
	one := &proof{done: make(chan struct{})}
	p.kind[kind] = one
	go func() {
		defer close(one.done)
		for range stalledAttempts {
			end := watchSlowness(p)
			one.problem = prove(h, try)
			if seen := end(); one.problem == "" || seen.excuse(h) == "" {
				return
			}
		}
	}()
	return one
}

func prove(h Harness, try func(*probe) string) (problem string) {
	probe, err := newProbe(h)
	if err != nil {
		return err.Error()
	}
	defer probe.close()
	return try(probe)
}

// of waits for the proof of a kind and returns what is wrong with it.
func (p *proofs) of(ctx context.Context, h Harness, kind string) string {
	one := p.begin(h, kind)
	if one == nil {
		return ""
	}
	select {
	case <-one.done:
		return one.problem
	case <-ctx.Done():
		<-one.done // it has a time of its own
		return one.problem
	}
}

// selfTests returns "" or what a fault did not do, by kind.
func selfTests() map[string]func(*probe) string {
	return map[string]func(*probe) string{
		kindExpire:                              (*probe).expire,
		kindDrop:                                (*probe).drop,
		kindRefuse:                              (*probe).refuse,
		kindBlackhole + " " + Both.String():     func(p *probe) string { return p.blackhole(Both) },
		kindBlackhole + " " + Requests.String(): func(p *probe) string { return p.blackhole(Requests) },
		kindBlackhole + " " + Answers.String():  func(p *probe) string { return p.blackhole(Answers) },
		AnswerLost.String():                     func(p *probe) string { return p.fate(AnswerLost) },
		RequestLost.String():                    func(p *probe) string { return p.fate(RequestLost) },
		AppliedLate.String():                    func(p *probe) string { return p.fate(AppliedLate) },
		kindDelay:                               (*probe).delay,
	}
}

// A probe is two clients of a harness: one to harm, and one to look on.
type probe struct {
	h       Harness
	faults  Faults
	rec     *recorder
	ctx     context.Context
	cancel  context.CancelFunc
	s, eyes registry.Session
	dir     string
	work    sync.WaitGroup
}

const probeTime = 15 * time.Second

func newProbe(h Harness) (*probe, error) {
	p := &probe{h: h, faults: h.Faults(), rec: &recorder{}, dir: "/probe-" + strings.ToLower(rand.Text()[:10])}
	p.ctx, p.cancel = context.WithTimeout(context.Background(), probeTime)
	var err error
	protect(p.rec, func() {
		// Late ones outlive that their client is kept away.
		reg := observe(h).LateRegistry(p.ctx, p.rec)
		if p.s, err = reg.Open(p.ctx); err != nil {
			return
		}
		p.s = inner(p.s)
		if p.eyes, err = h.Registry(p.ctx, p.rec).Open(p.ctx); err != nil {
			return
		}
		err = registry.EnsurePath(p.ctx, p.eyes, p.dir)
	})
	if failed, text := p.rec.result(); err == nil && failed {
		err = fmt.Errorf("the harness failed: %s", text)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("its self-test could not begin: %w", err)
	}
	return p, nil
}

func (p *probe) close() {
	p.cancel()
	ended, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if p.eyes != nil {
		_ = registry.DeleteTree(ended, p.eyes, p.dir)
		_ = p.eyes.Close(ended)
	}
	if p.s != nil {
		_ = p.s.Close(ended)
	}
	p.work.Wait()
	p.rec.cleanup()
}

// soon polls for half a timeout: less than it takes a session to expire.
func (p *probe) soon(ok func() bool) bool {
	until := time.Now().Add(max(p.h.SessionTimeout()/2, 500*time.Millisecond))
	for !ok() {
		if time.Now().After(until) || p.ctx.Err() != nil {
			return false
		}
		<-time.After(pollEvery)
	}
	return true
}

func (p *probe) exists(path string) bool {
	if err := p.eyes.Sync(p.ctx); err != nil {
		return false
	}
	nodes, err := p.eyes.Get(p.ctx, path)
	return err == nil && len(nodes) == 1 && nodes[0].Exists()
}

// answered says whether the client that may be harmed gets an answer.
func (p *probe) answered(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	_, err := p.s.Get(ctx, p.dir)
	return err == nil
}

// answersAgain says whether it gets one once it is harmed no more, however long a busy service takes.
func (p *probe) answersAgain() bool {
	return p.soon(func() bool { return p.answered(p.h.SessionTimeout() / 2) })
}

// commitInFlight sends a commit whose answer is swallowed, waits until it was applied, and
// returns what is closed when the call returns.
func (p *probe) commitInFlight() <-chan struct{} {
	done, path := make(chan struct{}), p.dir+"/in-flight"
	p.work.Go(func() {
		defer close(done)
		_, _ = p.s.Commit(p.ctx, registry.Create(path, nil))
	})
	p.soon(func() bool { return p.exists(path) })
	return done
}

func (p *probe) expire() string {
	path := p.dir + "/e"
	if _, err := p.s.Commit(p.ctx, registry.CreateEphemeral(path, nil)); err != nil {
		return "a first commit: " + err.Error()
	}
	if err := p.faults.Expire(p.s); err != nil {
		return err.Error()
	}
	if !p.soon(func() bool { return !p.exists(path) }) {
		return "the session's nodes are still there"
	}
	return ""
}

func (p *probe) drop() string {
	heal, err := p.faults.Blackhole(p.s, Answers)
	if err != nil {
		return err.Error()
	}
	defer heal()
	before, done := p.faults.Hits(p.s), p.commitInFlight()
	if err := p.faults.Drop(p.s); err != nil {
		return err.Error()
	}
	if !p.soon(func() bool { return isClosed(done) }) || p.s.Err() != nil {
		return "a commit still waits for its answer: its connection was not cut"
	}
	if p.faults.Hits(p.s) == before {
		return "it does not count in Hits"
	}
	return ""
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *probe) refuse() string {
	heal, err := p.faults.Refuse(p.s)
	if err != nil {
		return err.Error()
	}
	defer heal()
	if p.answered(p.h.SessionTimeout() / 8) {
		return "the client is still answered"
	}
	heal()
	if !p.answersAgain() {
		return "after heal the client is not answered"
	}
	return ""
}

func (p *probe) blackhole(d Direction) string {
	heal, err := p.faults.Blackhole(p.s, d)
	if err != nil {
		return err.Error()
	}
	defer heal()
	path := p.dir + "/swallowed"
	ctx, cancel := context.WithTimeout(p.ctx, p.h.SessionTimeout()/8)
	defer cancel()
	if _, err := p.s.Commit(ctx, registry.Create(path, nil)); err == nil {
		return "the client is still answered"
	}
	if d == Answers && !p.soon(func() bool { return p.exists(path) }) {
		return "requests do not come through"
	}
	if d != Answers && p.exists(path) {
		return "requests come through"
	}
	heal()
	if !p.answersAgain() {
		return "after heal the client is not answered"
	}
	return ""
}

// fate tries AppliedLate three times: an election may lose what comes late.
func (p *probe) fate(f Fate) (problem string) {
	for n := range attempts {
		problem = p.fateOf(f, fmt.Sprint(p.dir, "/fate", n))
		if problem == "" || f != AppliedLate {
			break
		}
	}
	return problem
}

func (p *probe) fateOf(f Fate, path string) string {
	hit, err := p.faults.NextCommit(p.s, f)
	if err != nil {
		return err.Error()
	}
	sent := time.Now()
	_, err = p.s.Commit(p.ctx, registry.Create(path, nil))
	if err == nil {
		return "the commit was answered"
	}
	if !hit() {
		return "it has met no commit"
	}
	switch f {
	case AnswerLost:
		if !p.soon(func() bool { return p.exists(path) }) {
			return "the commit was not applied"
		}
	case RequestLost:
		if p.exists(path) {
			return "the commit was applied"
		}
	case AppliedLate:
		if time.Since(sent) < LateBy/2 && p.exists(path) {
			return "the commit was applied at once"
		}
		<-time.After(time.Until(sent.Add(LateBy)))
		until := time.Now().Add(LateBy / 2)
		for !p.exists(path) {
			if time.Now().After(until) {
				return fmt.Sprintf("the commit was not applied %v later", LateBy*3/2)
			}
			<-time.After(pollEvery)
		}
	}
	return ""
}

func (p *probe) delay() string {
	faults, can := p.faults.(DelayFaults)
	if !can {
		return ErrUnsupported.Error()
	}
	d := p.h.SessionTimeout() / 8
	heal, err := faults.Delay(p.s, d)
	if err != nil {
		return err.Error()
	}
	defer heal()
	start := time.Now()
	if _, err := p.s.Get(p.ctx, p.dir); err != nil {
		return err.Error()
	}
	if took := time.Since(start); took < d {
		return fmt.Sprintf("an answer came after %v; the delay is %v", took, d)
	}
	return ""
}
