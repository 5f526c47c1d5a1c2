//go:build !unix

package testbed

import "os/exec"

func detachProcess(*exec.Cmd) {}
