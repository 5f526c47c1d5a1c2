package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A bed is a registry service with what a test needs to act behind its clients.
type bed struct {
	*testing.T
	ns string
	// client returns a registry on a client of its own.
	client func(t *testing.T, ns string) registry.Registry
	// expire ends a session at the service without telling its client.
	expire func(sessionID string)
	fake   bool // inside a synctest bubble
	mu     sync.Mutex
	stores map[*instance]registry.Store // see store
}

// onEach runs a test on every backend, on memory in fake time, beside other tests.
func onEach(t *testing.T, test func(b *bed)) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) { inBubble(t, test) })
	sideBySide(t, func(t *testing.T, s service) { test(s.bed(t)) })
}

// inBubble runs a test on memory in fake time.
func inBubble(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{SessionTimeout: 2 * time.Second})
		test(&bed{
			T: t, ns: "shop", fake: true,
			client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) },
			expire: func(id string) { srv.Expire(id) },
		})
	})
}

// onMemoryInRealTime is for what a bubble cannot hold: signals.
func onMemoryInRealTime() func(t *testing.T, ns string) registry.Registry {
	srv := memory.NewServer(memory.Config{})
	return func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }
}

var namespaces atomic.Int64

func freshNamespace() string { return fmt.Sprintf("ns%d", namespaces.Add(1)) }

// registry returns a gated client, which the test's end closes.
func (b *bed) registry() *gate {
	g := &gate{Registry: b.client(b.T, b.ns)}
	b.Cleanup(func() { _ = g.Close() })
	return g
}

// until waits for cond, by polling, for at most 30 s. In a bubble it looks when all that
// belongs to an instant has happened: what a state shows has then begun, too.
func (b *bed) until(what string, cond func() bool) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); !b.settled(cond); {
		if time.Now().After(deadline) {
			require.FailNow(b, "still not: "+what)
		}
		pause(5 * time.Millisecond)
	}
}

func (b *bed) settled(cond func() bool) bool {
	if b.fake {
		synctest.Wait()
	}
	return cond()
}

// rested waits until instances have made no request for a while, and returns how many they have made: who leads may
// look once more whether anything is left to do.
func (b *bed) rested(of ...*instance) (calls int64) {
	b.Helper()
	b.until("they rest", func() bool {
		calls = requests(of...)
		pause(500 * time.Millisecond)
		return calls == requests(of...)
	})
	return calls
}

func requests(of ...*instance) (n int64) {
	for _, in := range of {
		n += in.gate.calls.Load()
	}
	return n
}

// pause is the interval of bounded polling, and fake time in a bubble.
func pause(d time.Duration) { <-time.After(d) }

// A gate is a registry whose commits a test can decide on and hold, whose watches it can
// deny, and which it can cut.
type gate struct {
	registry.Registry
	mu       sync.Mutex
	fate     func(ops []registry.Op) fate
	before   func(ops []registry.Op) // may block
	asked    func(paths []string)    // may block
	answered func(paths []string)    // may block
	denied   map[string]bool         // paths that nobody may watch
	lagging  string                  // what is shown of this path comes with what is shown after it has changed
	watchers []*gatedWatcher
	sessions []*gated
	frozen   atomic.Bool // sessions do not say that they are over
	cut      atomic.Bool
	calls    atomic.Int64
	log      []string
	late     sync.WaitGroup
}

type fate int

const (
	deliver fate = iota
	answerLost
	requestLost
	appliedLate
	deniedFirst // the first operation
	deniedLast  // the last one
	deniedWhole
)

func (g *gate) decide(f func(ops []registry.Op) fate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fate = f
}

// hold has f called before each commit is sent, which waits until it returns; nil ends that.
func (g *gate) hold(f func(ops []registry.Op)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = f
}

// ask has f called before each Get.
func (g *gate) ask(f func(paths []string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = f
}

// denyWatch has the service refuse to show a path, from now on or no longer. A target
// that is watched is removed.
func (g *gate) denyWatch(path string, deny bool) {
	g.mu.Lock()
	if g.denied == nil {
		g.denied = map[string]bool{}
	}
	g.denied[path] = deny
	watchers := slices.Clone(g.watchers)
	g.mu.Unlock()
	for _, w := range watchers {
		if deny && w.removes(path) {
			w.refuse()
		}
	}
}

func (g *gate) deniesWatch(path string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.denied[path]
}

// lag keeps back what watches show of a path, until "" ends that and something else is shown.
func (g *gate) lag(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lagging = path
}

// Open implements registry.Registry.
func (g *gate) Open(ctx context.Context) (registry.Session, error) {
	if g.cut.Load() {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", registry.ErrUnavailable, ctx.Err())
	}
	s, err := g.Registry.Open(ctx)
	if err != nil {
		return nil, err
	}
	gs := &gated{Session: s, g: g, lost: make(chan struct{}), done: make(chan struct{})}
	go gs.follow()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions = append(g.sessions, gs)
	return gs, nil
}

// lose makes the latest session say that it is lost, though it lives at the service.
func (g *gate) lose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.sessions[len(g.sessions)-1].lost)
}

