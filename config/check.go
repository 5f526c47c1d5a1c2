package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/job"
)

// Check reads a file as Parse does, and says also what Bind would find wrong in it, as far as that
// can be said without the program, and without the registry: types, error handlers and their
// settings. Notes of the Config say what cannot: a name that is not known may be one that the
// program brings, unless it is nearly a known one, and a secret may be where the program runs.
//
// own are such names: kinds of jobs, error handlers, strategies, schemes of registries. Error
// handlers are known whose packages are imported.
func Check(file string, data []byte, own ...string) (*Config, error) {
	r := newReader(file, nil)
	r.checking = &checking{own: own, unread: map[string][]string{}}
	cfg := r.parse(data)
	if cfg != nil {
		r.checkRegistry(cfg)
		for _, j := range cfg.Jobs {
			r.checkWork(cfg, j)
		}
	}
	if err := asError(r.problems); err != nil {
		return nil, err
	}
	if len(cfg.Jobs) == 0 {
		cfg.notes = append(cfg.notes, Note{Field: "jobs", Text: noJobs})
	}
	for _, n := range r.checking.notes {
		if !slices.Contains(cfg.notes, n) { // of the block defaults each job tells the same
			cfg.notes = append(cfg.notes, n)
		}
	}
	slices.SortStableFunc(cfg.notes, func(a, b Note) int { return a.Line - b.Line })
	return cfg, nil
}

const noJobs = "there is none; write jobs: and below it the name of a job with its settings"

// whereItRuns follows what is not on this machine.
const whereItRuns = "the program needs it where it runs"

// checking is what a reader needs besides for Check.
type checking struct {
	own    []string
	unread map[string][]string // fields of each job that could not be read
	notes  []Note
}

func (k *checking) note(at *yaml.Node, path, format string, args ...any) {
	n := Note{Field: path, Text: oneLine(fmt.Sprintf(format, args...))}
	if at != nil {
		n.Line = at.Line
	}
	k.notes = append(k.notes, n)
}

// isOwn reports whether a name is one that the program brings.
func (k *checking) isOwn(name string) bool {
	return slices.ContainsFunc(k.own, func(own string) bool { return strings.EqualFold(own, name) })
}

// unknownName tells a name that is not known: nearly a known one is wrong, another may be the program's.
func (r *reader) unknownName(m member, name string, known []string, how string) {
	if r.checking.isOwn(name) {
		return
	}
	if near := nearest(name, known); near != "" {
		r.add(m.value, m.path, "%s is not known here; did you mean %s? (if the program brings it: elasticron check -own %s)", clip(name), near, oneLine(name))
		return
	}
	r.checking.note(m.value, m.path, "%s is not known here; a program may bring it (%s)", clip(name), how)
}

// validate notes what core would refuse, but for fields that could not be read.
func (r *reader) validate(c core.JobConfig, where places, unread []string) {
	found := slices.DeleteFunc(field.All(c.Validate(r.opts...)), func(e *field.Error) bool { return slices.Contains(unread, e.Field) })
	if slices.ContainsFunc(found, isUnknownStrategy) && r.strategy(c, where, unread) {
		return
	}
	for _, e := range found {
		r.problems = append(r.problems, where.problem(r.file, e))
	}
}

// isUnknownStrategy leaves out those that are known and cannot be had.
func isUnknownStrategy(e *field.Error) bool {
	return e.Field == "Strategy" && e.Err != nil && !errors.Is(e, errors.ErrUnsupported)
}

// strategy tells an unknown strategy in the words of the file. It reports whether it has looked at
// the whole job, as if there were none.
func (r *reader) strategy(c core.JobConfig, where places, unread []string) bool {
	m, _ := where.at(c.Name, "Strategy")
	near := nearest(c.Strategy, strategies)
	switch {
	case r.checking != nil:
		r.unknownName(m, c.Strategy, strategies, "core.WithStrategy")
	case near != "":
		r.add(m.value, m.path, "%s is not a strategy; did you mean %s?", clip(c.Strategy), near)
	default:
		return false
	}
	c.Strategy = ""
	r.validate(c, where, unread)
	return true
}

// checkRegistry tells what only a program, or the machine on which it runs, can know of the registry.
func (r *reader) checkRegistry(cfg *Config) {
	at := func(key string) (*yaml.Node, string) {
		place := cfg.settings[key]
		return &yaml.Node{Line: place.Line}, place.Field
	}
	for _, m := range cfg.missing() {
		n, path := at(m.key)
		r.checking.note(n, path, "%s; "+whereItRuns, strings.TrimSuffix(m.err.Error(), "; put the password in it"))
	}
	scheme, _, found := strings.Cut(cfg.Registry.Address, "://")
	if !found || slices.Contains(Schemes(), scheme) || r.checking.isOwn(scheme) {
		return
	}
	n, path := at("url")
	hint := "the program must import an adapter that has it"
	if near := nearest(scheme, Schemes()); near != "" {
		hint = "did you mean " + near + "? Else " + hint
	}
	r.checking.note(n, path, "the scheme %s is none of Elasticron's own (%s); %s", scheme, strings.Join(Schemes(), ", "), hint)
}

// checkWork tells what Bind would refuse in what a job does.
func (r *reader) checkWork(cfg *Config, j core.JobConfig) {
	w := cfg.works[j.Name]
	nothing := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	var function core.Job
	switch kind := strings.ToUpper(w.kind); {
	case kind == dataflow:
		function = standIn
	case w.byFunction():
		function = nothing
	case kind != script && kind != request:
		m, _ := cfg.places.at(j.Name, "Type")
		r.unknownName(m, w.kind, []string{script, request, "SIMPLE", dataflow}, "job.Kinds, which Config.Bind takes")
		fallthrough
	case r.checking.isOwn(w.kind): // it comes before a built-in one
		function, w.kind = nothing, ""
	}
	if w.handler != "" && !knownHandler(w.handler) {
		m, _ := cfg.places.at(j.Name, "jobErrorHandlerType")
		r.unknownName(m, w.handler, slices.Sorted(maps.Keys(handlers)), "errorhandler.Register")
		w.handler = ""
	}
	if slices.Contains(r.checking.unread[j.Name], "Props") {
		return
	}
	for _, prop := range slices.Sorted(maps.Keys(j.Props)) {
		if why := lostProps[prop]; why != "" && strings.EqualFold(w.handler, "EMAIL") {
			m, _ := cfg.places.prop(j.Name, prop)
			r.checking.note(m.key, m.path, "is ElasticJob's, and does nothing here: %s", why)
		}
	}
	_, problems := cfg.work(w, j, function, nil)
	for _, p := range problems {
		if errors.Is(p, fs.ErrNotExist) || errors.Is(p, fs.ErrPermission) {
			r.checking.note(&yaml.Node{Line: p.Line}, p.Field, "%s; "+whereItRuns, strings.TrimSuffix(p.Problem, "; put the secret there"))
			continue
		}
		r.problems = append(r.problems, p)
	}
}

// standIn takes the settings of a Dataflow, whatever it flows.
var standIn = &job.Dataflow[struct{}]{
	Fetch:   func(context.Context, core.Shard, string, int) ([]struct{}, string, error) { return nil, "", nil },
	Process: func(context.Context, core.Shard, []struct{}) error { return nil },
}
