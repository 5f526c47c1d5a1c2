package leading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/sharding"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

const (
	// kept is how long at least a run that was asked for is shown after it was closed.
	kept = 10 * time.Minute
	// killing is how long a kill counts: the run may move to another instance meanwhile.
	killing = time.Minute
	// doubt is how long an open run is waited for until the ledgers are looked at once more:
	// the result of an end may not have been written.
	doubt = 15 * time.Second
)

// Answer makes the leader see to requests, and to the runs that were asked for.
func (l *Leader) Answer() {
	l.mu.Lock()
	l.asked = true
	l.mu.Unlock()
	l.work.Poke()
}

// An answering is one look at requests and runs.
type answering struct {
	l     *Leader
	facts Facts
	plan  *sharding.Plan // what the ledgers said just before; nil: they were not read
	now   time.Time
	s     snapshot

	pulled   []registry.Node
	counter  registry.Node
	last     int64
	taken    map[int64]bool // numbers after the last that have nodes, whatever they hold
	requests []registry.Node
	runs     []asked
	kills    []string
	wake     time.Duration // when to look again, 0 for never
	hindered error         // of a node, while all else was seen to
}

// An asked is a run that was asked for, with its node.
type asked struct {
	layout.Run

	node registry.Node
}

// answer accepts requests, and closes the runs of which every item has its outcome. Nobody
// asks: it costs nothing.
func (l *Leader) answer(ctx context.Context, plan *sharding.Plan) error {
	l.mu.Lock()
	l.asked = false
	l.mu.Unlock()
	f := l.cfg.Host.Facts()
	pulled := l.pulled(f)
	if !f.Asked && len(pulled) == 0 {
		l.follow(nil)
		return nil
	}
	a := &answering{l: l, facts: f, plan: plan, now: l.cfg.Now(), pulled: pulled}
	err := a.do(ctx)
	if err != nil {
		l.mu.Lock()
		l.asked = true
		l.mu.Unlock()
		if errors.Is(err, errLook) {
			return nil
		}
		return err
	}
	l.ring(a.wake)
	return nil
}

// spare returns nil for what a refusal says of one node alone: no other is to wait for it. It is seen to once nothing is in
// its way, and is left where that goes on.
func (a *answering) spare(at string, err error) error {
	if errors.Is(err, registry.ErrInvalid) { // it would outgrow a value, now and later
		a.l.hinders(at, err, true)
		return nil
	}
	failed, refused := errors.AsType[*registry.CommitError](err)
	if !refused || failed.Index < guardOps {
		return err
	}
	if !errors.Is(err, registry.ErrNotEmpty) && !errors.Is(err, registry.ErrDenied) { // else others may have more rights
		a.l.hinders(at, err, false)
	}
	if !a.l.isLeft(at) {
		a.hindered = cmp.Or(a.hindered, err)
	}
	return nil
}

// errLook: the state has changed meanwhile. Items without an owner go before requests, of which
// each look answers one at least.
var errLook = errors.New("there is something to assign")

// looks reports whether the leader is to compare what is with what should be.
func (l *Leader) looks() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.look || slices.ContainsFunc(l.left, func(id string) bool {
		return slices.Contains(l.present, id) && slices.Contains(l.owners, id)
	})
}

func (a *answering) do(ctx context.Context) error {
	if err := a.read(ctx); err != nil {
		return err
	}
	if len(a.pulled) > 0 && a.plan != nil {
		if err := a.translate(ctx, a.pulled); err != nil {
			return err
		}
		if err := a.read(ctx); err != nil {
			return err
		}
	}
	if len(a.requests) > 0 && a.plan == nil {
		a.l.Look() // what runs is to be known first
		return nil
	}
	for _, n := range a.requests {
		if err := a.spare(n.Path, a.accept(ctx, n)); err != nil {
			return err
		}
		if a.l.looks() {
			return errLook
		}
	}
	open, err := a.see(ctx)
	if err != nil {
		return err
	}
	if err := a.tidyKills(ctx); err != nil {
		return err
	}
	a.l.follow(open)
	return a.hindered
}

