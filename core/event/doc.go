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
// whoever owns the item next decides the same. What the leader has decided (ItemCut, mostly) is
// told by the item's next owner, at least once; (Epoch, Item, Due) says which are the same. What
// an instance recorded itself as it died, or as its session was lost, may be told by nobody: that
// a fire ended, or was skipped or folded. Package admin (Explain, AwaitFire) goes by the record.
//
// # Concurrency
//
// Events are plain values; their slices belong to the listener.
package event
