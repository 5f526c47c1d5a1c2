package pending

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func (s *entries) len() int { return len(maps.Collect(s.all())) }

func TestEntriesAreAMap(t *testing.T) {
	var s entries
	want := map[string]*entry{}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		path := fmt.Sprint("/d/", random.IntN(4))
		require.Equal(t, want[path], s.get(path))
		if want[path] == nil {
			want[path] = &entry{}
			s.put(path, want[path])
		} else {
			delete(want, path)
			s.delete(path)
		}
		require.Equal(t, want, maps.Collect(s.all()))
	}
	for path := range s.all() {
		s.delete(path)
	}
	require.Equal(t, entries{}, s)
}