// see closes the runs that are over, and returns those that are open.
func (a *answering) see(ctx context.Context) (open map[int64]bool, err error) {
	open = map[int64]bool{}
	for i := range a.runs {
		r := &a.runs[i]
		if r.Closed.IsZero() && !a.l.isLeft(r.node.Path) {
			if err = a.spare(r.node.Path, a.run(ctx, r.node, &r.Run)); err != nil {
				return nil, err
			}
			if a.l.looks() {
				return nil, errLook
			}
		}
		if r.Closed.IsZero() {
			open[r.Number] = true
			a.again(doubt)
			continue
		}
		if left := a.l.keep(r.Number); left > 0 {
			a.again(left)
		} else if err := a.spare(r.node.Path, a.forget(ctx, r.node, r.Number)); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// again asks for another look after a while.
func (a *answering) again(after time.Duration) {
	if a.wake == 0 || after < a.wake {
		a.wake = max(after, time.Millisecond)
	}
}

// read reads what was asked for.
func (a *answering) read(ctx context.Context) error {
	l, job := a.l, a.l.cfg.Job
	names, err := l.cfg.Session.Names(ctx, job.InForce())
	if err != nil {
		return fmt.Errorf("core: requests: %w", err)
	}
	paths := []string{job.Term(), job.Base(), job.Runs()}
	a.kills = nil
	for _, name := range names {
		if layout.IsKill(name) {
			a.kills = append(a.kills, name)
		} else if id, is := layout.RequestID(name); is {
			paths = append(paths, job.Request(id))
		} else if n, is := layout.RunNumber(name); is && Believable(n) {
			paths = append(paths, job.Run(n))
		} else if is {
			l.foreign(job.Run(n), "runs", nil)
		}
	}
	nodes, err := l.cfg.Session.Get(ctx, paths...)
	if err != nil {
		return fmt.Errorf("core: requests: %w", err)
	}
	a.requests, a.runs, a.taken = nil, nil, map[int64]bool{}
	a.s.term, a.s.base, a.counter = nodes[0], nodes[1], nodes[2]
	a.s.Base = l.readBase(a.s.base)
	if !a.s.term.Owned || layout.UnmarshalTerm(a.s.term.Value).Leader != l.cfg.ID {
		return errNotLeader
	}
	a.last = max(a.last, Counted(a.counter), l.cfg.Memory.lastRun())
	if a.plan != nil && Believable(a.plan.Asked()) {
		a.last = max(a.last, a.plan.Asked())
	}
	for _, n := range nodes[3:] {
		name := n.Path[len(job.InForce())+1:]
		number, isRun := layout.RunNumber(name)
		switch {
		case !n.Exists():
		case !isRun && l.isLeft(n.Path): // it would run again and again
		case !isRun:
			a.requests = append(a.requests, n)
		default:
			a.taken[number] = true
			a.sawRun(number, n)
		}
	}
	l.cfg.Memory.SawRun(a.last)
	slices.SortStableFunc(a.requests, func(x, y registry.Node) int { return int(x.Created - y.Created) }) // as they came
	return nil
}

// sawRun takes a run into account that the node of its number holds. What else somebody has written there is none.
func (a *answering) sawRun(number int64, n registry.Node) {
	r, err := layout.UnmarshalRun(n.Value)
	if err != nil || r.Number != number {
		a.l.foreign(n.Path, "runs", err)
		return
	}
	a.last = max(a.last, number)
	a.runs = append(a.runs, asked{r, n})
}

// Counted is the number of the last run, as the node that counts them says; 0 where that holds none.
func Counted(n registry.Node) int64 {
	if last := layout.UnmarshalCounter(n.Value); Believable(last) {
		return last
	}
	return 0
}

// next is the number of the next run.
func (a *answering) next() int64 {
	for a.taken[a.last+1] {
		a.last++
	}
	return a.last + 1
}

// commit commits ops under the term.
func (a *answering) commit(ctx context.Context, ops ...registry.Op) error {
	err := a.l.commit(ctx, a.s, ops)
	if err == nil {
		a.s.term.Version++
	}
	return err
}

// accept accepts a request, or answers it otherwise, or leaves it until it can be accepted.
func (a *answering) accept(ctx context.Context, n registry.Node) error {
	id, _ := layout.RequestID(n.Path[len(a.l.cfg.Job.InForce())+1:])
	if a.answered(id) { // made twice, since the answer of who made it was lost
		return a.commit(ctx, registry.Delete(n.Path, n.Version))
	}
	req, err := layout.UnmarshalRequest(n.Value)
	r := layout.Run{Number: a.next(), Request: id, Parameter: req.Parameter, By: req.By, MadeUp: req.MadeUp}
	r.At = a.now.Truncate(time.Millisecond).Add(1 + time.Duration(r.Number%999_999)) // no fire is there
	expires, left := a.expires(n, req)
	base := a.s.Base
	switch {
	case err != nil:
		r.Problem = "the request cannot be read: " + err.Error()
	case expires && left <= 0:
		r.Problem = request.Expired
	case !a.facts.Monitor:
		r.Problem = "the job is not monitored (monitorExecution): what runs is not recorded, and a request would run twice"
	case a.facts.Disabled:
		r.Problem = "the job is disabled"
	case base == nil || !base.Assigned || base.To != a.facts.Total:
		if expires {
			a.again(left)
		}
		return nil // the items are being assigned: whoever ends that asks again
	default:
		r.Epoch, r.Total = base.Epoch, base.To
		if err := a.choose(ctx, &r, req); err != nil {
			return err
		}
	}
	if r.Problem != "" {
		r.Closed = a.now
		switch r.By { // nobody reads the answer
		case triggered:
			a.l.warn("what ElasticJob's trigger asks for does not run: "+r.Problem, nil)
		case misfired:
			a.l.warn("what ElasticJob's misfire nodes ask for does not run: "+r.Problem, nil)
		}
	}
	job := a.l.cfg.Job
	value := layout.MarshalRun(r)
	if most := a.l.cfg.Session.Limits().MaxValue; len(value) > most { // nor would its answer be read
		r = layout.Run{Number: r.Number, Request: id, At: r.At, Closed: a.now, Problem: fmt.Sprintf(
			"the request is too long: with what becomes of it, it takes %d bytes of the %d that a node holds", len(value), most)}
		value = layout.MarshalRun(r)
	}
	count := registry.Create(job.Runs(), layout.MarshalCounter(r.Number))
	if a.counter.Exists() {
		count = registry.Set(job.Runs(), count.Value, a.counter.Version)
	}
	err = a.commit(ctx, registry.Delete(n.Path, n.Version), count,
		registry.Create(job.RunResults(r.Number), nil), registry.Create(job.Run(r.Number), value))
	if failed, is := errors.AsType[*registry.CommitError](err); is && errors.Is(err, registry.ErrExists) && failed.Index >= guardOps+2 {
		return errors.Join(err, a.take(ctx, r.Number)) // somebody has made a node of that number
	}
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.AfterAccept)
	a.l.cfg.Memory.SawRun(r.Number)
	if a.last = r.Number; a.counter.Exists() {
		a.counter.Version++
	} else {
		a.counter = registry.Node{Path: job.Runs(), Created: 1}
	}
	a.runs = append(a.runs, asked{r, registry.Node{Path: job.Run(r.Number), Created: 1, Value: value}})
	return nil
}

// take leaves out numbers of which nodes stand: results of runs that nobody knows any more.
func (a *answering) take(ctx context.Context, number int64) error {
	names, err := a.l.cfg.Session.Names(ctx, a.l.cfg.Job.Runs())
	if err != nil {
		return fmt.Errorf("core: runs: %w", err)
	}
	for _, name := range names {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			a.taken[n] = true
		}
	}
	a.taken[number] = true
	a.l.cfg.Memory.SawRun(a.next() - 1)
	return nil
}

