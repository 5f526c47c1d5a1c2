package zkserver

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// guardScript is what stands between this process and a server, in a container too.
//
//go:embed guard.sh
var guardScript string

// A place is where one member listens, and where it finds the others.
type place struct {
	addr       string // for clients
	listen     string
	clientPort int
	members    []string // host:port:port for followers and elections, its own included
}

const (
	initLimit = 20 // ticks that a follower may take to come up
	syncLimit = 8  // ticks of silence after which leader and follower part

	maxSession = 10 * time.Minute
)

// zooCfg is member i's configuration; "@" stands for its folder.
func zooCfg(o Options, places []place, i int) string {
	lines := []string{
		"dataDir=@/data",
		fmt.Sprintf("clientPort=%d", places[i].clientPort),
		"clientPortAddress=" + places[i].listen,
		fmt.Sprintf("tickTime=%d", o.Tick.Milliseconds()),
		fmt.Sprintf("minSessionTimeout=%d", 2*o.Tick.Milliseconds()),
		fmt.Sprintf("maxSessionTimeout=%d", maxSession.Milliseconds()),
		fmt.Sprintf("initLimit=%d", initLimit),
		fmt.Sprintf("syncLimit=%d", syncLimit),
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
		"preAllocSize=1024", // KiB, not 64 MiB for each server
		"forceSync=no",      // the machine does not lose power, only the server is killed
		"snapCount=100000",
	}
	if len(places) > 1 {
		lines = append(lines, fmt.Sprint("quorumListenOnAllIPs=", places[i].listen == "0.0.0.0"))
		for n, at := range places[i].members {
			lines = append(lines, fmt.Sprintf("server.%d=%s", n+1, at))
		}
	}
	return strings.Join(append(lines, o.Config...), "\n")
}

// javaOptions make a server start quickly and stay small.
func javaOptions(o Options) string {
	options := []string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
		"-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true",
		"-Dznode.container.checkIntervalMs=1000",
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	}
	return strings.Join(append(options, o.Java...), " ")
}
