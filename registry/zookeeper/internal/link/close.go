package link

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
)

// Close ends the session at the service: on the connection that it has, else on one of its own, by number and password.
// It waits for the service no longer than ctx and the session timeout. nil says that the session has ended there. It
// joins all goroutines and is idempotent.
func (l *Link) Close(ctx context.Context) error {
	return l.CloseOnce(ctx, l.timeout(), l.close)
}

func (l *Link) close(ctx context.Context) error {
	if l.Lose(lifetime.ErrClosed) {
		l.sayGoodbye(ctx)
		l.cut(lifetime.ErrClosed)
	}
	err := l.farewell(ctx)
	for range l.events {
		// The client closes it when its goroutines have ended.
		continue
	}
	l.work.Wait()
	l.Wait()
	return err
}

// sayGoodbye ends the session on the connection that it has, if it answers.
func (l *Link) sayGoodbye(ctx context.Context) {
	l.mu.Lock()
	c, up := l.current, l.up
	l.mu.Unlock()
	select {
	case <-up:
	default:
		return
	}
	c.goodbye()
	ctx, cancel := context.WithTimeout(ctx, l.timeout()/marginPart)
	defer cancel()
	select {
	case <-l.left:
	case <-c.over.Done():
	case <-ctx.Done():
	}
}

// farewell ends the session on a connection of its own, if it has not ended yet.
func (l *Link) farewell(ctx context.Context) error {
	select {
	case <-l.left:
		return nil
	default:
	}
	if l.Number() == 0 {
		return nil
	}
	s := newServers(l.cfg)
	for {
		server, _ := s.Next()
		err := l.endAt(ctx, s, server)
		if err == nil {
			l.leave()
			return nil
		}
		s.tried(server, err)
		if ctx.Err() != nil {
			return fmt.Errorf("zookeeper: end session: %w: %w (%w); its nodes vanish only when it expires",
				registry.ErrUnavailable, ctx.Err(), s.reasons())
		}
	}
}

// endAt takes the session to one server and ends it there.
func (l *Link) endAt(ctx context.Context, s *servers, server string) error {
	raw, err := s.dial(ctx, server, l.attemptTime())
	if err != nil {
		return err
	}
	defer raw.Close()
	ctx, cancel := context.WithTimeout(ctx, l.handshakeTime())
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })()
	l.mu.Lock()
	hello := connectFrame(l.zxid.Load(), l.timeout(), l.id, l.password)
	l.mu.Unlock()
	if _, err := raw.Write(hello); err != nil {
		return err
	}
	in := bufio.NewReader(raw)
	answer, err := readFrame(in, nil)
	if err != nil {
		return err
	}
	if a, err := parseConnectAnswer(answer[4:]); err != nil || a.session == 0 {
		return err // 0: it has ended already
	}
	if _, err := raw.Write(newFrame(xidGoodbye, opClose).frame()); err != nil {
		return err
	}
	for {
		answer, err := readFrame(in, nil)
		if err != nil {
			return err
		}
		if len(answer) >= 4+headerBytes && getInt32(answer[4:]) == xidGoodbye {
			return nil
		}
	}
}

// readFrame reads one frame, its length in front, into the room that buf has.
func readFrame(in *bufio.Reader, buf []byte) ([]byte, error) {
	buf = slices.Grow(buf[:0], 4)[:4]
	if _, err := io.ReadFull(in, buf); err != nil {
		return nil, err
	}
	n := int(getInt32(buf))
	if n < 0 || n > maxFrame {
		return nil, fmt.Errorf("%w: length %d", errMalformed, n)
	}
	buf = slices.Grow(buf, n)[:4+n]
	_, err := io.ReadFull(in, buf[4:])
	return buf, err
}

// deadEnd is the last connection of a client whose session has ended. It leads nowhere: it grants a session, calls
// every request lost, and confirms the end, so that the client finishes at once instead of waiting for a server.
func (l *Link) deadEnd() net.Conn {
	client, server := net.Pipe()
	l.work.Go(func() {
		defer server.Close()
		in := bufio.NewReader(server)
		if _, err := readFrame(in, nil); err != nil {
			return
		}
		if _, err := server.Write(grantedSession()); err != nil {
			return
		}
		l.atEnd()
		for {
			request, err := readFrame(in, nil)
			if err != nil || len(request) < 12 {
				return
			}
			if _, err := server.Write(closedReply(getInt32(request[4:]), getInt32(request[8:]))); err != nil {
				return
			}
		}
	})
	return client
}

func grantedSession() []byte {
	w := newFrame(0, 60_000)
	w.int64(1)
	w.text(string(make([]byte, 16)))
	return w.frame()
}

func closedReply(xid, op int32) []byte {
	const connectionLoss = -4
	w := newFrame(xid)
	w.int64(0)
	code := int32(connectionLoss)
	if op == opClose || op == opPing {
		code = 0
	}
	w.int32(code)
	return w.frame()
}
