// Package ports finds TCP ports for servers that tests and examples start.
//
//	claim, err := ports.Take(3)
//	defer claim.Close()
//	addr := claim.Addr(0) // 127.0.0.1:21345
//
// A port that is free when it is looked for may be anybody's a moment later. So a
// claim keeps its ports from every other claim on the machine, in whatever process,
// also before its server listens and while it is restarted: it holds the UDP ports of
// the same numbers, which no server of ours uses and which the system frees when the
// process dies. The ports are below those that systems hand out by themselves (Linux
// from 32768 on), so that no outgoing connection takes one.
//
// All functions may be called concurrently.
package ports
