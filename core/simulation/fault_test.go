package simulation

import (
	"context"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A fault is one thing that goes wrong, or that an operator does.
type fault struct {
	kind  string
	at    time.Duration // after the start
	lasts time.Duration
	dice  func() *rand.Rand

	struck, ended bool
	blow          *blow
}

// A blow is a fault that has begun.
type blow struct {
	of  string     // its target
	end func()     // may be nil
	hit func() int // how often it has hit something
}

// hits is the count of a fault that hits at once.
func hits(n int) func() int { return func() int { return n } }

// strike begins a fault. One that finds no target has not begun.
func (w *world) strike(f *fault) {
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == f.kind })]
	f.blow = k.begin(w, f, f.dice())
	if f.blow == nil {
		f.ended = true
		return
	}
	f.struck = true
	w.log.tell("", history.Record{Kind: history.FaultBegun, Who: "driver", Fault: f.kind, Of: f.blow.of, Disturbs: k.disturbs})
	if f.blow.end == nil {
		f.finish(w)
		return
	}
	w.later("end of "+f.kind+f.at.String(), f.lasts, func() { f.finish(w) })
}

// lingers says that a fault disturbs until an instant, though it is over: messages that it has
// delayed are still under way.
func (w *world) lingers(fault, of string, until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	r := history.Record{Kind: history.FaultBegun, Who: "driver", Fault: fault + ", under way", Of: of, Disturbs: true}
	w.log.tell("", r)
	w.later("end of what is under way of "+fault+of+until.String(), left, func() {
		r.Kind, r.Count = history.FaultEnded, 1
		w.log.tell("", r)
	})
}

// finish ends a fault, once.
func (f *fault) finish(w *world) {
	if f.ended || !f.struck {
		return
	}
	f.ended = true
	if f.blow.end != nil {
		f.blow.end()
	}
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == f.kind })]
	w.log.tell("", history.Record{
		Kind: history.FaultEnded, Who: "driver", Fault: f.kind, Of: f.blow.of, Disturbs: k.disturbs, Count: f.blow.hit(),
	})
}

// page is one of the pages that stand of a job's ledgers; "" where there is none.
func (w *world) page(r *rand.Rand) (*job, string) {
	j := one(r, w.jobs)
	var all []string
	for _, id := range w.list(j.layout.Ledgers()) {
		at := j.layout.Ledger(id)
		for _, below := range w.list(at) {
			all = append(all, at+"/"+below)
		}
	}
	if len(all) == 0 {
		return j, ""
	}
	return j, one(r, all)
}

// hit is how often the fault hit something, after its end.
func (f *fault) hit() int {
	if !f.struck {
		return 0
	}
	return f.blow.hit()
}

// plan draws the faults of a seed.
func (w *world) plan() []*fault {
	r := w.dice.of("plan")
	weight := 0
	for _, k := range kinds {
		weight += k.weight
	}
	var plan []*fault
	for i := range 2 + r.IntN(11) {
		n := r.IntN(weight)
		k := slices.IndexFunc(kinds, func(k kind) bool { n -= k.weight; return n < 0 })
		f := &fault{kind: kinds[k].name, at: between(r, 2*time.Second, unrest)}
		f.lasts = between(r, w.timeout/10, w.timeout*5/2)
		f.dice = func() *rand.Rand { return w.dice.of("fault " + strconv.Itoa(i)) }
		plan = append(plan, f)
	}
	if r := w.dice.of("plan of ElasticJob"); chance(r, 3) { // beside the others, so that a seed stays what it is
		f := &fault{kind: one(r, []string{"ElasticJob joins", "ElasticJob leads", "ElasticJob leads"}), at: between(r, 2*time.Second, unrest)}
		f.lasts = between(r, w.timeout/10, w.timeout*5/2)
		f.dice = func() *rand.Rand { return w.dice.of("fault of ElasticJob") }
		plan = append(plan, f)
	}
	if r := w.dice.of("plan of pages"); w.narrow {
		for i := range r.IntN(4) {
			f := &fault{kind: one(r, []string{"page of a ledger deleted", "garbage in a page of a ledger", "page that no ledger has", "page that no ledger has"}), at: between(r, 2*time.Second, unrest)}
			f.dice = func() *rand.Rand { return w.dice.of("fault of pages " + strconv.Itoa(i)) }
			plan = append(plan, f)
		}
	}
	if r := w.dice.of("plan of deaths"); chance(r, 3) {
		f := &fault{kind: one(r, []string{"killed again", "killed before it runs again", "runs ended by an operator"}), at: between(r, 2*time.Second, unrest), lasts: 20 * time.Second}
		f.dice = func() *rand.Rand { return w.dice.of("fault of deaths") }
		plan = append(plan, f)
	}
	if r := w.dice.of("plan of what is in force"); chance(r, 3) {
		for i := range 1 + r.IntN(2) {
			f := &fault{kind: one(r, inForceKinds), at: between(r, 2*time.Second, unrest)}
			f.dice = func() *rand.Rand { return w.dice.of("fault of what is in force " + strconv.Itoa(i)) }
			plan = append(plan, f)
		}
	}
	return plan
}