type gated struct {
	registry.Session
	g    *gate
	lost chan struct{} // closed by the test
	done chan struct{}
}

// follow closes done when the session is over, or shall say so.
func (s *gated) follow() {
	select {
	case <-s.lost:
	case <-s.Session.Done():
	}
	for s.g.frozen.Load() {
		pause(time.Millisecond)
	}
	close(s.done)
}

// Done implements registry.Session.
func (s *gated) Done() <-chan struct{} { return s.done }

// Err implements registry.Session.
func (s *gated) Err() error {
	select {
	case <-s.lost:
		return fmt.Errorf("%w: by the test", registry.ErrSessionLost)
	default:
		return s.Session.Err()
	}
}

// Watch implements registry.Session.
func (s *gated) Watch(ctx context.Context) (registry.Watcher, error) {
	inner, err := s.Session.Watch(ctx)
	if err != nil {
		return nil, err
	}
	w := &gatedWatcher{Watcher: inner, g: s.g, scopes: map[string]registry.Scope{}}
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.g.watchers = append(s.g.watchers, w)
	return w, nil
}

// A gatedWatcher refuses the targets that its gate denies.
type gatedWatcher struct {
	registry.Watcher
	g         *gate
	mu        sync.Mutex
	scopes    map[string]registry.Scope // of the targets that are watched
	owed      int                       // refusals that Next has to tell
	kept      []registry.Event          // of the path that lags
	interrupt context.CancelFunc
}

// refuse has Next fail once.
func (w *gatedWatcher) refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owed++
	if w.interrupt != nil {
		w.interrupt()
	}
}

// removes reports whether the path was watched, which it is no longer.
func (w *gatedWatcher) removes(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	scope, watched := w.scopes[path]
	if watched {
		delete(w.scopes, path)
		w.Remove(path, scope)
	}
	return watched
}

// Add implements registry.Watcher.
func (w *gatedWatcher) Add(path string, scope registry.Scope) error {
	if w.g.deniesWatch(path) {
		w.refuse()
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scopes[path] = scope
	return w.Watcher.Add(path, scope)
}

// Next implements registry.Watcher.
func (w *gatedWatcher) Next(ctx context.Context) ([]registry.Event, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.interrupt = cancel
	if w.owed > 0 {
		cancel()
	}
	w.mu.Unlock()
	var events []registry.Event
	err := inner.Err()
	if err == nil {
		events, err = w.Watcher.Next(inner)
	}
	if err == nil || ctx.Err() != nil || inner.Err() == nil {
		return w.late(events), err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owed--
	return nil, fmt.Errorf("by the test: %w", registry.ErrDenied)
}

// late keeps back what is shown of the path that lags, and returns it once none does.
func (w *gatedWatcher) late(events []registry.Event) (now []registry.Event) {
	w.g.mu.Lock()
	lagging := w.g.lagging
	w.g.mu.Unlock()
	if lagging == "" {
		events, w.kept = append(w.kept, events...), nil
		return events
	}
	for _, e := range events {
		if e.Node.Path == lagging {
			w.kept = append(w.kept, e)
		} else {
			now = append(now, e)
		}
	}
	return now
}

func (s *gated) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	s.g.calls.Add(1)
	s.g.mu.Lock()
	f := deliver
	if s.g.fate != nil {
		f = s.g.fate(ops)
	}
	s.g.log = append(s.g.log, fmt.Sprintf("commit of %d", len(ops)))
	before := s.g.before
	s.g.mu.Unlock()
	if before != nil {
		before(ops)
	}
	if s.g.cut.Load() {
		<-ctx.Done()
		return 0, fmt.Errorf("%w: %w", registry.ErrUncertain, ctx.Err())
	}
	switch f {
	case answerLost:
		_, _ = s.Session.Commit(ctx, ops...)
	case requestLost:
	case appliedLate:
		s.g.late.Go(func() {
			pause(3 * time.Second)
			_, _ = s.Session.Commit(context.WithoutCancel(ctx), ops...)
		})
	case deniedFirst:
		return 0, &registry.CommitError{Op: ops[0], Err: registry.ErrDenied}
	case deniedLast:
		return 0, &registry.CommitError{Index: len(ops) - 1, Op: ops[len(ops)-1], Err: registry.ErrDenied}
	case deniedWhole:
		return 0, fmt.Errorf("by the test: %w", registry.ErrDenied)
	default:
		return s.Session.Commit(ctx, ops...)
	}
	return 0, fmt.Errorf("%w: by the test", registry.ErrUncertain)
}

func (s *gated) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	s.g.calls.Add(1)
	s.g.mu.Lock()
	asked := s.g.asked
	s.g.mu.Unlock()
	if asked != nil {
		asked(paths)
	}
	if s.g.cut.Load() {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", registry.ErrUnavailable, ctx.Err())
	}
	nodes, err := s.Session.Get(ctx, paths...)
	s.g.mu.Lock()
	answered := s.g.answered
	s.g.mu.Unlock()
	if answered != nil {
		answered(paths)
	}
	return nodes, err
}

