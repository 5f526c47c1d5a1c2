package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/history/nodes"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

const (
	namespace = "sim"
	// unrest is how long faults begin; mending is how long they may take to end
	// after it; quiet is how long nothing happens to the cluster then.
	unrest  = 40 * time.Second
	mending = 10 * time.Second
	quiet   = 75 * time.Second
	// narrow is the length of a value in some seeds: a few records of their own outgrow half of it.
	narrow = 2 << 10
	// fewItems of a fixed delay are all idle now and then.
	fewItems = 6
)

// A job is one of the run's jobs, as it is configured now.
type job struct {
	name        string
	cron, zone  string
	total       int
	unmonitored bool
	failover    bool
	static      bool          // until it is known how the run ends
	ahead       time.Duration // how long before they are due fires may be begun; 0 is the default
	within      int           // seconds by which a clock may be off the leader's, 0 for any
	delayed     bool          // a fixed delay
	concurrency int
	misfire     string // a policy
	misfireCap  int
	// misfireWindow as core.JobConfig has it: negative is none.
	misfireWindow   time.Duration
	reconcile       time.Duration
	listened, again bool // listeners to rounds; a second one is called where the first has died
	// gathers: listeners before rounds too; failLate: items fail where those are too late.
	gathers, failLate bool
	layout            layout.Job
	most              int // the largest total that it had
}

func (j *job) config() *history.Config {
	return &history.Config{Cron: j.cron, Zone: j.zone, Total: j.total, Unmonitored: j.unmonitored, Misfire: j.misfire, Failover: j.failover, Static: j.static,
		Within: time.Duration(j.within) * time.Second}
}

// A world is one run: a cluster, what happens to it, and what it did.
type world struct {
	seed    uint64
	dice    *dice
	driver  *driver
	log     *log
	server  *memory.Server
	start   time.Time
	timeout time.Duration
	period  time.Duration // about that of the jobs

	quickest, slowest time.Duration // latencies

	fewPlaces bool // a job's items wait for each other
	narrow    bool // values are so short that ledgers have pages
	brief     bool // runs take next to no time

	jobs    []*job
	procs   []*process
	pauses  *int // of the server, since it was started last
	fate    func(proc string, ops []registry.Op) memory.Fate
	tasks   sync.WaitGroup
	outside *memory.Registry // of the operator
	hand    registry.Session // the operator's, or nil
	eye     *memory.Registry // of the observer

	offsets *offsets // nil where runs set none

	judging         sync.Mutex
	paged           int         // operations on pages of ledgers
	violations      []violation // that need no checker
	accepted        map[requestedRun]time.Duration
	destroyed       map[string]bool // nodes that the driver has deleted, or written nonsense to
	ledgersSet      []setting       // by commit: what engines have tried to set of ledgers
	struck          []string        // lives that the driver ended
	erased          []erasure
	schedulesErased []erasure // of the schedule in force
	requestsErased  []erasure // of requests, runs that were asked for, or what became of them
	shut            []string  // stable ids whose job was shut down from outside: it leaves by itself
	forged          []string  // lives whose owner looks dead and is not
}

func newWorld(seed uint64) *world {
	w := &world{seed: seed, dice: newDice(seed), start: time.Now(), accepted: map[requestedRun]time.Duration{}, destroyed: map[string]bool{}}
	w.log = newLog(w.start)
	w.driver = newDriver(w.log.settle)
	r := w.dice.of("world")
	w.timeout = one(r, []time.Duration{2 * time.Second, 3 * time.Second, 6 * time.Second})
	w.quickest, w.slowest = 50*time.Microsecond, one(r, []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond})
	var limits registry.Limits // the portable ones
	if chance(w.dice.of("limits"), 3) {
		w.narrow, limits.MaxValue = true, narrow
	}
	w.server = memory.NewServer(memory.Config{SessionTimeout: w.timeout, Limits: limits})
	w.pauses = new(int)
	w.outside, w.eye = w.server.Registry(namespace), w.server.Registry(namespace)
	w.server.Intercept(func(id string, ops []registry.Op) memory.Fate {
		if w.fate == nil {
			return memory.Deliver
		}
		for _, p := range w.procs {
			if p.has(id) {
				return w.fate(p.name, ops)
			}
		}
		return memory.Deliver
	})
	for i := range 1 + r.IntN(2) {
		w.jobs = append(w.jobs, w.newJob(i))
	}
	return w
}