// A kind is a kind of fault. disturbs: while it lasts no bound of time is promised.
type kind struct {
	name     string
	weight   int
	disturbs bool
	begin    func(w *world, f *fault, r *rand.Rand) *blow
}

// on strikes one of the living processes.
func on(strike func(w *world, p *process, f *fault, r *rand.Rand) *blow) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, f *fault, r *rand.Rand) *blow {
		alive := w.alive()
		if len(alive) == 0 {
			return nil
		}
		p := one(r, alive)
		b := strike(w, p, f, r)
		if b != nil && b.of == "" {
			b.of = p.name
		}
		return b
	}
}

// cut is a fault of one client's way to the server.
func cut(begin func(p *process) (heal func())) func(*world, *fault, *rand.Rand) *blow {
	return on(func(_ *world, p *process, _ *fault, _ *rand.Rand) *blow {
		before := p.link.Hits()
		heal := begin(p)
		return &blow{end: heal, hit: func() int { return p.link.Hits() - before }}
	})
}

// fated is what becomes of some commits for a while, of one process or of all.
func fated(fate func(r *rand.Rand) memory.Fate) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, f *fault, r *rand.Rand) *blow {
		alive := w.alive()
		if len(alive) == 0 || w.fate != nil {
			return nil
		}
		of, hit, share := "", 0, 1+r.IntN(4)
		if !chance(r, 3) {
			of = one(r, alive).name
		}
		w.fate = func(proc string, ops []registry.Op) memory.Fate {
			d := w.dice.of("fate of " + proc + describe(ops))
			if (of != "" && of != proc) || !chance(d, share) {
				return memory.Deliver
			}
			hit++
			return fate(d)
		}
		return &blow{of: of, end: func() { w.fate = nil }, hit: func() int { return hit }}
	}
}

// configured is a change of a job's configuration; back takes it back at its end.
func configured(back bool, change func(w *world, j *job, r *rand.Rand) bool) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		before := *j
		if w.read(j.layout.Config()) == "" || !change(w, j, r) || !w.configure(j) {
			most := j.most
			*j = before
			j.most = most
			return nil
		}
		b := &blow{of: j.name, hit: hits(1)}
		if back {
			b.end = func() {
				j.unmonitored, j.failover, j.ahead = before.unmonitored, before.failover, before.ahead
				w.insist(func() bool { return w.configure(j) })
			}
		}
		return b
	}
}

// insist does something now, or as soon as it can be done.
func (w *world) insist(do func() bool) {
	if !do() {
		w.later("again", 200*time.Millisecond, func() { w.insist(do) })
	}
}

// below deletes nodes of a random life of a job.
func below(what ...func(j *job, id string) string) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		ids := w.list(j.layout.Lives())
		if len(ids) == 0 {
			return nil
		}
		id := one(r, ids)
		var paths []string
		for _, path := range what {
			at := path(j, id)
			paths = append(append(paths, w.below(at)...), at) // a ledger has pages
		}
		if !w.wipe(j, paths...) {
			return nil
		}
		return &blow{of: j.name + " " + id, hit: hits(1)}
	}
}

// stable is an instance id without what is random in it.
func stable(id string) string { return id[:strings.LastIndex(id, "-")+1] }

func life(j *job, id string) string     { return j.layout.Life(id) }
func notice(j *job, id string) string   { return j.layout.Notice(id) }
func ledgerAt(j *job, id string) string { return j.layout.Ledger(id) }
func instance(j *job, id string) string { return j.layout.Instance(id) }
func term(j *job, _ string) string      { return j.layout.Term() }
func leader(j *job, _ string) string    { return j.layout.Leader() }

var nonsense = []string{"", "{", "null", "\x00\xff\xfe", "cron: [", "x: y\nz", "{\"total\":-1}", "[]", "🜚", strings.Repeat("A", 5000)}

