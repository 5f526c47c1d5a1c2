package link_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

const (
	opConnect = 0 // here; on the wire it has no number
	opExists  = 3
	opGetData = 4
	opSync    = 9
	opPing    = 11
	opUnwatch = 18

	nodeExists     = -110
	sessionExpired = -112

	requestHead = 8
	statBytes   = 68
)

// A scripted server speaks the protocol and answers what it is told to, and as fast as it can. As a real one it answers
// in order: behind what it leaves unanswered on a connection it answers pings alone.
type scripted struct {
	mu      sync.Mutex
	timeout time.Duration
	conn    net.Conn // the latest
	pieces  int      // in which the answer to a read comes; 0: it comes at once
	answers func(op int32) bool
	inside  int32               // of the one result of a multi
	last    map[int32]time.Time // when the latest request was answered, by operation
}

func (s *scripted) script(answers func(op int32) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = answers
}

// slow has the answers to reads take so long, in pieces of which some come within each heartbeat.
func (s *scripted) slow(takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = int(takes * pieceOf / s.timeout)
}

// pieceOf the timeout is how long a piece of a slow answer takes.
const pieceOf = 32

// latest is when the latest of some operations was answered: they were sent before.
func (s *scripted) latest(ops ...int32) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var latest time.Time
	for _, op := range ops {
		if at := s.last[op]; at.After(latest) {
			latest = at
		}
	}
	return latest
}

// take reports whether to answer.
func (s *scripted) take(op int32, stuck bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.answers(op) || stuck && op != opPing {
		return false
	}
	s.last[op] = time.Now()
	return true
}

// refuseWrites refuses all writes; 0 does not.
func (s *scripted) refuseWrites(code int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside = code
}

func (s *scripted) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = server
	go s.serve(server)
	return client, nil
}

// grant changes what reconnects are granted, and has the client reconnect.
func (s *scripted) grant(timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout = timeout
	_ = s.conn.Close()
}

func (s *scripted) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := readFrame(conn); err != nil {
		return
	}
	if !s.take(opConnect, false) || write(conn, s.welcome()) != nil {
		return
	}
	for stuck := false; ; {
		request, err := readFrame(conn)
		if err != nil || len(request) < requestHead {
			return
		}
		op := int32(binary.BigEndian.Uint32(request[4:]))
		if !s.take(op, stuck) {
			stuck = true
			continue
		}
		const zxid = 1
		answer := binary.BigEndian.AppendUint64(request[:4:4], zxid)
		answer = binary.BigEndian.AppendUint32(answer, s.code(op))
		answer = append(answer, s.result(op)...)
		if s.send(conn, op, answer) != nil {
			return
		}
	}
}

// send answers, as slowly as it is told to.
func (s *scripted) send(conn net.Conn, op int32, answer []byte) error {
	s.mu.Lock()
	pieces, every := s.pieces, s.timeout/pieceOf
	s.mu.Unlock()
	if op != opGetData || pieces == 0 {
		return write(conn, answer)
	}
	each := time.NewTicker(every)
	defer each.Stop()
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)
	for piece := range slices.Chunk(frame, (len(frame)+pieces-1)/pieces) {
		if _, err := conn.Write(piece); err != nil {
			return err
		}
		<-each.C
	}
	return nil
}

func (s *scripted) welcome() []byte {
	const session, password = 4711, 16
	s.mu.Lock()
	defer s.mu.Unlock()
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(s.timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, session)
	b = binary.BigEndian.AppendUint32(b, password)
	return append(b, make([]byte, password)...)
}

// code is the one of an answer.
func (s *scripted) code(op int32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op == opCreate || op == opSetData {
		return uint32(s.inside)
	}
	return 0
}

// result is the body of an answer.
func (s *scripted) result(op int32) []byte {
	switch op {
	case opMulti: // of one check
		return s.multiResult()
	case opGetData:
		s.mu.Lock()
		defer s.mu.Unlock()
		return append(binary.BigEndian.AppendUint32(nil, uint32(s.pieces)), make([]byte, s.pieces+statBytes)...)
	case opCreate:
		return append(binary.BigEndian.AppendUint32(nil, 2), "/a"...)
	case opExists:
		return make([]byte, statBytes)
	case opSetData:
		const zxid = 1
		b := binary.BigEndian.AppendUint64(make([]byte, 8, statBytes), zxid)
		return b[:statBytes]
	case opSync:
		return append(binary.BigEndian.AppendUint32(nil, 1), '/')
	}
	return nil
}

