package core_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
)

var update = flag.Bool("update", false, "write the golden files")

// The tree that a fixed scenario leaves is the same on every backend: nothing in
// core depends on one.
func TestTheKeyTreeIsTheSameOnEveryBackend(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := core.JobConfig{
			Name: "report", Cron: "0 0 2 * * ?", TimeZone: "Asia/Shanghai", Shards: 3, JobParam: "daily",
			ItemParams: map[int]string{0: "north", 1: "south"}, Description: "the example of the golden tree",
		}
		a := b.start("a", newWitness(), cfg)
		c := b.start("c", newWitness(), cfg, core.WithIP("127.0.0.2"))
		b.until("shared", func() bool { return allOwned(3, a, c) && len(a.job().Items) >= 1 && len(c.job().Items) >= 1 })
		b.set(a, b.path(a, "sharding/1/disabled"), "")
		ses := b.open(a)
		var tree string
		b.until("one member leads", func() bool {
			tree = normal(b, walk(b, ses, "/"), a, c)
			return strings.Count(tree, `"LEADER"`) == 2
		})
		golden := "testdata/tree.golden"
		if *update {
			require.NoError(b, os.WriteFile(golden, []byte(tree), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(b, err)
		require.Empty(b, cmp.Diff(string(want), tree))
	})
}

// walk writes one line for each node below path.
func walk(b *bed, ses registry.Session, path string) string {
	var out strings.Builder
	names, err := ses.Children(b.Context(), path)
	require.NoError(b, err)
	for _, name := range names {
		child := strings.TrimSuffix(path, "/") + "/" + name
		nodes, err := ses.Get(b.Context(), child)
		require.NoError(b, err)
		mark := "P"
		if nodes[0].Ephemeral {
			mark = "E"
		}
		fmt.Fprintf(&out, "%s %s %q\n", child, mark, nodes[0].Value)
		out.WriteString(walk(b, ses, child))
	}
	return out.String()
}

var (
	stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	marks  = regexp.MustCompile(`(/notices/\S+) E "[^"]+? \d+\\n\d+\\n\{\\"epoch.*"`)
	leads  = regexp.MustCompile(`(/leader/election/instance|/term) E "([^" ]*)(?: \d+)?"`)
	zones  = regexp.MustCompile(`,\\"zone\\":\\"[^\\]*\\"`)
	hosts  = regexp.MustCompile(`,\\"host\\":\\"[^\\]*\\"`)
)

// normal replaces what differs from run to run: namespace, lives, times, which of
// the two leads, and how often it has.
func normal(b *bed, tree string, ins ...*instance) string {
	b.Helper()
	tree = strings.ReplaceAll(tree, "/"+b.ns, "/NS")
	for _, in := range ins {
		id := in.job().Instance
		tree = strings.ReplaceAll(tree, id, id[:strings.LastIndex(id, "-")]+"-LIFE")
	}
	if both := leads.FindAllStringSubmatch(tree, -1); len(both) == 2 && both[0][2] == both[1][2] {
		tree = leads.ReplaceAllString(tree, `$1 E "LEADER"`)
	}
	tree = zones.ReplaceAllString(tree, `,\"zone\":\"ZONE\"`)
	tree = hosts.ReplaceAllString(tree, `,\"host\":\"HOST\"`)
	tree = marks.ReplaceAllString(tree, `$1 E "LEADER N\nVERSION\nLEDGER"`)
	return stamps.ReplaceAllString(tree, "TIME")
}
