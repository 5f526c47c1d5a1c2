package etcd

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIncarnations(t *testing.T) {
	var n incarnations
	require.Zero(t, n.of("a"))
	require.Zero(t, (*incarnations)(nil).of("a"))
	n.learn("a", 7)
	require.EqualValues(t, 7, n.of("a"))
	n.learn("a", 9)
	require.EqualValues(t, 9, n.of("a"))
	n.learn("a", 0)
	require.Zero(t, n.of("a"))
}

func TestIncarnationsKeepWhatIsInUse(t *testing.T) {
	var n incarnations
	n.learn("used", 1)
	n.learn("unused", 2)
	for i := range 5 * maxIncarnations {
		n.learn(strconv.Itoa(i), int64(i+3))
		require.LessOrEqual(t, len(n.young)+len(n.aged), 2*maxIncarnations)
		require.EqualValues(t, 1, n.of("used"))
	}
	require.Zero(t, n.of("unused"))
	// What was promoted is forgotten in both generations.
	n.learn("used", 0)
	require.Zero(t, n.of("used"))
}
