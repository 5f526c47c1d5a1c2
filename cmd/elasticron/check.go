package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
	_ "github.com/elasticron/elasticron/errorhandler/chat" // registers SLACK, DINGTALK, WECHAT, FEISHU
	_ "github.com/elasticron/elasticron/errorhandler/mail" // registers EMAIL
)

const checkHelp = `elasticron check [-own NAME,NAME...] FILE

Reads a file as a program would, Elasticron's or ElasticJob's ("-" is the standard input), and says
all that is wrong, a line for each: the settings of the url, the jobs, their types, their error
handlers, and the settings of both among props. Of a file without a mistake it prints when each job
fires next. Environment variables count; the registry is not asked.

A name that is not known here may be one that the program brings (a kind of jobs, an error handler,
a sharding strategy, a scheme of registries): that is a note, and no mistake, unless it is nearly a
known one. -own says which names the program brings. A password or a file that is not on this
machine is a note too.

Exit code: 0 nothing is wrong, 1 something is, 3 a file of ElasticJob of which something has no
counterpart.
`

func check(_ context.Context, args []string, out, errs io.Writer) int {
	set, parse := flags("check", checkHelp, out, errs)
	own := set.String("own", "", "`NAMES`, with commas between, of kinds of jobs, error handlers, strategies and schemes that the program brings")
	names, code, over := parse(args)
	if over {
		return code
	}
	if len(names) != 1 {
		_, _ = fmt.Fprintf(errs, "elasticron check: give one file\n\n%s\n", checkHelp)
		return exitUsage
	}
	name, data, err := readAll(names[0])
	if err != nil {
		return failed(errs, err)
	}
	cfg, err := config.Check(name, data, strings.FieldsFunc(*own, func(r rune) bool { return r == ',' || r == ' ' })...)
	if err != nil {
		return failed(errs, err)
	}
	code = tell(errs, cfg.Notes())
	if err := printFires(out, cfg, time.Now()); err != nil {
		return failed(errs, err)
	}
	return code
}

// tell tells notes, and returns the exit code that they ask for.
func tell(errs io.Writer, notes []config.Note) int {
	code := exitOK
	for _, n := range notes {
		word := "note"
		if n.Lost {
			word, code = "lost", exitLost
		}
		_, _ = fmt.Fprintf(errs, "%s: %s\n", word, n)
	}
	return code
}

// fires are how many of each job are shown.
const fires = 3

// printFires prints the registry, and a table of when the jobs fire.
func printFires(out io.Writer, cfg *config.Config, now time.Time) error {
	if _, err := fmt.Fprintln(out, cfg); err != nil || len(cfg.Jobs) == 0 {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "\njob\tzone\tnext fires\n") // an error is Flush's too
	for _, j := range cfg.Jobs {
		name, zone := j.Name, j.TimeZone
		if j.Disabled {
			name += " (disabled)"
		}
		if zone == "" {
			zone = "this machine's"
		}
		for _, when := range nextFires(j, now) {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", name, zone, when)
			name, zone = "", ""
		}
	}
	return table.Flush()
}

// nextFires says when a job fires after now, a line for each.
func nextFires(j core.JobConfig, now time.Time) []string {
	s, err := j.Schedule()
	if err != nil {
		return []string{err.Error()} // Check has parsed it
	}
	if s.OnRequest() {
		return []string{"when somebody asks"}
	}
	if pause, fixed := s.Delay(); fixed {
		return []string{fmt.Sprintf("%v after the end of each run", pause)}
	}
	var all []string
	for range fires {
		next, ok := s.Next(now)
		if !ok {
			return append(all, "and never again")
		}
		all = append(all, next.Format("Mon 2006-01-02 15:04:05.999 -07:00"))
		now = next
	}
	return all
}

const schemaHelp = `elasticron schema

Prints the JSON Schema of the file, with which an editor completes and checks it.
`

func schema(_ context.Context, args []string, out, errs io.Writer) int {
	_, parse := flags("schema", schemaHelp, out, errs)
	names, code, over := parse(args)
	if over {
		return code
	}
	if len(names) != 0 {
		_, _ = fmt.Fprintf(errs, "elasticron schema: takes no argument\n\n%s\n", schemaHelp)
		return exitUsage
	}
	if _, err := out.Write(config.Schema()); err != nil {
		return failed(errs, err)
	}
	return exitOK
}
