package testbed

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// multiOf is the body of a multi of these operations, each with one path.
func multiOf(ops ...int32) []byte {
	var b []byte
	for _, op := range ops {
		b = binary.BigEndian.AppendUint32(b, uint32(op))
		b = append(b, 0)                                  // not the end
		b = binary.BigEndian.AppendUint32(b, 0xFFFF_FFFF) // no error
		b = binary.BigEndian.AppendUint32(b, 2)
		b = append(b, "/a"...)
		b = binary.BigEndian.AppendUint32(b, 0xFFFF_FFFF) // version, or the first field of another record
	}
	b = binary.BigEndian.AppendUint32(b, 0xFFFF_FFFF)
	b = append(b, 1)
	return binary.BigEndian.AppendUint32(b, 0xFFFF_FFFF)
}

func TestIsCommit(t *testing.T) {
	for _, c := range []struct {
		name string
		op   int32
		body []byte
		is   bool
	}{
		{"create", opCreate, nil, true},
		{"create2", opCreate2, nil, true},
		{"getData", 4, nil, false},
		{"setData", 5, nil, true},
		{"a multi that checks", opMulti, multiOf(opCheck, opCheck), true},
		{"a multi that checks a node", opMulti, multiOf(opCheck), true},
		{"a multi that checks the root", opMulti, checkOfTheRoot(), false},
		{"a multi that checks and deletes", opMulti, multiOf(opCheck, 2), true},
		{"a multi that sets", opMulti, multiOf(5), true},
		{"a multi that cannot be read", opMulti, multiOf(opCheck)[:12], true},
	} {
		require.Equal(t, c.is, isCommit(c.op, c.body), c.name)
	}
}

func checkOfTheRoot() []byte {
	return bytes.Replace(multiOf(opCheck), []byte{0, 0, 0, 2, '/', 'a'}, []byte{0, 0, 0, 1, '/'}, 1)
}

func TestRequestName(t *testing.T) {
	require.Equal(t, "heartbeat", requestName(opSync, nil))
	require.Equal(t, "heartbeat", requestName(opMulti, checkOfTheRoot()))
	require.Equal(t, "multi", requestName(opMulti, multiOf(opCheck)))
	require.Equal(t, "multi", requestName(opMulti, multiOf(opSetData)))
	require.Equal(t, "getData", requestName(4, nil))
}

func testFrames() *frames {
	client := &ZooKeeperClient{bed: &ZooKeeper{sessions: map[int64]zkSession{}}, requests: map[string]int{}}
	return newFrames(client, nil, nil)
}

func request(number, op int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(number))
	return framed(binary.BigEndian.AppendUint32(b, uint32(op)))
}

func TestFramesPassInAnyPieces(t *testing.T) {
	stream := framed([]byte("connect request"))
	stream = append(stream, request(1, 4)...)
	stream = append(stream, request(2, 4)...)
	stream = append(stream, request(-2, 11)...)
	for _, size := range []int{1, 3, 11, 12, 13, len(stream)} {
		f := testFrames()
		var got []byte
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			require.True(t, f.inspect(Requests, rest[:n], func(data []byte) bool {
				got = append(got, data...)
				return true
			}))
			rest = rest[n:]
		}
		require.True(t, bytes.Equal(stream, got), "in pieces of %d", size)
		require.Equal(t, map[string]int{"connect": 1, "getData": 2, "ping": 1}, f.client.Requests())
	}
}

func TestFourLetterWordsPass(t *testing.T) {
	f := testFrames()
	var got []byte
	forward := func(data []byte) bool {
		got = append(got, data...)
		return true
	}
	require.True(t, f.inspect(Requests, []byte("ru"), forward))
	require.True(t, f.inspect(Requests, []byte("ok"), forward))
	require.True(t, f.inspect(Answers, []byte("imok"), forward))
	require.Equal(t, "ruokimok", string(got))
	require.Empty(t, f.client.Requests())
}

func TestSessionIsRemembered(t *testing.T) {
	f := testFrames()
	answer := connectRequest(0x1234, zkSession{timeout: 5000, password: bytes.Repeat([]byte{7}, passwordSize)})
	// The answer has no zxid: version, timeout, session, password.
	body := append(append([]byte(nil), answer[4:8]...), answer[16:]...)
	require.True(t, f.inspect(Answers, framed(body), func([]byte) bool { return true }))
	require.Equal(t, zkSession{timeout: 5000, password: bytes.Repeat([]byte{7}, passwordSize)}, f.client.bed.sessions[0x1234])
}
