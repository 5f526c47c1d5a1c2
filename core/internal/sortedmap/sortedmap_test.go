package sortedmap

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestItIsAMapInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map[string, int]
		want := map[string]int{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "set") {
				value := rapid.IntRange(0, 9).Draw(t, "value")
				m.Set(key, value)
				want[key] = value
			} else {
				m.Delete(key)
				delete(want, key)
			}
			for _, key := range []string{"", "a", "b", "c", "d"} {
				value, has := m.Get(key)
				wanted, had := want[key]
				require.Equal(t, had, has)
				require.Equal(t, had, m.Has(key))
				require.Equal(t, wanted, value)
			}
			require.Equal(t, slices.Sorted(maps.Keys(want)), m.Keys())
			require.Equal(t, want, maps.Collect(m.All()))
		}
	})
}

func TestWhoRangesOverItMayStop(t *testing.T) {
	var m Map[int, bool]
	m.Set(2, true)
	m.Set(1, true)
	for key := range m.All() {
		require.Equal(t, 1, key)
		break
	}
}
