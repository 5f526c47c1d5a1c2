package zkserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// A wire is the way of one member's process to one port of another, so that the two
// can be parted though they share the loopback interface.
type wire struct {
	listener net.Listener
	target   string
	announce string // the dialling member's address for elections, as the other is to see it
	work     sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	held    int
	closed  bool
	over    chan struct{} // closed when closed is set
	conns   map[net.Conn]struct{}
}

func newWire(target string) (*wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: listener, target: target, over: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	w.changed = sync.NewCond(&w.mu)
	return w, nil
}

func (w *wire) addr() string { return w.listener.Addr().String() }

// open lets members connect.
func (w *wire) open() {
	w.work.Go(func() {
		for {
			conn, err := w.listener.Accept()
			if err != nil {
				return
			}
			w.work.Go(func() { w.connect(conn) })
		}
	})
}

// hold stops what passes until heal, as a network that loses everything does: each
// side waits, and what was sent arrives afterwards.
func (w *wire) hold(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += n
	w.changed.Broadcast()
}

// pass waits while the wire is held. False: it is closed.
func (w *wire) pass() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.held > 0 && !w.closed {
		w.changed.Wait()
	}
	return !w.closed
}

// keep remembers a connection that close must end. False: the wire is closed.
func (w *wire) keep(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.conns[conn] = struct{}{}
	}
	return !w.closed
}

func (w *wire) end(conn net.Conn) {
	_ = conn.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, conn)
}

func (w *wire) connect(from net.Conn) {
	defer w.end(from)
	if !w.keep(from) || !w.pass() {
		return
	}
	to := w.reach()
	if to == nil {
		return
	}
	defer w.end(to)
	if !w.keep(to) || !w.introduce(from, to) {
		return
	}
	w.work.Go(func() { w.pump(to, from) })
	w.pump(from, to)
}

// patience is how long a wire waits for a member that does not listen yet. One that
// follows a new leader is often there first; refused, it would try again for seconds,
// and hung up on, it would ask for another election.
const patience = time.Second

// reach returns nil when nobody listens.
func (w *wire) reach() net.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var to net.Conn
	_ = poll(ctx, w.over, func(ctx context.Context) (err error) {
		to, err = new(net.Dialer).DialContext(ctx, "tcp", w.target)
		return err
	})
	return to
}

// pump moves data one way until either end is closed, and then closes both.
func (w *wire) pump(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !w.pass() {
			break
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = from.Close()
	_ = to.Close()
}

// introduce changes the first message on a connection for elections. The member that
// dials names its own address there, and one with a higher number hangs up and dials
// that: it must come back over a wire too. The message is a version of the protocol
// (InitialMessage in QuorumCnxManager.java), the member's number, a length, the address.
func (w *wire) introduce(from io.Reader, to io.Writer) bool {
	const versionAndNumber, longest = 8 + 8, 1 << 10
	if w.announce == "" {
		return true
	}
	head := make([]byte, versionAndNumber+4)
	if _, err := io.ReadFull(from, head); err != nil {
		return false
	}
	length := binary.BigEndian.Uint32(head[versionAndNumber:])
	if length > longest {
		return false
	}
	if _, err := io.CopyN(io.Discard, from, int64(length)); err != nil || !w.pass() {
		return false
	}
	binary.BigEndian.PutUint32(head[versionAndNumber:], uint32(len(w.announce))) //nolint:gosec // short
	_, err := to.Write(slices.Concat(head, []byte(w.announce)))
	return err == nil
}

func (w *wire) close() error {
	w.mu.Lock()
	w.closed = true
	close(w.over)
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	err := w.listener.Close()
	w.work.Wait()
	return err
}

// A mesh is the wires between all members, by who dials and who listens: to the port
// for followers and to the one for elections. Its diagonal is empty.
type mesh [][][2]*wire

// newMesh makes the wires between members that listen at these addresses.
func newMesh(listen [][2]string) (m mesh, err error) {
	m = make(mesh, len(listen))
	for i := range m {
		m[i] = make([][2]*wire, len(listen))
		for j, ports := range listen {
			for k := 0; k < len(ports) && i != j; k++ {
				if m[i][j][k], err = newWire(ports[k]); err != nil {
					return nil, errors.Join(err, m.close())
				}
			}
		}
	}
	m.each(func(i, j int, wires [2]*wire) {
		wires[1].announce = m[j][i][1].addr()
		wires[0].open()
		wires[1].open()
	})
	return m, nil
}

func (m mesh) each(do func(i, j int, wires [2]*wire)) {
	for i := range m {
		for j, wires := range m[i] {
			if wires[1] != nil {
				do(i, j, wires)
			}
		}
	}
}

// part keeps member i and the others apart.
func (m mesh) part(i int) (heal func()) {
	hold := func(n int) {
		m.each(func(from, to int, wires [2]*wire) {
			if from == i || to == i {
				wires[0].hold(n)
				wires[1].hold(n)
			}
		})
	}
	hold(1)
	return sync.OnceFunc(func() { hold(-1) })
}

func (m mesh) close() error {
	var errs []error
	for _, row := range m {
		for _, wires := range row {
			for _, w := range wires {
				if w != nil {
					errs = append(errs, w.close())
				}
			}
		}
	}
	return errors.Join(errs...)
}