// garbage writes nonsense to a place, and clears it away at the end.
func garbage(place func(w *world, j *job, r *rand.Rand) (at string, mend func())) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		if w.read(j.layout.Config()) == "" {
			return nil
		}
		at, mend := place(w, j, r)
		if at == "" || !w.write(at, one(r, nonsense)) {
			return nil
		}
		if at == j.layout.Schedule() {
			w.schedulesErased = append(w.schedulesErased, erasure{job: j.name, at: time.Now()})
		}
		return &blow{of: at, end: mend, hit: hits(1)}
	}
}

// foreign is a node that nobody knows, which goes at the end.
func foreign(dir func(j *job) string) func(*world, *fault, *rand.Rand) *blow {
	return garbage(func(w *world, j *job, r *rand.Rand) (string, func()) {
		at := dir(j) + "/" + one(r, []string{"what", "10.9.9.9", "10.9.9.9@-@x-aaaaaaaaaa", "10.9.9.9@-@77"})
		return at, func() { w.insist(func() bool { return w.remove(at) || w.operator() != nil }) }
	})
}

// withheld is what the service does not allow one process for a while.
var withheld = []string{"/", "/ledgers/", "/lives/", "/sharding/", "/leader/", "/term", "/notices/"}

// kinds are all kinds of faults. New ones come last, so that a seed stays what it is; one
// without a weight is drawn by itself.
var kinds = []kind{
	{"join", 6, false, func(w *world, _ *fault, r *rand.Rand) *blow {
		stable := ""
		if gone := slices.DeleteFunc(slices.Clone(w.procs), func(p *process) bool { return !p.gone() }); len(gone) > 0 {
			if chance(r, 2) {
				stable = one(r, gone).stable
			}
		}
		if len(w.alive()) > 6 || slices.ContainsFunc(w.alive(), func(p *process) bool { return p.stable == stable }) {
			return nil
		}
		return &blow{of: w.add(stable).name, hit: hits(1)}
	}},
	{"leave", 6, false, on(func(_ *world, p *process, _ *fault, r *rand.Rand) *blow {
		if p.still() {
			return nil
		}
		p.stop(one(r, []time.Duration{0, 50 * time.Millisecond, time.Second, 10 * time.Second}))
		return &blow{hit: hits(1)}
	})},
	{"crash", 6, false, on(func(w *world, p *process, _ *fault, r *rand.Rand) *blow {
		p.crash()
		if chance(r, 2) {
			w.expire(p)
		}
		return &blow{hit: hits(1)}
	})},
	{"pause", 6, true, on(func(w *world, p *process, f *fault, r *rand.Rand) *blow {
		if p.still() {
			return nil
		}
		before := p.count()
		thaw := p.freeze(chance(r, 2))
		return &blow{end: thaw, hit: func() int { return p.count() - before }}
	})},
	{"session expired", 5, true, on(func(w *world, p *process, _ *fault, _ *rand.Rand) *blow {
		if !w.expire(p) {
			return nil
		}
		return &blow{hit: hits(1)}
	})},
	{"connection cut", 4, true, cut(func(p *process) func() { return p.link.Refuse() })},
	{"connection dropped", 3, false, cut(func(p *process) func() { p.link.Drop(); return func() {} })},
	{"requests swallowed", 4, true, cut(func(p *process) func() { return p.link.LoseRequests() })},
	{"answers swallowed", 4, true, cut(func(p *process) func() { return p.link.LoseAnswers() })},
	{"commits' answers lost", 4, true, fated(func(*rand.Rand) memory.Fate { return memory.AnswerLost })},
	{"commits lost", 4, true, fated(func(*rand.Rand) memory.Fate { return memory.RequestLost })},
	{"commits late", 5, true, fated(func(r *rand.Rand) memory.Fate {
		return memory.AppliedLate(between(r, time.Millisecond, one(r, []time.Duration{50 * time.Millisecond, 4 * time.Second})))
	})},
	{"commits refused", 3, true, fated(func(*rand.Rand) memory.Fate { return memory.Refused })},
	{"slow", 4, true, func(w *world, f *fault, r *rand.Rand) *blow {
		some, factor, hit := w.alive(), 10+r.IntN(100), 0
		if len(some) == 0 {
			return nil
		}
		if chance(r, 2) {
			some = []*process{one(r, some)}
		}
		for _, p := range some {
			p.mu.Lock()
			hit -= p.hits
			p.slow = factor
			p.mu.Unlock()
		}
		of := strconv.Itoa(len(some))
		return &blow{of: of, hit: func() int { return max(hit, 0) }, end: func() {
			var until time.Time
			for _, p := range some {
				p.mu.Lock()
				hit += p.hits
				p.slow = 0
				if p.slowUntil.After(until) {
					until = p.slowUntil
				}
				p.mu.Unlock()
			}
			w.lingers("slow", of, until)
		}}
	}},
	{"server paused", 3, true, func(w *world, _ *fault, _ *rand.Rand) *blow {
		before := w.hits()
		resume := w.server.Pause()
		pauses := w.pauses
		*pauses++
		return &blow{end: func() { resume(); *pauses-- }, hit: func() int { return w.hits() - before }}
	}},
	{"server restarted", 3, true, func(w *world, _ *fault, _ *rand.Rand) *blow {
		before := w.hits()
		w.server.Restart()
		w.pauses = new(int) // it has ended those
		return &blow{hit: func() int { return w.hits() - before }}
	}},
	{history.SetClock, 5, true, on(func(w *world, p *process, _ *fault, r *rand.Rand) *blow {
		by := one(r, []time.Duration{-time.Hour, -17 * time.Second, -3 * time.Second, -time.Second, time.Second, 4 * time.Second, 23 * time.Second, time.Hour})
		if chance(r, 8) {
			by = 366 * 24 * time.Hour
		}
		by += time.Duration(r.IntN(1000))
		p.set(by)
		return &blow{end: func() { p.set(-by) }, hit: hits(1)}
	})},
	{"total changed", 8, false, configured(false, func(w *world, j *job, r *rand.Rand) bool {
		before := j.total
		j.total = 1 + r.IntN(12)
		if w.narrow {
			j.total *= 1 + r.IntN(4)
		}
		return j.total != before
	})},
	{"cron changed", 5, false, configured(false, func(w *world, j *job, r *rand.Rand) bool {
		before := j.cron
		j.cron = one(r, crons)
		return j.cron != before && !j.delayed
	})},
	{"zone changed", 2, false, configured(false, func(w *world, j *job, r *rand.Rand) bool {
		before := j.zone
		j.zone = one(r, []string{"UTC", "Asia/Shanghai", "America/New_York", "GMT+5"})
		return j.zone != before
	})},
	{"monitoring switched", 3, true, configured(true, func(w *world, j *job, r *rand.Rand) bool {
		j.unmonitored = !j.unmonitored
		j.failover = j.failover && !j.unmonitored
		return true
	})},
	{"server disabled", 4, false, func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		ips := w.list(j.layout.Servers())
		if len(ips) == 0 {
			return nil
		}
		at := j.layout.Server(one(r, ips))
		if !w.write(at, "DISABLED") {
			return nil
		}
		return &blow{of: at, hit: hits(1), end: func() { w.insist(func() bool { return w.write(at, "ENABLED") }) }}
	}},
	{"item disabled", 4, false, func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		n := r.IntN(j.total)
		at := j.layout.Disabled(n)
		if w.read(j.layout.ItemInstance(n)) == "" || !w.write(at, "") {
			return nil
		}
		return &blow{of: at, hit: hits(1), end: func() {
			w.insist(func() bool { return w.remove(at) || w.operator() != nil })
		}}
	}},
	{"life deleted", 3, true, below(life)},
	{"notice deleted", 3, true, below(notice)},
	{"ledger deleted", 3, true, below(ledgerAt)},
	{"instance deleted", 2, false, below(instance)},
	{"term deleted", 3, true, below(term)},
	{"leader deleted", 3, true, below(leader)},
	{"life and notice deleted", 2, true, below(life, notice)},
	{"life and ledger deleted", 2, true, below(life, ledgerAt)},
	{"notice and ledger deleted", 2, true, below(notice, ledgerAt)},
	{"leader and term deleted", 2, true, below(leader, term)},
	{"everything deleted", 1, true, below(life, notice, ledgerAt, instance)},
	{"running node deleted", 2, true, func(w *world, f *fault, r *rand.Rand) *blow {
		for _, j := range w.jobs {
			for n := range j.total {
				if w.read(j.layout.Running(n)) != "" && w.remove(j.layout.Running(n)) {
					return &blow{of: j.layout.Running(n), hit: hits(1)}
				}
			}
		}
		return nil
	}},
	{"garbage in the configuration", 3, false, garbage(func(w *world, j *job, r *rand.Rand) (string, func()) {
		return j.layout.Config(), func() { w.insist(func() bool { return w.configure(j) }) }
	})},
	{"garbage among the servers", 2, false, foreign(func(j *job) string { return j.layout.Servers() })},
	{"garbage among the lives", 2, false, foreign(func(j *job) string { return j.layout.Lives() })},
	{"garbage among the ledgers", 2, false, foreign(func(j *job) string { return j.layout.Ledgers() })},
	{"garbage in the trigger", 2, false, foreign(func(j *job) string { return j.layout.Trigger() })},
	{"garbage in a life", 2, true, garbage(func(w *world, j *job, r *rand.Rand) (string, func()) {
		if ids := w.list(j.layout.Lives()); len(ids) > 0 {
			return j.layout.Life(one(r, ids)), nil
		}
		return "", nil
	})},
	{"garbage in a ledger", 2, true, garbage(func(w *world, j *job, r *rand.Rand) (string, func()) {
		if ids := w.list(j.layout.Lives()); len(ids) > 0 {
			w.erase(j)
			return j.layout.Ledger(one(r, ids)), nil
		}
		return "", nil
	})},
	{"page of a ledger deleted", 0, true, func(w *world, f *fault, r *rand.Rand) *blow {
		j, at := w.page(r)
		if at == "" || !w.remove(at) {
			return nil
		}
		w.erase(j)
		return &blow{of: at, hit: hits(1)}
	}},
	{"garbage in a page of a ledger", 0, true, func(w *world, f *fault, r *rand.Rand) *blow {
		j, at := w.page(r)
		if at == "" || !w.write(at, one(r, []string{"", "{", "null", `{"mark":0}`, `{"mark":1}`})) {
			return nil
		}
		w.erase(j)
		return &blow{of: at, hit: hits(1)}
	}},
	{"page that no ledger has", 0, true, func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		ids := w.list(j.layout.Ledgers())
		if len(ids) == 0 {
			return nil
		}
		root := j.layout.Ledger(one(r, ids))
		made := 0
		for n := range 3 {
			if at := ledger.Path(root, n); w.commit(registry.Create(at, []byte(one(r, []string{"", "{", `{"mark":1}`})))) {
				made++
			}
		}
		return &blow{of: root, hit: hits(made)}
	}},
	{"commits denied", 4, true, on(func(w *world, p *process, _ *fault, r *rand.Rand) *blow {
		before := p.count()
		p.mu.Lock()
		p.denied = one(r, withheld)
		p.mu.Unlock()
		return &blow{hit: func() int { return p.count() - before }, end: func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.denied = ""
		}}
	})},
	{"watches denied", 4, true, on(func(w *world, p *process, _ *fault, r *rand.Rand) *blow {
		before := p.count()
		what := one(r, []string{"/", "/disabled", "/lives", "/config", "/instances", "/leader", "/notices"})
		p.mu.Lock()
		p.deaf = what
		watchers := slices.Clone(p.watchers)
		p.mu.Unlock()
		for _, watcher := range watchers {
			watcher.refuseOne(what, r)
		}
		return &blow{hit: func() int { return p.count() - before }, end: func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.deaf = ""
		}}
	})},
	{"failover switched", 4, false, configured(true, func(w *world, j *job, r *rand.Rand) bool {
		j.failover = !j.failover
		return !j.unmonitored
	})},
	{"begins ahead switched", 3, false, configured(true, func(w *world, j *job, r *rand.Rand) bool {
		before := j.ahead
		j.ahead = one(r, begunAhead)
		return j.ahead != before && !j.unmonitored
	})},
	{"ElasticJob joins", 0, true, besideElasticJob(false)},
	{"ElasticJob leads", 0, true, besideElasticJob(true)},
	{"killed again", 0, false, killedAgain},
	{"killed before it runs again", 0, true, killedBefore},
	{"runs ended by an operator", 0, false, endedRuns},
	{"base deleted", 0, true, inForce(base)},
	{"schedule deleted", 0, true, inForce(scheduled)},
	{"base and schedule deleted", 0, true, inForce(base, scheduled)},
	{"all ledgers deleted", 0, true, inForce(allLedgers)},
	{"base and all ledgers deleted", 0, true, inForce(base, allLedgers)},
	{"all that is in force deleted", 0, true, inForce(base, scheduled, allLedgers)},
	{"claim deleted", 0, true, inForce(claimed)},
	{"counter of runs deleted", 0, true, inForce(counted)},
	{"own nodes deleted", 0, true, inForce(ownNodes)},
	{"directory deleted", 0, true, directoryDeleted},
	{"any node deleted", 0, true, anyNode(func(w *world, j *job, at string, _ *rand.Rand) bool {
		return w.wipe(j, w.tree(at)...)
	})},
	{"garbage in any node", 0, true, anyNode(func(w *world, j *job, at string, r *rand.Rand) bool {
		// A server whose node is nonsense is disabled, until somebody writes otherwise.
		if path.Dir(at) == j.layout.Servers() || !w.write(at, one(r, nonsense)) {
			return false
		}
		w.spoilt(j, at)
		return true
	})},
	{"garbage in the claim", 0, true, garbage(func(_ *world, j *job, _ *rand.Rand) (string, func()) { return j.layout.Claim(), nil })},
	{"garbage in the counter of runs", 0, true, garbage(func(_ *world, j *job, _ *rand.Rand) (string, func()) { return j.layout.Runs(), nil })},
	{"garbage in the base", 0, true, garbage(func(_ *world, j *job, _ *rand.Rand) (string, func()) { return j.layout.Base(), nil })},
	{"garbage in the schedule", 0, true, garbage(func(_ *world, j *job, _ *rand.Rand) (string, func()) { return j.layout.Schedule(), nil })},
}