// expires reports whether a request expires, and how long it has. Whoever was there when it was made goes by how long it
// has stood: the clock of who asks may say anything. Others, and who is asked by a former version, can but compare it
// with their own.
func (a *answering) expires(n registry.Node, req layout.Request) (does bool, left time.Duration) {
	stood, known := a.l.cfg.Memory.stands(n)
	switch {
	case req.Within > 0 && known:
		return true, req.Within - stood
	case !req.Expires.IsZero():
		return true, req.Expires.Sub(a.now)
	}
	return false, 0
}

// answered reports whether a run was made of a request.
func (a *answering) answered(id string) bool {
	return slices.ContainsFunc(a.runs, func(r asked) bool { return r.Request == id })
}

// choose says which items run, and answers for the others.
func (a *answering) choose(ctx context.Context, r *layout.Run, req layout.Request) error {
	if req.Items == "" {
		req.Items = ledger.FormatRange(all(r.Total))
	}
	items := ranges(req.Items, r.Total)
	if len(items) == 0 {
		r.Problem = fmt.Sprintf("items: %.40q is not a range of the items 0 to %d", req.Items, r.Total-1)
		return nil
	}
	r.Items = ledger.FormatRange(items)
	off := make([]string, len(items))
	for i, n := range items {
		off[i] = a.l.cfg.Job.Disabled(n)
	}
	nodes, err := a.l.cfg.Session.Get(ctx, off...)
	if err != nil {
		return fmt.Errorf("core: requests: %w", err)
	}
	no := map[request.Outcome][]int{}
	for i, n := range items {
		rec, _ := a.plan.Record(r.Epoch, n)
		switch {
		case nodes[i].Exists():
			no[request.Disabled] = append(no[request.Disabled], n)
		case a.plan.IsAway(n):
			no[request.Absent] = append(no[request.Absent], n)
		case req.Refuse && (rec.Redo.Owed() || rec.Running() && !rec.Ahead(a.now)): // what is begun ahead is given back
			no[request.Busy] = append(no[request.Busy], n)
		}
	}
	r.Answers = answers(r.Answers, no)
	if len(no[request.Disabled])+len(no[request.Absent])+len(no[request.Busy]) == len(items) {
		r.Closed = a.now
	}
	return nil
}

