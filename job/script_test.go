//go:build unix

package job

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/job/link"
)

var shard = core.Shard{
	Job: "hello", Item: 2, Total: 3, Param: "深圳 \"x\"", JobParam: "p", TaskID: "hello@-@2@-@READY@-@10.0.0.1@-@web-1-0-x",
	Due: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Attempt: 1, Source: core.SourceSchedule, Fence: 7,
}

// run runs a script, and returns what it wrote.
func run(t *testing.T, ctx context.Context, c Script) (string, error) { //nolint:revive // the test comes first in tests
	t.Helper()
	var got string
	c.Output = func(s core.Shard, output []byte) {
		require.Equal(t, shard, s)
		got = string(output)
	}
	err := c.Run(ctx, shard)
	return got, err
}

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                     nil,
		"  a  b\tc ":           {"a", "b", "c"},
		`a "b c" 'd "e"'`:      {"a", "b c", `d "e"`},
		`a ""`:                 {"a", ""},
		`C:\tools\x.exe a\ b`:  {`C:\tools\x.exe`, `a\`, "b"},
		`sh -c 'echo "$HOME"'`: {"sh", "-c", `echo "$HOME"`},
		`--name="a b"c`:        {"--name=a bc"},
	} {
		got, err := split(line)
		require.NoError(t, err)
		require.Equal(t, want, got, line)
	}
	_, err := split(`a "b`)
	require.EqualError(t, err, `Command: has a " that is not closed; close it`)
}

// The context is the last argument, and stands in the environment.
func TestScriptIsToldItsItem(t *testing.T) {
	got, err := run(t, t.Context(), Script{Args: []string{"sh", "-c", `printf '%s\n' "$#" "$1" "$2" "$ELASTICRON_SHARDING_CONTEXT" "$ELASTICRON_ITEM/$ELASTICRON_TOTAL $ELASTICRON_PARAM $ELASTICRON_FENCE $ELASTICRON_DUE $ELASTICRON_SOURCE $ELASTICRON_ATTEMPT $MINE"`, "sh", "own"}, Env: []string{"MINE=yes"}})
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	require.Len(t, lines, 5, got)
	require.Equal(t, "2", lines[0])
	require.Equal(t, "own", lines[1])
	const want = `{"jobName":"hello","taskId":"hello@-@2@-@READY@-@10.0.0.1@-@web-1-0-x","shardingTotalCount":3,"jobParameter":"p","shardingItem":2,"shardingParameter":"深圳 \"x\""}`
	require.Equal(t, []string{want, want}, lines[2:4], "byte for byte, as ElasticJob's")
	require.Equal(t, `2/3 深圳 "x" 7 2026-01-02T03:04:05Z schedule 1 yes`, lines[4])
	var back shardingContext
	require.NoError(t, json.Unmarshal([]byte(lines[2]), &back))
	require.Equal(t, shard.Param, back.ShardingParameter)

	without := shard
	without.Param = ""
	require.NotContains(t, contextOf(without), "shardingParameter")
}

func TestScriptFails(t *testing.T) {
	_, err := run(t, t.Context(), Script{Command: `sh -c 'echo out; echo no such table >&2; exit 3'`})
	var e *ScriptError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 3, e.Code)
	require.Equal(t, "out\nno such table\n", string(e.Output))
	require.EqualError(t, err, "script: exit status 3: no such table")

	_, err = run(t, t.Context(), Script{Command: "/no/such/command"})
	require.ErrorIs(t, err, os.ErrNotExist)
	// The system's error would name the command, which is there.
	_, err = run(t, t.Context(), Script{Command: "pwd", Dir: "/no/such/folder"})
	require.EqualError(t, err, "script: the folder in which it is to run: stat /no/such/folder: no such file or directory")
	_, err = run(t, t.Context(), Script{Command: "pwd", Dir: "/dev/null"})
	require.EqualError(t, err, "script: the folder in which it is to run: /dev/null is no folder")
	_, err = run(t, t.Context(), Script{Command: "sh -c 'kill -9 $$'"})
	require.EqualError(t, err, "script: signal: killed")
	require.EqualError(t, (&Script{}).Run(t.Context(), shard), "Command: is empty; give the command to run, such as scripts/reindex.sh")
	require.EqualError(t, (&Script{Command: "a", Args: []string{"b"}}).Validate(), "Command: is given, and Args too; leave one")
	require.Error(t, (&Script{Command: "a", Timeout: -1}).Validate())
	require.NoError(t, (&Script{Command: "a"}).Validate())
}

