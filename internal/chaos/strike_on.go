//go:build failpoint

package main

import "github.com/elasticron/elasticron/internal/failpoint"

// haveFailpoints says whether the engine of this build has failpoints.
const haveFailpoints = true

// onPoint calls f whenever the engine comes to a failpoint.
func onPoint(f func(failpoint.Point)) { failpoint.Set(f) }