func (s *gated) Children(ctx context.Context, path string) ([]string, error) {
	s.g.calls.Add(1)
	if s.g.cut.Load() {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", registry.ErrUnavailable, ctx.Err())
	}
	return s.Session.Children(ctx, path)
}

// open opens a session past the gate, for the test itself.
func (b *bed) open(in *instance) registry.Session {
	b.Helper()
	ses, err := in.gate.Registry.Open(b.Context())
	require.NoError(b, err)
	b.closed(ses)
	return ses
}

// closed closes what a test has opened when the test ends.
func (b *bed) closed(s registry.StoreCloser) {
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
}

// store returns a store beside an instance, the same each time: tests poll with it, and it has no life to lose.
func (b *bed) store(in *instance) registry.Store {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.stores[in]; s != nil {
		return s
	}
	s, err := in.gate.OpenStore(b.Context())
	require.NoError(b, err)
	b.closed(s)
	if b.stores == nil {
		b.stores = map[*instance]registry.Store{}
	}
	b.stores[in] = s
	return s
}

// set creates or replaces a node.
func (b *bed) set(in *instance, path, value string) {
	b.Helper()
	s := b.store(in)
	_, err := s.Commit(b.Context(), registry.Set(path, []byte(value), registry.AnyVersion))
	if errors.Is(err, registry.ErrNotFound) {
		_, err = s.Commit(b.Context(), registry.Create(path, []byte(value)))
	}
	require.NoError(b, err)
}

// create makes a node as soon as none is there: a running node of an instance's own
// outlives the run until its end is recorded.
func (b *bed) create(in *instance, path, value string) {
	b.Helper()
	s := b.store(in)
	b.until(path+" is made", func() bool {
		_, err := s.Commit(b.Context(), registry.Create(path, []byte(value)))
		if !errors.Is(err, registry.ErrExists) {
			require.NoError(b, err)
		}
		return err == nil
	})
}

// remove deletes nodes in one commit.
func (b *bed) remove(in *instance, paths ...string) {
	b.Helper()
	ops := make([]registry.Op, len(paths))
	for i, p := range paths {
		ops[i] = registry.Delete(p, registry.AnyVersion)
	}
	_, err := b.store(in).Commit(b.Context(), ops...)
	require.NoError(b, err)
}

// setConfig edits the configuration in the registry as an operator would.
func (b *bed) setConfig(in *instance, from, to string) {
	b.Helper()
	path := b.path(in, "config")
	nodes, err := b.store(in).Get(b.Context(), path)
	require.NoError(b, err)
	require.Contains(b, string(nodes[0].Value), from)
	b.set(in, path, strings.Replace(string(nodes[0].Value), from, to, 1))
}

// path is a node below the instance's only job.
func (b *bed) path(in *instance, below string) string {
	return "/" + b.ns + "/" + in.job().Name + "/" + below
}

// of returns the events of one type.
func of[E event.Event](in *instance) []E {
	in.mu.Lock()
	defer in.mu.Unlock()
	var found []E
	for _, e := range in.seen {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

// skips returns what was skipped for a reason.
func skips(in *instance, why event.SkipReason) []event.ItemsSkipped {
	return slices.DeleteFunc(of[event.ItemsSkipped](in), func(e event.ItemsSkipped) bool { return e.Reason != why })
}

// A witness sees every run of a job, over all instances.
type witness struct {
	mu      sync.Mutex
	runs    map[string][]core.Shard // by due and item
	active  map[int]int
	overlap []string
	fences  map[int]registry.Revision
	hold    func(ctx context.Context, s core.Shard) error
}

func newWitness() *witness {
	return &witness{runs: map[string][]core.Shard{}, active: map[int]int{}, fences: map[int]registry.Revision{}}
}

// Run implements core.Job.
func (w *witness) Run(ctx context.Context, s core.Shard) error {
	w.mu.Lock()
	key := fmt.Sprintf("%s/%d", s.Due.UTC().Format("15:04:05.000"), s.Item)
	w.runs[key] = append(w.runs[key], s)
	if w.active[s.Item]++; w.active[s.Item] > 1 {
		w.overlap = append(w.overlap, key)
	}
	if s.Fence != 0 && s.Fence <= w.fences[s.Item] {
		w.overlap = append(w.overlap, "fence of "+key)
	}
	w.fences[s.Item] = max(w.fences[s.Item], s.Fence)
	hold := w.hold
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.active[s.Item]--
		w.mu.Unlock()
	}()
	if hold != nil {
		return hold(ctx, s)
	}
	return nil
}

func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.runs {
		n += len(r)
	}
	return n
}

