package config

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("jobs.schema.json", doc))
	s, err := c.Compile("jobs.schema.json")
	require.NoError(t, err)
	return s
}

func TestSchemaAndReferenceAreGenerated(t *testing.T) {
	for name, want := range map[string]string{"jobs.schema.json": string(Schema()), "configuration.md": Reference()} {
		got, err := os.ReadFile(filepath.Join("..", "docs", name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), "go generate ./config, and commit docs/%s", name)
	}
}

// Every file of the project that is one validates, and so does what uses every key.
func TestExamplesValidate(t *testing.T) {
	schema := compiled(t)
	files := map[string][]byte{"every": []byte(every), "defaults": []byte("registry: {url: a}\ndefaults: {shardingTotalCount: 1, timeZone: UTC, props: {a: b}}\njobs: {a: {cron: x}, b: {cron: x, shardingTotalCount: 2}}\n"),
		"retries": []byte("registry: {url: a, retry: {base: 1s, max: '${MAX:-3s}', retries: 3}, tls: {enabled: '${T}'}, passwordEnv: PW}\n")}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".yaml") && !strings.Contains(path, "testdata") {
			var text []byte
			if text, err = os.ReadFile(path); err == nil && regexp.MustCompile(`(?m)^registry:`).Match(text) {
				files[path] = text
			}
		}
		return err
	}))
	require.Contains(t, files, filepath.Join("..", "examples", "fromfile", "jobs.yaml"))
	require.Contains(t, files, filepath.Join("..", "examples", "swap", "swap.yaml"))
	for _, page := range []string{"README.md", "README.zh.md", "docs/configuration.md"} {
		text, err := os.ReadFile(filepath.Join("..", page))
		require.NoError(t, err)
		found := 0
		for _, m := range regexp.MustCompile("(?s)```yaml\n(registry:.*?)```").FindAllSubmatch(text, -1) {
			files[page], found = m[1], found+1
		}
		require.Positive(t, found, "%s has no example", page)
	}
	for name, text := range files {
		require.NoError(t, schema.Validate(plainValue(t, text)), name)
	}
	for _, bad := range []string{
		"jobs: {}", "registry: {}", "registry: {url: a, password: x}", "registry: {url: a}\njobs: {a: {cron: x}}",
		"registry: {url: a}\njobs: {a: {cron: x, shardingTotalCount: many}}", "registry: {url: a}\njobs: {a: {cron: x, shardingTotalCount: 1, shards: 1}}",
		"registry: {url: a}\njobs: {a: {cron: x, shardingTotalCount: 1, misfire: some}}", "registry: {url: a}\njobs: {a: {cron: x, shardingTotalCount: 1, timeout: 90}}",
		"registry: {url: a}\njobs: {a: {cron: x, shardingTotalCount: 1, gap: jump}}", "registry: {url: a}\ndefaults: {cron: x}",
		"registry: {url: a}\ndefaults: {gap: jump}", "registry: {url: a}\ndefaults: {gap: skip}\njobs: {a: {cron: x}}",
	} {
		require.Error(t, schema.Validate(plainValue(t, []byte(bad))), bad)
	}
}

// plainValue is a file as JSON has it: keys are texts.
func plainValue(t *testing.T, text []byte) any {
	t.Helper()
	var root yaml.Node
	require.NoError(t, yaml.Load(text, &root))
	var of func(n *yaml.Node) any
	of = func(n *yaml.Node) any {
		switch n.Kind {
		case yaml.DocumentNode:
			return of(n.Content[0])
		case yaml.MappingNode:
			m := map[string]any{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				m[n.Content[i].Value] = of(n.Content[i+1])
			}
			return m
		case yaml.SequenceNode, yaml.AliasNode, yaml.StreamNode:
			return nil
		case yaml.ScalarNode:
		}
		var v any
		require.NoError(t, n.Decode(&v))
		return v
	}
	return of(&root)
}

// Every key is described, in the schema and in the reference.
func TestEveryKeyIsDescribed(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	keys := 0
	var look func(path string, v any)
	look = func(path string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		if properties, ok := m["properties"].(map[string]any); ok {
			for key, p := range properties {
				keys++
				if _, same := p.(map[string]any)["$ref"]; same {
					continue // described where it stands first
				}
				text, _ := p.(map[string]any)["description"].(string)
				require.Regexp(t, `^[A-Z].{5,}\.$`, text, "%s.%s", path, key)
				require.NotContains(t, text, "`")
				require.Contains(t, Reference(), key)
			}
		}
		for key, inner := range m {
			if key != "if" && key != "else" { // conditions, not keys
				look(path+"."+key, inner)
			}
		}
	}
	look("", doc)
	require.Equal(t, 3+len(registryKeys)+len(tlsAbout)+len(retryAbout)+2*(len(fields)+len(works))-1, keys)
	for _, k := range registryKeys {
		require.Contains(t, Reference(), "registry."+k)
	}
}

func TestLinesOfTheReference(t *testing.T) {
	for line := range strings.SplitSeq(Reference(), "\n") {
		require.LessOrEqual(t, len([]rune(line)), 120, line)
	}
}

// What the reference lists among props is what the packages that read them ask for.
func TestTheSettingsAmongProps(t *testing.T) {
	for folder, list := range map[string][]setting{"job": kindSettings, "errorhandler": handlerSettings} {
		asked := map[string]bool{}
		require.NoError(t, filepath.WalkDir(filepath.Join("..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`"((?:script|http|notify|webhook|email|slack|dingtalk|wechat|feishu)\.[A-Za-z.]+)"`).FindAllSubmatch(text, -1) {
				asked[string(m[1])] = true
			}
			return err
		}))
		for _, prefix := range []string{"slack", "dingtalk", "wechat", "feishu"} {
			asked[prefix+".webhook"] = folder == "errorhandler" // open(s, prefix)
		}
		for name, is := range asked {
			name = strings.TrimSuffix(name, "Env")
			require.True(t, !is || slices.ContainsFunc(list, func(s setting) bool { return s.name == name }), "%s is not listed", name)
		}
		for _, s := range list {
			require.True(t, asked[s.name] || s.name == headerPrefix+"NAME", "nobody asks for %s", s.name)
		}
	}
}
