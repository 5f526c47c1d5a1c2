package strategy

import (
	"cmp"
	"slices"
)

// nobody stands for no instance.
const nobody int32 = -1

// A plan is a sticky assignment in the making. Instances are numbers, by rank.
type plan struct {
	// By item.
	owner []int32 // who has it
	held  []bool  // the owner is present under the id that had it
	wish  []int32 // who it is remembered for, besides the owner

	// By instance.
	size  []int // items it owns
	quota []int // items it shall own
}

func newPlan(instances, total int) *plan {
	return &plan{
		owner: slices.Repeat([]int32{nobody}, total),
		held:  make([]bool, total),
		wish:  slices.Repeat([]int32{nobody}, total),
		size:  make([]int, instances),
		quota: make([]int, instances),
	}
}

// claim enters what an instance had. The first claim to an item makes the owner.
func (p *plan) claim(c claim) {
	for _, item := range c.items {
		switch {
		case item < 0 || item >= len(p.owner):
		case p.owner[item] == nobody:
			p.owner[item], p.held[item] = c.by, c.held
			p.size[c.by]++
		case p.owner[item] != c.by && p.wish[item] == nobody:
			p.wish[item] = c.by
		}
	}
}

// setQuotas decides which instances get one item more than the others. Each of
// those that own too many keeps one more that way, so they come first.
func (p *plan) setQuotas() {
	least := len(p.owner) / len(p.size)
	order := p.extraOrder(least)
	for i, k := range order {
		p.quota[k] = least
		if i < len(p.owner)%len(p.size) {
			p.quota[k]++
		}
	}
}

// extraOrder sorts the instances by what an item above least is worth to them.
func (p *plan) extraOrder(least int) []int32 {
	held, leaving, coming := p.tally(least)
	order, worth := make([]int32, len(p.size)), make([]int, len(p.size))
	for k := range order {
		order[k] = int32(k)
		switch surplus := p.size[k] - least; {
		case held[k] > least:
			worth[k] = 5
		case surplus > 0:
			worth[k] = 3
		case surplus+coming[k] > 0:
			worth[k] = 1
		}
		// With one more to keep, it would keep an item that is wished elsewhere.
		if surplus := p.size[k] - least; surplus > 0 && leaving[k] >= surplus {
			worth[k]--
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(worth[b], worth[a]) })
	return order
}

// tally counts for each instance the items it holds, and those that would follow a
// wish from it and to it if it had to give items away or could take some.
func (p *plan) tally(least int) (held, leaving, coming []int) {
	held, leaving, coming = make([]int, len(p.size)), make([]int, len(p.size)), make([]int, len(p.size))
	for item, k := range p.owner {
		if k == nobody {
			continue
		}
		if p.held[item] {
			held[k]++
		}
		if w := p.wish[item]; w != nobody && p.size[w] <= least && p.size[k] > least {
			leaving[k]++
			coming[w]++
		}
	}
	return held, leaving, coming
}

// grantWishes moves items from those that own too many to those they are
// remembered for, as far as these have room.
func (p *plan) grantWishes(held bool) {
	for item, to := range p.wish {
		if to == nobody || p.held[item] != held || p.size[to] >= p.quota[to] || !p.excess(item) {
			continue
		}
		p.size[p.owner[item]]--
		p.owner[item] = to
		p.size[to]++
	}
}

// release takes from those that own too many, the last items first.
func (p *plan) release(held bool) {
	for item := len(p.owner) - 1; item >= 0; item-- {
		if p.held[item] == held && p.excess(item) {
			p.size[p.owner[item]]--
			p.owner[item] = nobody
		}
	}
}

// fill gives the items without an owner, in order, to the instances with room.
func (p *plan) fill() {
	to := 0
	for item, k := range p.owner {
		if k != nobody {
			continue
		}
		for p.size[to] >= p.quota[to] {
			to++
		}
		p.owner[item] = int32(to)
		p.size[to]++
	}
}

// excess tells whether item belongs to an instance that owns too many.
func (p *plan) excess(item int) bool {
	k := p.owner[item]
	return k != nobody && p.size[k] > p.quota[k]
}
