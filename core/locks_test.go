package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No mutex is taken by more than one type: what takes one is a method of whom it belongs to,
// or makes it.
func TestAMutexIsTakenByItsOwnType(t *testing.T) {
	taken := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && !strings.HasPrefix(f.Name.Name, "New") {
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if owner, locks := locked(n); locks {
						taken++
						require.Equal(t, receiver(f), owner, "%s: %s takes another's mutex", set.Position(n.Pos()), f.Name.Name)
					}
					return true
				})
			}
		}
		return nil
	}))
	require.Greater(t, taken, 80)
}

// locked is x of a call x.mu.Lock().
func locked(n ast.Node) (owner string, locks bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return "", false
	}
	lock, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || (lock.Sel.Name != "Lock" && lock.Sel.Name != "RLock") {
		return "", false
	}
	if mutex, ok := lock.X.(*ast.SelectorExpr); ok {
		if x, ok := mutex.X.(*ast.Ident); ok {
			return x.Name, true
		}
	}
	return "", true
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List[0].Names) == 0 {
		return "nobody"
	}
	return f.Recv.List[0].Names[0].Name
}
