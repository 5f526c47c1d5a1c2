package link

import (
	"encoding/binary"
	"fmt"

	"github.com/go-zookeeper/zk"
)

const (
	opError   = -1 // the type of a failed request's result
	statBytes = 68
	mzxidAt   = 8
)

// opOf is the operation that a request is.
func opOf(request any) int32 {
	switch request.(type) {
	case *zk.CreateRequest:
		return opCreate
	case *zk.SetDataRequest:
		return opSetData
	case *zk.DeleteRequest:
		return opDelete
	default:
		return opCheck
	}
}

const multiHeader = 9 // before each request, and at the end

// EncodedSize is the length of a Multi on the wire.
func EncodedSize(requests ...any) int {
	size := 8 + multiHeader
	for _, r := range requests {
		size += multiHeader
		switch r := r.(type) {
		case *zk.CreateRequest:
			size += 4 + len(r.Path) + 4 + len(r.Data) + 4 + 4
			for _, acl := range r.Acl {
				size += 4 + 4 + len(acl.Scheme) + 4 + len(acl.ID)
			}
		case *zk.SetDataRequest:
			size += 4 + len(r.Path) + 4 + len(r.Data) + 4
		case *zk.DeleteRequest:
			size += 4 + len(r.Path) + 4
		case *zk.CheckVersionRequest:
			size += 4 + len(r.Path) + 4
		}
	}
	return size
}

func newCall(requests []any) *call {
	r := &call{op: opMulti, requests: len(requests), shares: true, answered: make(chan answer, 1)}
	if len(requests) == 1 && opOf(requests[0]) != opCheck {
		r.op = opOf(requests[0])
	}
	w := &writer{b: make([]byte, 0, EncodedSize(requests...))}
	for _, request := range requests {
		w.header(opOf(request), 0)
		w.request(request)
		if create, ok := request.(*zk.CreateRequest); ok && create.Flags&zk.FlagSequence != 0 {
			r.shares = false // its number is the transaction's, by which the holders of a lock are told apart
		}
	}
	r.body = w.b
	return r
}

// isMulti reports whether the call, with those that share it, is sent as a multi.
func (r *call) isMulti() bool { return r.op == opMulti || r.next != nil }

// append codes the call, with those that share it, as one frame.
func (r *call) append(b []byte, xid int32) []byte {
	at := len(b)
	w := &writer{b: append(b, 0, 0, 0, 0)}
	w.int32(xid)
	if r.isMulti() {
		w.int32(opMulti)
		for ; r != nil; r = r.next {
			w.b = append(w.b, r.body...)
		}
		w.header(opError, 1)
	} else {
		w.int32(r.op)
		w.b = append(w.b, r.body[multiHeader:]...)
	}
	binary.BigEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4)) //nolint:gosec // bounded by MaxRequest
	return w.b
}

func (w *writer) header(op int32, done byte) {
	w.int32(op)
	w.b = append(w.b, done)
	w.int32(-1)
}

func (w *writer) request(request any) {
	switch r := request.(type) {
	case *zk.CreateRequest:
		w.text(r.Path)
		w.bytes(r.Data)
		w.int32(int32(len(r.Acl))) //nolint:gosec // a handful
		for _, acl := range r.Acl {
			w.int32(acl.Perms)
			w.text(acl.Scheme)
			w.text(acl.ID)
		}
		w.int32(r.Flags)
	case *zk.SetDataRequest:
		w.text(r.Path)
		w.bytes(r.Data)
		w.int32(r.Version)
	case *zk.DeleteRequest:
		w.text(r.Path)
		w.int32(r.Version)
	case *zk.CheckVersionRequest:
		w.text(r.Path)
		w.int32(r.Version)
	}
}

func (w *writer) bytes(b []byte) { w.int32(int32(len(b))); w.b = append(w.b, b...) } //nolint:gosec // bounded by MaxRequest

// parse reads the answer to the call and those that share it. The error is the
// server's. Neither results nor an error: the answer is malformed.
func (r *call) parse(code int32, body []byte) ([]zk.MultiResponse, error) {
	n := 0
	for other := r; other != nil; other = other.next {
		n += other.requests
	}
	results := make([]zk.MultiResponse, n)
	err := refusal(code)
	b := reader{b: body}
	switch {
	case err != nil && r.isMulti(): // the whole
		return nil, err
	case err != nil:
		results[0].Error = err
	case !r.isMulti():
		b.result(r.op, &results[0])
	default:
		err = b.results(results)
	}
	if b.bad {
		return nil, nil
	}
	return results, err
}

// results reads those of a multi, and returns the first error.
func (r *reader) results(into []zk.MultiResponse) (first error) {
	for i := range into {
		op, _ := r.header()
		r.result(op, &into[i])
		if first == nil {
			first = into[i].Error
		}
	}
	if _, done := r.header(); !done {
		r.bad = true
	}
	return first
}

// refusal is the error that the client has for a code.
func refusal(code int32) error {
	if err, known := codes[code]; known || code == 0 {
		return err
	}
	return fmt.Errorf("zk: unknown error: %d", code)
}

// codes are those of KeeperException.Code.
var codes = map[int32]error{
	-8: zk.ErrBadArguments, -101: zk.ErrNoNode, -102: zk.ErrNoAuth, -103: zk.ErrBadVersion,
	-108: zk.ErrNoChildrenForEphemerals, -110: zk.ErrNodeExists, -111: zk.ErrNotEmpty, -112: zk.ErrSessionExpired,
	-114: zk.ErrInvalidACL, -115: zk.ErrAuthFailed, -116: zk.ErrClosing, -118: zk.ErrSessionMoved,
}

// A reader takes a frame apart. bad: it is shorter than it says.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad = r.bad || n < 0 || len(r.b) < n; r.bad {
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return getInt32(b)
	}
	return 0
}

func (r *reader) header() (op int32, done bool) {
	if b := r.take(multiHeader); b != nil {
		return getInt32(b), b[4] != 0
	}
	return 0, false
}

// result reads what became of one request.
func (r *reader) result(op int32, into *zk.MultiResponse) {
	switch op {
	case opCreate:
		into.String = string(r.take(int(r.int32())))
	case opSetData:
		if b := r.take(statBytes); b != nil {
			into.Stat = &zk.Stat{Mzxid: getInt64(b[mzxidAt:])}
		}
	case opError:
		into.Error = refusal(r.int32())
	case opDelete, opCheck:
	default:
		r.bad = true
	}
}
