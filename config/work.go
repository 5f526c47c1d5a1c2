package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
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
	}, about{aNumber, "1", "How often a run is tried in all. Between two attempts is a pause, in which the item keeps its place: 1 second, then twice as long each time, " +
		"1 minute at most, each longer or shorter by up to a half at random."}},
	{"jobErrorHandlerType", "jobErrorHandlerType", func(r *reader, m member, w *work) { w.handler, _ = r.text(m) }, about{
		aText, "`LOG`", "What becomes of a failed run: `LOG`, `THROW`, `IGNORE`, `STOP`, `WEBHOOK`, and those whose packages the program imports: " +
			"`EMAIL`, `SLACK`, `DINGTALK`, `WECHAT`, `FEISHU`. Their settings stand among `props`."}},
	{"timeout", "timeout", func(r *reader, m member, w *work) {
		w.timeout, _ = r.duration(m, "30s", "remove the key for no timeout")
	}, about{aDuration, "no bound", "Bounds each attempt."}},
	{"type", "Type", func(r *reader, m member, w *work) { w.kind, _ = r.text(m) }, about{
		aText, "a function of the program", "What the job does: `SCRIPT` or `HTTP`, with settings among `props`, or a kind of the program. " +
			"`SIMPLE` is a function of the program, as is a job without a type; `DATAFLOW` is a `job.Dataflow` of the program, which takes `" +
			strings.Join(dataflowSettings[:3], "`, `") + "` and `" + dataflowSettings[3] + "` from `props`."}},
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
	made, problems := c.work(c.works[name], cfg, function, kinds)
	if err := asError(problems); err != nil {
		return nil, err
	}
	return made, nil
}

// work is Work, with what the job does.
func (c *Config) work(w work, cfg core.JobConfig, function core.Job, kinds []job.Kinds) (core.Job, []*FieldError) {
	known, own := allKinds(kinds)
	ownKind := own[strings.ToUpper(w.kind)]
	made, err := c.bare(w, cfg, function, known, ownKind)
	handler, handlerErr := errorhandler.Open(w.handler, c.fromHere(cfg.Props, func(prop string) bool { return strings.HasSuffix(prop, "File") }))
	problems := w.misspelled(cfg.Props, ownKind, func(prop string) *FieldError {
		m, _ := c.places.prop(cfg.Name, prop)
		p := &FieldError{Job: cfg.Name, File: c.file, Field: m.path}
		if m.key != nil {
			p.Line, p.Column = m.key.Line, m.key.Column
		}
		return p
	})
	problems = append(problems, c.wrong(cfg.Name, "Type", err)...)
	problems = append(problems, c.wrong(cfg.Name, "jobErrorHandlerType", nearHandler(handlerErr, w.handler))...)
	if len(problems) > 0 {
		return nil, problems
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

// wrong tells an error at the places of the file. One of the program's own, which names no field, is told at name.
func (c *Config) wrong(job, name string, err error) []*FieldError {
	found := field.All(err)
	if err != nil && len(found) == 0 {
		found = []*field.Error{{Field: name, Problem: err.Error(), Err: err}}
	}
	problems := make([]*FieldError, len(found))
	for i, e := range found {
		copied := *e
		copied.Job = job
		problems[i] = c.places.problem(c.file, &copied)
	}
	return problems
}

// bare is the job without what stands around it.
func (c *Config) bare(w work, cfg core.JobConfig, function core.Job, known job.Kinds, ownKind bool) (core.Job, error) {
	switch kind := strings.ToUpper(w.kind); {
	case w.byFunction() && function == nil:
		return nil, &field.Error{Field: "Name", Problem: "the program has no function for this job"}
	case w.byFunction():
		return w.configured(function, cfg)
	case function != nil:
		return nil, field.Errorf("Type", "the program has a function for this job too; remove type, or the function")
	case known[kind] == nil:
		if near := nearest(kind, append(slices.Sorted(maps.Keys(known)), "SIMPLE", dataflow)); near != "" {
			return nil, field.Errorf("Type", "%.40q is not a kind of job; did you mean %s?", w.kind, near)
		}
		return known.New(w.kind, cfg)
	case ownKind:
		return known.New(w.kind, cfg)
	}
	cfg.Props = c.fromHere(cfg.Props, func(prop string) bool { return prop == "http.uriFile" || strings.HasPrefix(prop, headerFile) })
	made, err := known.New(w.kind, cfg)
	if !strings.EqualFold(w.kind, request) {
		return made, err
	}
	header, errs := headers(cfg.Props)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	if h, ok := made.(*job.HTTP); ok {
		h.Header = header
	}
	return made, nil
}

// fromHere is props with the names of files that are relative to the folder of the YAML file
// written from the root. The registry, which other machines read, gets them as they stand.
func (c *Config) fromHere(props map[string]string, isFile func(prop string) bool) map[string]string {
	all := maps.Clone(props)
	for prop, name := range props {
		if name != "" && isFile(prop) && !filepath.IsAbs(name) {
			all[prop] = filepath.Join(c.dir, name)
		}
	}
	return all
}

// knownHandler reports whether a handler is registered.
func knownHandler(name string) bool {
	_, err := errorhandler.Open(name, nil)
	return !slices.ContainsFunc(field.All(err), isUnknownHandler)
}

func isUnknownHandler(e *field.Error) bool { return e.Field == "jobErrorHandlerType" }

// nearHandler has the error of an unknown handler say which one is meant.
func nearHandler(err error, name string) error {
	near := nearest(name, slices.Sorted(maps.Keys(handlers)))
	if near == "" || strings.EqualFold(near, name) { // its package is not imported
		return err
	}
	return field.Adapt(err, func(e *field.Error) {
		if isUnknownHandler(e) {
			e.Problem = fmt.Sprintf("%.40q is unknown; did you mean %s?", name, near)
		}
	})
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

// allKinds are the built-in kinds, and then the program's own, which are told apart.
func allKinds(kinds []job.Kinds) (all job.Kinds, own map[string]bool) {
	all, own = job.BuiltIn(), map[string]bool{}
	for _, k := range kinds {
		for _, name := range slices.Sorted(maps.Keys(k)) {
			all[strings.ToUpper(name)], own[strings.ToUpper(name)] = k[name], true
		}
	}
	return all, own
}
