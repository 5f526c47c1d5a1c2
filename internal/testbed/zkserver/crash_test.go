package zkserver_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

// victim makes this test binary start servers, say where, and wait to be killed.
const victim = "ELASTICRON_TEST_VICTIM"

func TestVictim(t *testing.T) {
	words := strings.Fields(os.Getenv(victim))
	if len(words) == 0 {
		return // not a test of its own: TestKilledParentLeavesNothing runs it
	}
	members, err := strconv.Atoi(words[1])
	require.NoError(t, err)
	c, err := zkserver.Start(within(t, long), zkserver.Options{Way: words[0], Members: members, Dir: words[2], Own: true})
	require.NoError(t, err)
	fmt.Println("addrs", strings.Join(c.Addrs(), ",")) //nolint:forbidigo // its parent reads this
	select {}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	ways(t, func(t *testing.T, way string) {
		require.NoError(t, start(t, zkserver.Options{Way: way}).Close()) // or skip
		for _, members := range []int{1, 3} {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestVictim$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", victim, way, members, dir))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			addrs := said(t, bufio.NewScanner(out))
			require.Len(t, addrs, members)
			require.GreaterOrEqual(t, len(leftovers(t, way, dir, cmd.Process.Pid)), members, "what could be left is not seen: the check is void")
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
			require.Eventually(t, func() bool {
				return !slices.ContainsFunc(addrs, answers) && len(leftovers(t, way, dir, cmd.Process.Pid)) == 0
			}, long, 10*every)
		}
	})
}

func said(t *testing.T, lines *bufio.Scanner) []string {
	t.Helper()
	for lines.Scan() {
		if list, ok := strings.CutPrefix(lines.Text(), "addrs "); ok {
			return strings.Split(list, ",")
		}
	}
	require.FailNow(t, "the victim did not start")
	return nil
}

// leftovers are the folders of processes, or the containers and networks.
func leftovers(t *testing.T, way, dir string, owner int) []string {
	t.Helper()
	if way != "container" {
		entries, err := os.ReadDir(dir)
		if os.IsNotExist(err) {
			return nil // the last guard removes it when it is empty
		}
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	var names []string
	for _, list := range [][]string{{"ps", "--all", "--format", "{{.Names}}"}, {"network", "ls", "--format", "{{.Name}}"}} {
		list = append(list, "--filter", fmt.Sprint("label=elasticron.owner=", owner))
		out, err := exec.Command("docker", list...).Output()
		require.NoError(t, err)
		names = append(names, strings.Fields(string(out))...)
	}
	return names
}
