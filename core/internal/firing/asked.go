package firing

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// An Asked is a run that somebody asked for, and that is open, with its node.
type Asked struct {
	layout.Run
	Node registry.Node
}

// asked is what a firing keeps of an open run.
type asked struct {
	parameter string
	madeUp    bool
	open      *demand
	results   map[string]*results // by the id of the registration
}

// SetAsked says which runs are open, by number; every other one up to the number known is
// closed.
func (f *Firing) SetAsked(open []Asked, known int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asks := make([]items.Ask, 0, len(open))
	still := map[int64]*asked{}
	for _, r := range open {
		numbers, err := ledger.ParseRange(r.Items, r.Total)
		if err != nil {
			continue // the leader has written it: somebody else has since
		}
		x := f.asked[r.Number]
		if x == nil {
			x = &asked{parameter: r.Parameter, madeUp: r.MadeUp, results: map[string]*results{}}
		}
		if x.open == nil || x.open.version != r.Node.Version {
			x.open = &demand{path: r.Node.Path, version: r.Node.Version}
		}
		still[r.Number] = x
		a := items.Ask{Number: r.Number, Epoch: r.Epoch, At: r.At, Items: make(map[int]bool, len(numbers))}
		for _, n := range numbers {
			a.Items[n] = r.Sealed == ""
		}
		for _, no := range r.Answers { // those run not
			of, _ := ledger.ParseRange(no.Items, r.Total)
			for _, n := range of {
				delete(a.Items, n)
			}
		}
		asks = append(asks, a)
	}
	f.asked = still
	f.perform(f.machine.Asked(asks, known, f.now()))
	f.arm()
}

// resultsOf is where the ends of a run are written, nil for nowhere. The caller holds mu.
func (f *Firing) resultsOf(number int64) execution.Further {
	x := f.asked[number]
	if x == nil {
		return nil // closed: nobody waits for it
	}
	r := x.results[f.id]
	if r == nil {
		r = &results{path: f.cfg.Job.RunResult(number, f.id), ended: map[int]outcome{}}
		x.results[f.id] = r
	}
	return r
}

// A demand is that a run is open: its node is as it was seen.
type demand struct {
	path    string
	version registry.Version
}

// Op implements execution.Further.
func (d *demand) Op([]execution.Change) registry.Op { return registry.Check(d.path, d.version) }

// Refused implements execution.Further.
func (d *demand) Refused(error) bool { return false }

const (
	// maxTexts bounds what the texts of a run's results take at one instance, with what each takes besides.
	maxTexts = 64 << 10
	// leastText is what there is of one at least, as long as there is room.
	leastText = 256
	// answerBytes is what an answer takes besides its text.
	answerBytes = 64
)

// results are those of one run at one registration. A commit writes what it knows of those
// before it and its own.
type results struct {
	mu    sync.Mutex
	path  string
	made  bool
	gone  bool
	ended map[int]outcome // of ends that are committed
}

type outcome struct {
	word request.Outcome
	text string
}

// Op implements execution.Further.
func (r *results) Op(changes []execution.Change) registry.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return registry.Op{}
	}
	ended := maps.Clone(r.ended)
	for _, x := range changes {
		if c, is := x.(*change); is && !c.unknown {
			ended[c.Action.Item] = c.outcome()
		}
	}
	value := layout.MarshalResults(layout.Results{Results: answers(ended)})
	if r.made {
		return registry.Set(r.path, value, registry.AnyVersion)
	}
	return registry.Create(r.path, value)
}

// answers groups the items that have ended alike. Texts are cut, and left out, where they take too much: what an item has
// come to is not to be lost with them.
func answers(ended map[int]outcome) []layout.Answer {
	alike := map[outcome][]int{}
	for n, o := range ended {
		alike[o] = append(alike[o], n)
	}
	order := make([]outcome, 0, len(alike))
	for o, of := range alike {
		slices.Sort(of)
		order = append(order, o)
	}
	slices.SortFunc(order, func(x, y outcome) int { return cmp.Compare(alike[x][0], alike[y][0]) })
	fits := map[outcome][]int{}
	room, share := maxTexts, max(maxTexts/max(1, len(order)), leastText)
	for _, o := range order {
		is := o
		if o.text != "" {
			is.text = fit(o.text, min(room-answerBytes, share))
			room -= answerBytes + written(is.text)
		}
		fits[is] = append(fits[is], alike[o]...)
	}
	told := make([]layout.Answer, 0, len(fits))
	first := map[string]int{}
	for o, of := range fits {
		slices.Sort(of)
		a := layout.Answer{Items: ledger.FormatRange(of), Outcome: string(o.word), Text: o.text}
		first[a.Items] = of[0]
		told = append(told, a)
	}
	slices.SortFunc(told, func(a, b layout.Answer) int { return cmp.Compare(first[a.Items], first[b.Items]) })
	return told
}

// written is how long a text is in JSON.
func written(text string) int {
	value, err := json.Marshal(text)
	if err != nil {
		panic("firing: " + err.Error()) // a string can be written
	}
	return len(value)
}

// fit is as much of a text as may be written in so many bytes.
func fit(text string, most int) string {
	if most <= 0 {
		return ""
	}
	for text = clip(text, most); text != ""; {
		long := written(text)
		if long <= most {
			break
		}
		text = clip(text, len(text)*most/long)
	}
	return text
}

// clip returns at most so many bytes of a text, valid in UTF-8.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Refused implements execution.Further: results never hinder an end.
func (r *results) Refused(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, registry.ErrExists) && !r.made:
		r.made = true
	case errors.Is(err, registry.ErrNotFound) && r.made:
		r.made = false
	default:
		r.gone = true
	}
	return true
}

// committed notes that the end of a run is recorded, with its result if the node stands.
func (r *results) committed(c *change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[c.Action.Item] = c.outcome()
	r.made = !r.gone
}

// outcome is how the run of an end has ended.
func (c *change) outcome() outcome {
	switch {
	case c.err == nil:
		return outcome{word: request.Succeeded}
	case c.said == nil:
		return outcome{word: request.Failed}
	}
	return outcome{request.Failed, *c.said}
}
