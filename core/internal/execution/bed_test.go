package execution

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

const (
	lifePath   = "/lives/a"
	ledgerPath = "/ledgers/a"
	roundsPath = "/rounds/a"
)

// showAfter is how long a run lasts here until it is shown.
const showAfter = time.Second

func runningPath(n int) string { return fmt.Sprintf("/items/%d/running", n) }

func failoverPath(n int) string { return fmt.Sprintf("/items/%d/failover", n) }
func misfirePath(n int) string  { return fmt.Sprintf("/items/%d/misfire", n) }

// nodes are those of the job.
type nodes struct{}

func (nodes) Rounds(id string) string  { return "/rounds/" + id }
func (nodes) Running(item int) string  { return runningPath(item) }
func (nodes) Failover(item int) string { return failoverPath(item) }
func (nodes) Misfire(item int) string  { return misfirePath(item) }

// due is the k-th fire.
func due(k int) time.Time { return time.Date(2026, 11, 21, 5, 0, k, 0, time.UTC) }

// A step is a change as package firing makes them.
type step struct {
	item int
	due  time.Time
	kind kind

	further *demand
	misses  time.Time
	next    time.Time // of an end: the fire that begins with it
	apart   bool      // it must not
}

// A demand is a further operation; given up, it is none.
type demand struct {
	op      registry.Op
	forgo   bool // when it is refused it is left out
	gone    bool
	changes int
}

func (d *demand) Op(changes []Change) registry.Op {
	d.changes = len(changes)
	if d.gone {
		return registry.Op{}
	}
	return d.op
}

func (d *demand) Refused(error) bool {
	d.gone = d.forgo
	return d.forgo
}

type kind string

const (
	begin    kind = "begin"
	redo     kind = "begin again"
	end      kind = "end"
	fail     kind = "fail"
	giveBack kind = "give back"
	account  kind = "account"
)

func (s *step) Item() int     { return s.item }
func (s *step) Patient() bool { return s.kind == end || s.kind == fail }

// Misses implements Change.
func (s *step) Misses() time.Time { return s.misses }

func (s *step) Further() Further {
	if s.further == nil {
		return nil
	}
	return s.further
}

func (s *step) Apply(rec *ledger.Item, in *ledger.Ledger, apart bool) bool {
	s.apart = apart
	switch s.kind {
	case begin, redo:
		if rec.Running() || rec.Leaving || in.Held || !s.due.After(rec.Through) {
			return false
		}
		rec.Through, rec.Run = s.due, s.due
	case end, fail:
		if rec.Run = (time.Time{}); s.Follows() {
			rec.Run, rec.Through = s.next, s.next
		}
	case giveBack:
		rec.Run, rec.Through = time.Time{}, s.due.Add(-1)
	case account:
		if rec.Running() || !s.due.After(rec.Through) {
			return false
		}
		rec.Through = s.due
	}
	return true
}

func (s *step) Follows() bool { return !s.next.IsZero() && !s.apart }

func (s *step) Step() Step {
	switch s.kind {
	case begin:
		return Begins
	case redo:
		return BeginsAgain
	case end:
		return Ends
	case fail:
		return EndsFailed
	case giveBack:
		return Undoes
	case account:
	}
	return Other
}

// An owner notes what it is told. It may be told one thing at a time.
type owner struct {
	t      *testing.T
	inside atomic.Int32
	mu     sync.Mutex
	told
}

type told struct {
	applied []applied
	no      []refused
	seen    []*ledger.Ledger
	late    []error // Hindered
	unshown []error
	gone    []error
}

type applied struct {
	steps []*step
	rev   registry.Revision
}

type refused struct {
	*step
	why Refusal
	rec ledger.Item
}

func (o *owner) enter() func() {
	if o.inside.Add(1) != 1 {
		o.t.Error("the owner is called while it is called")
	}
	o.mu.Lock()
	return func() { o.mu.Unlock(); o.inside.Add(-1) }
}

func (o *owner) Applied(changes []Change, rev registry.Revision) {
	defer o.enter()()
	a := applied{rev: rev}
	for _, c := range changes {
		s, _ := c.(*step)
		a.steps = append(a.steps, s)
	}
	o.applied = append(o.applied, a)
}

func (o *owner) Refused(c Change, why Refusal, rec ledger.Item, _ string) {
	defer o.enter()()
	s, _ := c.(*step)
	o.no = append(o.no, refused{s, why, rec})
}

func (o *owner) Changed(l *ledger.Ledger) {
	defer o.enter()()
	o.seen = append(o.seen, l.Clone())
}

