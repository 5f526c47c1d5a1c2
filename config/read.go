package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/core"
)

// A reader turns nodes into a Config and collects the problems.
type reader struct {
	file, dir string
	opts      []core.Option
	problems  []*FieldError
	settings  map[string]FieldError // where the keys of the registry block stand
	works     map[string]work       // what jobs do, by name
	shared    shared                // what counts for all jobs
	checking  *checking             // nil but for Check
	listed    map[string]int        // the line whose problem lists these keys
}

func newReader(file string, opts []core.Option) *reader {
	dir := filepath.Dir(file)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // the process may change its folder
	}
	return &reader{file: file, dir: dir, opts: opts}
}

// add notes a problem at a node, nil for the file as a whole.
func (r *reader) add(n *yaml.Node, field, format string, args ...any) {
	r.addCause(n, field, nil, format, args...)
}

// addCause notes a problem that an error caused.
func (r *reader) addCause(n *yaml.Node, field string, cause error, format string, args ...any) {
	p := &FieldError{File: r.file, Field: field, Problem: oneLine(fmt.Sprintf(format, args...)), Err: cause}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	r.problems = append(r.problems, p)
}

// plainTree reports whether the tree below n has only what is read here.
func (r *reader) plainTree(n *yaml.Node) bool {
	ok := true
	refuse := func(what string) {
		r.add(n, "", "%s; write the value out", what)
		ok = false
	}
	switch {
	case n.Kind == yaml.AliasNode:
		refuse("aliases (*name) are not read")
	case n.Anchor != "":
		refuse("anchors (&name) are not read")
	case n.Style&yaml.TaggedStyle != 0:
		refuse("tags (!name) are not read")
	case n.Tag == "!!merge":
		refuse("merge keys (<<) are not read")
	}
	for _, c := range n.Content {
		ok = r.plainTree(c) && ok
	}
	return ok
}

// A member is one key of a mapping with its value.
type member struct {
	key, value *yaml.Node
	path       string
	// more are members that count beside those of value: props of the block defaults.
	more []member
}

// members returns the keys of a mapping, each once. It notes what is no mapping,
// with the fix, and keys that are repeated.
func (r *reader) members(n *yaml.Node, path, fix string) []member {
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "%s, want a mapping; %s", nature(n), fix)
		return nil
	}
	var found []member
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			r.add(key, path, "has a key that is not text; write key: value")
			continue
		}
		m := member{key: key, value: n.Content[i+1], path: join(path, key.Value)}
		if line := first[key.Value]; line > 0 {
			r.add(key, m.path, "is given twice, first on line %d; leave one", line)
			continue
		}
		first[key.Value] = key.Line
		found = append(found, m)
	}
	return found
}

// nature says in words what a node is.
func nature(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "is a list"
	case n.Kind == yaml.MappingNode:
		return "is a mapping"
	case null(n):
		return "has no value"
	}
	return "is one value"
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// root reads the file's outermost mapping.
func (r *reader) root(n *yaml.Node) *Config {
	cfg := &Config{file: r.file, dir: r.dir}
	if !r.plainTree(n) {
		return nil
	}
	found := r.members(n, "", "write the blocks registry and jobs")
	for _, m := range found {
		if m.key.Value == "defaults" { // wherever it stands
			r.defaults(m)
		}
	}
	if n.Kind == yaml.MappingNode && !slices.ContainsFunc(found, func(m member) bool { return m.key.Value == "registry" }) {
		r.add(nil, "registry", "is missing; write registry: and below it url: scheme://host:port/namespace")
	}
	for _, m := range found {
		switch m.key.Value {
		case "registry":
			cfg.Registry = r.registry(m)
			cfg.settings = r.settings
		case "jobs":
			cfg.Jobs, cfg.places = r.jobs(m)
			cfg.works = r.works
		case "defaults":
		default:
			r.unknown(m, []string{"registry", "defaults", "jobs"}, map[string]string{
				"regcenter": "registry", "elasticjob": "its inner blocks alone: registry and jobs", "job": "jobs",
			})
		}
	}
	return cfg
}

// unknown notes a key that is not known. The words are normalised spellings of what
// people write instead, and what is meant.
func (r *reader) unknown(m member, known []string, words map[string]string) {
	key := m.key.Value
	if meant := cmp.Or(words[normal(key)], nearest(key, known)); meant != "" {
		r.add(m.key, m.path, "is not a key here; did you mean %s?", meant)
		return
	}
	all := strings.Join(known, ", ")
	if line, told := r.listed[all]; told {
		r.add(m.key, m.path, "is not a key here; line %d tells which there are", line)
		return
	}
	if r.listed == nil {
		r.listed = map[string]int{}
	}
	r.listed[all] = m.key.Line
	r.add(m.key, m.path, "is not a key here; there are: %s", all)
}

// normal is a key without the differences of spelling: kebab-case, snake_case.
func normal(key string) string { return separators.Replace(strings.ToLower(key)) }

var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// nearest returns the known key that is meant most likely, "" if none is near.
func nearest(key string, known []string) string {
	word := normal(key)
	best, least := "", 0
	for _, k := range known {
		spelled := normal(k)
		allowed := max(1, len(spelled)/4)
		if len(word) < len(spelled)-allowed || len(word) > len(spelled)+allowed {
			continue
		}
		if d := distance(word, spelled); d <= allowed && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of characters to insert, delete or replace, or to exchange with their neighbours.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// places say where the keys of each job stand, by the name of the job and the
// field of core.JobConfig.
type places map[string]map[string]member

// at is where a field of a job stands, or the job when the field is not given.
func (p places) at(job, field string) (m member, given bool) {
	if m, given = p[job][field]; given {
		return m, true
	}
	m = p[job]["Name"]
	if f, known := fieldOf(field); known {
		m.path = join(m.path, f.key)
	}
	return m, false
}

// prop is where a prop of a job stands, or where it would.
func (p places) prop(job, prop string) (m member, given bool) {
	if m, given = p[job]["Props."+prop]; given {
		return m, true
	}
	if m, given = p.at(job, "Props"); given && m.isShared() { // the job's own would stand in the job
		m = p[job]["Name"]
		m.path = join(m.path, "props")
		given = false
	}
	m.path = join(m.path, prop)
	return m, given
}

// problem is a refusal of core at the place of the file that caused it.
func (p places) problem(file string, e *FieldError) *FieldError {
	m, given := p.at(e.Job, e.Field)
	if prop, isProp := strings.CutPrefix(e.Field, "Props."); isProp {
		m, given = p.prop(e.Job, prop)
	}
	text := e.Problem
	switch {
	case given:
	case e.Field == "Cron":
		text = `is missing; give a schedule such as "0/5 * * * * ?" or "@every 90s"`
	case e.Field == "Shards":
		text = "is missing; give the number of sharding items, at least 1"
	}
	problem := &FieldError{Job: e.Job, File: file, Field: m.path, Problem: oneLine(text), Err: e}
	place := m.key
	if given && e.Field != "Name" {
		place = m.value
	}
	if place != nil {
		problem.Line, problem.Column = place.Line, place.Column
	}
	return problem
}
