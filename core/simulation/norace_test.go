//go:build !race

package simulation

const (
	raced = false
	usual = 200 // seeds
)