var crons = []string{"* * * * * ?", "0/2 * * * * ?", "0/3 * * * * ?", "0/5 * * * * ?", "1/4 * * * * ?", "@every 2s", "@every 3s"}

func (w *world) newJob(i int) *job {
	r := w.dice.of("job " + strconv.Itoa(i))
	j := &job{
		name: string(rune('a' + i)), cron: one(r, crons), zone: "UTC", total: 1 + r.IntN(8),
		reconcile: one(r, []time.Duration{time.Minute, time.Minute}), // what nobody records is mended by it alone
	}
	switch n := r.IntN(12); n {
	case 0:
		j.unmonitored = true
	case 1:
		j.cron, j.delayed = one(r, []string{"@delay 1s", "@delay 2500ms"}), true
	case 2:
		j.total = 30 + r.IntN(30) // more than one commit holds
	}
	p := w.dice.of("misfire of job " + strconv.Itoa(i))
	j.misfire = one(p, []string{"once", "once", "skip", "all"})
	j.misfireCap = one(p, []int{0, 1, 3})
	j.misfireWindow = one(p, []time.Duration{0, 0, -1, 5 * time.Second, 20 * time.Second})
	j.failover = !j.unmonitored && !chance(w.dice.of("failover of job "+strconv.Itoa(i)), 3)
	j.ahead = one(w.dice.of("begins ahead of job "+strconv.Itoa(i)), begunAhead)
	j.gathers, j.failLate = chance(w.dice.of("listeners before rounds of job "+strconv.Itoa(i)), 2), chance(w.dice.of("late rounds of job "+strconv.Itoa(i)), 2)
	j.listened, j.again = chance(w.dice.of("rounds of job "+strconv.Itoa(i)), 2), chance(w.dice.of("rounds again of job "+strconv.Itoa(i)), 2)
	j.static = !j.delayed && chance(w.dice.of("static sharding: job "+strconv.Itoa(i)), 5)
	if c := w.dice.of("clocks of job " + strconv.Itoa(i)); chance(c, 4) {
		j.within = one(c, []int{1, 2, 10})
	}
	w.period = 2 * time.Second
	if w.narrow {
		j.total += w.dice.of("items of job " + strconv.Itoa(i)).IntN(32)
	}
	j.concurrency, j.most = 64, j.total
	if chance(r, 3) {
		j.concurrency = 1 + r.IntN(4)
		w.fewPlaces = true
	}
	j.layout, _ = layout.New(namespace, j.name) // the name is sound
	return j
}

// begunAhead is how long before they are due fires may be begun; by default they are with failover.
var begunAhead = []time.Duration{0, 0, 0, -1, 300 * time.Millisecond, time.Second}

// A setting is what a commit that is on its way at an instant sets of ledgers.
type setting struct {
	at  time.Duration
	ops []registry.Op
	led bool // under a term: the commit is a leader's
}

// A requestedRun is a run of a job that somebody asked for, by its instant.
type requestedRun struct {
	job string
	due int64
}

// An erasure is a ledger that the driver destroyed.
type erasure struct {
	job  string
	at   time.Time
	base bool // the base stood no more
}

func (w *world) common(t time.Time) time.Duration { return w.log.common(t) }

// add starts a process. One that comes back has the name of one before.
func (w *world) add(stable string) *process {
	n := len(w.procs) + 1
	p := &process{
		world: w, name: "s" + strconv.Itoa(n), stable: stable, link: w.server.Registry(namespace),
		dead: make(chan struct{}), ended: make(chan struct{}), sessions: map[string]*session{},
		instance: map[string]string{}, owned: map[string]history.Record{},
	}
	p.ip = "10.0.0." + strconv.Itoa(n)
	if stable == "" {
		p.stable = p.name
	}
	for _, before := range w.procs {
		if before.stable == stable {
			p.ip = before.ip
		}
	}
	// Clocks differ a little, so that no two of them fire at one instant.
	p.ahead = between(w.dice.of("clock of "+p.name), -20*time.Millisecond, 20*time.Millisecond)
	w.procs = append(w.procs, p)
	p.tell("", history.Record{Kind: history.ClockSet, Of: p.name, Took: p.ahead})
	p.launch(w.jobs)
	return p
}

