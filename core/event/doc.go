// Package event is what a scheduler tells: each type is one thing that happened to a
// job, an item of it, or the registry session.
//
//	core.WithListener(func(e event.Event) {
//		switch e := e.(type) {
//		case event.ItemEnded:
//			...
//		case event.ItemsSkipped, event.ItemsFolded:
//			...
//		}
//	})
//
// # Outcomes
//
// Each fire of each item has one outcome, and one event says which: ItemEnded,
// ItemCut, ItemsSkipped or ItemsFolded. The record in the registry precedes the event, so that
// whoever owns the item next decides the same. An outcome that was recorded by an
// instance that died before it could tell is told by the item's next owner; so it is
// told at least once, and (Epoch, Item, Due) says which are the same.
//
// # Concurrency
//
// Events are plain values; their slices belong to the listener.
package event
