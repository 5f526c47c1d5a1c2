package strategy

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Sticky is STICKY: sizes differ by at most one, and no balanced assignment takes
// fewer items away from the instances that have them.
//
// It reads Input.Previous so. An item listed for an instance that is present is
// held by it. An item listed for one that is gone is remembered for the present
// instance that Bind gives the same name; so an instance that comes back under a
// new id is preferred for its old items. Previous may list an item under both: the
// present instance holds it then, and if it has to move anyway it rather moves to
// the one it is remembered for. To give a returning instance its old items back
// after others have taken them over, keep its old entry in Previous.
//
// First the fewest items held move, then the fewest items that nobody holds miss
// the instance they are remembered for; the last preference is met as far as a
// single pass over the items goes. An answer given back as Previous with the same
// instances comes back unchanged. Where there is still a choice, a hash of the job
// and the instance decides, so that small jobs spread over the instances.
//
// The zero value is ready for use.
type Sticky struct {
	// Bind gives the part of an instance id that outlives a restart. Two ids with
	// the same name are lives of one instance; if several present instances share
	// it, the one on the same server is preferred. "" binds to nothing. It must be
	// pure. Nil means StableName.
	Bind func(id string) string
}

// Name returns "STICKY".
func (Sticky) Name() string { return "STICKY" }

// Assign takes time linear in the items, present and previous.
func (s Sticky) Assign(in Input) Assignment {
	ids := s.ranked(in)
	if len(ids) == 0 || in.Total <= 0 {
		return assemble(ids, nil)
	}
	p := newPlan(len(ids), in.Total)
	for _, c := range s.claims(ids, in.Previous) {
		p.claim(c)
	}
	p.setQuotas()
	for _, held := range []bool{false, true} {
		p.grantWishes(held)
		p.release(held)
	}
	p.fill()
	return assemble(ids, p.owner)
}

// StableName returns the part of an instance id that outlives a restart: the name
// in {ip}@-@{name}-{life}, where life has no "-". An id of another form, such as
// Java's {ip}@-@{pid}, is unique to one life and returned whole.
func StableName(id string) string {
	_, rest, ok := strings.Cut(id, delimiter)
	if !ok {
		return id
	}
	cut := strings.LastIndexByte(rest, '-')
	if cut <= 0 || cut == len(rest)-1 {
		return id
	}
	return rest[:cut]
}

// delimiter stands between the server and the rest of an instance id.
const delimiter = "@-@"

func (s Sticky) bind(id string) string {
	if s.Bind == nil {
		return StableName(id)
	}
	return s.Bind(id)
}

// ranked returns the distinct instances in an order that is the job's own and
// outlives restarts: it breaks all ties.
func (s Sticky) ranked(in Input) []string {
	ids := descending(in.Instances)
	weight := make(map[string]uint64, len(ids))
	for _, id := range ids {
		weight[id] = mix(in.Job, cmp.Or(s.bind(id), id))
	}
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(weight[a], weight[b]) })
	return ids
}

// mix is FNV-1a over both strings with the finalizer of splitmix64, which spreads
// names that differ only in their last characters.
func mix(job, name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, s := range [...]string{job, "\x00", name} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 0x100000001b3
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// A claim says that previous lists items for an instance, given by rank.
type claim struct {
	by    int32
	held  bool // by its own id, not only by the name it shares with one that is gone
	items []int
}

// claims resolves previous to present instances: first what is held, by rank, then
// what is remembered, by the old id. The order decides between claims to one item.
func (s Sticky) claims(ids []string, previous Assignment) []claim {
	var claims []claim
	lives := make([]int, len(ids)) // previous ids that are this instance
	present := make(map[string]bool, len(ids))
	named := make(map[string][]int32, len(ids))
	for k, id := range ids {
		present[id] = true
		if name := s.bind(id); name != "" {
			named[name] = append(named[name], int32(k))
		}
		if items, ok := previous[id]; ok {
			claims = append(claims, claim{int32(k), true, items})
			lives[k]++
		}
	}
	for _, gone := range slices.Sorted(maps.Keys(previous)) {
		same := named[s.bind(gone)]
		if present[gone] || len(same) == 0 {
			continue
		}
		k := slices.MinFunc(same, func(a, b int32) int {
			return cmp.Or(cmp.Compare(distance(ids[a], gone), distance(ids[b], gone)), cmp.Compare(lives[a], lives[b]))
		})
		claims = append(claims, claim{k, false, previous[gone]})
		lives[k]++
	}
	return claims
}

// distance is 0 for ids on one server and 1 otherwise.
func distance(a, b string) int {
	serverA, _, _ := strings.Cut(a, delimiter)
	serverB, _, _ := strings.Cut(b, delimiter)
	if serverA == serverB {
		return 0
	}
	return 1
}