func (s *scripted) multiResult() []byte {
	const check, failed, more, end = 13, 0xFFFF_FFFF, 0, 1
	s.mu.Lock()
	inside := uint32(s.inside)
	s.mu.Unlock()
	b := binary.BigEndian.AppendUint32(nil, check)
	if inside != 0 {
		b = binary.BigEndian.AppendUint32(nil, failed)
	}
	b = binary.BigEndian.AppendUint32(append(b, more), inside)
	if inside != 0 {
		b = binary.BigEndian.AppendUint32(b, inside)
	}
	return append(binary.BigEndian.AppendUint32(b, failed), end, 0xFF, 0xFF, 0xFF, 0xFF)
}

func readFrame(conn net.Conn) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head))
	_, err := io.ReadFull(conn, b)
	return b, err
}

func write(conn net.Conn, frame []byte) error {
	_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

// onScript is a link to such a server, which answers all at first.
func onScript(t *testing.T, granted time.Duration, more ...string) (*scripted, *link.Link) {
	t.Helper()
	s := &scripted{timeout: granted, last: map[int32]time.Time{}}
	s.script(anything)
	l := open(t, link.Config{Servers: append(more, "127.0.0.1:1"), SessionTimeout: granted, Dial: s.dial})
	t.Cleanup(func() { s.script(anything) }) // that the session can be ended
	return s, l
}

func anything(int32) bool { return true }

func nothingBut(ops ...int32) func(int32) bool {
	return func(op int32) bool { return slices.Contains(ops, op) }
}

// Of single requests only a write that was done moves Deadline.
func TestOnlyAWriteMovesDeadline(t *testing.T) {
	for name, request := range map[string]any{
		"a multi": &zk.CheckVersionRequest{Path: "/a"}, "create": create("/a", 0), "setData": &zk.SetDataRequest{Path: "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onlyAWriteMovesDeadline(t, request)
		})
	}
}

func onlyAWriteMovesDeadline(t *testing.T, request any) {
	const granted = 40 * time.Second // the first heartbeat comes after five
	s, l := onScript(t, granted)
	ctx := within(t, 20*time.Second)
	opened, first := l.Deadline(), s.latest(opConnect)
	require.False(t, opened.After(first.Add(granted*3/4)))
	for time.Since(first) < granted/32 { // sooner no answer might count
		_, _, err := l.Get(ctx, "/", false)
		require.NoError(t, err)
		_, err = l.Exists(ctx, "/", false)
		require.NoError(t, err)
	}
	require.Equal(t, opened, l.Deadline(), "a read moves it")
	s.refuseWrites(nodeExists)
	_, err := l.Multi(ctx, request)
	require.ErrorIs(t, err, zk.ErrNodeExists)
	require.Equal(t, opened, l.Deadline(), "a refusal, which some servers give by themselves, moves it")
	s.refuseWrites(0)
	before := time.Now()
	w, err := l.Multi(ctx, request)
	require.NoError(t, err)
	require.EqualValues(t, 1, w.Zxid)
	require.False(t, l.Deadline().Before(before.Add(granted*3/4)), "a write does not move it")
}

// What a server that is cut off from the quorum, or from its leader, still answers
// does not keep a session alive; all together does.
func TestWhatKeepsASessionAlive(t *testing.T) {
	const granted = 1600 * time.Millisecond
	reads := []int32{opExists, opGetData, opPing, opUnwatch}
	for _, tc := range []struct {
		name    string
		answers []int32
		bound   func(s *scripted) time.Time // of Deadline
	}{
		{"Pings", []int32{opPing}, byLeader},
		{"FollowerWithoutLeader", reads, byLeader},
		{"LeaderWithoutQuorum", append(reads, opSync, opConnect), byQuorum},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, l := onScript(t, granted)
			opened := l.Deadline()
			eventually(t, "heartbeats to move Deadline", func() bool { return l.Deadline().Sub(opened) > granted })
			s.script(nothingBut(tc.answers...))
			stalled := harness.Stalls(t)
			ctx, cut := within(t, 20*time.Second), time.Now()
			eventually(t, "the end", func() bool {
				ctx, cancel := context.WithTimeout(ctx, granted/16)
				defer cancel()
				_, _, _ = l.Get(ctx, "/", false)
				return l.Err() != nil
			})
			ended, deadline := time.Now(), l.Deadline()
			require.ErrorIs(t, l.Err(), registry.ErrSessionLost)
			require.Less(t, ended.Sub(cut), granted+stalled())
			require.False(t, deadline.After(tc.bound(s)), "Deadline %v after what kept the session", deadline.Sub(tc.bound(s)))
		})
	}
}

// A server may answer a session that has ended: it does not know, and the leader, when
// it is asked for a write, says so inside of an answer that is fine as such.
func TestAHeartbeatFindsTheSessionEnded(t *testing.T) {
	s, l := onScript(t, 8*time.Second) // a heartbeat each second
	s.refuseWrites(sessionExpired)
	ended := time.Now()
	<-l.Done()
	require.Less(t, time.Since(ended), 4*time.Second, "not by silence")
	require.ErrorIs(t, l.Err(), registry.ErrSessionLost)
	require.ErrorContains(t, l.Err(), "the service has ended it")
	require.NoError(t, l.Close(within(t, 5*time.Second)))
}

