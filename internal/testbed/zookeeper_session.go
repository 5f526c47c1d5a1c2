package testbed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A zkSession is what ends a session from another connection.
type zkSession struct {
	timeout  int32 // milliseconds
	password []byte
}

// The connect answer: version, timeout, session, length of the password, password.
const (
	answerTimeout  = 4
	answerSession  = 8
	answerPassword = 20
	passwordSize   = 16
)

func parseConnected(body []byte) (id int64, s zkSession, ok bool) {
	if len(body) < answerPassword+passwordSize {
		return 0, zkSession{}, false
	}
	id = int64(binary.BigEndian.Uint64(body[answerSession:]))        //nolint:gosec // as the protocol has it
	s.timeout = int32(binary.BigEndian.Uint32(body[answerTimeout:])) //nolint:gosec // as above
	s.password = append([]byte(nil), body[answerPassword:answerPassword+passwordSize]...)
	return id, s, s.timeout > 0
}

// remember notes the session of a connect answer.
func (z *ZooKeeper) remember(body []byte) {
	id, s, ok := parseConnected(body)
	if !ok {
		return
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.sessions[id] = s
}

// Expire ends a session at the service; its client is not told. The session must
// have been opened through a Client of this bed.
func (z *ZooKeeper) Expire(id int64) error {
	z.mu.Lock()
	s, ok := z.sessions[id]
	z.mu.Unlock()
	if !ok {
		return fmt.Errorf("testbed: no client of this bed has opened the session %x", uint64(id)) //nolint:gosec // how sessions are spelled
	}
	end := time.Now().Add(adminTime)
	var err error
	for n := 0; time.Now().Before(end); n++ {
		addr := z.Addrs()[n%z.Members()]
		if err = endSession(addr, id, s); err == nil {
			return nil
		}
	}
	return fmt.Errorf("testbed: session %x cannot be ended: %w", uint64(id), err) //nolint:gosec // as above
}

var errLives = errors.New("the session still lives")

// endSession takes the session over and closes it, in one piece so that its client
// does not come between; then it looks whether the session is gone.
func endSession(addr string, id int64, s zkSession) error {
	if _, err := takeOver(addr, id, s, closeRequest()); err != nil {
		return err
	}
	lives, err := takeOver(addr, id, s, nil)
	if err == nil && lives {
		return errLives
	}
	return err
}

// takeOver connects as the session and sends more. It reports whether the session
// lived, and returns when the server has answered or closed.
func takeOver(addr string, id int64, s zkSession, more []byte) (lives bool, err error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return false, err
	}
	if _, err := conn.Write(append(connectRequest(id, s), more...)); err != nil {
		return false, err
	}
	body, err := readFrame(conn)
	if err != nil {
		return false, err
	}
	_, _, lives = parseConnected(body)
	if more != nil && lives {
		_, err = readFrame(conn)
	}
	return lives, err
}

func connectRequest(id int64, s zkSession) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0)                    // version of the protocol
	b = binary.BigEndian.AppendUint64(b, 0)                       // last zxid seen
	b = binary.BigEndian.AppendUint32(b, uint32(s.timeout))       //nolint:gosec // as the protocol has it
	b = binary.BigEndian.AppendUint64(b, uint64(id))              //nolint:gosec // as above
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.password))) //nolint:gosec // 16
	return framed(append(b, s.password...))
}

func closeRequest() []byte {
	op := int32(opCloseSession)
	b := binary.BigEndian.AppendUint32(nil, 1)
	return framed(binary.BigEndian.AppendUint32(b, uint32(op))) //nolint:gosec // as above
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) //nolint:gosec // short
}

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, lengthSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length > frameMost {
		return nil, fmt.Errorf("testbed: a frame of %d bytes", length)
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	return body, err
}
