//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

func TestMain(m *testing.M) { os.Exit(testbed.ClosingShared(m).Run()) }

// page is docs/start.md, which a new user has before him.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "start.md"))
	require.NoError(t, err)
	return string(text)
}

// block is the first block of a language on the page.
func block(t *testing.T, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(page(t))
	require.NotNil(t, m, language)
	return m[1]
}

// The page shows this program and its file.
func TestThePageShowsThem(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(program), "package main\n")
	require.Equal(t, "package main\n"+code, block(t, "go"))
	file, err := os.ReadFile("jobs.yaml")
	require.NoError(t, err)
	require.Equal(t, string(file), block(t, "yaml"))
}

// follow makes what the page says in an empty folder, and returns the folder and the program.
func follow(t *testing.T) (dir, bin string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs.yaml"), []byte(block(t, "yaml")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(block(t, "go")), 0o600))
	here, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	text := page(t)
	for _, command := range []string{"go mod init example.com/shop", "go get github.com/elasticron/elasticron", "go mod tidy", "go build -o shop ."} {
		require.Contains(t, text, "\n"+command+"\n")
		if module, isGet := strings.CutPrefix(command, "go get "); isGet {
			// What is fetched is what stands here.
			command = "go mod edit -require=" + module + "@v0.0.0 -replace=" + module + "=" + here
		}
		args := strings.Fields(command)
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
	}
	return dir, filepath.Join(dir, "shop")
}

func TestAsANewUser(t *testing.T) {
	dir, bin := follow(t)
	t.Run("etcd", func(t *testing.T) {
		srv, err := embedded.Start(t.Context(), embedded.Config{})
		require.NoError(t, err)
		defer srv.Close()
		threeInstances(t, dir, bin, "etcd://"+srv.Endpoint()+"/shop?session-timeout=2s")
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		zk := testbed.SharedZooKeeper(t)
		threeInstances(t, dir, bin, "zookeeper://"+strings.Join(zk.Addrs(), ",")+"/start?session-timeout=2s")
	})
}

// A shop is three instances and what they do.
type shop struct {
	mu      sync.Mutex
	hello   [3]map[string]int // by instance: how often each line came
	refresh map[string]int    // by item
}

// threeInstances starts three, kills one, and sees every item of every job run before and after.
func threeInstances(t *testing.T, dir, bin, registry string) {
	t.Helper()
	s := &shop{hello: [3]map[string]int{{}, {}, {}}, refresh: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		item := regexp.MustCompile(`"shardingItem":\d`).FindString(r.Header.Get("Shardingcontext"))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refresh[item]++
	}))
	defer server.Close()
	log := filepath.Join(dir, "export.log")
	_ = os.Remove(log)
	var readers sync.WaitGroup
	var processes [3]*exec.Cmd
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); readers.Wait() }()
	for i := range processes {
		cmd := exec.CommandContext(ctx, bin)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "REGISTRY="+registry, "REFRESH_URL="+server.URL+"/refresh")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.Stderr = &told{t: t, name: fmt.Sprint("instance ", i)}
		require.NoError(t, cmd.Start())
		processes[i] = cmd
		readers.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				s.mu.Lock()
				s.hello[i][lines.Text()]++
				s.mu.Unlock()
			}
			_ = cmd.Wait()
		})
	}
	hellos := []string{"hello: item 0 of 3 (Beijing)", "hello: item 1 of 3 (Shanghai)", "hello: item 2 of 3 (Shenzhen)"}
	exports := func() map[string]int {
		text, _ := os.ReadFile(log)
		found := map[string]int{}
		for line := range strings.Lines(string(text)) {
			found[strings.TrimSpace(line)]++
		}
		return found
	}
	// Each of the three prints an item of its own.
	eventually(t, "one item each", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.hello {
			if len(s.hello[i]) == 0 {
				return false
			}
		}
		return s.refresh[`"shardingItem":0`] > 0 && s.refresh[`"shardingItem":1`] > 0 && len(exports()) == 3
	})
	require.NoError(t, processes[0].Process.Kill())
	// From now on the other two run everything: twice more, since one may be under way.
	s.mu.Lock()
	before, asked, written := [3]map[string]int{}, maps.Clone(s.refresh), exports()
	for i := range s.hello {
		before[i] = maps.Clone(s.hello[i])
	}
	s.mu.Unlock()
	eventually(t, "the items of the one that was killed run on the others", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, line := range hellos {
			if s.hello[1][line]+s.hello[2][line] < before[1][line]+before[2][line]+2 {
				return false
			}
		}
		for item, n := range asked {
			if s.refresh[item] < n+2 {
				return false
			}
		}
		now := exports()
		for line, n := range written {
			if now[line] < n+2 {
				return false
			}
		}
		return true
	})
	// Ctrl-C ends the others in order.
	for _, p := range processes[1:] {
		require.NoError(t, p.Process.Signal(os.Interrupt))
	}
	readers.Wait()
	for _, p := range processes[1:] {
		require.Zero(t, p.ProcessState.ExitCode())
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, time.Minute, 20*time.Millisecond, what)
}

// told hands what a program says to the test's log.
type told struct {
	t    *testing.T
	name string
}

func (w *told) Write(p []byte) (int, error) {
	w.t.Logf("%s: %s", w.name, strings.TrimSpace(string(p)))
	return len(p), nil
}
