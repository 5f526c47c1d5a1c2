package testbed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// freeAddr finds a port that nobody uses now. It is below the ports that systems
// hand out by themselves (Linux from 32768 on), so that no outgoing connection takes
// it before the member listens on it, or while the member is being restarted.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	addr, err := findFreeAddr()
	if err != nil {
		tb.Fatalf("testbed: %v", err)
	}
	return addr
}

func findFreeAddr() (string, error) {
	var last error
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = l.Close()
			return addr, nil
		}
		last = err
	}
	return "", fmt.Errorf("no free port: %w", last)
}