// inForceKinds are those kinds that strike what is in force of a whole job.
var inForceKinds = []string{
	"base deleted", "schedule deleted", "base and schedule deleted", "all ledgers deleted", "base and all ledgers deleted",
	"all that is in force deleted", "garbage in the base", "garbage in the schedule", "claim deleted", "counter of runs deleted",
	"own nodes deleted", "garbage in the claim", "garbage in the counter of runs", "directory deleted", "directory deleted",
	"any node deleted", "any node deleted", "garbage in any node", "garbage in any node",
}

// inForce deletes nodes of a job, all at once.
func inForce(what ...func(w *world, j *job) []string) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		var paths []string
		for _, below := range what {
			paths = append(paths, below(w, j)...)
		}
		if len(paths) == 0 || !w.wipe(j, paths...) {
			return nil
		}
		return &blow{of: j.name, hit: hits(1)}
	}
}

// erase notes that a ledger of a job was destroyed.
func (w *world) erase(j *job) {
	w.erased = append(w.erased, erasure{j.name, time.Now(), w.read(j.layout.Base()) == ""})
}

// wipe deletes nodes of a job in one commit, and notes what goes with them.
func (w *world) wipe(j *job, paths ...string) bool {
	if !w.remove(paths...) {
		return false
	}
	w.spoilt(j, paths...)
	return true
}

