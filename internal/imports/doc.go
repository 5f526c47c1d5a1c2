// Package imports holds the test of which package may import which: the table of
// ARCHITECTURE.md, checked on what the go command lists. It has no code of its own.
package imports
