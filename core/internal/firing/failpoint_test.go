//go:build failpoint

package firing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/failpoint"
)

// The simulation joins what this takes too seldom: a new epoch between two deaths in the same fire. See
// failpoint.Mutations.
func TestMutants(t *testing.T) {
	defer failpoint.Mutate(failpoint.RedoMovesCursor)()
	require.Equal(t, at(2), beginAgain(t).Through, "TestTheBeginOfAFireThatRunsAgainLeavesTheCursor would not notice")
}