// spoilt notes what is lost where nodes of a job were deleted at once, or nonsense was written to them.
func (w *world) spoilt(j *job, paths ...string) {
	now := time.Now()
	for _, at := range paths {
		w.destroyed[at] = true
		if at == j.layout.Schedule() {
			w.schedulesErased = append(w.schedulesErased, erasure{job: j.name, at: now})
		}
		id := path.Base(at)
		shut := at == instance(j, id)
		if shut {
			w.shut = append(w.shut, stable(id))
		}
		if shut || at == life(j, id) {
			w.struck = append(w.struck, id)
			if slices.Contains(paths, notice(j, id)) { // it is taken for dead
				w.forged = append(w.forged, id)
			}
		}
	}
	if slices.ContainsFunc(paths, j.ofLedger) {
		w.erase(j)
	}
	if slices.ContainsFunc(paths, j.askedFor) {
		w.requestsErased = append(w.requestsErased, erasure{job: j.name, at: now})
	}
}

// ofLedger reports whether a node is a ledger, or a page of one.
func (j *job) ofLedger(at string) bool {
	return path.Dir(at) == j.layout.Ledgers() || path.Dir(path.Dir(at)) == j.layout.Ledgers()
}

// askedFor reports whether a node is a request, a run that was asked for, or says what became of one.
func (j *job) askedFor(at string) bool {
	_, run := layout.RunNumber(path.Base(at))
	_, request := layout.RequestID(path.Base(at))
	return run || request || at == j.layout.Runs() || strings.HasPrefix(at, j.layout.Runs()+"/")
}