// doubled returns the fires of items that ran more than once.
func (w *witness) doubled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []string
	for k, r := range w.runs {
		if len(r) > 1 {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return append(keys, w.overlap...)
}

// missing returns the fires that an item did not run, between its first and its last.
func (w *witness) missing(items int, period time.Duration) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ran := map[int]map[int64]bool{}
	for _, r := range w.runs {
		if ran[r[0].Item] == nil {
			ran[r[0].Item] = map[int64]bool{}
		}
		ran[r[0].Item][r[0].Due.UnixNano()] = true
	}
	var keys []string
	for n := range items {
		dues := slices.Sorted(maps.Keys(ran[n]))
		if len(dues) == 0 {
			keys = append(keys, fmt.Sprintf("item %d never ran", n))
			continue
		}
		for due := dues[0]; due < dues[len(dues)-1]; due += int64(period) {
			if !ran[n][due] {
				keys = append(keys, fmt.Sprintf("%s/%d", time.Unix(0, due).UTC().Format("15:04:05.000"), n))
			}
		}
	}
	return keys
}

// An instance is a scheduler of the test with the events it told.
type instance struct {
	*core.Scheduler
	gate *gate
	mu   sync.Mutex
	seen []event.Event
}

// start starts a scheduler with one job and stops it at the end of the test.
func (b *bed) start(name string, work core.Job, cfg core.JobConfig, opts ...core.Option) *instance {
	b.Helper()
	in := b.prepare(name, work, cfg, opts...)
	require.NoError(b, in.Start(b.Context()))
	return in
}

func (b *bed) prepare(name string, work core.Job, cfg core.JobConfig, opts ...core.Option) *instance {
	in := &instance{gate: b.registry()}
	opts = append([]core.Option{
		core.WithInstanceName(name), core.WithIP("127.0.0.1"),
		core.WithListener(func(e event.Event) {
			in.mu.Lock()
			defer in.mu.Unlock()
			in.seen = append(in.seen, e)
		}),
	}, opts...)
	in.Scheduler = core.New(in.gate, opts...)
	require.NoError(b, in.Add(work, cfg))
	b.Cleanup(func() {
		if b.Failed() {
			b.Logf("%s at the test's failure: %+v\nits last events:\n%s", name, in.State(), in.told(40))
		}
		in.stop(b)
	})
	return in
}

func (in *instance) stop(b *bed) {
	in.gate.cut.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(b, in.Stop(ctx))
	in.gate.late.Wait()
}

func (in *instance) job() core.JobState { return in.State().Jobs[0] }

// told returns the latest n events, a line each.
func (in *instance) told(n int) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var b strings.Builder
	for _, e := range in.seen[max(0, len(in.seen)-n):] {
		fmt.Fprintf(&b, "%T%+v\n", e, e)
	}
	return b.String()
}

// crash cuts the instance off and ends its session at the service: to all others
// it is dead, and it does not know yet.
func (b *bed) crash(in *instance) {
	id := in.State().Session
	in.gate.cut.Store(true)
	b.expire(id)
}

// crashBetweenFires is crash when no fire of the instance is under way, which would be cut: the last one is over, and
// the next one of a job that fires every second is far.
func (b *bed) crashBetweenFires(in *instance) {
	b.Helper()
	b.until("a fire is over", func() bool {
		over := of[event.FireEnded](in)
		return len(over) > 0 && time.Since(over[len(over)-1].Due) < 700*time.Millisecond && len(in.job().Running) == 0
	})
	b.crash(in)
}

// allOwned reports whether the instances together own every item once.
func allOwned(total int, ins ...*instance) bool {
	var all []int
	for _, in := range ins {
		st := in.job()
		if st.Total != total {
			if len(st.Items) > 0 {
				return false
			}
		}
		all = append(all, st.Items...)
	}
	slices.Sort(all)
	if len(all) != total {
		return false
	}
	for i, n := range all {
		if i != n {
			return false
		}
	}
	return true
}
