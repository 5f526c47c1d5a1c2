// Etcdmember is one etcd server of a cluster for tests (see package etcdmember), which the test-bed starts where
// ELASTICRON_ETCD_MEMBER names it:
//
//	go build -o etcdmember ./internal/testbed/cmd/etcdmember
//	ELASTICRON_ETCD_MEMBER=$PWD/etcdmember go test -race ./registry/etcd
package main

import (
	"fmt"
	"os"

	"github.com/elasticron/elasticron/internal/testbed/etcdmember"
)

func main() {
	if err := etcdmember.Main(); err != nil {
		fmt.Fprintf(os.Stderr, "etcdmember: %v\n", err)
		os.Exit(1) //nolint:forbidigo // its parent reads this
	}
}
