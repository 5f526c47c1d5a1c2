package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// dumpTime bounds one request of ServeDumps, dumpLine what is read of it.
	dumpTime = 30 * time.Second
	dumpLine = 1 << 10
	// dumpsAtOnce is how many are answered at the same time; others wait.
	dumpsAtOnce = 4
)

// ServeDumps answers ElasticJob's dump until ctx ends, and closes l then: a client sends
// "dump@" and the name of a job, and gets what Dump returns, or one line that says why not.
// ElasticJob's lifecycle API and console ask so. Nobody proves who he is: listen where only
// operators come.
func (a *Admin) ServeDumps(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	defer l.Close()
	var open sync.WaitGroup
	defer open.Wait()
	places := make(chan struct{}, dumpsAtOnce)
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case err != nil:
			return fmt.Errorf("admin: serve dumps: %w", err)
		}
		open.Go(func() {
			defer func() { <-places }()
			a.serveDump(ctx, conn)
		})
	}
}

func (a *Admin) serveDump(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, dumpTime)
	defer cancel()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	line, err := bufio.NewReader(io.LimitReader(conn, dumpLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	_, _ = io.WriteString(conn, a.dumpAnswer(ctx, strings.TrimRight(line, "\r\n")))
}

func (a *Admin) dumpAnswer(ctx context.Context, line string) string {
	job, ok := strings.CutPrefix(line, "dump@")
	if !ok {
		return "unknown command; send dump@ and the name of a job\n"
	}
	text, err := a.Dump(ctx, job)
	if err != nil {
		return strings.ReplaceAll(err.Error(), "\n", " ") + "\n"
	}
	return text
}
