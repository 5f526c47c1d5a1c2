package simulation

import (
	"bytes"
	"fmt"
	"maps"
	"math/bits"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// timetable reads a schedule as the engine does.
func timetable(s history.Schedule) (history.Timetable, error) {
	parsed, err := schedule.Parse(schedule.Config{Expr: s.Cron, Zone: s.Zone})
	if err != nil {
		return history.Timetable{}, err
	}
	if delay, fixed := parsed.Delay(); fixed {
		return history.Timetable{Delay: delay}, nil
	}
	return history.Timetable{Next: parsed.Next}, nil
}

const (
	ownedAgain    = time.Second
	ledAgain      = time.Second
	changedWithin = 20 * time.Second
	roundWithin   = 15 * time.Second
	// An answer of the leader's is waited for so long; a clock is compared every minute otherwise.
	offWithin     = 7 * time.Second
	leadOffWithin = 70 * time.Second
)

// rules are what the simulation holds an engine to.
func (w *world) rules() history.Rules {
	late := 10 * time.Second
	if w.fewPlaces {
		late = 0
	}
	again := 15 * time.Second
	for _, j := range w.jobs { // all others may run before an item, each as long as a run takes at most
		if waves := j.most / j.concurrency; waves > 0 {
			again = max(again, 15*time.Second+time.Duration(waves)*4*w.period)
		}
	}
	return history.Rules{
		Timetable: timetable,
		// A run may be under way when the snapshot is taken, and those behind it wait.
		Tail: 10*time.Second + 4*w.period,
		// What a fault left is mended within a session's timeout and the engine's longest pauses.
		Settle: w.settling(),
		Owned:  ownedAgain, Led: ledAgain, Changed: changedWithin,
		MayTell: mayTell, Unmissed: "skip",
		Late: late, Missed: late / 5, Again: again, Cancel: time.Second,
		Off: offWithin, LeadOff: leadOffWithin,
		Round: roundWithin, Listen: hearingTimeout, Calm: w.common(w.start.Add(unrest+mending)) + w.settling(),
		Show: 5, Excuse: w.excuse,
	}
}

func (w *world) settling() time.Duration { return 2*w.timeout + 5*time.Second }

// judge returns what is wrong with a run.
func (w *world) judge() (history.Report, []violation) {
	w.judgeTries()
	report := history.Check(w.log.records, w.rules())
	found := w.violations
	for _, v := range report.Violations {
		found = append(found, violation{string(v.Invariant), v.String()})
	}
	return report, found
}

// judgeCommit judges the form of a commit that is on its way: a ledger is set only where
// the life that owns it, or the leader's term, stands in the same commit. Otherwise what
// is dead, or leads no more, could still write.
func (w *world) judgeCommit(p *process, ops []registry.Op) {
	under := map[string]bool{} // jobs whose term, and lives, it is under
	for _, op := range ops {
		switch dir, name := path.Split(op.Path); {
		case op.Kind == registry.OpSet && name == "term", path.Base(dir) == "lives":
			under[op.Path] = true
		}
	}
	w.noteLedgers(ops)
	w.noteAccepted(ops)
	sets := map[string]bool{}
	for _, op := range ops {
		sets[op.Path] = true
	}
	for _, op := range ops {
		if _, page := pageOf(op.Path); page {
			w.judging.Lock()
			w.paged++
			if !sets[path.Dir(op.Path)] {
				w.violations = append(w.violations, violation{"guard", p.name + " writes " + op.Path + " without its root"})
			}
			w.judging.Unlock()
		}
		dir, id := path.Split(op.Path)
		root, ledgers := path.Split(path.Clean(dir))
		if op.Kind != registry.OpSet || ledgers != "ledgers" || under[root+"lives/"+id] || under[root+"term"] {
			continue
		}
		w.judging.Lock()
		w.violations = append(w.violations, violation{"guard", p.name + " sets " + op.Path + " under no life and no term"})
		w.judging.Unlock()
	}
}

// noteLedgers keeps what a commit sets of ledgers: what it says of their items is looked at only when somebody asks.
func (w *world) noteLedgers(ops []registry.Op) {
	var kept []registry.Op
	led := false
	for _, op := range ops {
		led = led || op.Kind == registry.OpSet && path.Base(op.Path) == "term"
		if _, page := pageOf(op.Path); page || path.Base(path.Dir(op.Path)) == "ledgers" {
			op.Value = bytes.Clone(op.Value)
			kept = append(kept, op)
		}
	}
	w.judging.Lock()
	defer w.judging.Unlock()
	w.ledgersSet = append(w.ledgersSet, setting{w.common(time.Now()), kept, led})
}

// noteAccepted keeps when runs that were asked for were accepted first.
func (w *world) noteAccepted(ops []registry.Op) {
	for _, op := range ops {
		if _, is := layout.RunNumber(path.Base(op.Path)); !is || op.Kind != registry.OpCreate {
			continue
		}
		r, err := layout.UnmarshalRun(op.Value)
		if err != nil {
			continue
		}
		fire := requestedRun{path.Base(path.Dir(path.Dir(op.Path))), r.At.UnixNano()}
		w.judging.Lock()
		if _, known := w.accepted[fire]; !known {
			w.accepted[fire] = w.common(time.Now())
		}
		w.judging.Unlock()
	}
}

// askedErased reports whether what is missing was destroyed by the driver after the request was made, or accepted.
func (w *world) askedErased(v history.Violation) bool {
	return slices.ContainsFunc(w.requestsErased, func(e erasure) bool {
		if e.job != v.Key.Job {
			return false
		}
		w.judging.Lock()
		at, accepted := w.accepted[requestedRun{v.Key.Job, v.Key.Due}]
		w.judging.Unlock()
		if accepted {
			return at <= w.common(e.at)
		}
		return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
			return r.Kind == history.Requested && r.Job == v.Key.Job && r.At <= w.common(e.at) && slices.Contains(strings.Fields(v.Text), r.Of)
		})
	})
}

