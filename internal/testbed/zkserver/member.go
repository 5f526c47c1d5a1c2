package zkserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A member is one server behind its guard.
type member struct {
	addr   string // where clients reach it
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	prints *tail
	work   sync.WaitGroup
	gone   chan struct{} // the guard has ended

	command sync.Mutex // one at a time
	number  int        // of the last command
	done    chan string

	mu      sync.Mutex
	running chan struct{} // closed when the server exits; nil before the first start
}

// stopTime is how long a guard may take to kill its server and clean up.
const stopTime = 20 * time.Second

// launch starts the guard, not yet the server.
func launch(ctx context.Context, cmd *exec.Cmd, addr string, log io.Writer) (*member, error) {
	m := &member{addr: addr, cmd: cmd, prints: &tail{also: log}, gone: make(chan struct{}), done: make(chan string, 16)}
	var err error
	if m.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = m.prints
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m.work.Go(func() { m.listen(stdout) })
	if err := m.await(ctx, "ready 0"); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// listen hears the guard until it ends.
func (m *member) listen(stdout io.Reader) {
	defer close(m.gone)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "done":
			select {
			case m.done <- rest:
			default: // nobody waits any more
			}
		case "exited":
			m.mu.Lock()
			close(m.running)
			m.mu.Unlock()
		}
	}
	_ = m.cmd.Wait()
}

// tell gives the guard a command and waits until it is done.
func (m *member) tell(ctx context.Context, command string) error {
	m.command.Lock()
	defer m.command.Unlock()
	m.number++
	command = fmt.Sprint(command, " ", m.number)
	if _, err := io.WriteString(m.stdin, command+"\n"); err != nil {
		return fmt.Errorf("zkserver: %s: %w", command, err)
	}
	return m.await(ctx, command)
}

func (m *member) await(ctx context.Context, command string) error {
	for {
		select {
		case done := <-m.done:
			if done == command {
				return nil
			}
		case <-m.gone:
			return fmt.Errorf("zkserver: %s: the server's guard has ended: %s", command, m.prints)
		case <-ctx.Done():
			return fmt.Errorf("zkserver: %s: %w", command, ctx.Err())
		}
	}
}

// start starts the server; it may take a while to answer.
func (m *member) start(ctx context.Context) error {
	m.mu.Lock()
	m.running = make(chan struct{})
	m.mu.Unlock()
	return m.tell(ctx, "start")
}

// exited is closed when the server has ended.
func (m *member) exited() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}

// close ends the guard, which ends the server.
func (m *member) close() error {
	_ = m.stdin.Close()
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	var err error
	select {
	case <-m.gone:
	case <-timer.C:
		err = fmt.Errorf("zkserver: the guard of %s did not end within %v", m.addr, stopTime)
		_ = m.cmd.Process.Kill()
	}
	m.work.Wait()
	return err
}

// A tail keeps the last of what is printed.
type tail struct {
	also io.Writer

	mu   sync.Mutex
	kept []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - tailSize; extra > 0 {
		t.kept = t.kept[extra:]
	}
	if t.also != nil {
		_, _ = t.also.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := bytes.TrimSpace(t.kept); len(text) > 0 {
		return string(text)
	}
	return "it printed nothing"
}
