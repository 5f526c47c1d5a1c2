// Package sortedmap has maps in the order of their keys. Each is one slice: most of ten thousand jobs have one
// entry, for which a map takes ten times as much, and who ranges over one need not sort it.
//
//	var servers sortedmap.Map[string, string]
//	servers.Set("10.0.0.1", "ENABLED")
//
// To look something up takes as long as in a list that is halved again and again, and to put something new in as
// long as to move what comes after it. It is as safe for concurrent use as a map.
package sortedmap

import (
	"cmp"
	"iter"
	"slices"
)

// A Map is empty at its zero value.
type Map[K cmp.Ordered, V any] struct{ entries []entry[K, V] }

type entry[K cmp.Ordered, V any] struct {
	key   K
	value V
}

func (m *Map[K, V]) find(key K) (at int, has bool) {
	return slices.BinarySearchFunc(m.entries, key, func(e entry[K, V], key K) int { return cmp.Compare(e.key, key) })
}

// Get returns what stands at a key, and whether anything does.
func (m *Map[K, V]) Get(key K) (value V, has bool) {
	at, has := m.find(key)
	if has {
		value = m.entries[at].value
	}
	return value, has
}

// Has reports whether anything stands at a key.
func (m *Map[K, V]) Has(key K) bool {
	_, has := m.find(key)
	return has
}

// Set puts a value at a key.
func (m *Map[K, V]) Set(key K, value V) {
	at, has := m.find(key)
	if !has {
		m.entries = slices.Insert(m.entries, at, entry[K, V]{key: key})
	}
	m.entries[at].value = value
}

// Delete takes out what stands at a key, if anything does.
func (m *Map[K, V]) Delete(key K) {
	if at, has := m.find(key); has {
		m.entries = slices.Delete(m.entries, at, at+1)
	}
}

// Keys returns the keys in their order, nil where there are none.
func (m *Map[K, V]) Keys() (keys []K) {
	for _, e := range m.entries {
		keys = append(keys, e.key)
	}
	return keys
}

// All yields the entries in the order of their keys. The map must not change meanwhile.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, e := range m.entries {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}
