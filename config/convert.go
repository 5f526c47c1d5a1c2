package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ConvertOptions say where Convert puts what it takes out of a file.
type ConvertOptions struct {
	// SecretDir is the folder of the files that will hold the passwords, as the new file names
	// it. "" names environment variables instead.
	SecretDir string
}

// A Conversion is what Convert makes of a file of ElasticJob.
type Conversion struct {
	// YAML is the new file. No secret and no comment of the old one stands in it.
	YAML []byte
	// Secrets were taken out. Whoever keeps YAML puts each where it says.
	Secrets []Secret
	// Notes say what is different from now on, in the order of the old file.
	Notes []Note
	// Problems are what Load would refuse in YAML, with the places in the old file. A variable
	// of the environment that is not set is none.
	Problems []*FieldError
}

// A Secret is a password that stood in a file, and the place where its reader looks for it now.
type Secret struct {
	// Line is where it stood, under the key Field.
	Line  int
	Field string
	// Variable is the environment variable that is to hold it, or File the file.
	Variable, File string

	value  string
	column int
}

// Value is the secret itself, which no other method shows.
func (s Secret) Value() string { return s.value }

// String says what was taken out, and where it belongs.
func (s Secret) String() string {
	if s.File != "" {
		return fmt.Sprintf("line %d: %s: goes into the file %s", s.Line, s.Field, s.File)
	}
	return fmt.Sprintf("line %d: %s: goes into the environment variable %s", s.Line, s.Field, s.Variable)
}

// Format writes String for every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// A Note says what is different here from what a file of ElasticJob asks for.
type Note struct {
	// Line is where it stands in the old file, under the key Field; 0 for something that does
	// not stand there.
	Line  int
	Field string
	// Text says what is different, and why.
	Text string
	// Lost says that it has no counterpart, so that nothing does from now on what it asked for.
	Lost bool
}

// String is one line.
func (n Note) String() string {
	if n.Line == 0 {
		return fmt.Sprintf("%s: %s", n.Field, n.Text)
	}
	return fmt.Sprintf("line %d: %s: %s", n.Line, n.Field, n.Text)
}

// Convert makes this package's form of ElasticJob's YAML: the block elasticjob of a Spring Boot
// application, with regCenter and jobs. Spring's ways of writing a key (regCenter, reg-center,
// elasticjob.reg-center.namespace) and a placeholder (${NAME:default}) are understood. file is
// the name of the old file, for errors. The error is an *Error: data is no such file.
func Convert(file string, data []byte, options ConvertOptions) (*Conversion, error) {
	doc, problem := document(data)
	if problem != nil {
		problem.File = file
		return nil, &Error{Problems: []*FieldError{problem}}
	}
	c := newConverter(file, options)
	if !foreignFile(doc) {
		c.add(nil, "", "has no block elasticjob with regCenter and jobs; give the application.yml of a Spring Boot program (one of .properties is not read)")
		return nil, asError(c.problems)
	}
	return c.finish(c.convert(doc))
}

// finish writes the new file and checks it.
func (c *converter) finish(tree *yaml.Node) (*Conversion, error) {
	if err := asError(c.problems); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.notes, func(a, b Note) int { return a.Line - b.Line })
	text, err := yaml.Dump(tree, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("config: convert: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made of %s by elasticron convert.\n", oneLine(filepath.Base(c.file)))
	for _, s := range c.secrets {
		fmt.Fprintf(&b, "# - %s\n", s)
	}
	for _, n := range c.notes {
		fmt.Fprintf(&b, "# - %s\n", n)
	}
	b.Write(text)
	out := &Conversion{YAML: b.Bytes(), Secrets: c.secrets, Notes: c.notes}
	check := &reader{file: c.file, dir: filepath.Dir(c.file)}
	check.root(tree)
	for _, p := range check.problems {
		if !errors.Is(p, errUnset) {
			out.Problems = append(out.Problems, p)
		}
	}
	if err := asError(out.Problems); err != nil {
		out.Problems = err.(*Error).Problems //nolint:errorlint,forcetypeassert // it was made a line above
	}
	return out, nil
}

// foreignFile reports whether a file is ElasticJob's.
func foreignFile(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	foreign := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i].Value
		head, _, _ := strings.Cut(key, ".")
		switch word := normal(head); {
		case key == "registry" || key == "jobs" && !foreign && !hasKey(root, "regcenter"):
			return false
		case word == "elasticjob" || word == "regcenter":
			foreign = true
		}
	}
	return foreign
}

// hasKey reports whether a mapping has the key in any spelling.
func hasKey(n *yaml.Node, word string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if normal(n.Content[i].Value) == word {
			return true
		}
	}
	return false
}
