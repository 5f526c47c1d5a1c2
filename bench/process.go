package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// A process is a child: a contender, or etcd. It ends with its standard input, so none
// outlives this one.
type process struct {
	cmd    *exec.Cmd
	orders *json.Encoder
	stdin  io.Closer
	lines  chan contest.Answer
}

// envRole makes this program be one of its children.
const envRole = "ELASTICRON_BENCH_ROLE"

// The children.
const (
	roleContender = "contender"
	roleEtcd      = "etcd"
)

// spawn starts a program whose standard output are answers.
func spawn(program, role string) (*process, error) {
	cmd := exec.Command(program) //nolint:gosec,noctx // this program, or the one that it has built; end ends it
	cmd.Env = append(os.Environ(), envRole+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, orders: json.NewEncoder(in), stdin: in, lines: make(chan contest.Answer)}
	go p.read(out)
	return p, nil
}

// read ends with the process, whose owner calls end.
func (p *process) read(out io.Reader) {
	defer close(p.lines)
	for decoder := json.NewDecoder(bufio.NewReader(out)); ; {
		var a contest.Answer
		if decoder.Decode(&a) != nil {
			return
		}
		p.lines <- a
	}
}

var errEnded = errors.New("the process has ended")

// answer waits for the answer to the last order.
func (p *process) answer(ctx context.Context) (contest.Answer, error) {
	select {
	case a, ok := <-p.lines:
		if !ok {
			return a, errEnded
		}
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-ctx.Done():
		return contest.Answer{}, context.Cause(ctx)
	}
}

func (p *process) ask(ctx context.Context, o contest.Order) (contest.Answer, error) {
	if err := p.orders.Encode(o); err != nil {
		return contest.Answer{}, err
	}
	return p.answer(ctx)
}

// end waits for a while until the process has ended by itself.
func (p *process) end(patience time.Duration) {
	_ = p.stdin.Close()
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	for range p.lines { // what it still says is for nobody
	}
	_ = p.cmd.Wait() // how it ended says nothing: it may have been killed
}

// cpu is what processes have used.
func cpu(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return 0, err
		}
		s, err := p.Stat()
		if err != nil {
			return 0, err
		}
		sum += time.Duration(s.CPUTime() * float64(time.Second))
	}
	return sum, nil
}

// usage is what processes, and the whole machine, have used of the CPU.
type usage struct{ client, server, all time.Duration }

func usageOf(client, server []int) (u usage, err error) {
	if u.client, err = cpu(client); err != nil {
		return u, err
	}
	if u.server, err = cpu(server); err != nil {
		return u, err
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return u, err
	}
	s, err := proc.Stat()
	t := s.CPUTotal
	u.all = time.Duration((t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal) * float64(time.Second))
	return u, err
}

// descendants are the processes below this one that have a name.
func descendants(name string) ([]int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	parent, named := map[int]int{}, map[int]bool{}
	for _, p := range all {
		if s, err := p.Stat(); err == nil {
			parent[p.PID], named[p.PID] = s.PPID, s.Comm == name
		}
	}
	var found []int
	for pid := range named {
		above := parent[pid]
		for above > 1 && above != os.Getpid() {
			above = parent[above]
		}
		if named[pid] && above == os.Getpid() {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no process %s below this one", name)
	}
	return found, nil
}
