package zkserver

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// freePorts finds ports that nobody uses now. They are below the ports that
// systems hand out by themselves (Linux from 32768 on), so that no outgoing
// connection takes one before the server listens on it, or while it restarts.
func freePorts(n int) ([]int, error) {
	var ports []int
	taken := map[int]bool{}
	var last error
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := 10_000 + rand.IntN(22_000)
		if taken[port] {
			continue
		}
		taken[port] = true
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		_ = l.Close()
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("zkserver: no free port: %w", last)
}
