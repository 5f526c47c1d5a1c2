package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// What a process of this program is for stands in its environment; without it, it is
// the driver.
const (
	envRole = "ELASTICRON_CHAOS_ROLE"
	envTask = "ELASTICRON_CHAOS_TASK"

	roleWorker = "worker"
	roleEtcd   = "etcd"
)

// A child is a process of this program.
type child struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // set before ended is closed

	mu    sync.Mutex
	stdin io.WriteCloser
}

// spawn starts this program as a role. What it prints goes to line; what it says on
// standard error into a file of the folder.
func spawn(dir, name, role string, task any, line func(string)) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) //nolint:noctx,gosec // it is this program, and ends with it
	cmd.Env = append(os.Environ(), envRole+"="+role, envTask+"="+string(text))
	cmd.Stderr = log
	apart(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &child{name: name, cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux kills a child with the thread that started it: that thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.follow(stdout, line)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("chaos: start %s: %w", name, err)
	}
	return c, nil
}

func (c *child) follow(stdout io.Reader, line func(string)) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		line(lines.Text())
	}
	c.err = c.cmd.Wait()
	close(c.ended)
}

// tell writes a line to the child's standard input.
func (c *child) tell(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.stdin, format+"\n", args...)
}

// signal reports whether the process was there to get it.
func (c *child) signal(s syscall.Signal) bool { return c.cmd.Process.Signal(s) == nil }

// kill ends it as SIGKILL does and waits until it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// finish closes its standard input, which asks it to end, and kills it past patience.
// It reports whether it ended by itself.
func (c *child) finish(patience time.Duration) bool {
	c.mu.Lock()
	_ = c.stdin.Close()
	c.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.ended:
		return c.err == nil
	case <-timer.C:
	}
	c.kill()
	return false
}
