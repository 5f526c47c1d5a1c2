package ports

import (
	"context"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// inTurn returns the given numbers, the last for ever.
func inTurn(numbers ...int) func() int {
	return func() int {
		n := numbers[0]
		numbers = numbers[min(1, len(numbers)-1):]
		return n
	}
}

func TestWhatIsClaimedIsNobodyElses(t *testing.T) {
	first, err := Take(2)
	require.NoError(t, err)
	a, b := first.Number(0), first.Number(1)
	require.NotEqual(t, a, b)
	_, err = take(1, inTurn(a, b))
	require.ErrorContains(t, err, "ports: fewer than 1 are free: listen udp4")

	l, err := net.Listen("tcp4", first.Addr(0)) // its owner may
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())
	second, err := take(1, inTurn(a, b))
	require.NoError(t, err)
	require.Equal(t, b, second.Number(0), "a server listens on the other")
	require.NoError(t, second.Close())
	require.NoError(t, l.Close())
	second, err = take(1, inTurn(a))
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

// A process that starts has all that its parent has open, until it has become another program.
func TestAClaimIsFreeWhileProcessesStart(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, self, "-test.list=^$").Run() // killed at the end
			}
		})
	}
	defer starting.Wait()
	defer stop()
	for range 300 {
		c, err := Take(1)
		require.NoError(t, err)
		l, err := net.Listen("tcp4", c.Addr(0))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.NoError(t, c.Close())
	}
}

func TestAFailedClaimKeepsNothing(t *testing.T) {
	free, err := Take(1)
	require.NoError(t, err)
	port := free.Number(0)
	require.NoError(t, free.Close())
	_, err = take(2, inTurn(port))
	require.Error(t, err)
	again, err := take(1, inTurn(port))
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestClaimsAtOnceAreApart(t *testing.T) {
	var wg sync.WaitGroup
	claims := make([]*Claim, 50)
	for i := range claims {
		wg.Go(func() {
			var err error
			if claims[i], err = Take(3); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, c := range claims {
		for i := range 3 {
			require.False(t, seen[c.Addr(i)], c.Addr(i))
			seen[c.Addr(i)] = true
		}
	}
	for _, c := range claims {
		require.NoError(t, c.Close())
	}
	require.NoError(t, (*Claim)(nil).Close())
}