// alive are the processes that are neither dead nor leaving.
func (w *world) alive() []*process {
	return slices.DeleteFunc(slices.Clone(w.procs), func(p *process) bool { return p.gone() })
}

// operator returns a session of somebody outside, or nil while there is no service.
func (w *world) operator() registry.Session {
	if *w.pauses > 0 {
		return nil
	}
	if w.hand != nil && w.hand.Err() == nil {
		return w.hand
	}
	hand, err := w.outside.Open(context.Background())
	if err != nil {
		return nil
	}
	w.hand = hand
	return hand
}

// write sets or makes a node as an operator does, and reports whether that worked.
func (w *world) write(at, value string) bool {
	hand := w.operator()
	if hand == nil {
		return false
	}
	ctx := context.Background()
	_, err := hand.Commit(ctx, registry.Set(at, []byte(value), registry.AnyVersion))
	if errors.Is(err, registry.ErrNotFound) {
		if registry.EnsurePath(ctx, hand, path.Dir(at)) != nil {
			return false
		}
		_, err = hand.Commit(ctx, registry.Create(at, []byte(value)))
	}
	return err == nil
}

// commit commits as an operator does, and reports whether that worked. What it makes ephemeral ends with
// the operator's session.
func (w *world) commit(ops ...registry.Op) bool {
	hand := w.operator()
	if hand == nil {
		return false
	}
	_, err := hand.Commit(context.Background(), ops...)
	return err == nil
}

// remove deletes nodes in one commit.
func (w *world) remove(paths ...string) bool {
	var ops []registry.Op
	for _, at := range paths {
		ops = append(ops, registry.Delete(at, registry.AnyVersion))
	}
	return w.commit(ops...)
}

// read returns a node's value; "" when it is not there.
func (w *world) read(at string) string {
	hand := w.operator()
	if hand == nil {
		return ""
	}
	nodes, err := hand.Get(context.Background(), at)
	if err != nil {
		return ""
	}
	return string(nodes[0].Value)
}

// ledgers reads the ledgers of a job that can be read.
func (w *world) ledgers(j *job) []history.Ledger {
	hand := w.operator()
	if hand == nil {
		return nil
	}
	var paths []string
	for _, id := range w.list(j.layout.Ledgers()) {
		paths = append(paths, j.layout.Ledger(id))
	}
	roots, err := hand.Get(context.Background(), paths...)
	if err != nil {
		return nil
	}
	read, _, err := nodes.Ledgers(context.Background(), hand.Get, roots...)
	if err != nil {
		return nil
	}
	return read
}

// list returns the names below a node, in order.
func (w *world) list(at string) []string {
	hand := w.operator()
	if hand == nil {
		return nil
	}
	names, err := hand.Children(context.Background(), at)
	if err != nil {
		return nil
	}
	return names
}

// configure makes the registry say what j says now.
func (w *world) configure(j *job) bool {
	text := w.read(j.layout.Config())
	c, err := layout.UnmarshalConfig([]byte(text))
	if err != nil {
		c = layout.Config{JobName: j.name, Misfire: true, ReconcileIntervalMinutes: int(j.reconcile / time.Minute)}
	}
	c.Cron, c.TimeZone, c.ShardingTotalCount, c.MonitorExecution = j.cron, j.zone, j.total, !j.unmonitored
	c.Misfire, c.Failover, c.StaticSharding = j.misfire != "skip", j.failover, j.static
	if c.MaxTimeDiffSeconds = j.within; j.within == 0 {
		c.MaxTimeDiffSeconds = -1
	}
	if c.Props == nil {
		c.Props = layout.Props{}
	}
	if c.Props[settings.PropBeginAhead] = settings.FormatDuration(j.ahead); j.ahead == 0 {
		delete(c.Props, settings.PropBeginAhead)
	}
	settings.SetMisfire(c.Props, j.misfire == "all", j.misfireCap, j.misfireWindow)
	value, err := layout.MarshalConfig(c)
	if err != nil || !w.write(j.layout.Config(), string(value)) {
		return false
	}
	j.most = max(j.most, j.total)
	w.log.tell("", history.Record{Kind: history.Configured, Who: "driver", Job: j.name, Config: j.config()})
	return true
}

