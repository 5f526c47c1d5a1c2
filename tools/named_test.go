package tools

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	testNamed = regexp.MustCompile("`([a-z][a-z/0-9]*)`:|\\b((?:Test|Fuzz)[A-Z]\\w*)(…?)")
	row       = regexp.MustCompile(`(?m)^- `)
	numbered  = regexp.MustCompile(`^(\d+) \(#`)
)

// testsOf are the tests of the repository, by package.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	require.NoError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", filepath.Dir(name))
		dir := filepath.ToSlash(rel)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[dir] = append(tests[dir], m[1])
		}
		return err
	}))
	require.Greater(t, len(tests["core"]), 50, "the tests were not found: the check is void")
	return tests
}

// unknown are the tests that a text names and that are not there. A package in backticks and
// a colon, at any depth below the repository's root or below core/internal, goes before its
// tests; without one a test may stand in any. An ellipsis is for all that begin so.
func unknown(text string, tests map[string][]string) (names []string) {
	in := ""
	for _, m := range testNamed.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			if in = m[1]; len(tests[in]) == 0 {
				in = path.Join("core/internal", in)
			}
			continue
		}
		is := func(name string) bool { return name == m[2] || (m[3] != "" && strings.HasPrefix(name, m[2])) }
		found := slices.ContainsFunc(tests[in], is)
		for _, all := range tests {
			found = found || (in == "" && slices.ContainsFunc(all, is))
		}
		if !found {
			names = append(names, strings.TrimSpace(in+" "+m[2]))
		}
	}
	return names
}

// rows are those of a document's section.
func rows(t *testing.T, document, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", document))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, found, "%s has no section %q", document, section)
	of, _, _ := strings.Cut(after, "\n## ")
	list := row.Split(of, -1)[1:]
	for i, r := range list { // what follows the list is none of its last row
		list[i], _, _ = strings.Cut(r, "\n\n")
	}
	return list
}

// Whoever reads which test holds something finds that test.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	tests := testsOf(t)
	for _, r := range rows(t, "ARCHITECTURE.md", "Findings, and the tests that hold them") {
		for of := range strings.SplitSeq(r, ";") {
			require.Empty(t, unknown(anywhere(of), tests), r)
		}
	}
	for _, section := range []string{"ElasticJob", "Other schedulers"} {
		for _, r := range rows(t, "docs/defects.md", section) {
			require.Empty(t, unknown(r, tests), r)
			held := strings.Contains(r, "Test") || strings.Contains(r, "Fuzz")
			said := slices.ContainsFunc([]string{"cannot occur", "with failover", "with guarantee", "with requests", "later"},
				func(why string) bool { return strings.Contains(r, why) })
			require.True(t, held || said, "neither a test nor a reason: %s", r)
		}
	}
}

// anywhere drops packages: findings name several of them for one test, and files beside.
func anywhere(text string) string { return strings.ReplaceAll(text, "`", "") }

// Each defect has its row.
func TestEveryDefectHasARow(t *testing.T) {
	var want, got []string
	for n := 1; n <= 39; n++ {
		if n != 38 {
			want = append(want, strconv.Itoa(n))
		}
	}
	for _, r := range rows(t, "docs/defects.md", "ElasticJob") {
		m := numbered.FindStringSubmatch(r)
		require.NotNil(t, m, r)
		got = append(got, m[1])
	}
	require.Equal(t, want, got)
	require.Len(t, rows(t, "docs/defects.md", "Other schedulers"), 19, "the themes of complaints")
}

// The check itself finds what is not there.
func TestUnknownTestsAreFound(t *testing.T) {
	tests := map[string][]string{"core": {"TestA", "TestFinding19X"}, "core/internal/items": {"TestB"}, "admin": {"TestC"}}
	for text, want := range map[string]string{
		"TestA and TestB": "[]", "`core`: TestA, TestFinding19…. `items`: TestB": "[]", "`admin`: TestC.": "[]",
		"TestD": "[TestD]", "`core`: TestC": "[core TestC]", "`nowhere`: TestA": "[core/internal/nowhere TestA]",
		"`core`: TestFinding20…": "[core TestFinding20]", "`core`: TestFinding19": "[core TestFinding19]",
	} {
		require.Equal(t, want, fmt.Sprint(unknown(text, tests)), text)
	}
}
