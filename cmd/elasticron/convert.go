package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
The registry is not changed. Flags may stand behind the names; "--" ends them.

To log in to the registry, give the user in the URL and the password in a variable or a file, as in
zookeeper://127.0.0.1:2181/shop?username=jo&password-env=ZK_PASSWORD (or password-file=FILE; ca=FILE,
cert=FILE, key=FILE and tls=true are for TLS), or set ELASTICRON_ZOOKEEPER_USERNAME and
ELASTICRON_ZOOKEEPER_PASSWORD (ELASTICRON_ETCD_..., ELASTICRON_POSTGRES_...). A URL with a password is
refused.

No password stands in the new file. Without -secrets it names an environment variable for each, and
you put the password there. With -secrets each is written to a file of its own in DIR, which only
you can read, and the new file names that. Which they are is said on the standard error, as is all
that is different from now on; both stand at the top of the new file too. Comments of the old file
are not carried over: they may hold a password. No file is written over, and none is written unless
all can be.
`

func convert(ctx context.Context, args []string, out, errs io.Writer) int {
	set, parse := flags("convert", convertHelp, out, errs)
	output := set.String("o", "", "write to `FILE`, which must not exist, in place of the standard output")
	secrets := set.String("secrets", "", "write the passwords to files in `DIR`")
	from := set.String("registry", "", "read the jobs from the registry at `URL`, such as zookeeper://127.0.0.1:2181/shop")
	names, code, over := parse(args)
	if over {
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
		made, err = fromRegistry(ctx, *from, names, options)
	case len(names) == 1:
		made, err = fromFile(names[0], options)
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
	name, data, err := readAll(name)
	if err != nil {
		return nil, err
	}
	return config.Convert(name, data, options)
}

// standardInput is what "-" stands for.
var standardInput io.Reader = os.Stdin

// readAll reads a file, or the standard input. It returns the name under which messages tell it.
func readAll(name string) (shown string, data []byte, err error) {
	if name == "-" {
		data, err = io.ReadAll(standardInput)
		return "stdin", data, err
	}
	data, err = os.ReadFile(name)
	return name, data, err
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

// deliver writes the new file, and the secrets, and tells what there is to know.
func deliver(made *config.Conversion, file string, out, errs io.Writer) int {
	secrets, err := distinct(made.Secrets)
	if err != nil {
		return failed(errs, err)
	}
	var targets []target
	for _, s := range secrets {
		if s.File != "" {
			targets = append(targets, target{name: s.File, data: s.Value() + "\n", mode: 0o600, fix: "give another -secrets, or remove it"})
		}
	}
	last := func() error { _, err := out.Write(made.YAML); return err }
	if file != "" {
		targets = append(targets, target{name: file, data: string(made.YAML), mode: 0o644, fix: "give another -o, or remove it"})
		last = func() error { return nil }
	}
	if err := writeNew(targets, last); err != nil {
		return failed(errs, err)
	}
	for _, s := range made.Secrets {
		_, _ = fmt.Fprintf(errs, "secret: %s\n", s)
	}
	code := tell(errs, made.Notes)
	for _, p := range made.Problems {
		_, _ = fmt.Fprintf(errs, "wrong: %v\n", p)
		code = exitLost
	}
	return code
}

// distinct leaves out secrets that stand where the same one stands already, and refuses two in one place.
func distinct(secrets []config.Secret) (all []config.Secret, err error) {
	first := map[string]config.Secret{}
	var problems []error
	for _, s := range secrets {
		place, fix := s.File, "convert without -secrets, or rename the job or the prop"
		if place == "" {
			place, fix = s.Variable, "convert with -secrets, or rename the job or the prop"
		}
		other, taken := first[place]
		switch {
		case !taken:
			first[place] = s
			all = append(all, s)
		case other.Value() != s.Value():
			problems = append(problems, fmt.Errorf("%s, where another secret goes (line %d: %s); %s", s, other.Line, other.Field, fix))
		}
	}
	return all, errors.Join(problems...)
}
