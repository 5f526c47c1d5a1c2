package job

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/secret"
)

// A Kind makes jobs of a configuration's props.
type Kind interface {
	// New makes the job of a configuration. Its error joins a *core.ConfigError for everything
	// that is wrong, with fields such as "Props.script.command.line".
	New(cfg core.JobConfig) (core.Job, error)
}

// KindFunc makes a Kind of a function.
type KindFunc func(cfg core.JobConfig) (core.Job, error)

// New calls f.
func (f KindFunc) New(cfg core.JobConfig) (core.Job, error) { return f(cfg) }

// Kinds are kinds by name, of upper case.
type Kinds map[string]Kind

// BuiltIn are the kinds of this package, by ElasticJob's names and with its props.
//
//	SCRIPT   script.command.line (needed); script.dir, script.timeout.milliseconds,
//	         script.grace.milliseconds, script.output.bytes
//	HTTP     http.uri and http.method (needed); http.data, http.content.type,
//	         http.connect.timeout.milliseconds (3000), http.read.timeout.milliseconds (5000)
//
// A YAML file has http.header.NAME besides, which package config gives to the request.
//
// A timeout of 0 is no bound, as in ElasticJob; the run's timeout, if it has one, ends the request all the same. The
// two others bound the whole request, connecting and answer together, and not each read (HTTP.ReadTimeout).
//
// A URL that holds a secret stands in a file that http.uriFile names, or in an environment variable that http.uriEnv
// names; one with a password is refused as http.uri, since all who can read the registry would see it.
//
// They go by the props that this process was given. Those in the registry, which others may
// write, do not change what is run.
func BuiltIn() Kinds { return Kinds{"SCRIPT": KindFunc(script), "HTTP": KindFunc(request)} }

// A Configurable is a job of the program that takes settings of its configuration's props, as a
// Dataflow does with
//
//	DATAFLOW  streaming.process; dataflow.fetch.count, dataflow.concurrency,
//	          dataflow.count.interval.seconds
//
// Package config asks it where a file names the job.
type Configurable interface {
	core.Job
	// Configured returns the job with those settings, and leaves the receiver as it is. Its error is
	// as that of Kind.New.
	Configured(cfg core.JobConfig) (core.Job, error)
}

// New makes a job of the kind that has the name, in any case.
func (k Kinds) New(name string, cfg core.JobConfig) (core.Job, error) {
	kind := k[strings.ToUpper(name)]
	if kind == nil {
		return nil, field.Errorf("Type", "%.40q is not a kind of job; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(k)), ", "))
	}
	return kind.New(cfg)
}

// props reads a job's props, and collects what is wrong.
type props struct {
	of   map[string]string
	errs []error
}

func (p *props) wrong(key, problem string) {
	p.errs = append(p.errs, field.Errorf("Props."+key, "%s", problem))
}

func (p *props) needed(key, example string) string {
	if p.of[key] == "" {
		p.wrong(key, "is missing; write for example "+example)
	}
	return p.of[key]
}

func (p *props) number(key string) int {
	text := cmp.Or(p.of[key], "0")
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		p.wrong(key, "is not a whole number from 0 on; write digits alone")
	}
	return n
}

func (p *props) flag(key string, missing bool) bool {
	switch strings.ToLower(p.of[key]) {
	case "":
		return missing
	case "true":
		return true
	case "false":
		return false
	}
	p.wrong(key, "is neither true nor false")
	return missing
}

// century bounds what is said in milliseconds, so that no sum of two overflows.
const century = 100 * 365 * 24 * time.Hour

func (p *props) milliseconds(key string) time.Duration {
	n := int64(p.number(key))
	if n > int64(century/time.Millisecond) {
		p.wrong(key, "is more than 100 years; write fewer milliseconds")
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// bound is what the prop says, negative for the 0 that is no bound, and 0 where it says nothing.
func (p *props) bound(key string) time.Duration {
	if d := p.milliseconds(key); d != 0 || p.of[key] == "" {
		return d
	}
	return -1
}

// checked adds what Validate has to say of a field, at the prop that it was read from.
func (p *props) checked(err error, keys map[string]string) error {
	if len(p.errs) == 0 && err != nil {
		err = field.Adapt(err, func(e *field.Error) { e.Field = "Props." + keys[e.Field] })
		p.errs = append(p.errs, err)
	}
	return errors.Join(p.errs...)
}

func script(cfg core.JobConfig) (core.Job, error) {
	p := &props{of: cfg.Props}
	c := &Script{
		Command: p.needed("script.command.line", "script.command.line: scripts/reindex.sh"), Dir: cfg.Props["script.dir"],
		Timeout: p.milliseconds("script.timeout.milliseconds"), Grace: p.milliseconds("script.grace.milliseconds"),
		MaxOutput: p.number("script.output.bytes"),
	}
	if err := p.checked(c.Validate(), map[string]string{"Command": "script.command.line", "Timeout": "script.timeout.milliseconds"}); err != nil {
		return nil, err
	}
	return c, nil
}

// uri is the URL of a request.
func (p *props) uri() string {
	const key = "http.uri"
	if !secret.Given(p.of, key) {
		if u, err := url.Parse(p.of[key]); err == nil && u.User != nil {
			if _, password := u.User.Password(); password {
				p.errs = append(p.errs, secret.Refused(key))
			}
		}
		return p.needed(key, "http.uri: http://127.0.0.1:8080/path")
	}
	text, err := secret.Read(p.of, key)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	return text
}

func request(cfg core.JobConfig) (core.Job, error) {
	p := &props{of: cfg.Props}
	c := &HTTP{
		URL: p.uri(), Method: p.needed("http.method", "http.method: POST"),
		Body: cfg.Props["http.data"], ContentType: cfg.Props["http.content.type"],
		ConnectTimeout: p.bound("http.connect.timeout.milliseconds"), ReadTimeout: p.bound("http.read.timeout.milliseconds"),
	}
	c.Method = strings.ToUpper(c.Method)
	if err := p.checked(c.Validate(), map[string]string{"URL": "http.uri", "Method": "http.method"}); err != nil {
		return nil, err
	}
	return c, nil
}

// String names the kinds.
func (k Kinds) String() string { return fmt.Sprint(slices.Sorted(maps.Keys(k))) }
