package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/strategy"
)

func Example() {
	_ = run(context.Background())
	// Output:
	// map[big:4 small-1:2 small-2:2]
}

// Every item has exactly one owner, whatever the order in which the instances are named.
func TestWeighted(t *testing.T) {
	in := strategy.Input{Total: 10, Instances: []string{"10.0.0.1@-@big-a", "10.0.0.2@-@small-b", "10.0.0.3@-@big-c"}}
	out := Weighted{}.Assign(in)
	require.NoError(t, out.Check(in))
	require.Len(t, out["10.0.0.1@-@big-a"], 4)
	require.Len(t, out["10.0.0.2@-@small-b"], 2)
	in.Instances[0], in.Instances[2] = in.Instances[2], in.Instances[0]
	require.Equal(t, out, Weighted{}.Assign(in))
	require.Empty(t, Weighted{}.Assign(strategy.Input{Total: 3}))
}
