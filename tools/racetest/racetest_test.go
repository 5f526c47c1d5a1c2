package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeGo prints the answers one after the other, and fails but for "ok  \t…". It keeps
// what it was asked.
func fakeGo(t *testing.T, answers ...string) (asked func() []string) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
n=$(wc -l <"$0.asked")
echo "$*" >>"$0.asked"
cat "$0.$n"
! grep -q ^FAIL "$0.$n" || exit 3
`
	name := filepath.Join(dir, "go")
	require.NoError(t, os.WriteFile(name, []byte(script), 0o700))
	require.NoError(t, os.WriteFile(name+".asked", nil, 0o600))
	for i, a := range answers {
		require.NoError(t, os.WriteFile(name+"."+string(rune('0'+i)), []byte(a), 0o600))
	}
	t.Setenv("GO", name)
	return func() []string {
		text, err := os.ReadFile(name + ".asked")
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

const (
	crashed = "=== RUN   TestX\nSIGSEGV: segmentation violation\nPC=0x1 m=2\nFAIL\texample.com/crashed\t0.1s\n"
	checked = "ThreadSanitizer: CHECK failed: tsan_rtl.cpp\nexit status 66\nFAIL\texample.com/crashed\t0.1s\n"
	good    = "ok  \texample.com/good\t0.1s\n?   \texample.com/none\t[no test files]\n"
	bad     = "--- FAIL: TestY (0.00s)\n    y.go:1: no\n" + end + "FAIL\texample.com/bad\t0.1s\n"
	passed  = "ok  \texample.com/crashed\t0.1s\n"
	end     = "FAIL\n"
)

func TestOnlyTheDetectorsOwnCrashIsRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		asked   []string
		code    int
	}{
		"all is well":        {[]string{good}, []string{"./..."}, 0},
		"a crash":            {[]string{good + crashed + end, passed}, []string{"./...", "example.com/crashed"}, 0},
		"two crashes":        {[]string{checked + end, crashed + end, passed}, []string{"./...", "example.com/crashed", "example.com/crashed"}, 0},
		"three crashes":      {[]string{crashed + end, crashed + end, checked + end}, []string{"./...", "example.com/crashed", "example.com/crashed"}, 3},
		"a failure":          {[]string{good + bad + end}, []string{"./..."}, 3},
		"a failure beside":   {[]string{bad + crashed + end, passed}, []string{"./...", "example.com/crashed"}, 3},
		"a failure before":   {[]string{"--- FAIL: TestZ (0.00s)\n" + crashed + end}, []string{"./..."}, 3},
		"a panic of ours":    {[]string{"[signal SIGSEGV: segmentation violation code=1]\nFAIL\texample.com/x\t0.1s\n" + end}, []string{"./..."}, 3},
		"does not compile":   {[]string{"FAIL\texample.com/x [build failed]\n" + end}, []string{"./..."}, 3},
		"a crash that fails": {[]string{crashed + end, bad + end}, []string{"./...", "example.com/crashed"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			asked := fakeGo(t, c.answers...)
			var printed strings.Builder
			require.Equal(t, c.code, run([]string{"-timeout", "1m", "--", "./...", "-seeds", "7"}, &printed))
			var want []string
			for _, packages := range c.asked {
				want = append(want, "test -race -timeout 1m "+packages+" -seeds 7")
			}
			require.Equal(t, want, asked())
			require.Equal(t, len(c.asked)-1, strings.Count(printed.String(), "racetest: the race detector itself crashed; once more: example.com/crashed\n"))
			if c.code == 0 {
				require.NotContains(t, printed.String(), "FAIL")
			} else {
				require.Contains(t, printed.String(), "\nFAIL\n")
			}
		})
	}
}

func TestADigest(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x.log")
	noise := "=== RUN   TestX\n    x.go:1: conformance: 178 cases in 8 groups, 0 skipped\n"
	fakeGo(t, noise+good)
	var printed strings.Builder
	require.Zero(t, run([]string{"-log", log, "-v", "--", "./..."}, &printed))
	require.Equal(t, "    x.go:1: conformance: 178 cases in 8 groups, 0 skipped\nok  \texample.com/good\t0.1s\n", printed.String())
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, noise+good, string(text))

	fakeGo(t, noise+"panic: x\n"+"FAIL\texample.com/bad\t0.1s\n"+end)
	printed.Reset()
	require.Equal(t, 3, run([]string{"-log", log, "-v", "--", "./..."}, &printed))
	require.Contains(t, printed.String(), "FAIL\texample.com/bad\t0.1s\nFAIL\npanic: x\nracetest: the end of "+log+":\n=== RUN   TestX\n")
}

func TestWithoutTheDetector(t *testing.T) {
	asked := fakeGo(t, good)
	var printed strings.Builder
	require.Zero(t, run([]string{"-log", filepath.Join(t.TempDir(), "x.log"), "-plain", "-v", "--", "./..."}, &printed))
	require.Equal(t, []string{"test -v ./..."}, asked())
}

func TestADigestEndsWithWhatFailed(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x.log")
	const rule = "    rule:     what must be\n"
	fakeGo(t, `=== RUN   TestX
=== PAUSE TestX
=== RUN   TestY
=== PAUSE TestY
=== CONT  TestX
=== CONT  TestY
`+rule+`=== NAME  TestX
    x.go:1: what TestX says
=== NAME  TestY
`+rule+`--- PASS: TestX (0.00s)
`+bad+good+end)
	var printed strings.Builder
	require.Equal(t, 3, run([]string{"-log", log, "-v", "--", "./..."}, &printed))
	require.Contains(t, printed.String(), "--- FAIL: TestY (0.00s)\nFAIL\n")
	require.True(t, strings.HasSuffix(printed.String(), "FAIL\n"+rule+"racetest: what failed, from "+log+":\n--- TestY:\n"+rule+rule), printed.String())
}

func TestADigestShowsWhereAPanicWas(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x.log")
	fakeGo(t, "=== RUN   TestX\nx.go:1: why\n--- FAIL: TestX (0.00s)\npanic: x\nmain.go:7\nFAIL\texample.com/bad\t0.1s\n"+end)
	var printed strings.Builder
	require.Equal(t, 3, run([]string{"-log", log, "-v", "--", "./..."}, &printed))
	require.Contains(t, printed.String(), "panic: x\nmain.go:7\n")
	require.True(t, strings.HasSuffix(printed.String(), ":\n--- TestX:\nx.go:1: why\n"), printed.String())
}

func TestMisuse(t *testing.T) {
	for _, args := range [][]string{nil, {"./..."}, {"-v", "--"}} {
		require.Equal(t, misuse, run(args, &strings.Builder{}))
	}
}
