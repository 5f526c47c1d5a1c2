//go:build race

package simulation

const (
	raced = true
	usual = 30 // seeds
)
