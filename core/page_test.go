package core_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxNames bounds what a person has to read of this package: constants, variables, types,
// functions and methods. It was 70 until Scheduler.Run and StartError came.
const maxNames = 74

// The page of documentation stays one that is read through, and it says what each field is.
func TestThePageIsReadThrough(t *testing.T) {
	for _, c := range []struct {
		folder string
		most   int
	}{{".", maxNames}, {"event", 0}} {
		p := pageOf(t, c.folder)
		names := 0
		values := func(of []*doc.Value) {
			for _, v := range of {
				names += len(v.Names)
			}
		}
		values(p.Consts)
		values(p.Vars)
		names += len(p.Funcs)
		for _, typ := range p.Types {
			names += 1 + len(typ.Funcs) + len(typ.Methods)
			values(typ.Consts)
			values(typ.Vars)
			requireComments(t, typ)
		}
		t.Logf("%s: %d names", p.Name, names)
		if c.most > 0 {
			require.LessOrEqual(t, names, c.most, p.Name)
		}
	}
}

func pageOf(t *testing.T, folder string) *doc.Package {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, folder+"/"+e.Name(), nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, "core")
	require.NoError(t, err)
	return p
}

// requireComments requires that every exported field has a comment of its own.
func requireComments(t *testing.T, typ *doc.Type) {
	t.Helper()
	require.NotEmpty(t, typ.Doc, typ.Name)
	ast.Inspect(typ.Decl, func(n ast.Node) bool {
		fields, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					require.NotEmpty(t, f.Doc.Text()+f.Comment.Text(), "%s.%s says nothing", typ.Name, name)
				}
			}
		}
		return true
	})
}