// begun is which instances have tried to begin which of the fires, each of them once.
func (w *world) begun(fires map[history.Key]bool) map[history.Key][]string {
	w.judging.Lock()
	defer w.judging.Unlock()
	by := map[history.Key][]string{}
	for _, set := range w.ledgersSet {
		for at, l := range written(set.ops) {
			job, id := path.Base(path.Dir(path.Dir(at))), path.Base(at)
			for n, it := range l.All() {
				k := history.Key{Job: job, Epoch: l.Epoch, Item: n, Due: it.Run.UnixNano()}
				if it.Running() && fires[k] && !slices.Contains(by[k], id) {
					by[k] = append(by[k], id)
				}
			}
		}
	}
	return by
}

// begunBefore reports whether a commit on its way at an instant, or before, says that a fire has begun.
func (w *world) begunBefore(k history.Key, at time.Duration) bool {
	w.judging.Lock()
	defer w.judging.Unlock()
	return slices.ContainsFunc(w.ledgersSet, func(set setting) bool {
		if set.at > at {
			return false
		}
		for dir, l := range written(set.ops) {
			it, has := l.Get(k.Item)
			if has && path.Base(path.Dir(path.Dir(dir))) == k.Job && l.Epoch == k.Epoch && it.Run.UnixNano() == k.Due {
				return true
			}
		}
		return false
	})
}

// written are the ledgers that a commit sets, by path, as far as it sets them: those pages that
// change.
func written(ops []registry.Op) map[string]*ledger.Ledger {
	all := map[string]*ledger.Ledger{}
	for _, op := range ops {
		if path.Base(path.Dir(op.Path)) != "ledgers" {
			continue
		}
		r, err := ledger.Open(op.Value)
		if err != nil {
			continue
		}
		for _, below := range ops {
			if p, is := pageOf(below.Path); is && path.Dir(below.Path) == op.Path {
				_ = r.Page(p, below.Value) // else it is deleted
			}
		}
		all[op.Path] = r.Part()
	}
	return all
}

// pageOf returns of which page of a ledger a path is.
func pageOf(at string) (page int, is bool) {
	root, page, is := ledger.ParsePath(at)
	return page, is && path.Base(path.Dir(root)) == "ledgers"
}

