package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/postgres"  // registers postgres://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

// The exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitLost
)

const usage = `elasticron: a helper for the configuration of scheduled jobs.

  elasticron convert [-o FILE] [-secrets DIR] FILE       ElasticJob's YAML in, Elasticron's out
  elasticron convert -registry URL [-o FILE] [JOB...]    the same for jobs that stand in a registry
  elasticron check FILE                                  says what is wrong, and when the jobs fire
  elasticron schema                                      the JSON Schema of the file, for editors

"elasticron COMMAND -h" says more.

Exit code: 0 success, 1 failure, 2 wrong command line, 3 converted or checked, but something of
ElasticJob has no counterpart, or what was converted does not load yet.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands by name.
var commands = map[string]func(ctx context.Context, args []string, out, errs io.Writer) int{
	"convert": convert, "check": check, "schema": schema,
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		_, _ = io.WriteString(errs, usage)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		_, _ = io.WriteString(out, usage)
		return exitOK
	}
	command, known := commands[args[0]]
	if !known {
		_, _ = fmt.Fprintf(errs, "elasticron: %q is not a command\n\n%s", args[0], usage)
		return exitUsage
	}
	return command(ctx, args[1:], out, errs)
}

// flags are those of a command whose help is text. parse returns the other arguments, between or
// behind which flags may stand ("--" ends them), and reports the exit code when the command is over
// already.
func flags(name, text string, out, errs io.Writer) (set *flag.FlagSet, parse func(args []string) (others []string, code int, over bool)) {
	set = flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(errs)
	set.Usage = func() {}
	return set, func(args []string) ([]string, int, bool) {
		help := func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "%s\n", text)
			set.SetOutput(w)
			set.PrintDefaults()
		}
		switch others, err := anywhere(set, args); err {
		case nil:
			return others, exitOK, false
		case flag.ErrHelp: //nolint:errorlint // the package returns it as it is
			help(out)
			return nil, exitOK, true
		default:
			help(errs)
			return nil, exitUsage, true
		}
	}
}

// anywhere parses flags wherever they stand, where package flag stops at the first other argument.
func anywhere(set *flag.FlagSet, args []string) (others []string, err error) {
	for {
		if err := set.Parse(args); err != nil {
			return nil, err
		}
		rest := set.Args()
		switch parsed := len(args) - len(rest); {
		case len(rest) == 0:
			return others, nil
		case parsed > 0 && args[parsed-1] == "--":
			return append(others, rest...), nil
		}
		others, args = append(others, rest[0]), rest[1:]
	}
}

func failed(errs io.Writer, err error) int {
	_, _ = fmt.Fprintln(errs, err)
	return exitFailed
}
