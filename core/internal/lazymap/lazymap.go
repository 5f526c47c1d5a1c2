// Package lazymap puts values into maps that are made when the first one comes. Each of ten thousand jobs has a dozen
// maps that mostly stay empty: a map that is nil takes no memory, and to look into it touches none.
//
//	var asks map[string]bool
//	lazymap.Set(&asks, "run-1", true)
//
// Reading, deleting, ranging over and clearing a nil map need no help; Delete is for maps that are mostly empty
// again after a while. It is as safe for concurrent use as a map.
package lazymap

// Set puts a value into the map at m.
func Set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Delete takes a value out of the map at m, and drops that with the last one.
func Delete[K comparable, V any](m *map[K]V, key K) {
	delete(*m, key)
	if len(*m) == 0 {
		*m = nil
	}
}
