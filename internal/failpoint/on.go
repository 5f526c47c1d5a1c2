//go:build failpoint

package failpoint

import "sync/atomic"

var (
	hook   atomic.Pointer[func(Point)]
	mutant atomic.Pointer[Mutation]
)

// Hit calls what Set has set. Which instance it is shows the calling goroutine only.
func Hit(p Point) {
	if f := hook.Load(); f != nil {
		(*f)(p)
	}
}

// Set makes Hit call f, until restore.
func Set(f func(Point)) (restore func()) {
	old := hook.Swap(&f)
	return func() { hook.Store(old) }
}

// Mutant reports whether the mutation is switched on.
func Mutant(m Mutation) bool {
	on := mutant.Load()
	return on != nil && *on == m
}

// Mutate switches one mutation on, until restore.
func Mutate(m Mutation) (restore func()) {
	old := mutant.Swap(&m)
	return func() { mutant.Store(old) }
}