func (o *owner) Hindered(err error) {
	defer o.enter()()
	o.late = append(o.late, err)
}

func (o *owner) Unshown(err error) {
	defer o.enter()()
	o.unshown = append(o.unshown, err)
}

func (o *owner) Gone(err error) {
	defer o.enter()()
	o.gone = append(o.gone, err)
}

// take returns what the owner was told since the last time.
func (o *owner) take() told {
	o.mu.Lock()
	defer o.mu.Unlock()
	is := o.told
	o.told = told{}
	return is
}

// steps are all that were applied, in their order.
func (is told) steps() (all []*step) {
	for _, a := range is.applied {
		all = append(all, a.steps...)
	}
	return all
}

// A bed is a recorder on a server of its own, in fake time.
type bed struct {
	*testing.T
	*owner
	srv    *memory.Server
	client *memory.Registry
	ses    registry.Session // the recorder's
	other  registry.Session // everybody else's
	pool   *workqueue.Pool
	rec    *Recorder
	place  Place
	lives  int
	limits registry.Limits // as the recorder sees them
}

// onBed runs a test with a recorder that owns the items below total.
func onBed(t *testing.T, total int, test func(b *bed)) {
	t.Helper()
	onBedOf(t, total, func(s registry.Session) registry.Session { return s }, test)
}

// onBedOf is onBed with a session that is wrapped.
func onBedOf(t *testing.T, total int, wrap func(registry.Session) registry.Session, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, total, wrap, func(n int) ledger.Item { return ledger.Item{Through: due(0)} })
		defer b.close()
		test(b)
	})
}

// newBed makes a bed with items whose records are as rec says.
func newBed(t *testing.T, total int, wrap func(registry.Session) registry.Session, rec func(n int) ledger.Item) *bed {
	b := &bed{T: t, owner: &owner{t: t}, srv: memory.NewServer(memory.Config{}), pool: workqueue.NewPool(4)}
	b.client = b.srv.Registry("shop")
	var err error
	b.ses, err = b.client.Open(t.Context())
	require.NoError(t, err)
	b.other, err = b.srv.Registry("shop").Open(t.Context())
	require.NoError(t, err)
	for n := range min(total, 1_000) {
		require.NoError(t, registry.EnsurePath(t.Context(), b.other, fmt.Sprintf("/items/%d", n)))
	}
	for _, p := range []string{"/lives", "/ledgers"} {
		require.NoError(t, registry.EnsurePath(t.Context(), b.other, p))
	}
	led := ledger.New(1, total)
	for n := range total {
		led.Set(n, rec(n))
	}
	b.place = Place{ID: "a", Life: lifePath, Ledger: ledgerPath}
	w := led.Write(0, ledger.Room{Value: b.ses.Limits().MaxValue, Ops: 1 << 20, Bytes: 1 << 40})
	led.Written()
	_, err = b.ses.Commit(t.Context(), registry.CreateEphemeral(lifePath, nil), registry.Create(ledgerPath, w.Root))
	require.NoError(t, err)
	for _, p := range w.Pages {
		b.do(pages.Op(ledgerPath, p))
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-b.ses.Done(); cancel() }()
	node, session := b.node(ledgerPath), wrap(b.ses)
	b.limits = session.Limits()
	b.rec = NewRecorder(Config{
		Session: session, Context: ctx, Pool: b.pool, Now: time.Now, Nodes: nodes{},
		Locks: func(value []byte) bool { return string(value) == "java" },
	}, b.owner, b.place, node, led)
	b.rec.Show(showAfter, false)
	b.client.ResetRequests()
	return b
}

func (b *bed) close() {
	b.srv.Intercept(nil)
	_ = b.ses.Close(context.Background()) // some tests have cut it off
	b.rec.Suspend()
	b.pool.Close()
	require.NoError(b, b.other.Close(context.Background()))
	synctest.Wait()
}

// submit has one kind of change of some items committed.
func (b *bed) submit(k kind, d time.Time, items ...int) []*step {
	steps := make([]*step, 0, len(items))
	changes := make([]Change, 0, len(items))
	for _, n := range items {
		s := &step{item: n, due: d, kind: k}
		steps, changes = append(steps, s), append(changes, s)
	}
	b.rec.Submit(changes...)
	return steps
}

// pass lets time pass and what is under way end.
func (b *bed) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// node reads past the recorder's client.
func (b *bed) node(path string) registry.Node {
	b.Helper()
	nodes, err := b.other.Get(context.Background(), path)
	require.NoError(b, err)
	return nodes[0]
}