// judgeTries judges that a fire is given up for the deaths of three instances only where three
// had begun it.
func (w *world) judgeTries() {
	fires := map[history.Key]bool{}
	for _, r := range w.log.records {
		if r.Kind == history.Cut && r.Reason == givenUp {
			fires[keyOf(r)] = true
		}
	}
	if len(fires) == 0 {
		return
	}
	by := w.begun(fires)
	for k := range fires {
		if len(by[k]) < 3 {
			w.violations = append(w.violations, violation{"tries", fmt.Sprintf("%v is given up, and only %q had begun it", k, by[k])})
		}
	}
}

// A violation is one thing that is wrong with a run.
type violation struct{ invariant, text string }

// excuses are why something is no violation: the driver itself did it. The sum of a run
// counts the seeds that needed each.
var excuses = []struct {
	why   string
	of    history.Invariant
	holds func(w *world, v history.Violation) bool
}{
	// Nobody was left to tell anything, or to tidy.
	{"quiescence: all instances were shut down", history.Quiescence, (*world).abandoned},
	{"requests: all instances were shut down", history.Requests, (*world).abandoned},
	{"coverage: all instances were shut down", history.Coverage, (*world).abandoned},
	{"changed total: nobody could own anything", history.Changed, func(w *world, v history.Violation) bool {
		return w.deserted(v, changedWithin)
	}},
	{"owned again: nobody could own anything", history.Owned, func(w *world, v history.Violation) bool {
		return w.deserted(v, ownedAgain)
	}},
	{"one leader: nobody could lead", history.Leader, func(w *world, v history.Violation) bool {
		return w.deserted(v, ledAgain)
	}},

	// A ledger was destroyed, and the leader warned that records are lost.
	{"coverage: the record was destroyed", history.Coverage, (*world).forgot},
	{"coverage: the record was destroyed while its epoch ended", history.Coverage, (*world).forgotAtTheEnd},
	{"outcome: the record of a run was destroyed", history.Outcome, func(w *world, v history.Violation) bool {
		return untold(v) && w.forgot(v)
	}},
	{"outcome: the record of a run was destroyed while its epoch ended", history.Outcome, func(w *world, v history.Violation) bool {
		return untold(v) && w.forgotAtTheEnd(v)
	}},
	{"outcome: a clock ahead decided, and the record was destroyed", history.Outcome, func(w *world, v history.Violation) bool {
		return slices.ContainsFunc(w.erased, func(e erasure) bool {
			warned, lost := w.lost(e, v.Key)
			return lost && time.Unix(0, v.Key.Due).After(w.goesOn(e, v.Key, warned)) && (w.begunBefore(v.Key, w.common(e.at)) ||
				slices.ContainsFunc(w.decidedAhead(v.Key, 0), func(r history.Record) bool { return r.At <= w.common(e.at) }))
		})
	}},

	{"requests: what was asked for, or the answers to it, were destroyed", history.Requests, (*world).askedErased},

	// Records of a clock that was a year ahead are set back, told, and the fires between are owed again.
	{"outcome: a clock a year ahead decided", history.Outcome, func(w *world, v history.Violation) bool {
		return len(w.decidedAhead(v.Key, ledger.Believable)) > 0
	}},
	{"outcome: a record was set back to a clock that is behind", history.Outcome, func(w *world, v history.Violation) bool {
		return w.setBack(v.Key)
	}},
	{"coverage: a clock ahead ran it, and one a year ahead decided since", history.Coverage, func(w *world, v history.Violation) bool {
		return strings.Contains(v.Text, "its epoch did not have") && w.outdone(v)
	}},
	{"coverage: an epoch begins where a clock a year ahead stood", history.Coverage, func(w *world, v history.Violation) bool {
		return strings.Contains(v.Text, "its epoch did not have") && w.basedAhead(v.Key.Job)
	}},

	{"coverage: the base was destroyed while nobody was there", history.Coverage, (*world).begunAnew},
	{"outcome: the base was destroyed while nobody was there", history.Outcome, (*world).begunAnew},
	{"coverage: the schedule was destroyed while nobody was there", history.Coverage, (*world).scheduledAnew},
	{"outcome: the schedule was destroyed while nobody was there", history.Outcome, (*world).scheduledAnew},
	{"bound: the base was destroyed while nobody was there", history.Bound, (*world).begunAnew},

	// Without a record a fire may run, and end, at two instances, and what one has told as
	// skipped may run at another.
	{"outcome: nothing was recorded", history.Outcome, func(w *world, v history.Violation) bool {
		return strings.Contains(v.Text, "told as ended") && w.unrecorded(v.Key.Job)
	}},
	{"outcome: the skip was not recorded", history.Outcome, func(w *world, v history.Violation) bool {
		return strings.Contains(v.Text, "entered, and told as skipped") && w.skipUnrecorded(v.Key)
	}},

	{"rounds: the run was not recorded", history.Rounds, func(w *world, v history.Violation) bool {
		return strings.Contains(v.Text, "it runs, and") && w.ranUnrecorded(v.Key)
	}},
	{"rounds: the listener went on after its timeout", history.Rounds, (*world).stillHeard},
	{"rounds: a clock a year ahead decided", history.Rounds, (*world).heardAhead},

	{"bound: the record was destroyed", history.Bound, func(w *world, v history.Violation) bool {
		return slices.ContainsFunc(w.erased, func(e erasure) bool {
			_, lost := w.lost(e, v.Key)
			return lost && w.common(e.at) <= v.At
		})
	}},

	{"changed total: what is owed of it runs first", history.Changed, (*world).draining},
	{"owned again: what is owed of a total runs first", history.Owned, (*world).draining},
	{"failed: the configuration was unreadable", history.Failed, (*world).garbled},
	{"gone early: the driver ended it", history.Early, func(w *world, v history.Violation) bool { return names(v, w.struck, w.log.name) }},
	{"overlap: the driver forged a death", history.Overlap, func(w *world, v history.Violation) bool { return names(v, w.forged, w.log.name) }},
	{"fences: the driver forged a death", history.Fences, (*world).ranForged},
	// A session that the service ended before its Deadline: its owner goes on until then, and
	// only the fence sees what it does.
	{"overlap: the driver had ended the session of who entered", history.Overlap, (*world).ranExpired},
	{"fences: the driver had ended the session of who entered", history.Fences, (*world).ranExpired},
}