// byLeader is how long a session lives after what its leader must have heard.
func byLeader(s *scripted) time.Time {
	return s.latest(opConnect, opSync, opMulti).Add(s.timeout * 3 / 4)
}

// byQuorum is how long it lives after what a quorum must have heard.
func byQuorum(s *scripted) time.Time { return s.latest(opMulti).Add(s.timeout * 7 / 8) }

// regrant has the client reconnect, which is granted another timeout.
func (s *scripted) regrant(t *testing.T, timeout time.Duration) (at time.Time) {
	t.Helper()
	before := s.latest(opConnect)
	s.grant(timeout)
	eventually(t, "it to reconnect", func() bool { return s.latest(opConnect).After(before) })
	return s.latest(opConnect)
}

// A reconnect may be granted less. The leader counts that from then on; Deadline, which was told, does not go back, and so
// Done comes by it.
func TestAReconnectIsGrantedLess(t *testing.T) {
	const atFirst, less = 40 * time.Second, 4 * time.Second
	t.Run("AndLivesOn", func(t *testing.T) {
		t.Parallel()
		s, l := onScript(t, atFirst)
		told, reconnected := l.Deadline(), s.regrant(t, less)
		eventually(t, "heartbeats", func() bool {
			require.NoError(t, l.Err())
			require.False(t, l.Deadline().Before(told), "it goes back")
			return s.latest(opMulti).Sub(reconnected) > 2*less
		})
	})
	t.Run("AndIsCutOff", func(t *testing.T) {
		t.Parallel()
		s, l := onScript(t, atFirst)
		told := l.Deadline()
		s.regrant(t, less)
		eventually(t, "a heartbeat", func() bool { return s.latest(opMulti).After(s.latest(opConnect)) })
		stalled := harness.Stalls(t)
		s.script(nothingBut())
		cut := time.Now()
		<-l.Done()
		require.Less(t, time.Since(cut), less+stalled())
		require.ErrorIs(t, l.Err(), registry.ErrSessionLost)
		require.Equal(t, told, l.Deadline())
	})
}

// More than at first does not count: whoever leads next does not know of it.
func TestAReconnectIsGrantedMore(t *testing.T) {
	const atFirst = 8 * time.Second
	s, l := onScript(t, atFirst)
	reconnected := s.regrant(t, 5*atFirst)
	stalled := harness.Stalls(t)
	eventually(t, "both heartbeats", func() bool { return s.latest(opMulti).After(reconnected) && s.latest(opSync).After(reconnected) })
	require.Less(t, time.Since(reconnected), atFirst/2+stalled(), "they are no rarer than before")
	require.False(t, l.Deadline().After(time.Now().Add(atFirst*7/8)))
	require.NoError(t, l.Err())
}

// An answer that comes slowly comes all the same, and breaks no connection as long as the session can wait for the answers
// behind it. What comes of it moves no Deadline.
func TestASlowAnswer(t *testing.T) {
	t.Run("Comes", func(t *testing.T) {
		t.Parallel()
		const granted = 16 * time.Second            // a heartbeat each two seconds
		s, l := onScript(t, granted, "127.0.0.1:2") // of two servers one is given up sooner
		connected := s.latest(opConnect)
		eventually(t, "a heartbeat", func() bool { return s.latest(opSync, opMulti).Sub(connected) > granted/16 })
		s.slow(granted * 7 / 16)
		_, _, err := l.Get(within(t, time.Minute), "/", false)
		require.NoError(t, err)
		require.Equal(t, connected, s.latest(opConnect), "it was cut off")
		require.NoError(t, l.Err())
	})
	const granted = 4 * time.Second
	t.Run("TakesTooLong", func(t *testing.T) {
		t.Parallel()
		const granted = 8 * time.Second // what a stall of a second must not end
		s, l := onScript(t, granted, "127.0.0.1:2")
		connected := s.latest(opConnect)
		s.slow(time.Hour)
		_, _, err := l.Get(within(t, 3*granted), "/", false)
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.NoError(t, l.Err(), "another connection saves the session")
		require.True(t, s.latest(opConnect).After(connected))
	})
	t.Run("AndNothingElse", func(t *testing.T) {
		t.Parallel()
		s, l := onScript(t, granted)
		s.slow(time.Hour)
		s.script(nothingBut(opGetData))
		stalled := harness.Stalls(t)
		begun := time.Now()
		_, _, err := l.Get(within(t, 20*time.Second), "/", false)
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.Less(t, time.Since(begun), granted+stalled())
		require.False(t, l.Deadline().After(byLeader(s)))
	})
}
