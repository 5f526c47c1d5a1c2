package layout

import (
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

// A Request asks for a run of a job's items.
type Request struct {
	// Items are ranges such as 0-3,7; "" is all.
	Items string `json:"items,omitempty"`
	// Parameter is for this run alone.
	Parameter string `json:"parameter,omitempty"`
	// Refuse: an item that runs when the request is accepted does not run for it.
	Refuse bool `json:"refuse,omitempty"`
	// Within is how long it may stand until it is accepted, and Expires when that is over by the clock of who asks, for
	// those who have not seen it made; zero is for ever.
	Within  time.Duration `json:"within,omitempty"`
	Expires time.Time     `json:"expires,omitzero"`
	// By says who asks, for people.
	By string `json:"by,omitempty"`
	// MadeUp: it makes up for fires that ElasticJob has missed.
	MadeUp bool `json:"madeUp,omitempty"`
}

// MarshalRequest writes the value of a request's node.
func MarshalRequest(r Request) []byte {
	r.Expires = r.Expires.UTC()
	return marshalOwn(r)
}

// UnmarshalRequest reads what MarshalRequest writes. The error is a *field.Error.
func UnmarshalRequest(value []byte) (Request, error) {
	var r Request
	return r, unmarshalOwn("request", value, &r, &r.Expires)
}

// A Run is a request that was accepted, or answered otherwise. Its node changes when it is
// sealed, and when it is closed.
type Run struct {
	// Number counts the runs of the job from 1.
	Number int64 `json:"n"`
	// Request is the id of the request.
	Request string `json:"request"`
	// Epoch and Total are those of the items.
	Epoch int `json:"epoch"`
	Total int `json:"total"`
	// At is when it was accepted. No fire and no other run has this instant.
	At time.Time `json:"at"`
	// Items are those that were asked for, as ranges.
	Items string `json:"items,omitempty"`
	// Parameter is for this run alone.
	Parameter string `json:"parameter,omitempty"`
	// By says who has asked, for people.
	By string `json:"by,omitempty"`
	// MadeUp: it makes up for fires that ElasticJob has missed.
	MadeUp bool `json:"madeUp,omitempty"`
	// Answers are the leader's: of items that do not run, or of which no result came.
	Answers []Answer `json:"answers,omitempty"`
	// Sealed is the outcome of items that have not begun: none does any more. "": they may.
	Sealed string `json:"sealed,omitempty"`
	// Closed is when each item had its outcome; zero: not yet.
	Closed time.Time `json:"closed,omitzero"`
	// Problem is why a request was not accepted at all.
	Problem string `json:"problem,omitempty"`
}

// An Answer is what became of some items of a run.
type Answer struct {
	// Items are ranges.
	Items string `json:"items"`
	// Outcome is a word of package request.
	Outcome string `json:"outcome"`
	// Text says more.
	Text string `json:"text,omitempty"`
}

// MarshalRun writes the value of a run's node.
func MarshalRun(r Run) []byte {
	r.At, r.Closed = r.At.UTC(), r.Closed.UTC()
	return marshalOwn(r)
}

// UnmarshalRun reads what MarshalRun writes. The error is a *field.Error.
func UnmarshalRun(value []byte) (Run, error) {
	var r Run
	if err := unmarshalOwn("run", value, &r, &r.At, &r.Closed); err != nil {
		return r, err
	}
	if r.Number < 1 || r.At.IsZero() {
		return r, &field.Error{Field: "run", Problem: "holds no number and time; delete the node"}
	}
	return r, nil
}

// Results are what became of the items of a run at one instance.
type Results struct {
	Results []Answer `json:"results"`
}

// MarshalResults writes the value of a node of results.
func MarshalResults(r Results) []byte { return marshalOwn(r) }

// UnmarshalResults reads what MarshalResults writes. The error is a *field.Error.
func UnmarshalResults(value []byte) (Results, error) {
	var r Results
	return r, unmarshalOwn("results", value, &r)
}

// A Kill asks for the end of one fire of one item, or of one run that was asked for.
type Kill struct {
	Item int `json:"item"`
	// Due is that of the fire, or of the run (Run.At).
	Due time.Time `json:"due"`
	// By says who asks, for people.
	By string `json:"by,omitempty"`
}

// MarshalKill writes the value of a kill's node.
func MarshalKill(k Kill) []byte {
	k.Due = k.Due.UTC()
	return marshalOwn(k)
}

// UnmarshalKill reads what MarshalKill writes. The error is a *field.Error.
func UnmarshalKill(value []byte) (Kill, error) {
	var k Kill
	if err := unmarshalOwn("kill", value, &k, &k.Due); err != nil {
		return k, err
	}
	if k.Item < 0 || k.Due.IsZero() {
		return k, &field.Error{Field: "kill", Problem: "holds no item and fire; delete the node"}
	}
	return k, nil
}

const (
	requestPrefix = "request@"
	runPrefix     = "run@"
	killPrefix    = "kill@"
)

// Kill is persistent: somebody asks for the end of a run (MarshalKill). The leader deletes it after
// a minute. It stands in InForce, which every member watches anyway.
func (j Job) Kill(id string) string { return j.own + "/inforce/" + killPrefix + id }

// IsKill reports whether a name is that of a node of Job.Kill.
func IsKill(node string) bool { return strings.HasPrefix(node, killPrefix) }

// Request is persistent: somebody asks for a run (MarshalRequest). It stands in InForce,
// which every member watches anyway.
func (j Job) Request(id string) string { return j.own + "/inforce/" + requestPrefix + id }

// RequestID returns the id in the name of a node of Job.Request.
func RequestID(node string) (id string, ok bool) {
	id, ok = strings.CutPrefix(node, requestPrefix)
	return id, ok && id != "" && registry.ValidatePath("/"+id) == nil && !strings.Contains(id, "/")
}

// Run is persistent: a run that was asked for, until a while after its end (MarshalRun). It
// stands in InForce, which every member watches anyway.
func (j Job) Run(number int64) string {
	return j.own + "/inforce/" + runPrefix + strconv.FormatInt(number, 10)
}

// RunNumber returns the number in the name of a node of Job.Run.
func RunNumber(node string) (number int64, ok bool) {
	text, ok := strings.CutPrefix(node, runPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// Runs is the directory of the results of runs. Its value is the number of the last run
// (MarshalCounter). It is made when it is needed first.
func (j Job) Runs() string { return j.own + "/runs" }

// RunResults is the directory of the results of one run.
func (j Job) RunResults(number int64) string { return j.own + "/runs/" + strconv.FormatInt(number, 10) }

// RunResult is persistent: what became of the items of a run at one instance (MarshalResults).
func (j Job) RunResult(number int64, id string) string { return j.RunResults(number) + "/" + id }

// MarshalCounter writes the value of Job.Runs.
func MarshalCounter(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// UnmarshalCounter reads what MarshalCounter writes; any other value is 0.
func UnmarshalCounter(value []byte) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
