package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

// The program of README.md is this one.
func TestReadmeShowsIt(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(program), "package main\n")
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\npackage main\n"+code+"```\n")
}

// It runs every item on etcd, and ends cleanly at Ctrl-C.
func TestHello(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Config{})
	require.NoError(t, err)
	defer srv.Close()
	bin := filepath.Join(t.TempDir(), "hello.exe")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(os.Environ(), "REGISTRY=etcd://"+srv.Endpoint()+"/hello")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	seen := map[string]bool{}
	lines := bufio.NewScanner(stdout)
	for len(seen) < 3 && lines.Scan() {
		seen[lines.Text()] = true
	}
	require.Equal(t, map[string]bool{"hello: item 0 of 3 ()": true, "hello: item 1 of 3 ()": true, "hello: item 2 of 3 ()": true}, seen)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
}
