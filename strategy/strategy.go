package strategy

import (
	"fmt"
	"maps"
	"slices"
)

// A Strategy spreads the items of a job over its instances.
//
// Assign must be a pure function: equal input, equal answer, whatever the order
// of Input.Instances. It gives every item to exactly one of the instances, and
// leaves the input as it is. It is called by the leader alone, possibly from
// several goroutines at once.
type Strategy interface {
	// Name is what a job's configuration calls the strategy. It never changes.
	Name() string
	// Assign answers with an entry for each instance, empty if it gets nothing. It returns
	// soon: items stay where they are until it does.
	Assign(in Input) Assignment
}

// An Input is what a Strategy decides on. The zero value has no instances, so
// there is nothing to assign.
type Input struct {
	// Job is the name of the job.
	Job string
	// Instances are the ids of the instances that can run items, in any order.
	Instances []string
	// Total is the number of items: they are 0 to Total-1.
	Total int
	// Previous is what was assigned last, nil if unknown. It may name instances
	// that are gone and items that are out of range. AvgAllocation, Odevity and
	// RoundRobin ignore it; Sticky says how it reads it.
	Previous Assignment
}

// An Assignment tells for each instance id its items, in ascending order. The
// nil Assignment has no instances and can be read.
type Assignment map[string][]int

// Owners tells for each item below total the instance that has it, or "" if none
// does. Of several the smallest id is named. Items out of range are left out.
func (a Assignment) Owners(total int) []string {
	owners := make([]string, max(total, 0))
	for id, items := range a {
		for _, item := range items {
			if item >= 0 && item < total && (owners[item] == "" || id < owners[item]) {
				owners[item] = id
			}
		}
	}
	return owners
}

// Check tells what is wrong with a as an answer to in, or nil: an instance that
// was not asked for, an item out of range, out of order, given twice or to
// nobody. An instance without an entry is right, it has no items. Balance is not
// required.
func (a Assignment) Check(in Input) error {
	asked := make(map[string]bool, len(in.Instances))
	for _, id := range in.Instances {
		asked[id] = true
	}
	owner := make(map[int]string, max(in.Total, 0))
	for _, id := range slices.Sorted(maps.Keys(a)) {
		if !asked[id] {
			return fmt.Errorf("strategy: instance %q was not asked for", id)
		}
		if err := checkItems(id, a[id], in.Total, owner); err != nil {
			return err
		}
	}
	for item := range in.Total {
		if _, ok := owner[item]; !ok && len(asked) > 0 {
			return fmt.Errorf("strategy: item %d of %d is given to nobody", item, in.Total)
		}
	}
	return nil
}

// checkItems checks the items of one instance and enters them into owner.
func checkItems(id string, items []int, total int, owner map[int]string) error {
	for i, item := range items {
		if item < 0 || item >= total {
			return fmt.Errorf("strategy: item %d of instance %q is not one of 0 to %d", item, id, total-1)
		}
		if other, ok := owner[item]; ok {
			return fmt.Errorf("strategy: item %d is given twice, to %q and %q", item, other, id)
		}
		if i > 0 && item < items[i-1] {
			return fmt.Errorf("strategy: items of instance %q are not ascending: %d after %d", id, item, items[i-1])
		}
		owner[item] = id
	}
	return nil
}

// assemble turns "item i belongs to ids[owner[i]]" into an Assignment. The lists
// share one array but no capacity: a caller may append to one of them.
func assemble(ids []string, owner []int32) Assignment {
	sizes := make([]int, len(ids))
	for _, k := range owner {
		sizes[k]++
	}
	lists, rest := make([][]int, len(ids)), make([]int, len(owner))
	for k, n := range sizes {
		lists[k], rest = rest[:0:n], rest[n:]
	}
	for item, k := range owner {
		lists[k] = append(lists[k], item)
	}
	a := make(Assignment, len(ids))
	for k, id := range ids {
		a[id] = lists[k]
	}
	return a
}