// Only the end of the output is kept.
func TestScriptOutputIsBounded(t *testing.T) {
	got, err := run(t, t.Context(), Script{Command: `sh -c 'i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done'`, MaxOutput: 100})
	require.NoError(t, err)
	require.Len(t, got, 100)
	require.True(t, strings.HasSuffix(got, "line 4998\nline 4999\n"), got)
}

// family is a script that starts a child, which ignores SIGTERM where stubborn, and writes
// the process ids of both into files.
func family(stubborn bool) string {
	trap := ""
	if stubborn {
		trap = `trap "" TERM; `
	}
	return trap + `(` + trap + `while :; do sleep 0.05; done) & echo $! >child; echo $$ >parent; wait; while :; do sleep 0.05; done`
}

// gone waits until a process, whose id stands in a file, is no more.
func gone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !alive(pid) }, 10*time.Second, 10*time.Millisecond, "process %d of %s lives", pid, filepath.Base(file))
}

// alive takes a process that has ended, and that nobody waits for, as gone.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// awaited waits until a file has content.
func awaited(t *testing.T, file string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.HasSuffix(string(text), "\n")
	}, 10*time.Second, 5*time.Millisecond)
}

// The timeout and the end of the context end the whole process group, also one that ignores
// SIGTERM.
func TestScriptIsEndedWithItsGroup(t *testing.T) {
	for name, stubborn := range map[string]bool{"obedient": false, "stubborn": true} {
		t.Run("timeout of an "+name+" one", func(t *testing.T) {
			dir := t.TempDir()
			_, err := run(t, t.Context(), Script{Args: []string{"sh", "-c", family(stubborn)}, Dir: dir, Timeout: time.Second, Grace: 200 * time.Millisecond})
			require.ErrorIs(t, err, link.ErrTimeout)
			require.EqualError(t, err, "script: timeout after 1s")
			gone(t, filepath.Join(dir, "parent"))
			gone(t, filepath.Join(dir, "child"))
		})
		t.Run("stop of an "+name+" one", func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() {
				c := Script{Args: []string{"sh", "-c", family(stubborn)}, Dir: dir, Grace: 200 * time.Millisecond}
				done <- c.Run(ctx, shard)
			}()
			awaited(t, filepath.Join(dir, "parent"))
			cancel(core.ErrStopped)
			require.ErrorIs(t, <-done, core.ErrStopped)
			gone(t, filepath.Join(dir, "parent"))
			gone(t, filepath.Join(dir, "child"))
		})
	}
	t.Run("before it starts", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(core.ErrStopped)
		_, err := run(t, ctx, Script{Command: "true"})
		require.ErrorIs(t, err, core.ErrStopped)
	})
}

// SIGTERM comes first: a script may clean up.
func TestScriptMayCleanUp(t *testing.T) {
	got, err := run(t, t.Context(), Script{
		Command: `sh -c 'trap "echo cleaned; exit 0" TERM; while :; do sleep 0.02; done'`, Timeout: 500 * time.Millisecond,
	})
	require.ErrorIs(t, err, link.ErrTimeout)
	require.Contains(t, got, "cleaned\n")
}

// What a command leaves behind in its group ends with it, and is told when it held the output.
func TestScriptLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	_, err := run(t, t.Context(), Script{Args: []string{"sh", "-c", `sleep 1000 >/dev/null 2>&1 & echo $! >child`}, Dir: dir})
	require.NoError(t, err)
	gone(t, filepath.Join(dir, "child"))
	_, err = run(t, t.Context(), Script{Args: []string{"sh", "-c", `sleep 1000 & echo $! >child`}, Dir: dir, Grace: 50 * time.Millisecond})
	require.ErrorContains(t, err, "held its output open")
	gone(t, filepath.Join(dir, "child"))
}
