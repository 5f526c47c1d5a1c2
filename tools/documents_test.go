package tools

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// columns is how long a line of a document may be, in characters.
const columns = 120

// printed are pages whose tables a program prints, and nobody writes.
var printed = map[string]bool{"docs/benchmarks.md": true}

// Whoever reads a document beside the code sees whole lines.
func TestDocumentsKeepTheirColumns(t *testing.T) {
	root := ".."
	pages := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md" || printed[filepath.ToSlash(name)]:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages++
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > columns {
				t.Errorf("%s:%d: has %d characters, more than %d; break it, or make a list of a table that does not fit", name, i+1, n, columns)
			}
		}
		return nil
	}))
	require.Greater(t, pages, 10, "the documents were not found: the check is void")
}
