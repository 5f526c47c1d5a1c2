package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry/memory"
)

func TestARoundIsAddedUpWhenAllItemsHaveEnded(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), reg, &out))
	require.Equal(t, "round 1: 4 items found 10\nround 2: 4 items found 10\nround 3: 4 items found 10\n", out.String())
}
