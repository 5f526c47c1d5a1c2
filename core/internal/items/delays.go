package items

import "container/heap"

// delays are the idle items of a fixed delay, by when they are due. The zero value is empty.
type delays struct{ heap delayHeap }

func (d *delays) add(it *item) {
	if it.place >= 0 {
		heap.Fix(&d.heap, it.place)
		return
	}
	heap.Push(&d.heap, it)
}

func (d *delays) remove(it *item) {
	if it.place >= 0 {
		heap.Remove(&d.heap, it.place)
	}
}

// first returns the item that is due first, or nil.
func (d *delays) first() *item {
	if len(d.heap) == 0 {
		return nil
	}
	return d.heap[0]
}

type delayHeap []*item

func (h *delayHeap) Len() int { return len(*h) }

func (h *delayHeap) Less(i, j int) bool {
	a, b := (*h)[i], (*h)[j]
	if a.ready.Equal(b.ready) {
		return a.number < b.number
	}
	return a.ready.Before(b.ready)
}

func (h *delayHeap) Swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

func (h *delayHeap) Push(x any) {
	it, _ := x.(*item) // heap.Push is given nothing else
	it.place = len(*h)
	*h = append(*h, it)
}

func (h *delayHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	it.place = -1
	return it
}
