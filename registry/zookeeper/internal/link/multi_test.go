package link

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// answerTo is a multi's answer: a created node, a set one, one deleted, one checked.
func answerTo() []byte {
	w := &writer{}
	w.header(opCreate, 0)
	w.text("/a")
	w.header(opSetData, 0)
	stat := make([]byte, statBytes)
	stat[mzxidAt+7] = 42
	w.b = append(w.b, stat...)
	w.header(opDelete, 0)
	w.header(opCheck, 0)
	w.header(opError, 1)
	return w.b
}

func four() *call {
	return newCall([]any{&zk.CreateRequest{Path: "/a"}, &zk.SetDataRequest{Path: "/b"}, &zk.DeleteRequest{Path: "/c"}, &zk.CheckVersionRequest{Path: "/d"}})
}

func TestParse(t *testing.T) {
	results, err := four().parse(0, answerTo())
	require.NoError(t, err)
	require.Equal(t, []zk.MultiResponse{{String: "/a"}, {Stat: &zk.Stat{Mzxid: 42}}, {}, {}}, results)
}

func TestParseMalformed(t *testing.T) {
	whole := answerTo()
	for n := range whole {
		results, err := four().parse(0, whole[:n])
		require.NoError(t, err, n)
		require.Nil(t, results, n)
	}
	huge := answerTo()
	huge[multiHeader] = 0x7f // the length of the created path
	results, err := four().parse(0, huge)
	require.NoError(t, err)
	require.Nil(t, results)
	huge[multiHeader] = 0xff
	results, err = four().parse(0, huge)
	require.NoError(t, err)
	require.Nil(t, results)
	alone := newCall([]any{&zk.SetDataRequest{Path: "/b"}})
	results, err = alone.parse(0, make([]byte, statBytes-1))
	require.NoError(t, err)
	require.Nil(t, results)
}

func TestParseRefused(t *testing.T) {
	w := &writer{}
	for _, code := range []int32{0, -110, -2, -2} {
		w.header(opError, 0)
		w.int32(code)
	}
	w.header(opError, 1)
	results, err := four().parse(0, w.b)
	require.ErrorIs(t, err, zk.ErrNodeExists)
	require.Len(t, results, 4)
	require.NoError(t, results[0].Error)
	require.ErrorIs(t, results[1].Error, zk.ErrNodeExists)
	results, err = four().parse(-127, nil) // too busy: the whole
	require.ErrorContains(t, err, "-127")
	require.Empty(t, results)
	require.True(t, answered(err))
	_, err = four().parse(-118, nil) // the session has moved
	require.ErrorIs(t, err, zk.ErrSessionMoved)
	require.False(t, answered(err))
}

// The client's own coding is the measure.
func TestEncodedSizeIsThatOfTheFrame(t *testing.T) {
	requests := []any{
		&zk.CreateRequest{Path: "/a", Data: []byte("x"), Acl: zk.DigestACL(31, "u", "p")}, &zk.SetDataRequest{Path: "/b", Data: []byte("yy")},
		&zk.DeleteRequest{Path: "/c"}, &zk.CheckVersionRequest{Path: "/d"},
	}
	require.Len(t, newCall(requests).append(nil, 1), 4+EncodedSize(requests...))
}
