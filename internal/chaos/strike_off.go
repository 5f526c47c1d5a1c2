//go:build !failpoint

package main

import "github.com/elasticron/elasticron/internal/failpoint"

// haveFailpoints says whether the engine of this build has failpoints.
const haveFailpoints = false

// onPoint does nothing: the engine of this build has no failpoints.
func onPoint(func(failpoint.Point)) {}
