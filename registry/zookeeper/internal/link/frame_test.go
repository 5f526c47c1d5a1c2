package link

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// results is the body of a multi's answer: one result for each code, 0 for what was fine until another failed.
func results(codes ...int32) []byte {
	w := &writer{}
	for _, code := range codes {
		w.header(opError, 0)
		w.int32(code)
	}
	w.header(opError, 1)
	return w.b
}

func TestMultiRefusal(t *testing.T) {
	require.EqualValues(t, -110, multiRefusal(results(0, -110, -2, -2)))
	require.EqualValues(t, -102, multiRefusal(results(-102)))
	w := &writer{}
	w.header(opDelete, 0)
	w.header(opError, 1)
	require.Zero(t, multiRefusal(w.b))
	for _, body := range [][]byte{results(0, -110), w.b} {
		for n := range body {
			require.NotPanics(t, func() { multiRefusal(body[:n]) })
		}
	}
}

func TestParseReads(t *testing.T) {
	w := &writer{}
	w.header(opGetData, 0)
	w.text("x")
	w.b = append(w.b, make([]byte, 67)...)
	w.b = append(w.b, 9) // the last byte of Pzxid
	w.header(opError, 0)
	w.int32(errNoNode)
	w.header(opError, 0)
	w.int32(errNoAuth)
	whole := len(w.b)
	w.header(opError, 1)
	found, err := parseReads(w.b)
	require.NoError(t, err)
	require.Equal(t, []Found{{Value: []byte("x"), Stat: &zk.Stat{Pzxid: 9}}, {Err: zk.ErrNoNode}, {Err: zk.ErrNoAuth}}, found)
	for n := range w.b {
		_, err := parseReads(w.b[:n])
		require.ErrorIs(t, err, errMalformed, n)
	}
	w.b = w.b[:whole]
	w.header(opError, 0)
	w.int32(-127)
	w.header(opError, 1)
	found, err = parseReads(w.b)
	require.NoError(t, err)
	require.Nil(t, found, "each is to be read by itself")
}

func TestWithRevision(t *testing.T) {
	w := newFrame(1, 2)
	w.int64(3) // as long as the head of an answer
	w.header(opDelete, 0)
	w.header(opError, 1)
	before := len(w.frame())
	b := withRevision(w.b, 42)
	const statBytes = 68
	require.Len(t, b, before+multiHeader+statBytes)
	require.EqualValues(t, len(b)-4, getInt32(b))
	added := b[before-multiHeader:]
	require.EqualValues(t, opSetData, getInt32(added))
	require.EqualValues(t, 42, getInt64(added[multiHeader+8:]))
	require.EqualValues(t, 1, added[multiHeader+statBytes+4], "the end follows")
}