// ranges returns the items of a text; none where it has no ranges of them.
func ranges(text string, total int) []int {
	items, err := ledger.ParseRange(text, total)
	if err != nil {
		return nil
	}
	return items
}

func all(total int) []int {
	items := make([]int, total)
	for n := range items {
		items[n] = n
	}
	return items
}

// answers adds what became of items.
func answers(to []layout.Answer, what map[request.Outcome][]int) []layout.Answer {
	for _, word := range slices.Sorted(maps.Keys(what)) {
		to = append(to, layout.Answer{Items: ledger.FormatRange(what[word]), Outcome: string(word)})
	}
	return to
}

// run closes a run of which every item has its outcome.
func (a *answering) run(ctx context.Context, n registry.Node, r *layout.Run) error {
	pending, err := a.pending(ctx, r)
	if err != nil {
		return err
	}
	if len(pending) > 0 && !a.facts.Monitor && r.Sealed == "" {
		return a.seal(ctx, n, r, request.Unmonitored)
	}
	no := map[request.Outcome][]int{}
	for item := range pending {
		if word := a.verdict(r, item); word != "" {
			no[word] = append(no[word], item)
			delete(pending, item)
		}
	}
	if len(pending) > 0 {
		if a.l.bound == nil || r.Sealed != "" || !a.l.bound.Awaits(r.Epoch, r.Number, pending) {
			return nil
		}
		if a.plan == nil {
			a.l.Look() // the ledgers may say otherwise by now
			return nil
		}
		return a.seal(ctx, n, r, request.Absent)
	}
	for _, items := range no {
		slices.Sort(items)
	}
	closed := *r
	closed.Closed = a.now
	closed.Answers = answers(slices.Clone(r.Answers), no)
	if err := a.commit(ctx, registry.Set(n.Path, layout.MarshalRun(closed), n.Version)); err != nil {
		return err
	}
	*r = closed
	return nil
}

// seal has nothing more begin of a run. What has not begun then, by ledgers that are read
// afterwards, never will.
func (a *answering) seal(ctx context.Context, n registry.Node, r *layout.Run, why request.Outcome) error {
	sealed := *r
	sealed.Sealed = string(why)
	if err := a.commit(ctx, registry.Set(n.Path, layout.MarshalRun(sealed), n.Version)); err != nil {
		return err
	}
	*r = sealed
	a.l.Look()
	return nil
}

// verdict is what became of an item of which no result came; "" while one may come. The
// ledgers were read before the results: an end sets both.
func (a *answering) verdict(r *layout.Run, item int) request.Outcome {
	if a.plan == nil || a.s.Base == nil {
		return ""
	}
	rec, stands := a.plan.Record(r.Epoch, item)
	switch {
	case stands && rec.Request == r.Number && (rec.Running() || rec.Redo.Owed()):
		return ""
	case stands && rec.Asked >= r.Number:
		return request.Crashed
	case !stands && a.plan.Missing():
		return "" // it may run, and end under another registration
	case a.s.Base.Epoch > r.Epoch:
		return request.Superseded
	case r.Sealed != "" && stands:
		return request.Outcome(r.Sealed)
	}
	return ""
}

