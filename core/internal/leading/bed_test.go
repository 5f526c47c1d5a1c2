package leading

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/session"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
	"github.com/elasticron/elasticron/strategy"
)

// A bed is a registry in a bubble of fake time, with the nodes of one job.
type bed struct {
	*testing.T
	srv      *memory.Server
	job      layout.Job
	stranger registry.Session

	mu    sync.Mutex
	facts Facts // but for the lives, and who is eligible
	reads map[string]int
	gets  int                  // requests that these were
	asks  func(paths []string) // is told of each before it is made; nil: nobody

	commits int                                      // of members
	refuses func(id string, ops []registry.Op) error // what a member's commits meet instead of the registry
	fails   error                                    // what the strategy answers instead
}

func (b *bed) undecided() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fails
}

// meets is what a member's commit meets.
func (b *bed) meets(id string) func([]registry.Op) error {
	return func(ops []registry.Op) error {
		b.mu.Lock()
		refuses := b.refuses
		b.commits++
		b.mu.Unlock()
		if refuses == nil {
			return nil
		}
		return refuses(id, ops)
	}
}

// count counts what members read, by path.
func (b *bed) count(paths []string) {
	b.mu.Lock()
	b.gets++
	for _, p := range paths {
		b.reads[p]++
	}
	asks := b.asks
	b.mu.Unlock()
	if asks != nil {
		asks(paths)
	}
}

func inBubble(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, reads: map[string]int{}, srv: memory.NewServer(memory.Config{SessionTimeout: 2 * time.Second})}
		b.facts = Facts{Total: 6, Monitor: true, Up: time.Now(), Rule: layout.Rule{Cron: "0 0 * * * ?"}}
		var err error
		b.job, err = layout.New("shop", "orders")
		require.NoError(t, err)
		reg := b.srv.Registry("shop")
		t.Cleanup(func() { _ = reg.Close() })
		b.stranger, err = reg.Open(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = b.stranger.Close(context.Background()) })
		for _, p := range b.job.Scaffold() {
			b.commit(registry.Create(p, nil))
		}
		test(b)
	})
}

// commit is a stranger's.
func (b *bed) commit(ops ...registry.Op) {
	b.Helper()
	_, err := b.stranger.Commit(b.Context(), ops...)
	require.NoError(b, err)
}

func (b *bed) get(path string) registry.Node {
	b.Helper()
	nodes, err := b.stranger.Get(b.Context(), path)
	require.NoError(b, err)
	return nodes[0]
}

// change changes what all know.
func (b *bed) change(f func(*Facts), members ...*member) {
	b.mu.Lock()
	f(&b.facts)
	b.mu.Unlock()
	for _, m := range members {
		m.Look()
	}
}

// pair is "a", which leads, and "b": each has half of the items.
func (b *bed) pair() (leader, other *member) {
	b.Helper()
	leader = b.join("a", at(0))
	b.until("it leads", func() bool { return b.led(leader) && b.spread(6, "a") })
	other = b.join("b", at(0))
	b.until("both have items", func() bool { return b.spread(6, "a", "b") && b.ledger("b").Len() == 3 })
	return leader, other
}

// until waits for cond, for at most a minute of fake time.
func (b *bed) until(what string, cond func() bool) time.Duration {
	b.Helper()
	begun := time.Now()
	for !cond() {
		if time.Since(begun) > time.Minute {
			require.FailNow(b, "still not: "+what, b.srv.Dump())
		}
		<-time.After(time.Millisecond)
	}
	return time.Since(begun)
}

// A member is a registered instance with a leader, and nothing that fires.
type member struct {
	*Leader
	b   *bed
	ses *session.Part
	id  string

	mu      sync.Mutex
	lives   map[string]registry.Revision
	seen    []event.Event
	waits   []string
	follows map[target]bool // what its leader watches
}

// A followings is a session that notes what is followed.
type followings struct {
	*session.Part

	m *member
}

func (f followings) Follow(path string, scope registry.Scope, handle func(registry.Event)) {
	f.m.mu.Lock()
	f.m.follows[target{path, scope}] = true
	f.m.mu.Unlock()
	f.Part.Follow(path, scope, handle)
}

func (f followings) Unfollow(path string, scope registry.Scope) {
	f.m.mu.Lock()
	delete(f.m.follows, target{path, scope})
	f.m.mu.Unlock()
	f.Part.Unfollow(path, scope)
}

// watches are the paths that a member's leader watches, in order.
func (m *member) watches() (paths []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t := range m.follows {
		paths = append(paths, t.path)
	}
	slices.Sort(paths)
	return paths
}

// waitsFor is what the job waits for, as was said last.
func (m *member) waitsFor() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waits) == 0 {
		return ""
	}
	return m.waits[len(m.waits)-1]
}

// A remote is a registry whose requests take a while.
type remote struct {
	registry.Registry
	delay func(ops []registry.Op) time.Duration // ops are nil for reads
	reads func(paths []string)
	meets func(ops []registry.Op) error
}

func (r remote) Open(ctx context.Context) (registry.Session, error) {
	s, err := r.Registry.Open(ctx)
	return &distant{s, r.delay, r.reads, r.meets}, err
}

