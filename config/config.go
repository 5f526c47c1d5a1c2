package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/job"
	"github.com/elasticron/elasticron/registry"
)

// A Config is what a file holds. It is read only; use it by pointer.
type Config struct {
	// Registry is how the registry is reached.
	Registry Registry
	// Jobs are in the order of the file. Their values were checked as core does.
	Jobs []core.JobConfig

	file     string
	dir      string                // of the file
	settings map[string]FieldError // where the keys of the registry block stand
	places   places
	works    map[string]work
	notes    []Note
}

// Load reads a file. The error is that of the file system, or an *Error. opts are those
// that core.New will get, as far as they matter to the jobs (core.WithStrategy).
func Load(file string, opts ...core.Option) (*Config, error) {
	if file == "" {
		return nil, errors.New(`config: the name of the file is empty; give one, such as "jobs.yaml"`)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return Parse(file, data, opts...)
}

// Parse reads what a file holds. The name of the file stands in errors, and the file
// names in data are relative to its folder. opts are as in Load. The error is an *Error.
func Parse(file string, data []byte, opts ...core.Option) (*Config, error) {
	r := newReader(file, opts)
	cfg := r.parse(data)
	if err := asError(r.problems); err != nil {
		return nil, err
	}
	return cfg, nil
}

// parse reads what a file holds, nil where nothing can be read. Problems are collected.
func (r *reader) parse(data []byte) *Config {
	doc, problem := document(data)
	if problem != nil {
		problem.File = r.file
		r.problems = append(r.problems, problem)
		return nil
	}
	var notes []Note
	if foreignFile(doc) {
		doc, notes, r.problems = foreignTree(r.file, doc)
		if len(r.problems) > 0 {
			return nil
		}
	}
	cfg := r.root(doc)
	if cfg != nil {
		cfg.notes = notes
	}
	return cfg
}

// foreignTree makes a file of ours of ElasticJob's. A password that stands in it is refused, as
// it is in ours.
func foreignTree(file string, doc *yaml.Node) (*yaml.Node, []Note, []*FieldError) {
	c := newConverter(file, ConvertOptions{})
	tree := c.convert(doc)
	for _, s := range c.secrets {
		c.problems = append(c.problems, &FieldError{File: file, Line: s.Line, Column: s.column, Field: s.Field, Problem: "holds a secret, which does not belong in this file; " +
			"write a variable in its place, ${NAME}, or have `elasticron convert` take it out"})
	}
	return tree, c.notes, c.problems
}

// Notes say what a file of ElasticJob asks for and what is different here, none for a file in
// the form of this package unless Check has read it. What is Lost is a warning when a scheduler starts with the registry
// that Open returns.
func (c *Config) Notes() []Note { return slices.Clone(c.notes) }

// Open opens the registry. Its adapter must have been imported. The caller closes it. An
// error names the place in the file; it is registry.ErrUnavailable or ErrDenied as well,
// when it is one of those.
func (c *Config) Open(ctx context.Context) (registry.Registry, error) {
	u, err := c.Registry.URL()
	if err != nil {
		return nil, fmt.Errorf("config: registry.url: %w", err)
	}
	key := "url"
	if missing := c.missing(); len(missing) > 0 {
		key, err = missing[0].key, missing[0].err
	} else {
		var reg registry.Registry
		if reg, err = c.Registry.open(ctx, u); err == nil {
			return c.telling(reg), nil
		}
	}
	at, known := c.settings[key]
	if !known {
		return nil, fmt.Errorf("config: %w", err)
	}
	at.Problem, at.Err = oneLine(err.Error()), err
	return nil, &at
}

// telling has the scheduler warn of what is lost.
func (c *Config) telling(reg registry.Registry) registry.Registry {
	var lost []string
	for _, n := range c.notes {
		if n.Lost {
			lost = append(lost, c.file+": "+n.String())
		}
	}
	if lost == nil {
		return reg
	}
	return warned{Registry: reg, warnings: lost}
}

// warned is a registry with warnings, which a scheduler tells when it starts.
type warned struct {
	registry.Registry

	warnings []string
}

// Warnings are those of the file, and those of the adapter.
func (w warned) Warnings() []string {
	if inner, ok := w.Registry.(interface{ Warnings() []string }); ok {
		return slices.Concat(w.warnings, inner.Warnings())
	}
	return w.warnings
}

// An absence is a key of the registry block that names a file or variable which is not there.
type absence struct {
	key string
	err error
}

// missing finds the files and variables that the registry block names and that are not there.
func (c *Config) missing() []absence {
	files := [][2]string{{"passwordFile", c.Registry.PasswordFile}}
	if t := c.Registry.TLS; t.Enabled {
		files = append(files, [][2]string{{"tls.ca", t.CA}, {"tls.cert", t.Cert}, {"tls.key", t.Key}}...)
	}
	var all []absence
	for _, f := range files {
		if f[1] == "" {
			continue
		}
		file, err := os.Open(f[1])
		if err != nil {
			if p := (*fs.PathError)(nil); errors.As(err, &p) {
				err = p.Err
			}
			all = append(all, absence{f[0], fmt.Errorf("the file %s cannot be read: %w", f[1], err)})
			continue
		}
		_ = file.Close()
	}
	if name := c.Registry.PasswordEnv; name != "" {
		if _, set := os.LookupEnv(name); !set {
			all = append(all, absence{"passwordEnv", fmt.Errorf("the environment variable %s is not set; put the password in it", name)})
		}
	}
	return all
}

// Job returns the configuration of one job.
func (c *Config) Job(name string) (core.JobConfig, bool) {
	for _, j := range c.Jobs {
		if j.Name == name {
			return j, true
		}
	}
	return core.JobConfig{}, false
}

// Bind adds every job of the file to the scheduler: of the kind that its type says, or with
// the function that the program has for its name. A job with neither, and a function without
// a job, are an *Error that names them, and nothing is added. What core refuses is an
// *Error too; the jobs before it in the file are then added. kinds are more than job.BuiltIn.
func (c *Config) Bind(s *core.Scheduler, functions map[string]core.Job, kinds ...job.Kinds) error {
	work, err := c.match(functions, kinds)
	if err != nil {
		return err
	}
	for i, j := range c.Jobs {
		if err := c.problems(s.Add(work[i], j)); err != nil {
			return err
		}
	}
	return nil
}

// problems tells an error of core at the places of the file.
func (c *Config) problems(err error) error {
	var problems []*FieldError
	for _, e := range field.All(err) {
		problems = append(problems, c.places.problem(c.file, e))
	}
	if len(problems) > 0 {
		return asError(problems)
	}
	return err
}

// match compares the names of the file with those of the program, and makes the jobs.
func (c *Config) match(functions map[string]core.Job, kinds []job.Kinds) ([]core.Job, error) {
	var problems []*FieldError
	if len(c.Jobs)+len(functions) == 0 {
		problems = append(problems, &FieldError{File: c.file, Field: "jobs", Problem: noJobs})
	}
	names := slices.Sorted(maps.Keys(functions))
	var jobs []string
	made := make([]core.Job, len(c.Jobs))
	for i, j := range c.Jobs {
		jobs = append(jobs, j.Name)
		if functions[j.Name] == nil && c.works[j.Name].byFunction() {
			problems = append(problems, c.noFunction(j.Name, names))
			continue
		}
		work, wrong := c.work(c.works[j.Name], j, functions[j.Name], kinds)
		made[i], problems = work, append(problems, wrong...)
	}
	for _, name := range names {
		if !slices.Contains(jobs, name) {
			problems = append(problems, &FieldError{File: c.file, Field: join("jobs", name), Problem: "is missing: the program has a function of this name; add the job" + among(" (the file has", jobs, ")")})
		}
	}
	return made, asError(problems)
}

// noFunction is the problem of a job that nothing says what it does.
func (c *Config) noFunction(name string, names []string) *FieldError {
	m, _ := c.places.at(name, "Name")
	p := &FieldError{File: c.file, Field: m.path, Problem: "the program has no function for this job" + among("; it has them for", names)}
	if m.key != nil {
		p.Line, p.Column = m.key.Line, m.key.Column
	}
	return p
}

// among lists names behind an introduction, or nothing when there are none.
func among(intro string, names []string, end ...string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = clip(n)
	}
	return intro + " " + strings.Join(quoted, ", ") + strings.Join(end, "")
}

// String names the registry and the jobs, without their settings.
func (c *Config) String() string {
	names := make([]string, len(c.Jobs))
	for i, j := range c.Jobs {
		names[i] = clip(j.Name)
	}
	return fmt.Sprintf("registry %v, jobs [%s]", c.Registry, strings.Join(names, ", "))
}

// Format writes String for every verb of fmt.
func (c *Config) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }

// LogValue is String.
func (c *Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