// excuse is history.Rules.Excuse.
func (w *world) excuse(v history.Violation) string {
	for _, e := range excuses {
		if v.Invariant == e.of && e.holds(w, v) {
			return e.why
		}
	}
	return ""
}

// untold reports whether a violation is that nobody told the end of a run.
func untold(v history.Violation) bool {
	return strings.Contains(v.Text, "nobody told it as cut") || strings.Contains(v.Text, "nothing was told: its life stood")
}

// names reports whether a violation names one of some lives.
func names(v history.Violation, lives []string, short func(string) string) bool {
	words := strings.FieldsFunc(v.Text, func(r rune) bool { return r == ' ' || r == ',' })
	return slices.ContainsFunc(lives, func(id string) bool { return slices.Contains(words, short(id)) })
}

// ranForged reports whether a fire ran at an owner whose death the driver had forged.
func (w *world) ranForged(v history.Violation) bool {
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == history.Entered && r.At == v.At && keyOf(r) == v.Key &&
			slices.ContainsFunc(w.forged, func(id string) bool { return w.log.name(id) == r.Instance })
	})
}

// ranExpired reports whether a fire ran in a session that the driver had ended.
func (w *world) ranExpired(v history.Violation) bool {
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == history.Entered && r.At == v.At && keyOf(r) == v.Key &&
			slices.ContainsFunc(w.log.records, func(l history.Record) bool {
				return l.Kind == history.Lost && l.Who == "driver" && l.Session == r.Session && l.At <= r.At
			})
	})
}

// skipUnrecorded reports whether a fire was told as skipped while nothing was recorded.
func (w *world) skipUnrecorded(k history.Key) bool {
	return w.whileUnrecorded(k.Job, func(r history.Record) bool { return r.Kind != history.Entered && decides(r, k) })
}

