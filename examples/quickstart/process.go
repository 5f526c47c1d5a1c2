package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// A worker is a child process.
type worker struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	err   error
}

// told is a message of a worker, or its end.
type told struct {
	worker string
	message
	ended bool
	err   error
}

// A fleet starts workers and ends them all.
type fleet struct {
	registry, root string
	items          int
	period         time.Duration
	out            chan told
	mu             sync.Mutex
	workers        []*worker
	readers        sync.WaitGroup
}

// start executes this program again as a worker.
func (f *fleet) start(ctx context.Context, name string) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) //nolint:noctx,gosec // ended by its input, killed by stopAll past its patience; it is this program
	cmd.Env = append(os.Environ(),
		envWorker+"="+name, envRegistry+"="+f.registry, envItems+"="+strconv.Itoa(f.items), envPeriod+"="+f.period.String(), envRoot+"="+f.root)
	cmd.SysProcAttr = apart()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	w := &worker{name: name, cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	started := make(chan error)
	f.readers.Go(func() {
		// Linux kills a child with the thread that started it: that thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			f.read(ctx, w, stdout)
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("quickstart: start worker: %w", err)
	}
	f.mu.Lock()
	f.workers = append(f.workers, w)
	f.mu.Unlock()
	return w, nil
}

// read hands a worker's lines to the parent, and its end.
func (f *fleet) read(ctx context.Context, w *worker, stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	send := func(t told) {
		select {
		case f.out <- t:
		case <-ctx.Done():
		}
	}
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			send(told{worker: w.name, message: m})
		}
	}
	w.err = w.cmd.Wait()
	close(w.ended)
	send(told{worker: w.name, ended: true, err: w.err, message: message{At: time.Now()}})
}

// stopAll ends every worker: gently by closing its input, then by force. It
// returns when none is left.
func (f *fleet) stopAll(patience time.Duration) {
	f.mu.Lock()
	workers := f.workers
	f.mu.Unlock()
	for _, w := range workers {
		_ = w.stdin.Close()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	late := false
	for _, w := range workers {
		if !late {
			select {
			case <-w.ended:
				continue
			case <-timer.C:
				late = true
			}
		}
		_ = w.cmd.Process.Kill()
		<-w.ended
	}
	f.readers.Wait()
}
