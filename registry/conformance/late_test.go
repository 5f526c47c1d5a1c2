package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// awayHarness keeps a client away from its AppliedLate commit until that is
// applied. Its sessions outlive that, as those of a LateRegistry must.
type awayHarness struct {
	*flawedHarness
	late atomic.Int64 // calls of LateRegistry
}

func newAwayHarness() *awayHarness {
	return &awayHarness{flawedHarness: newHarnessOf(2*LateBy, onCommitFailure(
		func(s *flawed, _ context.Context, _ []registry.Op, err error) error {
			if errors.Is(err, registry.ErrUncertain) {
				time.AfterFunc(LateBy, s.reg.Refuse())
			}
			return err
		}))}
}

func (h *awayHarness) LateRegistry(ctx context.Context, tb testing.TB) registry.Registry {
	h.late.Add(1)
	return h.Registry(ctx, tb)
}

func TestLateCommitsOfClientsThatAreKeptAway(t *testing.T) {
	t.Parallel()
	names := []string{"Uncertain/AppliedLate", "Uncertain/ConflictSettlesAppliedLate", "Sessions/LateCommitOfDeadSession"}
	harnesses := make([]*awayHarness, len(names))
	verdicts := tryAll(len(names), func(i int) verdict {
		harnesses[i] = newAwayHarness()
		failed, text := execute(t, harnesses[i], caseNamed(t, names[i]))
		return verdict{failed, text}
	})
	for i, v := range verdicts {
		require.False(t, v.failed, "%s: %s", names[i], v.text)
		require.Positive(t, harnesses[i].late.Load(), names[i])
	}
}