type distant struct {
	registry.Session
	delay func(ops []registry.Op) time.Duration
	reads func(paths []string)
	meets func(ops []registry.Op) error
}

func (s *distant) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := s.meets(ops); err != nil {
		return 0, err
	}
	d := s.delay(ops)
	<-time.After(d / 2)
	rev, err := s.Session.Commit(ctx, ops...)
	<-time.After(d / 2)
	return rev, err
}

func (s *distant) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	s.reads(paths)
	d := s.delay(nil)
	<-time.After(d / 2)
	nodes, err := s.Session.Get(ctx, paths...)
	<-time.After(d / 2)
	return nodes, err
}

// Children counts as a read of what is below a path.
func (s *distant) Children(ctx context.Context, path string) ([]string, error) {
	s.reads([]string{below(path)})
	d := s.delay(nil)
	<-time.After(d / 2)
	names, err := s.Session.Children(ctx, path)
	<-time.After(d / 2)
	return names, err
}

func below(path string) string { return path + "/*" }

func at(d time.Duration) func([]registry.Op) time.Duration {
	return func([]registry.Op) time.Duration { return d }
}

// join registers an instance that may lead.
func (b *bed) join(id string, delay func([]registry.Op) time.Duration) *member {
	b.Helper()
	reg := b.srv.Registry("shop")
	b.Cleanup(func() { _ = reg.Close() })
	m := &member{b: b, id: id, lives: map[string]registry.Revision{}, follows: map[target]bool{}}
	opened, err := session.Open(b.Context(), remote{reg, delay, b.count, b.meets(id)}, func(string, error) {})
	require.NoError(b, err)
	ses := opened.Part()
	m.ses = ses
	_, err = ses.Commit(b.Context(),
		registry.CreateEphemeral(b.job.Life(id), nil), registry.CreateEphemeral(b.job.Notice(id), nil),
		registry.Create(b.job.Ledger(id), ledger.New(0, 0).Encode()))
	require.NoError(b, err)
	m.Leader = New(Config{
		Host: m, Session: followings{ses, m}, Context: ses.Context, Pool: ses.Control, Job: b.job, ID: id, Now: time.Now, Memory: &Memory{},
	})
	ses.Follow(b.job.Lives(), registry.Children, m.onLife)
	ses.Follow(b.job.Leader(), registry.Self, func(e registry.Event) {
		if !e.Synced {
			m.OnLeader(e.Node)
		}
	})
	b.Cleanup(func() { m.end() })
	m.SetAble(true)
	return m
}

func (m *member) end() {
	m.Close()
	_ = m.ses.End(errors.New("the test ends"))
}

func (m *member) onLife(e registry.Event) {
	if e.Synced {
		return
	}
	id := path.Base(e.Node.Path)
	m.mu.Lock()
	if e.Node.Exists() {
		m.lives[id] = e.Node.Created
	} else {
		delete(m.lives, id)
	}
	m.mu.Unlock()
	if e.Node.Exists() {
		m.Look()
	} else {
		m.Gone(id)
	}
}

// Facts implements Host.
func (m *member) Facts() Facts {
	m.b.mu.Lock()
	f := m.b.facts
	m.b.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.lives {
		f.Lives = append(f.Lives, id)
	}
	slices.Sort(f.Lives)
	lives := f.Lives
	stands := maps.Clone(m.lives)
	f.Stands = func(id string) registry.Revision { return stands[id] }
	f.Eligible = func(id string) bool { return slices.Contains(lives, id) }
	f.Assign = func(ids []string, total int, previous map[string][]int) (map[string][]int, error) {
		in := strategy.Input{Job: "orders", Instances: ids, Total: total, Previous: previous}
		return strategy.AvgAllocation{}.Assign(in), m.b.undecided()
	}
	return f
}

// Emit implements Host.
func (m *member) Emit(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, e)
}

// Changed implements Host.
func (m *member) Changed() {}

// Waits implements Host.
func (m *member) Waits(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits = append(m.waits, what)
}

// of returns the events of one type.
func of[E event.Event](members ...*member) []E {
	var found []E
	for _, m := range members {
		m.mu.Lock()
		for _, e := range m.seen {
			if e, ok := e.(E); ok {
				found = append(found, e)
			}
		}
		m.mu.Unlock()
	}
	return found
}

// ledger is what the registry holds of an instance.
func (b *bed) ledger(id string) *ledger.Ledger {
	n := b.get(b.job.Ledger(id))
	if !n.Exists() {
		return ledger.New(0, 0)
	}
	l, err := ledger.Decode(n.Value)
	require.NoError(b, err)
	return l
}

// spread reports whether every item of the total stands in one of the ledgers.
func (b *bed) spread(total int, ids ...string) bool {
	owned := 0
	for _, id := range ids {
		l := b.ledger(id)
		if l.Len() > 0 && l.Total != total {
			return false
		}
		owned += l.Len()
	}
	return owned == total
}

// led reports whether one of the members leads, by all that says so.
func (b *bed) led(members ...*member) bool {
	leader, term := b.get(b.job.Leader()), b.get(b.job.Term())
	return leader.Ephemeral && term.Ephemeral && layout.UnmarshalTerm(term.Value).Leader == string(leader.Value) &&
		slices.ContainsFunc(members, func(m *member) bool { return m.id == string(leader.Value) })
}