// A result is what a run showed.
type result struct {
	seed       uint64
	plan       []*fault
	mask       mask
	records    []history.Record
	report     history.Report
	violations []violation
	took       time.Duration // of real time
	turns      int
	paged      int // operations on pages of ledgers
}

// live runs the world to its end with some faults of the plan.
func (w *world) live(plan []*fault, active mask) {
	for _, j := range w.jobs {
		w.log.tell("", history.Record{Kind: history.Configured, Who: "driver", Job: j.name, Config: j.config()})
	}
	w.observe()
	r := w.dice.of("cluster")
	for i := range 2 + r.IntN(3) {
		w.later("start of "+strconv.Itoa(i), between(r, 0, 300*time.Millisecond), func() { w.add("") })
	}
	for i := range w.dice.of("requests").IntN(8) {
		q := w.dice.of("request " + strconv.Itoa(i))
		w.later("request "+strconv.Itoa(i), between(q, time.Second, unrest+mending), func() { w.ask(strconv.Itoa(i), q) })
	}
	for i := range w.dice.of("triggers").IntN(3) {
		q := w.dice.of("trigger " + strconv.Itoa(i))
		w.later("trigger "+strconv.Itoa(i), between(q, time.Second, unrest+mending), func() { w.pull(q) })
	}
	for i, f := range plan {
		if active.has(i) {
			w.later("fault "+strconv.Itoa(i), f.at, func() { w.strike(f) })
		}
	}
	w.driver.until(w.start.Add(unrest+mending), nil)
	w.heal(plan)
	w.driver.until(time.Now().Add(quiet/3), nil)
	for _, j := range w.jobs {
		w.unbind(j)
		if w.narrow && j.delayed && j.total > fewItems { // of many some always run
			j.total = fewItems
			w.insist(func() bool { return w.configure(j) })
		}
	}
	w.driver.until(time.Now().Add(2*quiet/3), nil)
	// Short runs from now on, so that there is an instant at which nothing is under way.
	w.brief = true
	w.awaitWary()
	w.driver.until(time.Now().Add(20*time.Second), nil)
	w.driver.until(time.Now().Add(20*time.Second), w.idle)
	w.snapshot()
	for _, p := range w.alive() {
		p.stop(5 * time.Second)
	}
	w.driver.until(time.Now().Add(2*time.Minute), func() bool {
		return !slices.ContainsFunc(w.procs, func(p *process) bool { return !closed(p.ended) })
	})
	for _, p := range w.procs {
		if !closed(p.ended) {
			w.violations = append(w.violations, violation{"stop", p.name + " has not stopped within two minutes"})
		}
	}
	w.finish()
}

// ask asks for a run, as a program does that calls package admin.
func (w *world) ask(id string, r *rand.Rand) {
	j := one(r, w.jobs)
	if w.read(j.layout.Config()) == "" || w.read(j.layout.Base()) == "" {
		return
	}
	var items []int
	for n := range j.total {
		if chance(r, 2) {
			items = append(items, n)
		}
	}
	if chance(r, 2) {
		items = nil
	}
	expires := time.Time{}
	if chance(r, 3) {
		expires = time.Now().Add(between(r, 10*time.Millisecond, 10*time.Second))
	}
	at := j.layout.Request("r" + id)
	if w.write(at, requestOf(items, chance(r, 3), expires, id)) {
		w.log.tell("", history.Record{Kind: history.Requested, Who: "driver", Job: j.name, Of: "r" + id, Items: items})
	}
}

// pull asks an instance to run its items, as ElasticJob's tools do, those of version 2 too.
func (w *world) pull(r *rand.Rand) {
	j := one(r, w.jobs)
	ids := w.list(j.layout.Lives())
	if len(ids) == 0 {
		return
	}
	id := one(r, ids)
	at, word := j.layout.TriggerInstance(id), ""
	if chance(r, 2) {
		at, word = j.layout.Instance(id), "TRIGGER"
	}
	if w.read(j.layout.Instance(id)) != "" && w.write(at, word) {
		w.log.tell("", history.Record{Kind: history.Note, Who: "driver", Reason: "triggered " + at})
	}
}

