//go:build race

package simulation

const (
	raced = true
	usual = 15 // seeds
)