// whileUnrecorded reports whether something happened in a job while nothing of it was recorded,
// or before all had heard that it is again.
func (w *world) whileUnrecorded(job string, happened func(history.Record) bool) bool {
	off, until := false, time.Duration(0)
	for _, r := range w.log.records {
		switch {
		case r.Job != job:
		case r.Kind == history.Configured && r.Config.Unmonitored:
			off, until = true, 1<<62
		case r.Kind == history.Configured && off:
			off, until = false, r.At+w.settling()
		case r.At <= until && happened(r):
			return true
		}
	}
	return false
}

// keyOf is the fire that a record of one item is about.
func keyOf(r history.Record) history.Key {
	return history.Key{Job: r.Job, Epoch: r.Epoch, Item: r.Item, Due: r.Due.UnixNano()}
}

// decidedAhead are the records that decide about a fire by a clock that was ahead of the
// driver's by more than so much; with 0, before the fire was due.
func (w *world) decidedAhead(k history.Key, by time.Duration) (found []history.Record) {
	due := time.Unix(0, k.Due)
	for _, r := range w.log.records {
		told := w.wall(r.At)
		if r.Job != k.Job || r.Epoch != k.Epoch || (by == 0 && !due.After(told)) || (!r.Due.After(told.Add(by)) && !r.Into.After(told.Add(by))) {
			continue
		}
		if decides(r, k) {
			found = append(found, r)
		}
	}
	return found
}

// decides reports whether a record says that a fire was entered, or that it is not to be.
func decides(r history.Record, k history.Key) bool {
	switch r.Kind {
	case history.Entered:
		return keyOf(r) == k
	case history.Skipped, history.Folded:
		due := time.Unix(0, k.Due)
		return r.Job == k.Job && r.Epoch == k.Epoch && slices.Contains(r.Items, k.Item) && !due.Before(r.First) && !due.After(r.Due)
	}
	return false
}

// setBack reports whether an owner has told that it sets records back, by a clock that was before
// the fire, and then ran it, or decided about it again.
func (w *world) setBack(k history.Key) bool {
	before := time.Unix(0, k.Due).Add(100 * time.Millisecond)
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == history.Warned && r.Job == k.Job && strings.Contains(r.Reason, setBackWarning) && r.Wall.Before(before) &&
			slices.ContainsFunc(w.log.records, func(later history.Record) bool {
				return later.Who == r.Who && later.At >= r.At && decides(later, k)
			})
	})
}

// outdone reports whether a clock ahead ran a fire, and one that was far ahead decided about its item since: the record
// says nothing of that fire then, and the next epoch may begin before it.
func (w *world) outdone(v history.Violation) bool {
	return time.Unix(0, v.Key.Due).After(w.wall(v.At)) && slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		k := v.Key
		k.Due = r.Due.UnixNano()
		return r.At >= v.At && decides(r, k) && r.Due.After(w.wall(r.At).Add(ledger.Believable))
	})
}

// wall is what the driver's clock says at an instant of the run.
func (w *world) wall(at time.Duration) time.Time { return w.log.start.Add(at - 1) }

// basedAhead reports whether an epoch of a job begins more than a day after the run.
func (w *world) basedAhead(job string) bool {
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == history.SawBase && r.Job == job && r.Base.Through.After(w.wall(r.At).Add(ledger.Believable))
	})
}

// ranUnrecorded reports whether a fire was entered while nothing was recorded: its owner records
// it as soon as it can.
func (w *world) ranUnrecorded(k history.Key) bool {
	return w.whileUnrecorded(k.Job, func(r history.Record) bool { return r.Kind == history.Entered && keyOf(r) == k })
}

// heardAhead reports whether anything of a job was decided by a clock that was far ahead: the
// records, and the claims, are set back later, and what was over begins again.
func (w *world) heardAhead(v history.Violation) bool {
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		switch r.Kind {
		case history.Called, history.Entered, history.Skipped, history.Folded:
			return r.Job == v.Key.Job && r.Due.After(w.wall(r.At).Add(ledger.Believable))
		}
		return false
	})
}

