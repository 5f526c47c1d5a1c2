package core

import (
	"net"
	"os"
	"strings"
)

// hostAddress is the first IPv4 address of an interface that is up and not
// loopback, else 127.0.0.1.
func hostAddress() string {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() && n.IP.To4() != nil {
			return n.IP.To4().String()
		}
	}
	return "127.0.0.1"
}

// hostName is the host's name as far as an instance id can hold it.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "instance"
	}
	name = strings.Map(func(r rune) rune {
		if r == '@' || r == '/' || r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, name)
	return name[:min(len(name), 64)]
}
