package pending

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

func (s *entries) len() int { return len(s.asMap()) }

func (s *entries) asMap() map[string]*entry {
	all := map[string]*entry{}
	s.each(func(path string, e *entry) { all[path] = e })
	return all
}

func TestEntriesAreAMap(t *testing.T) {
	var s entries
	want := map[string]*entry{}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 10_000 {
		path := fmt.Sprint("/d/", random.IntN(4))
		require.Equal(t, want[path], s.get(path))
		if want[path] == nil {
			want[path] = s.add(path)
			require.Equal(t, &entry{}, want[path])
			want[path].modified = registry.Revision(n + 1)
		} else {
			require.Same(t, want[path], s.get(path))
			delete(want, path)
			s.delete(path)
		}
		require.Equal(t, want, s.asMap())
	}
	s.each(func(path string, _ *entry) { s.delete(path) })
	require.Equal(t, entries{}, s)
}