// anyNode strikes one of all nodes of a job, but for its configuration, its own root, and the instances, of which one
// that is gone is shut down.
func anyNode(strike func(w *world, j *job, at string, r *rand.Rand) bool) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, _ *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		all := slices.Concat(w.below(j.layout.OwnRoot()), w.below(j.layout.Root()))
		all = slices.DeleteFunc(all, func(at string) bool {
			return at == j.layout.Config() || strings.HasPrefix(at+"/", j.layout.Instances()+"/")
		})
		if len(all) == 0 {
			return nil
		}
		at := one(r, all)
		if !strike(w, j, at, r) {
			return nil
		}
		return &blow{of: at, hit: hits(1)}
	}
}

// directoryDeleted deletes one of the directories of a job with all that is in it. That of the instances would shut
// all of them down.
func directoryDeleted(w *world, _ *fault, r *rand.Rand) *blow {
	j := one(r, w.jobs)
	dirs := slices.DeleteFunc(j.layout.Scaffold(), func(at string) bool {
		return strings.HasPrefix(j.layout.Instances()+"/", at+"/") || strings.HasPrefix(j.layout.OwnRoot(), at+"/")
	})
	dirs = append(dirs, j.layout.RoundsDir(), j.layout.Clocks())
	at := one(r, dirs)
	paths := w.tree(at)
	if len(paths) == 0 || !w.wipe(j, paths...) {
		return nil
	}
	return &blow{of: at, hit: hits(1)}
}

