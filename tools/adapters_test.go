package tools

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The contract and its adapters, without the suite, tests and what only they use, and without the
// adapter on PostgreSQL, have so many lines at most, and their lines of code so many characters on
// average, indents left out, so that nobody saves lines by making them longer. Both are lowered when
// the adapters shrink; who raises one says why: 11,500 lines became 11,690, since ZooKeeper is asked for several nodes by
// one request, with which 10,000 jobs start a third sooner, 11,740, since EnsurePath pauses where a service refuses
// what it has just shown, and 11,930, for logins of heartbeats and watches on etcd, what its quota and history need, and
// sessions and large answers on ZooKeeper that are granted less time.
const (
	adapterLines   = 11_930
	adapterDensity = 25.5
)

// uncounted are the folders whose lines are the suite's, tests', or PostgreSQL's.
var uncounted = map[string]bool{"conformance": true, "polledtest": true, "postgres": true, "testdata": true}

// What stands once stays so: an adapter that grows is looked at before the bound is.
func TestAdaptersKeepTheirSize(t *testing.T) {
	files, lines, code, characters := 0, 0, 0, 0
	require.NoError(t, filepath.WalkDir(filepath.Join("..", "registry"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && uncounted[d.Name()]:
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		files++
		for line := range strings.Lines(string(text)) {
			lines++
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				code++
				characters += len(line)
			}
		}
		return err
	}))
	require.Greater(t, files, 50, "the adapters were not found: the check is void")
	require.LessOrEqual(t, lines, adapterLines, "lines of %d files", files)
	require.LessOrEqual(t, float64(characters)/float64(code), adapterDensity, "characters a line of code")
}
