package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/registry"
)

const convertHelp = `elasticron convert [-o FILE] [-secrets DIR] FILE
elasticron convert -registry URL [-o FILE] [-secrets DIR] [JOB...]

Makes Elasticron's YAML of ElasticJob's. FILE is the application.yml of a Spring Boot program ("-"
is the standard input); its block elasticjob, with regCenter and jobs, is read. With -registry the
jobs are read where ElasticJob has written them: 1.x one node for each field, 2.x JSON, 3.x YAML.
The registry is not changed.

No password stands in the new file. Without -secrets it names an environment variable for each, and
you put the password there. With -secrets each is written to a file of its own in DIR, which only
you can read, and the new file names that. Which they are is said on the standard error, as is all
that is different from now on; both stand at the top of the new file too. Comments of the old file
are not carried over: they may hold a password.
`

func convert(ctx context.Context, args []string, out, errs io.Writer) int {
	set, parse := flags("convert", convertHelp, out, errs)
	output := set.String("o", "", "write to `FILE`, which must not exist, in place of the standard output")
	secrets := set.String("secrets", "", "write the passwords to files in `DIR`")
	from := set.String("registry", "", "read the jobs from the registry at `URL`, such as zookeeper://127.0.0.1:2181/shop")
	if code, over := parse(args); over {
		return code
	}
	var options config.ConvertOptions
	if *secrets != "" {
		dir, err := filepath.Abs(*secrets)
		if err != nil {
			return failed(errs, err)
		}
		options.SecretDir = dir
	}
	var made *config.Conversion
	var err error
	switch {
	case *from != "":
		made, err = fromRegistry(ctx, *from, set.Args(), options)
	case set.NArg() == 1:
		made, err = fromFile(set.Arg(0), options)
	default:
		_, _ = fmt.Fprintf(errs, "elasticron convert: give one file, or -registry\n\n%s\n", convertHelp)
		return exitUsage
	}
	if err != nil {
		return failed(errs, err)
	}
	return deliver(made, *output, out, errs)
}

func fromFile(name string, options config.ConvertOptions) (*config.Conversion, error) {
	data, err := readAll(name)
	if err != nil {
		return nil, err
	}
	return config.Convert(name, data, options)
}

func readAll(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

func fromRegistry(ctx context.Context, url string, jobs []string, options config.ConvertOptions) (*config.Conversion, error) {
	reg, err := registry.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer reg.Close()
	store, err := reg.OpenStore(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Close(ctx)
	return config.ConvertRegistry(ctx, store, reg.Namespace(), jobs, options)
}

// deliver writes the secrets first, so that no new file names one that is missing.
func deliver(made *config.Conversion, file string, out, errs io.Writer) int {
	for _, s := range made.Secrets {
		if s.File == "" {
			continue
		}
		if err := writeNew(s.File, []byte(s.Value()+"\n"), 0o600); err != nil {
			return failed(errs, err)
		}
	}
	if file == "" {
		if _, err := out.Write(made.YAML); err != nil {
			return failed(errs, err)
		}
	} else if err := writeNew(file, made.YAML, 0o644); err != nil {
		return failed(errs, err)
	}
	code := exitOK
	for _, s := range made.Secrets {
		_, _ = fmt.Fprintf(errs, "secret: %s\n", s)
	}
	for _, n := range made.Notes {
		word := "note"
		if n.Lost {
			word, code = "lost", exitLost
		}
		_, _ = fmt.Fprintf(errs, "%s: %s\n", word, n)
	}
	for _, p := range made.Problems {
		_, _ = fmt.Fprintf(errs, "wrong: %v\n", p)
		code = exitLost
	}
	return code
}

// writeNew writes a file that does not exist, with its folder.
func writeNew(name string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