// stillHeard reports whether it was told that nobody was called for a round, or a later one that
// stands for it, since the listener still ran.
func (w *world) stillHeard(v history.Violation) bool {
	return strings.Contains(v.Text, "nobody was called") && slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == history.Warned && r.Reason == stillHears && r.Job == v.Key.Job && r.At <= v.At && r.Due.UnixNano() >= v.Key.Due
	})
}

// garbled reports whether the configuration of a job was unreadable a moment before:
// who starts then cannot run, and says so.
func (w *world) garbled(v history.Violation) bool {
	garbage := false
	for _, r := range w.log.records {
		if r.At > v.At {
			break
		}
		if r.Fault != "garbage in the configuration" || r.Of != w.configAt(v.Key.Job) {
			continue
		}
		garbage = r.Kind == history.FaultBegun || r.At > v.At-w.settling()
	}
	return garbage
}

func (w *world) configAt(name string) string {
	for _, j := range w.jobs {
		if j.name == name {
			return j.layout.Config()
		}
	}
	return ""
}

// draining reports whether items of another total than the configured one still ran a
// moment before: what is owed of it runs first, however long that takes.
func (w *world) draining(v history.Violation) bool {
	total := 0
	for _, r := range w.log.records {
		if r.Kind == history.Configured && r.Job == v.Key.Job && r.At <= v.At {
			total = r.Config.Total
		}
	}
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		runs := r.Kind == history.Entered || r.Kind == history.Returned
		return runs && r.Job == v.Key.Job && r.Total != total && r.At > v.At-10*time.Second && r.At <= v.At
	})
}

// abandoned reports whether every instance of a job had been shut down by the driver when
// all was quiet: nobody was left to tell anything.
func (w *world) abandoned(v history.Violation) bool {
	quiet := slices.IndexFunc(w.log.records, func(r history.Record) bool { return r.Kind == history.Quiet && r.Job == v.Key.Job })
	if quiet < 0 || len(w.shut) == 0 {
		return false
	}
	lives := map[string]bool{}
	for _, r := range w.log.records[:quiet] {
		live(lives, r, v.Key.Job)
	}
	return len(lives) == 0
}

// deserted reports whether within a bound before an instant there was a moment at which
// nobody lived in a job but on servers that were disabled.
func (w *world) deserted(v history.Violation, bound time.Duration) bool {
	lives, disabled, able := map[string]bool{}, map[string]bool{}, 0
	for _, r := range w.log.records {
		if r.At > v.At {
			break
		}
		if able == 0 && r.At > v.At-bound {
			return true // nobody since the record before
		}
		live(lives, r, v.Key.Job)
		if dir, ip := path.Split(r.Of); r.Fault == "server disabled" && path.Base(path.Dir(path.Clean(dir))) == v.Key.Job {
			disabled[ip] = r.Kind == history.FaultBegun
		}
		able = 0
		for id := range lives {
			if ip, _, _ := strings.Cut(id, "@"); !disabled[ip] {
				able++
			}
		}
	}
	return able == 0
}

// live keeps account of the lives of a job.
func live(lives map[string]bool, r history.Record, job string) {
	if r.Job != job || r.Node != "life" {
		return
	}
	switch r.Kind {
	case history.Come:
		lives[r.Instance] = true
	case history.Gone:
		delete(lives, r.Instance)
	}
}

// forgot reports whether nobody knew what an item owed at an instant: from the destruction
// of its record, or a while before, until the leader has it go on.
func (w *world) forgot(v history.Violation) bool {
	due, behind := time.Unix(0, v.Key.Due), 10*w.period
	for _, j := range w.jobs { // all others may run before an item
		if j.name == v.Key.Job {
			behind = max(behind, time.Duration(j.most/j.concurrency)*4*w.period)
		}
	}
	return slices.ContainsFunc(w.erased, func(e erasure) bool {
		warned, lost := w.lost(e, v.Key)
		on := w.goesOn(e, v.Key, warned)
		owed := due.After(e.at.Add(-behind)) || !due.Before(w.reached(v.Key, w.common(e.at)))
		return lost && owed && !due.After(on)
	})
}

