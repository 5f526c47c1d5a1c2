package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry/memory"
)

func TestARunIsAwaited(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), reg, &out))
	require.Equal(t, "item 0 succeeded \nitem 1 succeeded \nitem 2 failed region 2 has no figures for 2026-11\n", out.String())
}
