//go:build !failpoint

package failpoint

// Hit does nothing in this build.
func Hit(Point) {}

// Mutant is false in this build.
func Mutant(Mutation) bool { return false }