// ledger is what the registry holds.
func (b *bed) ledger() *ledger.Ledger {
	b.Helper()
	found := b.read()
	require.NoError(b, found.Err)
	return found.Ledger
}

// read reads the ledger past the recorder's client.
func (b *bed) read() pages.Found {
	b.Helper()
	found, err := pages.Read(context.Background(), b.other.Get, nil, b.node(b.place.Ledger))
	require.NoError(b, err)
	return found[0]
}

// item is an item's record, without its last run.
func (b *bed) item(n int) ledger.Item {
	rec, _ := b.ledger().Get(n)
	rec.Last = ledger.Last{}
	return rec
}

// last is an item's last run.
func (b *bed) last(n int) ledger.Last {
	rec, _ := b.ledger().Get(n)
	return rec.Last
}

// do commits as somebody else.
func (b *bed) do(ops ...registry.Op) {
	b.Helper()
	_, err := b.other.Commit(context.Background(), ops...)
	require.NoError(b, err)
}

// rule writes the ledger as the leader does.
func (b *bed) rule(change func(l *ledger.Ledger)) {
	b.Helper()
	found := b.read()
	require.NoError(b, found.Err)
	change(found.Ledger)
	b.do(b.write(found.Ledger, found.Node)...)
}

// write sets a ledger as somebody else does.
func (b *bed) write(l *ledger.Ledger, node registry.Node) []registry.Op {
	w := l.Write(int64(node.Version)+1, ledger.Room{Value: b.limits.MaxValue, Ops: 30, Bytes: b.limits.MaxBytes})
	ops := []registry.Op{registry.Set(node.Path, w.Root, node.Version)}
	for _, p := range w.Pages {
		ops = append(ops, pages.Op(node.Path, p))
	}
	return ops
}

// again registers anew, with what the registry says.
func (b *bed) again(also ...registry.Op) {
	b.Helper()
	b.lives++
	led := b.rec.Ledger()
	if found := b.read(); found.Err == nil {
		led = found.Ledger
	}
	old := b.place
	b.place = Place{
		ID: fmt.Sprint("a", b.lives), Life: fmt.Sprint(lifePath, b.lives), Ledger: fmt.Sprint(ledgerPath, b.lives),
	}
	ops := slices.Concat(also, []registry.Op{registry.Delete(old.Life, registry.AnyVersion)})
	below, err := b.other.Children(context.Background(), old.Ledger)
	require.NoError(b, err)
	for _, name := range below {
		ops = append(ops, registry.Delete(old.Ledger+"/"+name, registry.AnyVersion))
	}
	led.Anew()
	w := led.Write(0, ledger.Room{Value: b.limits.MaxValue, Ops: 30, Bytes: b.limits.MaxBytes})
	ops = append(ops, registry.Delete(old.Ledger, registry.AnyVersion),
		registry.CreateEphemeral(b.place.Life, nil), registry.Create(b.place.Ledger, w.Root))
	for _, p := range w.Pages {
		ops = append(ops, pages.Op(b.place.Ledger, p))
	}
	_, err = b.ses.Commit(context.Background(), ops...)
	require.NoError(b, err)
	led.Written()
	b.rec.Resume(b.place, b.node(b.place.Ledger), led)
}

// fates decides on the next commits of the recorder.
func (b *bed) fates(all ...memory.Fate) {
	var next atomic.Int32
	b.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		if id != b.ses.ID() {
			return memory.Deliver
		}
		if k := int(next.Add(1)) - 1; k < len(all) {
			return all[k]
		}
		return memory.Deliver
	})
}

// hold keeps the recorder's next commit in flight until release.
func (b *bed) hold() (release func()) {
	gate := make(chan struct{})
	var held atomic.Bool
	b.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		if id == b.ses.ID() && !held.Swap(true) {
			<-gate
		}
		return memory.Deliver
	})
	return func() { close(gate) }
}

// requireRequests requires that the recorder has sent so much since the last time.
func (b *bed) requireRequests(commits, gets int) {
	b.Helper()
	got := b.client.Requests()
	got.Heartbeat = 0
	require.Equal(b, memory.Counts{Commit: commits, Get: gets}, got)
	b.client.ResetRequests()
}

// requireAtRest requires that nothing runs, here or in the registry, and that the
// ledger accounts for the fires through the given one.
func (b *bed) requireAtRest(through time.Time) {
	b.Helper()
	for n, it := range b.ledger().All() {
		require.True(b, it.Through.Equal(through), "item %d: %+v", n, it)
		require.False(b, it.Running(), "item %d: %+v", n, it)
		require.False(b, b.node(runningPath(n)).Exists())
	}
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
