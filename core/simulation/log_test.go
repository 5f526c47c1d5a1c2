package simulation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/history"
)

// A log is the history of a run. What several tell between two looks of the driver
// stands in the order of time, then of who told it.
type log struct {
	start   time.Time
	lives   map[string]string // ids with a number instead of what is random in them
	numbers map[string]int
	records []history.Record

	mu      sync.Mutex
	pending []told
}

// A told record has come from one goroutine of many.
type told struct {
	history.Record
	source string
}

func newLog(start time.Time) *log {
	return &log{start: start, lives: map[string]string{}, numbers: map[string]int{}}
}

// common is the run's common clock. It is never zero.
func (l *log) common(t time.Time) time.Duration { return t.Sub(l.start) + 1 }

// tell takes a record from a source, which tells its records in order.
func (l *log) tell(source string, r history.Record) {
	now := time.Now()
	r.At = l.common(now)
	if r.Wall.IsZero() {
		r.Wall = now.Round(0).UTC()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, told{r, source})
}

// settle takes over what was told, with ids that read the same in each run.
func (l *log) settle() {
	l.mu.Lock()
	fresh := l.pending
	l.pending = nil
	l.mu.Unlock()
	slices.SortStableFunc(fresh, func(a, b told) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Who, b.Who), cmp.Compare(a.source, b.source))
	})
	for _, t := range fresh {
		r := t.Record
		for _, text := range []*string{&r.Instance, &r.Of, &r.Reason, &r.Err} {
			*text = l.name(*text)
		}
		if r.Snapshot != nil {
			l.snapshot(r.Snapshot)
		}
		l.records = append(l.records, r)
	}
}

// randomID is the stable part of an instance id and the random one.
var randomID = regexp.MustCompile(`@-@(\w+)-([a-z2-7]{10})\b`)

func (l *log) life(id string) string {
	if name, known := l.lives[id]; known {
		return name
	}
	stable := randomID.FindStringSubmatch(id)[1]
	l.numbers[stable]++
	l.lives[id] = "@-@" + stable + "-" + strconv.Itoa(l.numbers[stable])
	return l.lives[id]
}

// name is an id as the history has it.
func (l *log) name(id string) string { return randomID.ReplaceAllStringFunc(id, l.life) }

func (l *log) snapshot(s *history.Snapshot) {
	for i := range s.Instances {
		s.Instances[i] = l.name(s.Instances[i])
	}
	for i := range s.Lives {
		s.Lives[i] = l.name(s.Lives[i])
	}
	for i := range s.Ledgers {
		s.Ledgers[i].Instance = l.name(s.Ledgers[i].Instance)
	}
	for n, id := range s.Running {
		s.Running[n] = l.name(id)
	}
	s.Leader, s.Term = l.name(s.Leader), l.name(s.Term)
}

// lines is a history as text, a line a record.
func lines(records []history.Record) []byte {
	var b bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			line = []byte(err.Error())
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// recordOf is what an event says, for the history; false: nothing that it judges.
func recordOf(e event.Event) (r history.Record, ok bool) {
	switch e := e.(type) {
	case event.Started:
		r = history.Record{Kind: history.Started, Job: e.Job, Instance: e.Instance}
	case event.Stopped:
		r = history.Record{Kind: history.Stopped, Job: e.Job, Instance: e.Instance, Reason: string(e.Reason), Err: text(e.Err)}
	case event.LeaderChanged:
		r = history.Record{Kind: history.Led, Job: e.Job, Of: e.Leader, Self: e.Self}
	case event.Resharded:
		r = history.Record{Kind: history.Resharded, Job: e.Job, Epoch: e.Epoch, Total: e.Total, Count: len(e.Moves)}
	case event.ItemsChanged:
		r = history.Record{Kind: history.Owns, Job: e.Job, Items: e.Items, Total: e.Total}
	case event.ItemEnded:
		r = history.Record{
			Kind: history.Ended, Job: e.Job, Epoch: e.Epoch, Total: e.Total, Item: e.Item, Due: e.Due.UTC(), Err: text(e.Err),
			Request: e.Request, Refused: heldUp(e.Err),
		}
	case event.RoundLate:
		r = history.Record{Kind: history.LateRound, Job: e.Job, Due: e.Due.UTC(), Items: e.Items, Took: e.Waited}
	case event.ItemCut:
		r = history.Record{Kind: history.Cut, Job: e.Job, Epoch: e.Epoch, Item: e.Item, Due: e.Due.UTC(), Of: e.Instance, Reason: string(e.Reason)}
	case event.ItemsSkipped:
		r = history.Record{
			Kind: history.Skipped, Job: e.Job, Epoch: e.Epoch, Items: e.Items, First: e.First, Due: e.Due.UTC(),
			Count: e.Count, Reason: string(e.Reason),
		}
	case event.ItemsFolded:
		r = history.Record{
			Kind: history.Folded, Job: e.Job, Epoch: e.Epoch, Items: e.Items, First: e.First, Due: e.Last.UTC(),
			Count: e.Count, Into: e.Into.UTC(),
		}
	case event.SessionRegained:
		r = history.Record{Kind: history.Regained, Session: e.Session}
	case event.Waiting:
		r = history.Record{Kind: history.Waits, Job: e.Job, Reason: e.For}
	case event.Warning:
		r = history.Record{Kind: history.Warning(e.Problem), Job: e.Job, Reason: e.Problem, Err: text(e.Err)}
	case event.RoundHeard:
		if !strings.Contains(text(e.Err), stillHears) {
			return r, false
		}
		r = history.Record{Kind: history.Warned, Job: e.Job, Due: e.Due.UTC(), Reason: stillHears}
	default:
		return r, false
	}
	return r, true
}

// stillHears is how it is told that a listener to rounds goes on after its timeout, and is not called
// meanwhile.
const stillHears = "the listener has not returned from the round before"

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
