package testbed

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// A frame begins with its length. The first one each way is the connect exchange;
// after it requests begin with a number and an operation, answers with the number.
const (
	lengthSize = 4
	headSize   = 8         // number and operation
	frameMost  = 256 << 20 // more is not a frame: the "ruok" of administrators
)

const (
	opCreate          = 1
	opDelete          = 2
	opSetData         = 5
	opSync            = 9
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opCreateTTL       = 21
	opCloseSession    = -11
)

// operations are the names of ZooKeeper's own table of operations.
var operations = map[int32]string{
	opCreate: "create", opDelete: "delete", 3: "exists", 4: "getData", opSetData: "setData", 6: "getACL", 7: "setACL",
	8: "getChildren", opSync: "sync", 11: "ping", 12: "getChildren2",
	opCheck: "check", opMulti: "multi", opCreate2: "create2",
	16: "reconfig", 17: "checkWatches", 18: "removeWatches", opCreateContainer: "createContainer", 20: "deleteContainer",
	opCreateTTL: "createTTL", 22: "multiRead", 100: "auth", 101: "setWatches", 102: "sasl", 103: "getEphemerals",
	104: "getAllChildrenNumber", 105: "setWatches2", 106: "addWatch", 107: "whoAmI", opCloseSession: "closeSession",
}

func operationName(op int32) string {
	if name, ok := operations[op]; ok {
		return name
	}
	return fmt.Sprint("operation ", op)
}

// requestName is the operation's name, and "heartbeat" for the two by which the adapter
// keeps its sessions alive: a sync, and a multi of one check of the root.
func requestName(op int32, body []byte) string {
	if op == opSync || op == opMulti && checksTheRoot(body) {
		return "heartbeat"
	}
	return operationName(op)
}

// frames inspects one connection of a client.
type frames struct {
	client *ZooKeeperClient
	proxy  *Proxy
	link   *link
	ways   map[Direction]*cutter // each used by the goroutine of its direction alone

	mu       sync.Mutex
	awaited  bool // an answer
	number   int32
	answered chan struct{} // closed when it is there; nil: it is to be lost
}

// A cutter cuts a stream into frames.
type cutter struct {
	rest      []byte
	connected bool // the first frame has passed
	opaque    bool // these are not frames
}

func newFrames(c *ZooKeeperClient, p *Proxy, l *link) *frames {
	return &frames{client: c, proxy: p, link: l, ways: map[Direction]*cutter{Requests: {}, Answers: {}}}
}

// next takes the next whole frame off, its length included.
func (c *cutter) next() (frame []byte, ok bool) {
	if len(c.rest) < lengthSize {
		return nil, false
	}
	length := binary.BigEndian.Uint32(c.rest)
	if length > frameMost {
		c.opaque = true
		return nil, false
	}
	end := lengthSize + int(length)
	if len(c.rest) < end {
		return nil, false
	}
	frame, c.rest = c.rest[:end:end], c.rest[end:]
	return frame, true
}

// inspect forwards whole frames, as many at once as no fate divides.
func (f *frames) inspect(way Direction, data []byte, forward func([]byte) bool) bool {
	c := f.ways[way]
	c.rest = append(c.rest, data...)
	var pass []byte
	flush := func() bool {
		ok := len(pass) == 0 || forward(pass)
		pass = nil
		return ok
	}
	for !c.opaque {
		frame, ok := c.next()
		if !ok {
			break
		}
		first := !c.connected
		c.connected = true
		meet := f.meet(way, frame[lengthSize:], first)
		if meet != nil {
			return flush() && meet(frame)
		}
		pass = append(pass, frame...)
	}
	if c.opaque {
		pass, c.rest = append(pass, c.rest...), nil
	}
	return flush()
}

// meet says what happens to a frame instead of being forwarded; nil when nothing does.
func (f *frames) meet(way Direction, body []byte, first bool) func(frame []byte) bool {
	switch {
	case first && way == Requests:
		f.client.count("connect")
	case first:
		f.client.bed.remember(body)
	case way == Requests:
		return f.request(body)
	default:
		return f.answer(body)
	}
	return nil
}

func (f *frames) request(body []byte) func(frame []byte) bool {
	if len(body) < headSize {
		return nil
	}
	number, op := int32(binary.BigEndian.Uint32(body)), int32(binary.BigEndian.Uint32(body[4:])) //nolint:gosec // as the protocol has them
	f.client.count(requestName(op, body[headSize:]))
	if !isCommit(op, body[headSize:]) {
		return nil
	}
	switch f.client.nextFate() {
	case AnswerLost:
		f.await(number, nil)
	case RequestLost:
		return func([]byte) bool {
			f.link.cut()
			return false
		}
	case AppliedLate:
		return func(frame []byte) bool {
			f.applyLate(number, frame)
			return false
		}
	}
	return nil
}

func (f *frames) await(number int32, answered chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.awaited, f.number, f.answered = true, number, answered
}

func (f *frames) answer(body []byte) func(frame []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaited || len(body) < headSize || int32(binary.BigEndian.Uint32(body)) != f.number { //nolint:gosec // as above
		return nil
	}
	f.awaited = false
	if f.answered != nil {
		close(f.answered)
		return nil
	}
	return func([]byte) bool {
		f.link.cut()
		return false
	}
}

// applyTime is how long a server may take to apply a late commit.
const applyTime = 5 * time.Second

// applyLate cuts the client off and sends the frame LateBy later. Until it is
// applied the client is kept away from every member.
func (f *frames) applyLate(number int32, frame []byte) {
	answered := make(chan struct{})
	f.await(number, answered)
	f.proxy.detach(f.link)
	defer f.link.cut()
	heal := f.client.Refuse() // before the client can come back: the server would drop this connection for the new one
	defer heal()
	reset(f.link.client)
	if !f.link.wait(LateBy) {
		return
	}
	f.proxy.waitHeld(f.link)
	if _, err := f.link.server.Write(frame); err != nil {
		return
	}
	timer := time.NewTimer(applyTime)
	defer timer.Stop()
	select {
	case <-answered:
	case <-f.link.done:
	case <-timer.C:
	}
}

// isCommit reports whether a request is a commit's. A multi that only checks the root is a
// heartbeat or a read's barrier.
func isCommit(op int32, body []byte) bool {
	switch op {
	case opCreate, opDelete, opSetData, opCreate2, opCreateContainer, opCreateTTL:
		return true
	case opMulti:
		return !checksTheRoot(body)
	}
	return false
}

// checksTheRoot reports whether this and nothing else is what a multi does: it is a head
// (operation, whether it is the end, error), a path of one byte, a version, and the end.
func checksTheRoot(body []byte) bool {
	const head, path, version, end = 9, 4 + 1, 4, 9
	return len(body) == head+path+version+end && int32(binary.BigEndian.Uint32(body)) == opCheck //nolint:gosec // as above
}