// reached is the latest fire of an item that anybody had decided about at an instant. Its end may be untold, and all
// fires after it may be owed, however long ago they came due: the instance to which the item is bound may be away, or
// all instances.
func (w *world) reached(k history.Key, at time.Duration) (latest time.Time) {
	for _, r := range w.log.records {
		of := (r.Kind == history.Entered && r.Request == 0 && r.Item == k.Item) ||
			((r.Kind == history.Skipped || r.Kind == history.Folded) && slices.Contains(r.Items, k.Item))
		if of && r.At <= at && r.Job == k.Job && r.Epoch == k.Epoch && r.Due.After(latest) {
			latest = r.Due
		}
	}
	return latest
}

// begunAnew reports whether the record of a job was destroyed, its base with it, while nobody was there who had seen
// it, after a fire was decided, or while it was owed, or before it ran where its item is not bound any more: who comes
// then finds a job without epochs.
func (w *world) begunAnew(v history.Violation) bool {
	return slices.ContainsFunc(w.erased, func(e erasure) bool {
		if e.job != v.Key.Job || !e.base || !w.unseen(e) {
			return false
		}
		anew := w.next(e, history.SawBase)
		if anew == nil || v.At <= w.common(e.at) || v.Invariant == history.Bound {
			return true
		}
		otherTotal := strings.Contains(v.Text, "its epoch did not have") // the first epoch of what begins anew
		return otherTotal || v.Key.Epoch > anew.Base.Epoch || !time.Unix(0, v.Key.Due).After(anew.Base.Through)
	})
}

// scheduledAnew reports whether the schedule of a job was destroyed while nobody was there who had seen it, and a fire was
// owed, or decided about, by the one that was made then: nobody knows which were in force before.
func (w *world) scheduledAnew(v history.Violation) bool {
	return slices.ContainsFunc(w.schedulesErased, func(e erasure) bool {
		if e.job != v.Key.Job || !w.unseen(e) {
			return false
		}
		anew := w.next(e, history.SawSchedule)
		return anew == nil || !time.Unix(0, v.Key.Due).After(w.wall(anew.At).Add(w.period))
	})
}

// unseen reports whether nobody was there when something was destroyed who had seen it. Who stood still then, and until
// its life was gone, was not there: it knew, and could tell nobody.
func (w *world) unseen(e erasure) bool {
	lives, still := map[string]bool{}, map[string]bool{}
	for _, r := range w.log.records {
		if r.At > w.common(e.at) {
			if len(lives) == 0 {
				return true
			}
			for id := range lives {
				if !still[processOf(id)] {
					return false
				}
			}
		}
		switch {
		case r.Kind == history.Paused:
			still[r.Of] = true
		case r.Kind == history.Resumed:
			still[r.Of] = false
		case r.Kind == history.Crashed: // what its life stands for knows nothing any more
			maps.DeleteFunc(lives, func(id string, _ bool) bool { return processOf(id) == r.Of })
		case r.At <= w.common(e.at) || r.Kind == history.Gone:
			live(lives, r, e.job)
		}
	}
	return len(lives) == 0
}

// processOf is the process of an id as the history has it: s1 of 10.0.0.1@-@s1-2.
func processOf(id string) string {
	_, process, _ := strings.Cut(id[:strings.LastIndex(id, "-")], "@-@")
	return process
}

// next is the first record of a kind about a job after something of it was destroyed; nil: there is none.
func (w *world) next(e erasure, kind history.Kind) *history.Record {
	i := slices.IndexFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == kind && r.Job == e.job && r.At > w.common(e.at)
	})
	if i < 0 {
		return nil
	}
	return &w.log.records[i]
}

// forgotAtTheEnd reports whether the record of an item was destroyed after the base of the next epoch
// was made, and before that was assigned: nobody knows then that it stood anywhere.
func (w *world) forgotAtTheEnd(v history.Violation) bool {
	for _, e := range w.erased {
		if e.job != v.Key.Job {
			continue
		}
		ends := false
		for _, r := range w.log.records {
			if r.Kind == history.SawBase && r.Job == e.job && r.At <= w.common(e.at) {
				ends = r.Base.Epoch == v.Key.Epoch+1 && !r.Base.Assigned && !time.Unix(0, v.Key.Due).After(r.Base.Through)
			}
		}
		if ends {
			return true
		}
	}
	return false
}