func base(_ *world, j *job) []string      { return []string{j.layout.Base()} }
func scheduled(_ *world, j *job) []string { return []string{j.layout.Schedule()} }

func claimed(w *world, j *job) []string    { return w.tree(j.layout.Claim()) }
func counted(w *world, j *job) []string    { return w.tree(j.layout.Runs()) }
func allLedgers(w *world, j *job) []string { return w.below(j.layout.Ledgers()) }

// ownNodes are all nodes of a job that ElasticJob does not know.
func ownNodes(w *world, j *job) []string { return w.below(j.layout.OwnRoot()) }

// tree is a node, where it stands, after those below it.
func (w *world) tree(at string) []string {
	hand := w.operator()
	if hand == nil {
		return nil
	}
	if nodes, err := hand.Get(context.Background(), at); err != nil || !nodes[0].Exists() {
		return nil
	}
	return append(w.below(at), at)
}

// below are the nodes below one, each after those below it.
func (w *world) below(at string) (paths []string) {
	for _, name := range w.list(at) {
		paths = append(append(paths, w.below(at+"/"+name)...), at+"/"+name)
	}
	return paths
}

// killedAgain asks for a run of an item, kills the process at which it waited for a fire that still
// ran, once it runs, and then the one at which it runs again: the item's cursor is beyond it.
func killedAgain(w *world, f *fault, r *rand.Rand) *blow {
	j, ok := w.withFailover(r)
	if !ok {
		return nil
	}
	deaths, asked := 0, 0
	var first holding
	w.look(f, func() {
		runs := w.holdings(j, func(h holding) bool {
			if deaths == 0 {
				return h.Run.Before(h.Through) && !h.Run.IsZero()
			}
			return h.Item == first.Item && h.Run.Equal(first.Run) && h.by != first.by
		})
		switch {
		case deaths == 2:
		case len(runs) > 0:
			first = one(r, runs)
			deaths++
			w.replace(first.by)
		case deaths == 0 && asked < 10:
			running := w.holdings(j, holding.runs)
			if len(running) == 0 {
				return
			}
			id := "again" + strconv.Itoa(asked)
			if w.write(j.layout.Request(id), requestOf([]int{one(r, running).Item}, false, time.Time{}, "")) {
				w.log.tell("", history.Record{Kind: history.Requested, Who: "driver", Job: j.name, Of: id})
			}
			asked++
		}
	})
	return &blow{of: j.name, hit: func() int { return deaths / 2 }, end: func() {}}
}

// killedBefore kills a process that runs an item, and three that are to run the fire again and
// are not let begin it: for none of those may it be held responsible.
func killedBefore(w *world, f *fault, r *rand.Rand) *blow {
	j, ok := w.withFailover(r)
	if !ok || w.fate != nil {
		return nil
	}
	running := w.holdings(j, holding.runs)
	if len(running) == 0 {
		return nil
	}
	first, deaths := one(r, running), 1
	begins := func(ops []registry.Op) bool {
		for _, l := range written(ops) {
			if it, has := l.Get(first.Item); has && it.Run.Equal(first.Run) {
				return true
			}
		}
		return false
	}
	w.fate = func(_ string, ops []registry.Op) memory.Fate {
		if deaths < 4 && begins(ops) {
			return memory.Refused
		}
		return memory.Deliver
	}
	w.replace(first.by)
	w.look(f, func() {
		owing := w.holdings(j, func(h holding) bool { return h.Item == first.Item && h.Redo.Equal(first.Run) })
		if deaths < 4 && len(owing) > 0 {
			deaths++
			w.replace(owing[0].by)
		}
	})
	return &blow{of: j.name, hit: func() int { return deaths / 4 }, end: func() { w.fate = nil }}
}

// endedRuns asks for the end of what runs of a job, one item after the other.
func endedRuns(w *world, f *fault, r *rand.Rand) *blow {
	j, n := one(r, w.jobs), 0
	w.look(f, func() {
		if !chance(r, 10) {
			return
		}
		running := w.holdings(j, holding.runs)
		if len(running) == 0 {
			return
		}
		h := one(r, running)
		if w.write(j.layout.Kill(strconv.Itoa(n)), killOf(h.Item, h.Run)) {
			n++
		}
	})
	return &blow{of: j.name, hit: func() int { return n }, end: func() {}}
}

