//go:build unix

package stall_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/stall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stop lets this process stand still for a fifth of a second.
func stop(t *testing.T) {
	t.Helper()
	script := fmt.Sprintf("kill -STOP %d && sleep 0.2; kill -CONT %[1]d", os.Getpid())
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", script).Run())
}

func TestWatch(t *testing.T) {
	longest, end := stall.Watch()
	stop(t)
	require.GreaterOrEqual(t, longest(), 150*time.Millisecond)
	end()
	end()
	most := longest()
	later, endLater := stall.Watch()
	defer endLater()
	stop(t)
	require.Equal(t, most, longest(), "after its end")
	require.GreaterOrEqual(t, later(), 150*time.Millisecond)
}