// latest is the latest fire of an epoch that anybody had decided about at an instant, or may have begun
// ahead of its time by then, by its own clock.
func (w *world) latest(k history.Key, at time.Duration) (latest time.Time) {
	for _, r := range w.log.records {
		decides := r.Kind == history.Entered || r.Kind == history.Skipped || r.Kind == history.Folded
		ahead := r.Wall.Sub(w.wall(r.At)) // the owner's clock is so far ahead of the driver's
		begunAhead := r.Kind == history.Entered && !r.Due.After(w.wall(at).Add(ahead).Add(settings.MaxBeginAhead))
		if decides && (r.At <= at || begunAhead) && r.Job == k.Job && r.Epoch == k.Epoch && r.Due.After(latest) {
			latest = r.Due
		}
	}
	return latest
}

// goesOn is from where an item goes on whose record is lost: what the commit says of it that the leader made before it
// warned. Where its epoch ended then, and the item was given to nobody, it is a guess: until the warning, by the leader's
// clock or another owner's.
func (w *world) goesOn(e erasure, k history.Key, warned history.Record) time.Time {
	if through, given := w.given(k, w.common(e.at), warned.At); given {
		return through
	}
	on := w.wall(warned.At)
	if warned.Wall.After(on) {
		on = warned.Wall
	}
	if latest := w.latest(k, warned.At); latest.After(on) {
		on = latest
	}
	return on
}

// given returns up to where an item is accounted for in the latest commit that a leader sent between two instants and that
// gave the item to somebody.
func (w *world) given(k history.Key, from, to time.Duration) (through time.Time, given bool) {
	w.judging.Lock()
	defer w.judging.Unlock()
	for _, set := range slices.Backward(w.ledgersSet) {
		if set.at < from || set.at > to || !set.led {
			continue
		}
		for dir, l := range written(set.ops) {
			it, has := l.Get(k.Item)
			if has && path.Base(path.Dir(path.Dir(dir))) == k.Job && l.Epoch == k.Epoch {
				return it.Through, true
			}
		}
	}
	return through, false
}

// lostItems are in the leader's warning.
var lostItems = regexp.MustCompile(`^items (\S+) stood in no ledger`)

// lost is the warning of a leader, after an erasure, that the record of an item is lost.
func (w *world) lost(e erasure, k history.Key) (warning history.Record, lost bool) {
	if e.job != k.Job {
		return warning, false
	}
	for _, r := range w.log.records {
		if r.Kind != history.Warned || r.Job != k.Job || r.At < w.common(e.at) {
			continue
		}
		if found := lostItems.FindStringSubmatch(r.Reason); found != nil {
			items, err := ledger.ParseRange(found[1], 1<<20)
			if err == nil && slices.Contains(items, k.Item) {
				return r, true
			}
		}
	}
	return warning, false
}

// unrecorded reports whether a job was ever configured without monitoring.
func (w *world) unrecorded(job string) bool {
	return slices.ContainsFunc(w.log.records, func(r history.Record) bool {
		return r.Kind == history.Configured && r.Job == job && r.Config.Unmonitored
	})
}

// A mask says which faults of a plan happen.
type mask uint64

func parseMask(text string) (mask, error) {
	if text == "" {
		return ^mask(0), nil
	}
	n, err := strconv.ParseUint(text, 16, 64)
	return mask(n), err
}

func (m mask) has(i int) bool { return m>>i&1 != 0 }

// shrink returns the fewest of the faults with which a run still breaks invariant, as
// far as leaving out halves, and then single ones, finds them.
func shrink(m mask, breaks func(m mask) bool) mask {
	for size := bits.Len64(uint64(m)); size > 0; size /= 2 {
		for from := 0; from < bits.Len64(uint64(m)); from += size {
			part := (mask(1)<<size - 1) << from
			if m&part != 0 && breaks(m&^part) {
				m &^= part
			}
		}
	}
	return m
}

// command repeats a run.
func command(seed uint64, m mask) string {
	return fmt.Sprintf("go test ./core/simulation -run TestSimulation -seed %d -faults %x -v", seed, uint64(m))
}