// withFailover draws a job whose fires run again.
func (w *world) withFailover(r *rand.Rand) (*job, bool) {
	some := slices.DeleteFunc(slices.Clone(w.jobs), func(j *job) bool { return !j.failover || j.delayed })
	if len(some) == 0 {
		return nil, false
	}
	return one(r, some), true
}

// look does something again and again until a fault is over.
func (w *world) look(f *fault, do func()) {
	if f.ended {
		return
	}
	do()
	w.later("look of "+f.kind, 20*time.Millisecond, func() { w.look(f, do) })
}

// replace kills a process, whose session ends at once, and starts another.
func (w *world) replace(p *process) {
	p.crash()
	w.expire(p)
	w.add("")
}

// A holding is an item in the ledger of a process that lives.
type holding struct {
	history.Holding
	epoch int
	by    *process
}

func (h holding) runs() bool { return !h.Run.IsZero() }

// holdings are those of a job that match.
func (w *world) holdings(j *job, match func(holding) bool) (all []holding) {
	for _, l := range w.ledgers(j) {
		i := slices.IndexFunc(w.alive(), func(p *process) bool { return p.lives(l.Instance) })
		if i < 0 {
			continue
		}
		for _, h := range l.Items {
			if h := (holding{h, l.Epoch, w.alive()[i]}); match(h) {
				all = append(all, h)
			}
		}
	}
	return all
}

// lives reports whether an instance is one of the process, under its latest session.
func (p *process) lives(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session != nil && p.sessions[id] == p.session
}

// elasticJob is the id of an instance of ElasticJob itself.
const elasticJob = "10.9.9.9@-@77"

// besideElasticJob has an instance of ElasticJob register, which runs nothing. One that leads
// takes the lead as ElasticJob does that saw nobody lead, and assigns the items to itself.
func besideElasticJob(leads bool) func(*world, *fault, *rand.Rand) *blow {
	return func(w *world, f *fault, r *rand.Rand) *blow {
		j := one(r, w.jobs)
		at := j.layout
		if w.read(at.Instance(elasticJob)) != "" || !w.commit(registry.CreateEphemeral(at.Instance(elasticJob), []byte("jobInstanceId: "+elasticJob))) {
			return nil
		}
		if leads {
			for range 10 {
				w.remove(at.Leader())
				if leads = w.commit(registry.CreateEphemeral(at.Leader(), []byte(elasticJob))); leads {
					break
				}
			}
			for n := range j.total {
				if leads && w.read(at.ItemInstance(n)) != "" {
					w.write(at.ItemInstance(n), elasticJob)
				}
			}
		}
		return &blow{of: j.name, hit: hits(1), end: func() {
			w.insist(func() bool {
				if w.operator() == nil {
					return false
				}
				if w.read(at.Leader()) == elasticJob {
					w.remove(at.Leader())
				}
				w.remove(at.Instance(elasticJob))
				return w.read(at.Instance(elasticJob)) == ""
			})
		}}
	}
}

// hits counts the faults that clients have met at the server.
func (w *world) hits() int {
	n := 0
	for _, p := range w.procs {
		n += p.link.Hits()
	}
	return n
}

// expire ends the latest session of a process at the server.
func (w *world) expire(p *process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil || !w.server.Expire(p.session.inner.ID()) {
		return false
	}
	for id, s := range p.sessions {
		if s == p.session {
			w.struck = append(w.struck, id)
		}
	}
	// The service has ended it, whatever its owner believes.
	w.log.tell("", history.Record{Kind: history.Lost, Who: "driver", Session: p.session.id, Err: "expired by the driver"})
	return true
}

// set sets the wall clock of a process.
func (p *process) set(by time.Duration) {
	p.mu.Lock()
	p.ahead += by
	took := p.ahead
	p.mu.Unlock()
	p.world.log.tell("", history.Record{Kind: history.ClockSet, Who: "driver", Of: p.name, Took: took})
}

// refuseOne takes one target away that is watched now.
func (w *watcher) refuseOne(what string, r *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var some []string
	for key := range w.targets {
		if strings.Contains(key, what) {
			some = append(some, key)
		}
	}
	if len(some) == 0 {
		return
	}
	slices.Sort(some)
	t := w.targets[one(r, some)]
	w.session.proc.mu.Lock()
	w.session.proc.hits++
	w.session.proc.mu.Unlock()
	at := path.Base(t.key)
	w.ask(t, func() { w.refuse(t, at) })
}
