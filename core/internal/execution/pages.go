package execution

import (
	"context"
	"errors"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

const (
	// pathBytes is what the paths of a commit may take beside those of its own items.
	pathBytes = 8 << 10
	// grown is what a begin may add to a page in which each record is an item's own.
	grown = 56
)

// A room is what a commit has left while its entries are taken.
type room struct {
	led        *ledger.Ledger
	path       int // the length of that of a page
	ops, bytes int
	pages      map[int]int // with how many entries in each
}

// room is that of the next commit. The caller holds mu.
func (r *Recorder) room() room {
	limits := r.cfg.Session.Limits()
	return room{
		led: r.led, path: len(r.place.Ledger) + len("/1048576"), pages: map[int]int{},
		ops:   limits.MaxOps - fixedOps - signalOps,
		bytes: limits.MaxBytes - min(pathBytes, limits.MaxBytes/8) - r.led.RootSize(),
	}
}

// take takes an entry's item in, with so many operations; false when there is no room for it. The
// items of a page share what that takes.
func (x *room) take(item, ops int, begins bool) bool {
	page, is := x.led.Page(item)
	bytes := 0
	if is {
		size, records := x.led.Size(page)
		entries, known := x.pages[page]
		if !known {
			ops, bytes = ops+1, size+x.path
		}
		if begins && entries < records {
			bytes += grown
		}
	}
	if ops > x.ops || (bytes > x.bytes && len(x.pages) > 0) {
		return false
	}
	x.ops, x.bytes = x.ops-ops, x.bytes-bytes
	if is {
		x.pages[page]++
	}
	return true
}

// put completes a commit with what it sets of the ledger. The caller holds mu.
func (r *Recorder) put(b *batch) {
	limits := r.cfg.Session.Limits()
	left := limits.MaxBytes - len(r.place.Ledger)
	for _, op := range b.ops {
		left -= len(op.Path) + len(op.Value)
	}
	b.write = r.led.Write(int64(r.version)+1, ledger.Room{
		Value: limits.MaxValue, Ops: limits.MaxOps - len(b.ops), Bytes: left,
	})
	b.ops[1] = registry.Set(r.place.Ledger, b.write.Root, r.version)
	b.pages = len(b.ops)
	for _, p := range b.write.Pages {
		b.ops, b.owner = append(b.ops, pages.Op(r.place.Ledger, p)), append(b.owner, -1)
	}
	if n := len(b.ops); n > b.pages && failpoint.Mutant(failpoint.PageLeftOut) {
		b.ops, b.owner = b.ops[:n-1], b.owner[:n-1]
	}
}

// page returns which page an operation of the batch is on.
func (b *batch) page(index int) (page int, is bool) {
	if index < b.pages {
		return 0, false
	}
	return b.write.Pages[index-b.pages].Number, true
}

// lacks takes into account what a refusal says of a page: the root was as it is known, so that somebody
// has deleted the page, or made it.
func (r *Recorder) lacks(ctx context.Context, page int, failed *registry.CommitError) {
	exists, missing := errors.Is(failed, registry.ErrExists), errors.Is(failed, registry.ErrNotFound)
	if !exists && !missing { // something stands below it
		r.owner.Hindered(failed)
		settle.Pause(ctx, again)
		return
	}
	r.mu.Lock()
	r.led.Lacks(page, exists)
	r.mu.Unlock()
}

// mends reports whether the ledger is to be set for what somebody did to its pages.
func (r *Recorder) mends() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.led.Mends()
}