// idle reports whether nothing has happened for a while.
func (w *world) idle() bool {
	return len(w.driver.queue) == 0 && time.Since(w.driver.latest) >= 200*time.Millisecond
}

// later has the driver do something after a while.
func (w *world) later(key string, d time.Duration, do func()) {
	w.driver.add(&step{key: "world " + key, wait: func(string) time.Duration { return d }, run: do})
}

// heal ends what has not ended yet, and makes sure that somebody runs each job.
func (w *world) heal(plan []*fault) {
	for _, f := range plan {
		f.finish(w)
	}
	w.driver.until(time.Now().Add(time.Second), nil) // whoever stops is seen to
	for _, j := range w.jobs {
		if _, err := layout.UnmarshalConfig([]byte(w.read(j.layout.Config()))); err != nil {
			w.configure(j)
		}
	}
	for _, j := range w.jobs {
		if !slices.ContainsFunc(w.alive(), func(p *process) bool { return p.engine.runs(j.name) }) {
			w.add("")
			break
		}
	}
	w.log.tell("", history.Record{Kind: history.Note, Who: "driver", Reason: "all is healed"})
}

// unbind has nothing stay bound to instances that never come back, in one of the ways that
// operators have.
func (w *world) unbind(j *job) {
	if !j.static {
		return
	}
	if chance(w.dice.of("end of static sharding of "+j.name), 2) {
		j.total++
	} else {
		j.static = false
	}
	w.insist(func() bool { return w.configure(j) })
}

// aWaryFire is how long a fire that has killed two instances may take until it runs again, once it is the next to:
// the items that wait for its instance's place are in front of it, and where somebody listens to rounds, theirs wait
// for it in vain.
const aWaryFire = 12 * time.Second

// awaitWary waits on while fires that have killed two instances run again. An instance begins one of them after the
// other, each when it has a place: of many the last comes after the quiet time. There must be fewer from look to look.
func (w *world) awaitWary() {
	for before := w.wary(); before > 0; {
		w.driver.until(time.Now().Add(aWaryFire), nil)
		now := w.wary()
		if now >= before {
			return
		}
		before = now
	}
}

// wary is how many fires that have killed two instances are to run again.
func (w *world) wary() int {
	n := 0
	for _, j := range w.jobs {
		for _, l := range w.ledgers(j) {
			for _, h := range l.Items {
				if !h.Redo.IsZero() && h.Tries >= 2 {
					n++
				}
			}
		}
	}
	return n
}

// snapshot tells what stands in the registry of each job.
func (w *world) snapshot() {
	for _, j := range w.jobs {
		at := j.layout
		s := &history.Snapshot{
			Instances: w.list(at.Instances()), Lives: w.list(at.Lives()),
			Leader: w.read(at.Leader()), Term: layout.UnmarshalTerm([]byte(w.read(at.Term()))).Leader, Running: map[int]string{},
		}
		for _, flag := range w.list(at.ShardingState()) {
			s.Flags = append(s.Flags, at.ShardingState()+"/"+flag)
		}
		for _, item := range w.list(at.Sharding()) {
			if n, ok := layout.ParseItem(item); ok {
				if owner := w.read(at.Running(n)); owner != "" {
					s.Running[n] = owner
				}
			}
		}
		s.Ledgers = w.ledgers(j)
		s.Base, _ = nodes.Base([]byte(w.read(j.layout.Base()))) // nil where there is none
		for _, name := range w.list(at.InForce()) {
			if id, is := layout.RequestID(name); is {
				s.Requests = append(s.Requests, id)
			}
			n, is := layout.RunNumber(name)
			if !is {
				continue
			}
			var results [][]byte
			for _, id := range w.list(at.RunResults(n)) {
				results = append(results, []byte(w.read(at.RunResult(n, id))))
			}
			if a, err := nodes.Asked([]byte(w.read(at.Run(n))), results); err == nil {
				s.Asked = append(s.Asked, a)
			}
		}
		w.log.tell("", history.Record{Kind: history.Quiet, Who: "driver", Job: j.name, Snapshot: s})
	}
}

