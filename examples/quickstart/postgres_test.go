//go:build linux

package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/pgserver"
)

func TestTheQuickstartPlaysOnAPostgresThatRuns(t *testing.T) {
	pg := testbed.StartPostgres(t, pgserver.Options{})
	url := "postgres://" + pg.Addr() + "/postgres/quickstart?session-timeout=2s&username=" + pgserver.User
	out, err := exec.CommandContext(t.Context(), build(t), "-rounds", "2", "-items", "4", "-registry", url).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "\nok: ")
	requireNoneLeft(t, string(out))
}
