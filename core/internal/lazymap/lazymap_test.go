package lazymap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSet(t *testing.T) {
	var m map[string]int
	Set(&m, "a", 1)
	Set(&m, "b", 2)
	Set(&m, "a", 3)
	require.Equal(t, map[string]int{"a": 3, "b": 2}, m)
}

func TestDelete(t *testing.T) {
	var m map[string]int
	Delete(&m, "a")
	require.Nil(t, m)
	Set(&m, "a", 1)
	Set(&m, "b", 2)
	Delete(&m, "a")
	require.Equal(t, map[string]int{"b": 2}, m)
	Delete(&m, "b")
	require.Nil(t, m)
}