// finish closes everything, so that the bubble can end.
func (w *world) finish() {
	if w.hand != nil {
		_ = w.hand.Close(context.Background())
	}
	_ = w.eye.Close()
	for _, p := range w.procs {
		p.giveUp()
		_ = p.link.Close()
	}
	_ = w.outside.Close()
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		w.tasks.Wait()
		for _, p := range w.procs {
			p.tasks.Wait()
		}
	}()
	w.driver.until(time.Now().Add(10*time.Minute), func() bool { return closed(joined) })
	w.driver.turns++
}

// observe follows lives, running items and what is in force, on a session of its own.
func (w *world) observe() {
	seen := map[string]registry.Node{}
	w.tasks.Go(func() {
		for {
			ses, err := w.eye.Open(context.Background())
			if err != nil {
				return
			}
			w.watch(ses, seen)
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			_ = ses.Close(gone)
		}
	})
}

// watch tells of each change until the session ends.
func (w *world) watch(ses registry.Session, seen map[string]registry.Node) {
	watcher, err := ses.Watch(context.Background())
	if err != nil {
		return
	}
	type place struct {
		job  *job
		node history.Node
		item int
	}
	places := map[string]place{}
	for _, j := range w.jobs {
		places[j.layout.Lives()] = place{j, history.Life, 0}
		places[j.layout.Instances()] = place{j, history.InstanceNode, 0}
		for n := range 64 {
			places[j.layout.Running(n)] = place{j, history.Running, n}
		}
		places[j.layout.Schedule()] = place{j, "schedule", 0}
		places[j.layout.Base()] = place{j, "base", 0}
	}
	for at, p := range places {
		scope := registry.Self
		if registers(p.node) {
			scope = registry.Children
		}
		_ = watcher.Add(at, scope) // the session has ended
	}
	for {
		events, err := watcher.Next(context.Background())
		if err != nil {
			return
		}
		slices.SortStableFunc(events, func(a, b registry.Event) int { return strings.Compare(a.Path, b.Path) })
		present := map[string]bool{}
		for _, e := range events {
			p := places[e.Path]
			switch {
			case e.Synced && registers(p.node):
				// What went while nobody looked is not among those that are there.
				for _, at := range slices.Sorted(maps.Keys(seen)) {
					if path.Dir(at) == e.Path && !present[at] {
						w.onNode(seen, p.job, p.node, 0, registry.Node{Path: at})
					}
				}
			case e.Synced:
			default:
				present[e.Node.Path] = true
				w.onNode(seen, p.job, p.node, p.item, e.Node)
			}
		}
	}
}

// registers reports whether nodes of a kind stand for instances, by whose ids they are named.
func registers(kind history.Node) bool { return kind == history.Life || kind == history.InstanceNode }

// onNode tells of a node that is not as it was seen before.
func (w *world) onNode(seen map[string]registry.Node, j *job, kind history.Node, item int, n registry.Node) {
	before := seen[n.Path]
	seen[n.Path] = n
	shown := registers(kind) || kind == history.Running
	if before.Exists() && before.Created != n.Created && shown {
		r := history.Record{Kind: history.Gone, Who: "observer", Job: j.name, Node: kind, Item: item, Instance: string(before.Value)}
		if registers(kind) {
			r.Instance = path.Base(n.Path)
		}
		w.log.tell("", r)
	}
	if !n.Exists() || before.Modified == n.Modified {
		return
	}
	r := history.Record{Who: "observer", Job: j.name}
	switch {
	case registers(kind) && before.Created != n.Created:
		r.Kind, r.Node, r.Instance = history.Come, kind, path.Base(n.Path)
	case kind == history.Running && before.Created != n.Created:
		r.Kind, r.Node, r.Instance, r.Item = history.Come, kind, string(n.Value), item
	case kind == "schedule":
		if s, err := nodes.Schedule(n.Value); err == nil {
			r.Kind, r.Schedule = history.SawSchedule, s
		}
	case kind == "base":
		if b, err := nodes.Base(n.Value); err == nil {
			r.Kind, r.Base = history.SawBase, b
		}
	}
	if r.Kind != "" {
		w.log.tell("", r)
	}
}

func (f *fault) String() string { return fmt.Sprintf("%s at %v", f.kind, f.at) }
