package history

import (
	"fmt"
	"strings"
	"time"
)

// An Invariant is what every history must hold.
type Invariant string

// The invariants.
const (
	// Overlap: no two live owners run one item, and items of two totals never run together.
	Overlap Invariant = "overlap"
	// Fences of an item rise strictly in the order in which its functions were entered.
	Fences Invariant = "fences"
	// Outcome: each fire of an item has at most one outcome, which fits what its function
	// did, and its function is entered once, and again only where failover is on and the life
	// had ended in which it ran.
	Outcome Invariant = "outcome"
	// Coverage: every fire that was due to an item has an outcome, and nothing else ran.
	Coverage Invariant = "coverage"
	// Quiescence leaves no flag, no picture of a run, one leader, each item in one ledger.
	Quiescence Invariant = "quiescence"
	// Cursor: the `through` of an item never falls from one quiescence to the next.
	Cursor Invariant = "cursor"
	// Requests: each request has one answer, each of its items one outcome, which fits what its
	// function did; nothing else runs for a request.
	Requests Invariant = "requests"
	// Early: no life is seen gone before its session's Deadline while something runs in
	// it, unless its process ended it.
	Early Invariant = "gone early"
	// Owned: the items of a dead life are owned again within a bound.
	Owned Invariant = "owned again"
	// Leader: one leader within a bound.
	Leader Invariant = "one leader"
	// Changed: a changed total is in force within a bound.
	Changed Invariant = "changed total"
	// Late: runs are late by no more than a bound.
	Late Invariant = "late"
	// NotDue: no function is entered before its fire is due, by its process's clock, while nobody's
	// clock was set.
	NotDue Invariant = "not due"
	// Deadline: no function is entered after its session's Deadline, and none runs on,
	// uncancelled, past it.
	Deadline Invariant = "deadline"
	// Rounds: one listener is called for a round, and again only when its life has ended; the
	// rounds rise; none is called before all items have ended; each round has a call, its own
	// or a later one's, within a bound.
	Rounds Invariant = "rounds"
	// Barrier: no function of a round is entered before a listener before it has returned, nor
	// where that has refused the round, but for those who say that they have waited too long.
	Barrier Invariant = "barrier"
	// Bound: with static sharding an item is begun by instances of one name alone, but for what
	// runs again, until another total is in force.
	Bound Invariant = "bound"
	// Clocks: where the configuration bounds how far clocks may differ, nothing is entered by one
	// that is further off the leader's, from a bound on after it was set, or found to be.
	Clocks Invariant = "clocks"
	// Failed: no job ends for good.
	Failed Invariant = "failed"
)

// A Timetable is what a schedule means: instants, or a delay.
type Timetable struct {
	// Next is the first due instant after another; ok is false when there is none.
	Next func(after time.Time) (due time.Time, ok bool)
	// Delay is set, instead of Next, for a fixed delay.
	Delay time.Duration
}

// Rules are what a history is judged by. A bound of zero is not judged.
type Rules struct {
	// Timetable says what a schedule means. Without it no coverage is judged.
	Timetable func(Schedule) (Timetable, error)
	// Heard is how long after a new schedule's Since, or after the end of a disturbing fault
	// that stood then, a member may fire by the one before; 2 s when zero.
	Heard time.Duration
	// Tail is how long before the last quiescence a fire may be due without an outcome.
	Tail time.Duration
	// MayTell says whether a policy for missed fires lets a fire be told as skipped for a
	// reason; of what is folded the reason is "folded". Nil: not judged.
	MayTell func(policy, reason string) bool
	// Missed bounds how late a run may be, by its owner's clock, under the policy that
	// Unmissed names: it makes up nothing.
	Missed   time.Duration
	Unmissed string
	// Unsure is how long after a change of the configuration nothing is known about what
	// was in force, where no observer saw the nodes that say so; 15 s when zero.
	Unsure time.Duration

	// Round bounds the time from the end of a round to the call of a listener, from Calm on:
	// every job in which anybody was ever called is judged.
	Round time.Duration
	Calm  time.Duration

	// Listen bounds a call of a listener before a round: functions are entered when that is over.
	// Every job in which anybody was ever called so is judged.
	Listen time.Duration

	// Kept is how long runs that were asked for stand after their end: what was asked for, or
	// entered, longer before the last quiescence is not judged by them. Zero: they stand for ever.
	Kept time.Duration

	// Off is how long after a clock was set off, or found to be off, a function may be entered by it,
	// and LeadOff the same of the leader's clock: others see that when they compare theirs again.
	Off, LeadOff time.Duration

	// Settle is how long after a disturbing fault no bound holds yet.
	Settle time.Duration
	// Owned, Led and Changed bound the time after a life is seen gone, or a total changed.
	Owned, Led, Changed time.Duration
	// Late bounds the lateness of a run, by its owner's clock; the time for which the run
	// before of the same item went on does not count.
	Late time.Duration
	// Again bounds what a fixed delay may take beyond its delay.
	Again time.Duration
	// Woke is how long after a server that was paused goes on the service may end sessions
	// before their Deadline: etcd does (its issue 15247). Such lives are counted in
	// Report.Upstream, and the history says nothing of what followed. Zero: never.
	Woke time.Duration
	// Cancel bounds how long after its session's Deadline, or after its process woke, a
	// function runs on uncancelled.
	Cancel time.Duration
	// Tell bounds the time from a function's return to the telling of its end.
	Tell time.Duration
	// Enter is how long after the Deadline a function may be entered that was on its way
	// in. Zero is judged too.
	Enter time.Duration

	// Excuse says why something is no violation, in a word or two: whoever drove the history
	// did it himself. "": it is one. It sees no lines. Nil: nothing is excused.
	Excuse func(Violation) string
	// Show bounds the violations of one kind that are told with their lines; 10 when
	// zero. All are counted.
	Show int
	// Most bounds the fires of items that are judged, against records that make no sense;
	// 16 million when zero. What is beyond it is a violation.
	Most int
}

