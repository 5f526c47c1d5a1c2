package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/elasticron/elasticron"

// A rule is what a package, or all below a folder, may depend on.
type rule struct {
	of string // below the module; "..." for all below
	// allow are prefixes of import paths of this module and of third parties
	// that may be among all dependencies. The standard library always may.
	allow []string
	// direct are the packages of this module that may be imported directly; nil
	// for whatever allow allows.
	direct []string
}

const uuid = "github.com/google/uuid"

var cronAndYAML = []string{"github.com/robfig/cron/v3", "go.yaml.in/yaml/v4"}

var etcdClient = []string{
	"go.etcd.io/etcd/client", "go.etcd.io/etcd/api", "go.uber.org/", "google.golang.org/", "github.com/", "golang.org/x/",
}

// rules is the table of ARCHITECTURE.md, in words that a machine can check.
var rules = []rule{
	{of: "registry"},
	{of: "strategy"},
	{of: "registry/internal/latch", allow: []string{module + "/registry", uuid}},
	{of: "registry/memory", allow: []string{module + "/registry", uuid}, direct: []string{"registry", "registry/internal/latch"}},
	{of: "registry/etcd", allow: append([]string{module + "/registry"}, etcdClient...), direct: []string{"registry", "registry/internal/latch"}},
	{of: "registry/conformance", allow: []string{module + "/registry"}, direct: []string{"registry"}},
	{of: "internal/layout", allow: append([]string{module + "/registry"}, cronAndYAML[1]), direct: []string{"registry"}},
	{of: "core", allow: append([]string{module + "/registry", module + "/strategy", module + "/internal/layout", module + "/core/internal"}, cronAndYAML...),
		direct: []string{"registry", "strategy", "internal/layout", "core/internal/..."}},
	{of: "core/internal/alarm"},
	{of: "core/internal/lane"},
	{of: "core/internal/ledger"},
	{of: "core/internal/schedule", allow: cronAndYAML[:1]},
	{of: "core/internal/execution", allow: []string{module + "/registry", module + "/core/internal"}, direct: []string{"registry", "core/internal/lane", "core/internal/ledger"}},
	{of: "core/internal/sharding", allow: []string{module + "/registry", module + "/core/internal"}, direct: []string{"registry", "core/internal/ledger"}},
}

// forbidden are dependencies that no rule may allow by a prefix.
var forbidden = map[string][]string{
	"core":                 {module + "/registry/"},
	"internal/layout":      {module + "/registry/"},
	"registry/etcd":        {"go.etcd.io/etcd/server", module + "/core"},
	"registry/memory":      {module + "/core", module + "/registry/etcd"},
	"registry/conformance": {module + "/registry/"},
}

type listed struct {
	ImportPath string   `json:"ImportPath"` //nolint:tagliatelle // the go command's spelling
	Standard   bool     `json:"Standard"`   //nolint:tagliatelle // as above
	Imports    []string `json:"Imports"`    //nolint:tagliatelle // as above
	Deps       []string `json:"Deps"`       //nolint:tagliatelle // as above
}

func TestImportDirections(t *testing.T) {
	packages := list(t)
	for _, r := range rules {
		p, known := packages[module+"/"+r.of]
		require.True(t, known, "no package %s", r.of)
		for _, fault := range faults(packages, p, r) {
			t.Error(fault)
		}
	}
}

// The checker itself is proved: packages that break each kind of rule are found.
func TestTheCheckerFindsViolations(t *testing.T) {
	packages := list(t)
	core := packages[module+"/core"]
	core.Deps = append(core.Deps, module+"/registry/etcd")
	core.Imports = append(core.Imports, module+"/registry/etcd")
	require.NotEmpty(t, faults(packages, core, ruleOf("core")))
	reg := packages[module+"/registry"]
	reg.Deps = append(reg.Deps, "go.yaml.in/yaml/v4")
	require.NotEmpty(t, faults(packages, reg, ruleOf("registry")))
	adapter := packages[module+"/registry/etcd"]
	adapter.Deps = append(adapter.Deps, "go.etcd.io/etcd/server/v3/embed")
	require.NotEmpty(t, faults(packages, adapter, ruleOf("registry/etcd")))
}

func ruleOf(name string) rule {
	for _, r := range rules {
		if r.of == name {
			return r
		}
	}
	return rule{}
}

func faults(packages map[string]listed, p listed, r rule) []string {
	var found []string
	for _, dep := range p.Deps {
		if packages[dep].Standard || !strings.Contains(dep, ".") || strings.HasPrefix(dep, "vendor/") {
			continue
		}
		if !hasPrefix(dep, r.allow) || hasPrefix(dep, forbidden[r.of]) {
			found = append(found, r.of+" must not depend on "+dep)
		}
	}
	for _, imp := range p.Imports {
		own, inModule := strings.CutPrefix(imp, module+"/")
		if inModule && r.direct != nil && !matches(own, r.direct) {
			found = append(found, r.of+" must not import "+imp)
		}
	}
	return found
}

func hasPrefix(path string, prefixes []string) bool {
	for _, p := range prefixes {
		// A prefix that ends with "/" means only what is below it.
		if path == p || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

func matches(path string, patterns []string) bool {
	for _, p := range patterns {
		if below, all := strings.CutSuffix(p, "/..."); path == p || (all && strings.HasPrefix(path, below+"/")) {
			return true
		}
	}
	return false
}

// list asks the go command for every package of the module and all they need.
func list(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", module+"/...")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	packages := map[string]listed{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages[p.ImportPath] = p
	}
}
