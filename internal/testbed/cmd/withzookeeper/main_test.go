package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

// asProgram makes this test binary be the program.
const asProgram = "ELASTICRON_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(os.Args[1:])) //nolint:forbidigo // it is the program now
	}
	os.Exit(m.Run()) //nolint:forbidigo // as every TestMain
}

func program(t *testing.T, command ...string) (cmd *exec.Cmd, printed *bytes.Buffer) {
	t.Helper()
	c, err := zkserver.Start(t.Context(), zkserver.Options{Own: true})
	unavailable := (*zkserver.UnavailableError)(nil)
	if errors.As(err, &unavailable) && unavailable.Absent() {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NoError(t, c.Close())
	cmd = exec.Command(os.Args[0], command...)
	cmd.Env = append(os.Environ(), asProgram+"=1", zkserver.EnvAddress+"=", zkserver.EnvServed+"=")
	printed = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = printed, printed
	return cmd, printed
}

func TestCommandGetsItsServer(t *testing.T) {
	cmd, printed := program(t, "--", "sh", "-c", `echo "at $ELASTICRON_ZOOKEEPER by $ELASTICRON_ZOOKEEPER_SERVED"; exit 7`)
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())
	lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "ZooKeeper is served by ")
	require.Regexp(t, `^at 127\.0\.0\.1:\d+ by (container|process|maven) `, lines[1])
}

func TestSignalEndsBoth(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	cmd, printed := program(t, "sh", "-c", `echo "$ELASTICRON_ZOOKEEPER" >"$0.new"; mv "$0.new" "$0"; exec sleep 600`, ready)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		_, err := os.Stat(ready)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	addr, err := os.ReadFile(ready)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	exit := (*exec.ExitError)(nil)
	require.ErrorAs(t, cmd.Wait(), &exit, printed.String())
	require.Equal(t, 128+int(syscall.SIGTERM), exit.ExitCode())
	t.Setenv(zkserver.EnvAddress, strings.TrimSpace(string(addr)))
	_, err = zkserver.Start(t.Context(), zkserver.Options{})
	require.ErrorContains(t, err, "does not serve", "its server is gone")
}

func TestMisuse(t *testing.T) {
	require.Equal(t, misuse, run(nil))
	require.Equal(t, misuse, run([]string{"--"}))
}
