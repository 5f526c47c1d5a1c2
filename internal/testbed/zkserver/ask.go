package zkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

const (
	pollEvery = 20 * time.Millisecond
	askTime   = 2 * time.Second

	firstPatience = 100 * time.Millisecond
)

// A status is what a server tells about itself.
type status struct {
	Version string // "3.8.0"
	Mode    string // "standalone", "leader", "follower"
}

var errNotServing = errors.New("it does not serve yet")

// ask sends a four letter word.
func ask(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// look asks a server for its status.
func look(ctx context.Context, addr string) (status, error) {
	answer, err := ask(ctx, addr, "srvr")
	if err != nil {
		return status{}, err
	}
	var s status
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "Zookeeper version":
			s.Version, _, _ = strings.Cut(value, "-")
		case "Mode":
			s.Mode = value
		}
	}
	if s.Mode == "" {
		return s, errNotServing
	}
	return s, nil
}

// poll calls f until it returns nil, ctx ends, or stop is closed. A call that is
// not answered is given up quickly, as a server that is starting may never answer
// its first connections; later calls get more time.
func poll(ctx context.Context, stop <-chan struct{}, f func(ctx context.Context) error) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for patience := firstPatience; ; patience = min(patience*21/20, askTime) {
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := f(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-stop:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		}
	}
}
