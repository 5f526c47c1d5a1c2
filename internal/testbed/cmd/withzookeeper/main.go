// Withzookeeper runs a command beside a ZooKeeper server of its own:
//
//	go run ./internal/testbed/cmd/withzookeeper -- go test ./...
//
// The server is started by the first way that works (see package zkserver) and is
// named to the command in ELASTICRON_ZOOKEEPER; ELASTICRON_ZOOKEEPER_SERVED says
// what it is. One line on standard error says so too. The server is removed when
// the command ends, also by a signal. The exit code is the command's; 1 if no way
// works, 2 without a command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

const (
	failed = 1
	misuse = 2

	startTime = 5 * time.Minute // an image may have to be pulled
)

func main() {
	os.Exit(run(os.Args[1:])) //nolint:forbidigo // the command's exit code is this one's
}

func run(command []string) int {
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		fmt.Fprintln(os.Stderr, "withzookeeper: usage: withzookeeper [--] command [argument…]")
		return misuse
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	cluster, err := start(signals)
	if err != nil {
		fmt.Fprintf(os.Stderr, "withzookeeper: %v\n", err)
		return failed
	}
	fmt.Fprintf(os.Stderr, "withzookeeper: ZooKeeper is served by %s at %s\n", cluster.Way(), strings.Join(cluster.Addrs(), ","))
	code := beside(cluster, command, signals)
	if err := cluster.Close(); err != nil {
		fmt.Fprintf(os.Stderr, "withzookeeper: %v\n", err)
		return max(code, failed)
	}
	return code
}

var errInterrupted = errors.New("interrupted")

// start gives up at a signal.
func start(signals <-chan os.Signal) (*zkserver.Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), startTime, nil)
	defer cancel()
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			interrupt(errInterrupted)
		case <-done:
		}
	}()
	return zkserver.Start(ctx, zkserver.Options{})
}

// beside runs the command and hands signals on to it.
func beside(cluster *zkserver.Cluster, command []string, signals <-chan os.Signal) int {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // this program's purpose; signals end it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		zkserver.EnvAddress+"="+strings.Join(cluster.Addrs(), ","),
		zkserver.EnvServed+"="+cluster.Way())
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "withzookeeper: %v\n", err)
		return failed
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			return exitCode(err)
		}
	}
}

// signalled is what shells add to the number of the signal that ended a program.
const signalled = 128

func exitCode(err error) int {
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		fmt.Fprintf(os.Stderr, "withzookeeper: %v\n", err)
		return failed
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return exit.ExitCode()
}
