package strategy

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// AvgAllocation is ElasticJob's AVG_ALLOCATION, its default. With q = Total / M
// for M instances, in descending order of their ids the first gets the items 0 to
// q-1, the second q to 2q-1, and so on; the items that remain go one each to the
// first instances. Three instances and ten items: [0 1 2 9] [3 4 5] [6 7 8].
type AvgAllocation struct{}

// Name returns "AVG_ALLOCATION".
func (AvgAllocation) Name() string { return "AVG_ALLOCATION" }

// Assign ignores Input.Job and Input.Previous.
func (AvgAllocation) Assign(in Input) Assignment {
	return allocate(descending(in.Instances), in.Total)
}

// Odevity is ElasticJob's ODEVITY: as [AvgAllocation], but in ascending order of
// ids if the hash of the job's name is even. So jobs with few items do not all
// end up with the same instances. (ElasticJob's documentation has it the other
// way round; its code starts from a descending list.)
type Odevity struct{}

// Name returns "ODEVITY".
func (Odevity) Name() string { return "ODEVITY" }

// Assign ignores Input.Previous.
func (Odevity) Assign(in Input) Assignment {
	ids := descending(in.Instances)
	if hashCode(in.Job)%2 == 0 {
		slices.Reverse(ids)
	}
	return allocate(ids, in.Total)
}

// RoundRobin is ElasticJob's ROUND_ROBIN: as [AvgAllocation], but starting with
// another instance for each job: in descending order the one at index |h| mod M,
// where h is the hash of the job's name and M the number of instances.
//
// For the one hash that has no absolute value in 32 bits, -2147483648, Java fails
// unless M is a power of two. The answer here is that of |h| = 2147483648, which
// is Java's wherever Java has one.
type RoundRobin struct{}

// Name returns "ROUND_ROBIN".
func (RoundRobin) Name() string { return "ROUND_ROBIN" }

// Assign ignores Input.Previous.
func (RoundRobin) Assign(in Input) Assignment {
	ids := descending(in.Instances)
	if len(ids) > 0 {
		hash := int64(hashCode(in.Job))
		first := max(hash, -hash) % int64(len(ids))
		ids = slices.Concat(ids[first:], ids[:first])
	}
	return allocate(ids, in.Total)
}

// allocate gives each of ids an equal run of items, in order, and then what
// remains to the first ones.
func allocate(ids []string, total int) Assignment {
	if len(ids) == 0 || total <= 0 {
		return assemble(ids, nil)
	}
	run := total / len(ids)
	owner := make([]int32, total)
	for item := range owner {
		if item < run*len(ids) {
			owner[item] = int32(item / run)
		} else {
			owner[item] = int32(item - run*len(ids))
		}
	}
	return assemble(ids, owner)
}

// descending returns the distinct ids in the order in which ElasticJob's registry
// centre lists children: from the greatest to the least.
func descending(ids []string) []string {
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b string) int {
		// The second comparison tells invalid UTF-8 apart, which Java cannot hold.
		return cmp.Or(compareUTF16(b, a), strings.Compare(b, a))
	})
	return slices.Compact(sorted)
}

// compareUTF16 orders two strings by their UTF-16 code units, as String.compareTo.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return cmp.Compare(utf16Rank(ra), utf16Rank(rb))
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

// utf16Rank maps code points to numbers that order as their UTF-16 forms do: the
// surrogates that start at U+10000 stand below U+E000.
func utf16Rank(r rune) rune {
	switch {
	case r >= 0x10000:
		return r - 0x10000 + 0xD800
	case r >= 0xE000:
		return r + 0x100000
	}
	return r
}

// hashCode is String.hashCode: h = 31h + c over UTF-16 code units, modulo 2^32.
func hashCode(s string) int32 {
	var h uint32
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xD800 + uint32(r>>10)
			r = 0xDC00 + r&0x3FF
		}
		h = 31*h + uint32(r)
	}
	return int32(h)
}
