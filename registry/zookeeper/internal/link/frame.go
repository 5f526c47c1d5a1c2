package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
)

// Operations and reserved request numbers of the protocol (ZooDefs.java, ClientCnxn.java of ZooKeeper).
const (
	opCreate    = 1
	opDelete    = 2
	opExists    = 3
	opGetData   = 4
	opSetData   = 5
	opSync      = 9
	opPing      = 11
	opChildren  = 12 // getChildren2
	opCheck     = 13
	opUnwatch   = 18 // removeWatches, since 3.5
	opAuth      = 100
	opWatches   = 101 // setWatches
	opMulti     = 14
	opMultiRead = 22 // since 3.6
	opClose     = -11
	xidEvent    = -1
	xidAuth     = -4
	xidWatches  = -8
	xidVersion  = -9  // ours: is this server 3.5 or newer
	xidMany     = -10 // ours: is it 3.6 or newer
	xidGoodbye  = -12 // ours: the end of the session
	errNoNode   = -101
	errNoAuth   = -102
	errUnknown  = -6   // unimplemented
	errEnded    = -112 // there is no such session
	headerBytes = 16   // of an answer: xid, zxid, error
	opError     = -1   // the type of a failed request's result in a multi
	multiHeader = 9    // before each request and result of a multi, and at the end

	maxFrame     = 64 << 20 // an answer; a list of a million names is smaller
	clientBuffer = 1<<20 + 64<<10
)

// MaxRequest is the encoded size that a request must stay below. A server as installed closes the connection at
// 1,048,576 bytes, and with it fail all others that are under way.
const MaxRequest = 1_000_000

var errMalformed = errors.New("malformed frame from the server")

// A writer builds one frame.
type writer struct{ b []byte }

// newFrame begins one: with its number and operation, if it is a request.
func newFrame(head ...int32) *writer {
	w := &writer{b: make([]byte, 4, 64)}
	for _, v := range head {
		w.int32(v)
	}
	return w
}

func (w *writer) int32(v int32) { w.b = binary.BigEndian.AppendUint32(w.b, uint32(v)) }
func (w *writer) int64(v int64) { w.b = binary.BigEndian.AppendUint64(w.b, uint64(v)) }
func (w *writer) text(s string) { w.int32(int32(len(s))); w.b = append(w.b, s...) }

func (w *writer) texts(all []string) {
	w.int32(int32(len(all)))
	for _, s := range all {
		w.text(s)
	}
}

// frame returns the bytes with their length in front.
func (w *writer) frame() []byte {
	binary.BigEndian.PutUint32(w.b, uint32(len(w.b)-4))
	return w.b
}

func getInt32(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }
func getInt64(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// text reads a string at offset at.
func text(b []byte, at int) (string, error) {
	if len(b) < at+4 {
		return "", errMalformed
	}
	n := int(getInt32(b[at:]))
	if n < 0 || len(b) < at+4+n {
		return "", errMalformed
	}
	return string(b[at+4 : at+4+n]), nil
}

// A connectAnswer is the server's first frame.
type connectAnswer struct {
	timeout  time.Duration
	session  int64 // 0: there is no such session any more
	password []byte
}

func parseConnectAnswer(b []byte) (connectAnswer, error) {
	if len(b) < 20 {
		return connectAnswer{}, fmt.Errorf("%w: a connect answer of %d bytes", errMalformed, len(b))
	}
	a := connectAnswer{timeout: time.Duration(getInt32(b[4:])) * time.Millisecond, session: getInt64(b[8:])}
	password, err := text(b, 16)
	a.password = []byte(password)
	if a.timeout <= 0 {
		a.session = 0
	}
	return a, err
}

// connectFrame asks a server for a session, for one that exists by its number and password.
func connectFrame(zxid int64, timeout time.Duration, session int64, password []byte) []byte {
	w := newFrame(0)
	w.int64(zxid)
	w.int32(int32(timeout / time.Millisecond))
	w.int64(session)
	w.text(string(password))
	return w.frame()
}

// header comes before each request and result of a multi, and at its end.
func (w *writer) header(op int32, done byte) {
	w.int32(op)
	w.b = append(w.b, done)
	w.int32(-1)
}

// readsFrame asks for several nodes.
func readsFrame(xid int32, paths []string) []byte {
	w := newFrame(xid, opMultiRead)
	for _, p := range paths {
		w.header(opGetData, 0)
		w.text(p)
		w.b = append(w.b, 0) // no watch
	}
	w.header(opError, 1)
	return w.frame()
}

// parseReads reads the answer to that: nothing where a node was answered with another error than that it does not exist,
// or is denied.
func parseReads(b []byte) (found []Found, err error) {
	const statBytes = 68
	for len(b) >= multiHeader && b[4] == 0 {
		kind := getInt32(b)
		b = b[multiHeader:]
		if len(b) < 4 {
			return nil, errMalformed
		}
		n := getInt32(b)
		b = b[4:]
		switch {
		case kind == opError && n == errNoNode:
			found = append(found, Found{Err: zk.ErrNoNode})
			continue
		case kind == opError && n == errNoAuth:
			found = append(found, Found{Err: zk.ErrNoAuth})
			continue
		case kind == opError:
			return nil, nil
		case kind != opGetData || n < -1 || len(b) < max(int(n), 0)+statBytes:
			return nil, errMalformed
		}
		var value []byte
		if n >= 0 {
			value = append([]byte{}, b[:n]...)
			b = b[n:]
		}
		stat := &zk.Stat{} // its fields are those of the wire
		if _, err := binary.Decode(b, binary.BigEndian, stat); err != nil {
			return nil, errMalformed
		}
		found = append(found, Found{Value: value, Stat: stat})
		b = b[statBytes:]
	}
	if len(b) != multiHeader {
		return nil, errMalformed
	}
	return found, nil
}

// multiRefusal is the first error in the results of a multi; 0: it was applied.
func multiRefusal(results []byte) int32 {
	for len(results) >= multiHeader+4 && getInt32(results) == opError && results[4] == 0 {
		if code := getInt32(results[multiHeader:]); code != 0 {
			return code
		}
		results = results[multiHeader+4:]
	}
	return 0
}

// withRevision adds to the frame of a multi that was applied the result of one more set,
// which was made in transaction zxid: the client drops the number otherwise.
func withRevision(frame []byte, zxid int64) []byte {
	const afterMzxid = 68 - 16 // of a Stat, behind Czxid and Mzxid
	w := &writer{b: frame[:len(frame)-multiHeader]}
	w.header(opSetData, 0)
	w.int64(zxid)
	w.int64(zxid)
	w.b = append(w.b, make([]byte, afterMzxid)...)
	w.header(opError, 1)
	return w.frame()
}

// withNumber puts zxid in the place of the path in the answer to a create: the path is known,
// and the number would be dropped.
func withNumber(frame []byte, zxid int64) []byte {
	w := &writer{b: frame[:4+headerBytes]}
	w.text(strconv.FormatInt(zxid, 10))
	return w.frame()
}
