// Package failpoint names the places at which tests kill, pause or fail the engine, and
// the mutations by which they prove their checker. In a build without the tag
// "failpoint" it does nothing and costs nothing.
//
//	failpoint.Hit(failpoint.BeforeRecord)
//	if failpoint.Mutant(failpoint.HoldIgnored) { ... }
//
// A test built with the tag sets what happens:
//
//	defer failpoint.Set(func(p failpoint.Point) { ... })()
package failpoint
