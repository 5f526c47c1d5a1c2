package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/elasticron/elasticron/config"
)

const checkHelp = `elasticron check FILE

Reads a file as a program would, Elasticron's or ElasticJob's, and says all that is wrong, a line for
each. Environment variables count. Names that a program brings (strategies, kinds of jobs, error
handlers, schemes of registries) are not known here; the registry is not asked.
`

func check(_ context.Context, args []string, out, errs io.Writer) int {
	set, parse := flags("check", checkHelp, out, errs)
	if code, over := parse(args); over {
		return code
	}
	if set.NArg() != 1 {
		_, _ = fmt.Fprintf(errs, "elasticron check: give one file\n\n%s\n", checkHelp)
		return exitUsage
	}
	cfg, err := config.Load(set.Arg(0))
	if err != nil {
		return failed(errs, err)
	}
	for _, n := range cfg.Notes() {
		_, _ = fmt.Fprintf(errs, "note: %s\n", n)
	}
	url, _ := cfg.Registry.URL() // Load has read it
	if scheme, _, _ := strings.Cut(url, "://"); !slices.Contains(config.Schemes(), scheme) {
		_, _ = fmt.Fprintf(errs, "note: registry.url: the scheme %s is none of Elasticron's own (%s); the program must import an adapter that has it\n",
			scheme, strings.Join(config.Schemes(), ", "))
	}
	_, _ = fmt.Fprintln(out, cfg)
	return exitOK
}

const schemaHelp = `elasticron schema

Prints the JSON Schema of the file, with which an editor completes and checks it.
`

func schema(_ context.Context, args []string, out, errs io.Writer) int {
	set, parse := flags("schema", schemaHelp, out, errs)
	if code, over := parse(args); over {
		return code
	}
	if set.NArg() != 0 {
		_, _ = fmt.Fprintf(errs, "elasticron schema: takes no argument\n\n%s\n", schemaHelp)
		return exitUsage
	}
	if _, err := out.Write(config.Schema()); err != nil {
		return failed(errs, err)
	}
	return exitOK
}
