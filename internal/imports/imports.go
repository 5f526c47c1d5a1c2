// Package imports says which package of the project may import which, and finds
// the imports that break it. Its test runs over the whole project; [Rules] is
// the table to read, and the one of ARCHITECTURE.md in another form.
package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// A Package is what `go list -deps -json` tells of one package. Test files do
// not count: a test may import anything.
type Package struct {
	ImportPath string   `json:"ImportPath"` //nolint:tagliatelle // the go command's spelling, here and below
	Standard   bool     `json:"Standard"`   //nolint:tagliatelle // as above
	Imports    []string `json:"Imports"`    //nolint:tagliatelle // direct
	Deps       []string `json:"Deps"`       //nolint:tagliatelle // all, direct and indirect
}

// A Rule says what the packages that match may import besides the standard
// library. A pattern is a path relative to the module, or that of another
// module; "/..." at its end covers everything below it, and itself.
type Rule struct {
	Packages string
	// May are the patterns of direct imports.
	May []string
	// Never are patterns that must not be reached in any number of steps.
	Never []string
	// Anything lifts May.
	Anything bool
}

// Load lists the packages below dir and all that they import.
func Load(ctx context.Context, dir string) ([]Package, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p Package
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// Check returns one line for each import that rules do not allow in the module,
// sorted. The first rule that matches a package is its rule; a package without
// one is a violation too, so that nobody forgets to think about it.
func Check(module string, packages []Package, rules []Rule) []string {
	c := checker{module: module, standard: map[string]bool{"C": true}}
	for _, p := range packages {
		c.standard[p.ImportPath] = p.Standard
	}
	var violations []string
	for _, p := range packages {
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			violations = append(violations, c.check(p, rules)...)
		}
	}
	slices.Sort(violations)
	return violations
}

type checker struct {
	module   string
	standard map[string]bool
}

func (c checker) check(p Package, rules []Rule) []string {
	name := c.relative(p.ImportPath)
	i := slices.IndexFunc(rules, func(r Rule) bool { return matches(r.Packages, name) })
	if i < 0 {
		return []string{name + " has no rule: add it to the table"}
	}
	rule := rules[i]
	var violations []string
	for _, imported := range p.Imports {
		if other := c.relative(imported); !rule.Anything && !c.standard[imported] && !anyMatches(rule.May, other) {
			violations = append(violations, fmt.Sprintf("%s imports %s", name, other))
		}
	}
	for _, reached := range p.Deps {
		if other := c.relative(reached); !c.standard[reached] && anyMatches(rule.Never, other) {
			violations = append(violations, fmt.Sprintf("%s reaches %s", name, other))
		}
	}
	return violations
}

// relative strips the module's path; paths of others stay whole.
func (c checker) relative(importPath string) string {
	return strings.TrimPrefix(importPath, c.module+"/")
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// matches knows "/..." at the end and path.Match elsewhere.
func matches(pattern, name string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
