package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/errorhandler"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/job"
	"github.com/elasticron/elasticron/job/link"
)

// A work is what a job of the file does, besides what core.JobConfig says.
type work struct {
	kind     string // of job.Kinds, "" for a function of the program
	handler  string // of errorhandler
	timeout  time.Duration
	attempts int
}

// byFunction reports whether the program brings the function.
func (w work) byFunction() bool {
	return w.kind == "" || strings.EqualFold(w.kind, "SIMPLE") || strings.EqualFold(w.kind, "DATAFLOW")
}

// A workKey is a key of a work: in the file, in errors, how it is read, and what the reference
// says of it.
type workKey struct {
	key, name string
	read      func(r *reader, m member, w *work)
	about     about
}

// works are in the order in which an error lists them.
var works = []workKey{
	{"attempts", "attempts", func(r *reader, m member, w *work) {
		var ok bool
		if w.attempts, ok = r.int(m); ok && w.attempts < 1 {
			r.add(m.value, m.path, "is less than 1; write how often a run is tried in all, such as 3")
		}
	}, about{aNumber, "1", "How often a run is tried in all, with pauses that grow."}},
	{"jobErrorHandlerType", "jobErrorHandlerType", func(r *reader, m member, w *work) { w.handler, _ = r.text(m) }, about{
		aText, "`LOG`", "What becomes of a failed run: `LOG`, `THROW`, `IGNORE`, `STOP`, `WEBHOOK`, and those whose packages the program imports: " +
			"`EMAIL`, `SLACK`, `DINGTALK`, `WECHAT`, `FEISHU`. Their settings stand among `props`."}},
	{"timeout", "timeout", func(r *reader, m member, w *work) {
		w.timeout, _ = r.duration(m, "30s", "remove the key for no timeout")
	}, about{aDuration, "no bound", "Bounds each attempt."}},
	{"type", "Type", func(r *reader, m member, w *work) { w.kind, _ = r.text(m) }, about{
		aText, "a function of the program", "What the job does: `SCRIPT` or `HTTP`, with settings among `props`, or a kind of the program. " +
			"`SIMPLE` is a function of the program, as is a job without a type; `DATAFLOW` is a `job.Dataflow` of the program, which takes `streaming.process`, " +
			"`dataflow.fetch.count`, `dataflow.concurrency` and `dataflow.count.interval.seconds` from `props`."}},
}

// work reads a key that says what a job does.
func (r *reader) work(m member, name string, key workKey) {
	if r.works == nil {
		r.works = map[string]work{}
	}
	w := r.works[name]
	key.read(r, m, &w)
	r.works[name] = w
}

// Work makes what a job of the file does, as Bind does: function, or a job of the kind that its
// type says; with its timeout, its attempts and its error handler around it. The error is an
// *Error.
func (c *Config) Work(name string, function core.Job, kinds ...job.Kinds) (core.Job, error) {
	cfg, ok := c.Job(name)
	if !ok {
		return nil, fmt.Errorf("config: there is no job %q", name)
	}
	w := c.works[name]
	var made core.Job
	var err error
	switch known := allKinds(kinds); {
	case w.byFunction() && function == nil:
		err = &field.Error{Field: "Name", Problem: "the program has no function for this job"}
	case w.byFunction():
		made, err = w.configured(function, cfg)
	case function != nil:
		err = field.Errorf("Type", "the program has a function for this job too; remove type, or the function")
	default:
		made, err = known.New(w.kind, cfg)
	}
	handler, handlerErr := errorhandler.Open(w.handler, cfg.Props)
	if err := errors.Join(err, handlerErr); err != nil {
		return nil, c.problems(field.Adapt(err, func(e *field.Error) { e.Job = name }))
	}
	// The order of package link; a handler that leaves everything to the scheduler is none.
	var links []link.Link
	if w.handler != "" {
		links = append(links, errorhandler.Link(handler))
	}
	if w.attempts > 1 {
		links = append(links, link.Retry(link.Retries{Max: w.attempts}))
	}
	if w.timeout > 0 {
		links = append(links, link.Timeout(link.Limit{After: w.timeout}))
	}
	return link.Chain(made, links...), nil
}

// configured gives a function the settings among the job's props that it takes.
func (w work) configured(function core.Job, cfg core.JobConfig) (core.Job, error) {
	if c, ok := function.(job.Configurable); ok {
		return c.Configured(cfg)
	}
	if strings.EqualFold(w.kind, "DATAFLOW") {
		return nil, field.Errorf("Type", "the program's function for this job is no job.Dataflow; give it one, or remove type")
	}
	return function, nil
}

// allKinds are the built-in kinds, and then the program's own.
func allKinds(own []job.Kinds) job.Kinds {
	all := job.BuiltIn()
	for _, k := range own {
		for _, name := range slices.Sorted(maps.Keys(k)) {
			all[strings.ToUpper(name)] = k[name]
		}
	}
	return all
}