const (
	defaultHeard  = 2 * time.Second
	defaultUnsure = 15 * time.Second
	defaultShow   = 10
	defaultMost   = 1 << 24
)

// A Violation is one invariant broken once.
type Violation struct {
	Invariant Invariant
	// Key is which job, epoch, item and due it is about, as far as it is about one.
	Key Key
	// At is when, by the common clock.
	At time.Duration
	// Text says what is wrong.
	Text string
	// Lines are the records about that item around it.
	Lines []string
}

// String is the violation with its lines.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v: %s", v.Invariant, v.Key, v.Text)
	for _, line := range v.Lines {
		b.WriteString("\n    " + line)
	}
	return b.String()
}

// A Key is one fire of one item.
type Key struct {
	Job   string
	Epoch int
	Item  int
	// Due is the instant in nanoseconds since 1970; 0 is none.
	Due int64
}

// String is job/item, then the fire.
func (k Key) String() string {
	text := fmt.Sprintf("%s/%d", k.Job, k.Item)
	if k.Due != 0 {
		text += fmt.Sprintf(" epoch %d due %s", k.Epoch, clock(time.Unix(0, k.Due)))
	}
	return text
}

// A Report is what Check found.
type Report struct {
	// Violations are at most Rules.Show of each kind, by time.
	Violations []Violation
	// Broken counts all violations.
	Broken map[Invariant]int
	// Ways counts them by what is wrong, in words.
	Ways map[string]int
	// Excused counts what Rules.Excuse excused, by why.
	Excused map[string]int
	// Upstream counts the lives that the service itself ended early, within Rules.Woke.
	Upstream int
	// Tally counts what was judged.
	Tally Tally
}

// A Tally counts what a history holds.
type Tally struct {
	Records int
	// Runs are functions entered; Fires are fires of items with an outcome.
	Runs, Fires int
	// Ended, Failed (of those), Cut and Skipped count fires of items; Again those that ran again.
	Ended, Failed, Cut, Again int
	Skipped                   map[string]int // by reason; folded is one
	// Asked counts what became of items that were asked for, by outcome or problem.
	Asked map[string]int
	// Untold are functions that returned in a life that broke before it could tell.
	Untold int
	// Due are fires of items that coverage asked for.
	Due int
	// Faults by kind.
	Faults map[string]Hits
	// Judged counts how often each bound of time was judged.
	Judged map[Invariant]int
	// Lateness of the runs that were judged, ascending.
	Lateness []time.Duration
	// Crashes, Losses, Leaders and Epochs count processes killed, sessions lost, changes
	// of leader, and totals in force after the first.
	Crashes, Losses, Leaders, Epochs int
	// Off counts how often a clock was found to be further off the leader's than is allowed.
	Off int
	// LostWrites are writes that the servers lost after they had acknowledged them.
	LostWrites int
}

// Hits counts the faults of one kind, and those that hit something.
type Hits struct{ Begun, Hit int }

// clock is how instants are shown.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