// pending are the items of a run without an outcome.
func (a *answering) pending(ctx context.Context, r *layout.Run) (map[int]bool, error) {
	items := ranges(r.Items, r.Total) // none where somebody else wrote it: it is closed then
	pending := make(map[int]bool, len(items))
	for _, n := range items {
		pending[n] = true
	}
	job := a.l.cfg.Job
	names, err := a.l.cfg.Session.Names(ctx, job.RunResults(r.Number))
	if err != nil {
		return nil, fmt.Errorf("core: results: %w", err)
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = job.RunResult(r.Number, name)
	}
	nodes, err := a.l.cfg.Session.Get(ctx, paths...)
	if err != nil {
		return nil, fmt.Errorf("core: results: %w", err)
	}
	told := slices.Clone(r.Answers)
	for _, n := range nodes {
		if results, err := layout.UnmarshalResults(n.Value); err == nil {
			told = append(told, results.Results...)
		}
	}
	for _, x := range told {
		for _, item := range ranges(x.Items, r.Total) {
			delete(pending, item)
		}
	}
	return pending, nil
}

// keep is how long a closed run is still shown: it counts from when this leader first saw it
// closed, since the clocks of leaders differ.
func (l *Leader) keep(number int64) time.Duration {
	since, seen := l.closed[number]
	if !seen {
		since = time.Now()
		lazymap.Set(&l.closed, number, since)
	}
	return kept - time.Since(since)
}

// tidyKills deletes the kills that have counted for long enough.
func (a *answering) tidyKills(ctx context.Context) error {
	seen := make(map[string]time.Time, len(a.kills))
	for _, name := range a.kills {
		since, known := a.l.kills[name]
		if !known {
			since = time.Now()
		}
		at := a.l.cfg.Job.InForce() + "/" + name
		if left := killing - time.Since(since); left > 0 {
			seen[name] = since
			a.again(left)
			continue
		}
		seen[name] = since
		if a.l.isLeft(at) {
			continue
		}
		err := a.commit(ctx, registry.Delete(at, registry.AnyVersion))
		if errors.Is(err, registry.ErrNotFound) && !errors.Is(err, errNotLeader) {
			continue
		}
		if err := a.spare(at, err); err != nil {
			return err
		}
	}
	a.l.kills = seen
	return nil
}

// forget deletes a run, with its results.
func (a *answering) forget(ctx context.Context, n registry.Node, number int64) error {
	if a.l.isLeft(n.Path) {
		return nil
	}
	job := a.l.cfg.Job
	names, err := a.l.cfg.Session.Children(ctx, job.RunResults(number))
	gone := errors.Is(err, registry.ErrNotFound)
	if err != nil && !gone {
		return fmt.Errorf("core: results: %w", err)
	}
	var ops []registry.Op
	for _, name := range names {
		ops = append(ops, registry.Delete(job.RunResult(number, name), registry.AnyVersion))
	}
	if !gone {
		ops = append(ops, registry.Delete(job.RunResults(number), registry.AnyVersion))
	}
	ops = append(ops, registry.Delete(n.Path, registry.AnyVersion))
	if ops = a.l.possible(ops); len(ops) == 0 {
		return nil
	}
	for room := a.l.cfg.Session.Limits().MaxOps - guardOps; len(ops) > 0; {
		some := ops[:min(room, len(ops))]
		ops = ops[len(some):]
		if err := a.commit(ctx, some...); err != nil {
			return err
		}
	}
	delete(a.l.closed, number)
	return nil
}

// follow watches the results of the runs that are open, and of no others.
func (l *Leader) follow(open map[int64]bool) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	add, remove := difference(l.results, open, cmp.Compare[int64])
	l.results = open
	l.mu.Unlock()
	for _, n := range remove {
		l.cfg.Session.Unfollow(l.cfg.Job.RunResults(n), registry.Children)
	}
	for _, n := range add {
		l.cfg.Session.Follow(l.cfg.Job.RunResults(n), registry.Children, func(e registry.Event) {
			if !e.Synced {
				l.Answer()
			}
		})
	}
}

// ring has what was asked for looked at again after a while; 0 is never.
func (l *Leader) ring(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bell != nil {
		l.bell.Stop()
		l.bell = nil
	}
	if after > 0 && !l.over && l.cfg.Context.Err() == nil {
		l.bell = time.AfterFunc(after, l.Look)
	}
}
