package imports

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const module = "github.com/elasticron/elasticron"

func TestProject(t *testing.T) {
	packages, err := Load(t.Context(), filepath.Join("..", ".."))
	require.NoError(t, err)
	for _, must := range []string{"registry", "registry/etcd", "strategy", "core", "internal/layout"} {
		require.True(t, listed(packages, module+"/"+must), "%s was not listed: the check is void", must)
	}
	for _, violation := range Check(module, packages, Rules) {
		t.Error(violation)
	}
}

func listed(packages []Package, importPath string) bool {
	for _, p := range packages {
		if p.ImportPath == importPath {
			return true
		}
	}
	return false
}

// A project with planted violations: the check must find exactly these.
func TestPlanted(t *testing.T) {
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	source := func(folder, name string, imported ...string) {
		text := "package " + name + "\n"
		for _, i := range imported {
			text += "import _ \"" + i + "\"\n"
		}
		write(folder+"/a.go", text)
	}
	write("go.mod", "module "+module+"\n\ngo 1.26.0\n")
	source("registry", "registry", "fmt")
	source("strategy", "strategy", module+"/registry")
	source("registry/memory", "memory", module+"/registry")
	source("registry/etcd", "etcd", module+"/registry", module+"/registry/memory")
	source("core/internal/workqueue", "workqueue", module+"/registry/memory")
	source("core", "core", module+"/registry", module+"/core/internal/workqueue")
	source("examples/hello", "main", module+"/core", module+"/registry/memory")
	source("cmd/elasticron", "main", module+"/core")
	source("util", "util")
	// What tests import does not count.
	write("core/a_test.go", "package core\nimport _ \""+module+"/registry/etcd\"\n")

	packages, err := Load(t.Context(), dir)
	require.NoError(t, err)
	want := []string{
		"core reaches registry/memory",
		"core/internal/workqueue imports registry/memory",
		"core/internal/workqueue reaches registry/memory",
		"registry/etcd imports registry/memory",
		"strategy imports registry",
		"util has no rule: add it to the table",
	}
	if diff := cmp.Diff(want, Check(module, packages, Rules)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	rules := []Rule{
		{Packages: "a", May: []string{"b", "x.org/m/..."}, Never: []string{"x.org/server/..."}},
		{Packages: "b/...", Anything: true},
	}
	for _, tc := range []struct {
		name    string
		imports []string
		deps    []string
		want    []string
	}{
		{name: "standard library", imports: []string{"fmt"}},
		{name: "allowed", imports: []string{"m/b", "x.org/m/deep/er", "x.org/m"}},
		{name: "not below", imports: []string{"m/b/c"}, want: []string{"a imports b/c"}},
		{name: "another module", imports: []string{"x.org/mm"}, want: []string{"a imports x.org/mm"}},
		{name: "indirect", imports: []string{"m/b"}, deps: []string{"x.org/server/embed"}, want: []string{"a reaches x.org/server/embed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			packages := []Package{{ImportPath: "fmt", Standard: true}, {ImportPath: "m/a", Imports: tc.imports, Deps: tc.deps}, {ImportPath: "m/b/c"}}
			require.Equal(t, tc.want, Check("m", packages, rules))
		})
	}
}

func TestLoadError(t *testing.T) {
	_, err := Load(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "go list: exit status 1: ")
}
