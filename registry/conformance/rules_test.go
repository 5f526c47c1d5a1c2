package conformance

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of rules into docs/adapters.md")

// leastRules is how many rules the contract has had: it never has fewer.
const leastRules = 115

var (
	numbered = regexp.MustCompile(`\bR([1-9][0-9]*)\b`)
	// binding are the words by which a sentence of the contract binds an adapter.
	binding = regexp.MustCompile(`\b(?i:must|never|once|until|no later|belongs? to)\b|\bErr[A-Z][A-Za-z]*\b`)
)

// contract returns the sentences of the doc comments of package registry, by place.
func contract(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	sentences := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, comment := range docs(file) {
			for i, s := range sentencesOf(comment.Text()) {
				sentences[fmt.Sprintf("%s:%d, sentence %d", name, set.Position(comment.Pos()).Line, i+1)] = s
			}
		}
	}
	return sentences
}

// docs are the comments that go doc shows.
func docs(file *ast.File) (all []*ast.CommentGroup) {
	add := func(groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if g != nil {
				all = append(all, g)
			}
		}
	}
	add(file.Doc)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() {
				add(n.Doc)
			}
			return false
		case *ast.GenDecl:
			add(n.Doc)
		case *ast.TypeSpec:
			add(n.Doc)
			return n.Name.IsExported()
		case *ast.ValueSpec:
			add(n.Doc)
		case *ast.Field:
			add(n.Doc, n.Comment)
		}
		return true
	})
	return all
}

// sentencesOf leaves out the lines of code.
func sentencesOf(text string) (all []string) {
	var prose []string
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "\t"):
		case strings.HasPrefix(line, "#"):
			prose = append(prose, ".")
		case line == "", strings.HasPrefix(line, "  - "):
			prose = append(prose, ".", strings.TrimPrefix(line, "  - "))
		default:
			prose = append(prose, strings.TrimSpace(line))
		}
	}
	for s := range strings.SplitSeq(strings.Join(prose, " ")+" ", ". ") {
		if s = strings.Trim(s, " ."); s != "" {
			all = append(all, s)
		}
	}
	return all
}

func numbersIn(text string) (all []int) {
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		all = append(all, n)
	}
	return all
}

func TestEverySentenceThatBindsHasANumber(t *testing.T) {
	for place, s := range contract(t) {
		if s = strings.ReplaceAll(s, "at once", "immediately"); binding.MatchString(s) && len(numbersIn(s)) == 0 {
			t.Errorf("%s: %q binds an adapter and has no number", place, s)
		}
	}
}

func TestSentencesAreFound(t *testing.T) {
	got := sentencesOf("One must. Two\nnever ends (R7).\n\n\tcode must\n\n# Head\n\n  - An item (R1). More until.\n")
	require.Equal(t, []string{"One must", "Two never ends (R7)", "An item (R1)", "More until"}, got)
	require.True(t, binding.MatchString("It waits until then"))
	require.True(t, binding.MatchString("It fails with ErrClosed"))
	require.False(t, binding.MatchString("Mustard and an Error"))
}

// rules returns the numbers of the contract, in order.
func rules(t *testing.T) []int {
	t.Helper()
	var all []int
	for _, s := range contract(t) {
		all = append(all, numbersIn(s)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A rule is one that a case tries and that some broken adapter breaks.
func TestEveryRuleHasACaseAndABrokenAdapter(t *testing.T) {
	all := rules(t)
	require.GreaterOrEqual(t, len(all), leastRules, "a rule that goes is a promise that goes")
	require.Equal(t, len(all), all[len(all)-1], "numbers are 1, 2, 3 and so on")
	cases, broken := casesByRule(), brokenByRule()
	for _, n := range all {
		if len(cases[n]) == 0 {
			t.Errorf("R%d has no case", n)
		}
		if len(broken[n]) == 0 {
			t.Errorf("R%d has no broken adapter", n)
		}
	}
	for _, of := range []map[int][]string{cases, broken} {
		for n, names := range of {
			if !slices.Contains(all, n) {
				t.Errorf("R%d, of %v, is no rule of the contract", n, names)
			}
		}
	}
	for _, b := range breakages {
		for _, n := range numbersIn(b.rules) {
			if !slices.Contains(cases[n], b.caughtBy) {
				t.Errorf("an adapter with which %s breaks R%d, which %s does not try", b.rule, n, b.caughtBy)
			}
		}
		if len(numbersIn(b.rules)) == 0 {
			t.Errorf("an adapter with which %s breaks no rule", b.rule)
		}
	}
}

func TestEveryCaseTriesARule(t *testing.T) {
	for _, g := range suite() {
		for _, c := range g.cases {
			if g.name != "Harness" && len(numbersIn(c.rules)) == 0 {
				t.Errorf("%s/%s tries no rule", g.name, c.name)
			}
		}
	}
}

func casesByRule() map[int][]string {
	cases := map[int][]string{}
	for _, g := range suite() {
		for _, c := range g.cases {
			if c.store {
				continue
			}
			for _, n := range numbersIn(c.rules) {
				cases[n] = append(cases[n], g.name+"/"+c.name)
			}
		}
	}
	return cases
}

func brokenByRule() map[int][]string {
	broken := map[int][]string{}
	for _, b := range breakages {
		for _, n := range numbersIn(b.rules) {
			broken[n] = append(broken[n], b.rule)
		}
	}
	return broken
}

const (
	tablePage  = "../../docs/adapters.md"
	tableBegin = "<!-- rules: go test ./registry/conformance -run TestTableOfRules -update -->\n"
	tableEnd   = "<!-- end of rules -->\n"
)

// docs/adapters.md shows rule → cases → broken adapters, as they are.
func TestTableOfRules(t *testing.T) {
	var b strings.Builder
	cases, broken := casesByRule(), brokenByRule()
	for _, n := range rules(t) {
		wrapped(&b, fmt.Sprintf("- **R%d** %s. An adapter with which %s.", n, strings.Join(cases[n], ", "), strings.Join(broken[n], "; or ")))
	}
	page, err := os.ReadFile(tablePage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), tableBegin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(tablePage, []byte(before+tableBegin+b.String()+tableEnd+after), 0o600))
		return
	}
	require.Equal(t, table, b.String(), "run it with -update")
}

// wrapped writes an item of a list in lines of at most 120 columns.
func wrapped(b *strings.Builder, text string) {
	column := 0
	for word := range strings.FieldsSeq(text) {
		if column > 0 && column+1+len(word) > 118 {
			b.WriteString("\n  ")
			column = 2
		} else if column > 0 {
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteString("\n")
}
