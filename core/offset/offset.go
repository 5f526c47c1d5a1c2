package offset

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/internal/ownership"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

const (
	// MaxLength bounds an offset, in bytes.
	MaxLength = 32 << 10
	// keptCounts bounds the counts of an item: the latest ones are kept.
	keptCounts = 16
)

var (
	// ErrNotOwner: nothing was set, since the run does not own its item any more.
	ErrNotOwner = ownership.ErrNotOwner
	// ErrMoved: nothing was set, since somebody else has set the offset meanwhile.
	ErrMoved = errors.New("the offset was set by somebody else meanwhile")
)

// Config is how an offset is kept. The zero value of a field means its default.
type Config struct {
	// CountInterval is how long what an instance processes goes into one Count. 0 is 5 minutes.
	CountInterval time.Duration
}

// A Position is where an item stands.
type Position struct {
	// Item is the sharding item.
	Item int
	// Total is the sharding total count under which the offset was set, 0 when no run has set it.
	Total int
	// Offset is what the job has set. "" is the beginning.
	Offset string
	// By is the instance that set it, At when, by its clock.
	By string
	At time.Time
	// Success and Failure count the data of the item since it began.
	Success, Failure int64
	// Counts are the latest ones, by instance and interval, the last one first.
	Counts []Count
}

// A Count is what one instance has processed of an item from Since to Until.
type Count struct {
	// Instance is its id.
	Instance string
	// Since and Until are the interval.
	Since, Until time.Time
	// Success and Failure count data.
	Success, Failure int64
}

// Counted is what a Set adds to the counts.
type Counted struct {
	// Success counts the data that the new offset passes.
	Success int
	// Failure counts those that failed.
	Failure int
}

// An Offset is the offset of the item of one run.
type Offset struct {
	shard  core.Shard
	cfg    Config
	own    *ownership.Ownership // nil where no scheduler runs the item: nothing is kept then
	before []Position

	mu      sync.Mutex
	since   time.Time // what is counted next began here
	value   layout.Offset
	stands  bool // value stands in the registry, at version
	version registry.Version
	err     error // of a Set: what stands there is not known
}

// Open reads the offset of a run's item. In a Shard that no scheduler made it starts at "", and
// Set keeps it in memory.
func Open(ctx context.Context, s core.Shard, cfg Config) (*Offset, error) {
	cfg.CountInterval = cmp.Or(cfg.CountInterval, 5*time.Minute)
	o := &Offset{shard: s, cfg: cfg, own: s.Ownership()}
	o.since = o.now()
	if o.own == nil {
		return o, nil
	}
	if err := o.read(ctx); err != nil {
		return nil, fmt.Errorf("offset: read item %d of %q: %w", s.Item, s.Job, err)
	}
	return o, nil
}

func (o *Offset) read(ctx context.Context) error {
	job, n := o.own.Job, o.shard.Item
	nodes, err := settle.Get(ctx, o.own.Store, o.hindered, job.Offset(n), job.OldOffset(n))
	if err != nil {
		return err
	}
	switch node, old := nodes[0], nodes[1]; {
	case node.Exists():
		if o.value, err = layout.UnmarshalOffset(node.Value); err != nil {
			return err
		}
		o.stands, o.version = true, node.Version
	case old.Exists():
		o.value.Offset = string(old.Value)
	}
	if o.stands && o.value.Total == o.shard.Total {
		return nil
	}
	return o.readOthers(ctx)
}

// readOthers reads the offsets that were set under other totals.
func (o *Offset) readOthers(ctx context.Context) error {
	job := o.own.Job
	names, err := o.own.Store.Children(ctx, job.Offsets())
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var items []int
	var paths []string
	for _, name := range names {
		if n, ok := layout.ParseItem(name); ok {
			items, paths = append(items, n), append(paths, job.Offset(n))
		}
	}
	nodes, err := settle.Get(ctx, o.own.Store, o.hindered, paths...)
	if err != nil {
		return err
	}
	for i, node := range nodes {
		if !node.Exists() {
			continue
		}
		v, err := layout.UnmarshalOffset(node.Value)
		switch {
		case err != nil:
			return err
		case v.Total != o.shard.Total:
			o.before = append(o.before, position(items[i], v))
		case v.Before != nil:
			o.before = append(o.before, Position{Item: items[i], Total: v.Before.Total, Offset: v.Before.Offset})
		}
	}
	slices.SortFunc(o.before, func(a, b Position) int { return cmp.Compare(a.Item, b.Item) })
	return nil
}

func position(item int, v layout.Offset) Position {
	p := Position{Item: item, Total: v.Total, Offset: v.Offset, By: v.By, At: v.At, Success: v.Success, Failure: v.Failure}
	for _, c := range v.Counts {
		p.Counts = append(p.Counts, Count(c))
	}
	return p
}

// Position returns where the item stands.
func (o *Offset) Position() Position {
	o.mu.Lock()
	defer o.mu.Unlock()
	return position(o.shard.Item, o.value)
}

// Before returns the offsets that were set under other totals, by item, when the item itself has
// none under the present total; an item that is missing had none. While it returns some, the
// Offset of Position says nothing about the data of the item: the job decides where to start,
// and the next Set puts that down.
func (o *Offset) Before() []Position {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.before)
}

// Set moves the offset and adds to the counts, in one commit. It returns once it is known whether
// that is applied, or with the end of ctx.
func (o *Offset) Set(ctx context.Context, to string, counted Counted) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if err := o.valid(to, counted); err != nil {
		return fmt.Errorf("offset: set item %d of %q: %w", o.shard.Item, o.shard.Job, err)
	}
	next := o.next(to, counted)
	if o.own != nil {
		if err := o.commit(ctx, layout.MarshalOffset(next)); err != nil {
			o.err = fmt.Errorf("offset: set item %d of %q: %w", o.shard.Item, o.shard.Job, err)
			return o.err
		}
	}
	o.value, o.since, o.before = next, next.At, nil
	return nil
}

func (o *Offset) valid(to string, counted Counted) error {
	switch {
	case len(to) > MaxLength:
		return fmt.Errorf("the offset has %d bytes, at most %d fit", len(to), MaxLength)
	case !utf8.ValidString(to):
		return errors.New("the offset is not UTF-8; encode it")
	case counted.Success < 0 || counted.Failure < 0:
		return errors.New("a count is negative")
	}
	return nil
}

// next is the value that follows the present one.
func (o *Offset) next(to string, counted Counted) layout.Offset {
	v := o.value
	v.Counts = slices.Clone(v.Counts)
	if v.Total != 0 && v.Total != o.shard.Total {
		v.Before = &layout.Earlier{Offset: v.Offset, Total: v.Total}
	}
	v.Offset, v.Total = to, o.shard.Total
	v.Seq++
	v.By, v.Due, v.At = o.shard.Instance, o.shard.Due, o.now()
	if counted == (Counted{}) {
		return v
	}
	v.Success += int64(counted.Success)
	v.Failure += int64(counted.Failure)
	at := slices.IndexFunc(v.Counts, func(c layout.Count) bool {
		return c.Instance == o.shard.Instance && !v.At.Before(c.Since) && v.At.Sub(c.Since) < o.cfg.CountInterval
	})
	c := layout.Count{Instance: o.shard.Instance, Since: o.since}
	if at >= 0 {
		c = v.Counts[at]
		v.Counts = slices.Delete(v.Counts, at, at+1)
	}
	c.Until = v.At
	c.Success += int64(counted.Success)
	c.Failure += int64(counted.Failure)
	v.Counts = slices.Insert(v.Counts, 0, c)
	v.Counts = v.Counts[:min(len(v.Counts), keptCounts)]
	return v
}

// commit writes the value. The caller holds mu.
func (o *Offset) commit(ctx context.Context, value []byte) error {
	path := o.own.Job.Offset(o.shard.Item)
	c := ownership.Change{Shows: func(n registry.Node) bool { return bytes.Equal(n.Value, value) }}
	if o.stands {
		c.Ops = []registry.Op{registry.Set(path, value, o.version)}
	} else {
		c.Ops = []registry.Op{registry.Create(path, value)}
	}
	err := o.own.Commit(ctx, c, o.hindered)
	if errors.Is(err, registry.ErrNoParent) { // the first offset of the job, and the directory is made with it
		c.Ops, c.Marker = []registry.Op{registry.Create(o.own.Job.Offsets(), nil), registry.Create(path, value)}, 1
		err = o.own.Commit(ctx, c, o.hindered)
		if failed := (*registry.CommitError)(nil); errors.As(err, &failed) && failed.Index == 0 && errors.Is(err, registry.ErrExists) {
			return o.commit(ctx, value) // another item's run was quicker
		}
	}
	switch {
	case errors.Is(err, registry.ErrDenied):
		return err
	case errors.Is(err, registry.ErrExists), errors.Is(err, registry.ErrVersion), errors.Is(err, registry.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrMoved, err)
	case err != nil:
		return err
	}
	if o.stands {
		o.version++
	}
	o.stands = true
	return nil
}

func (o *Offset) now() time.Time {
	if o.own == nil {
		return time.Now().UTC().Round(0)
	}
	return o.own.Now().UTC().Round(0) // as it is read back
}

func (o *Offset) hindered(err error) {
	o.shard.Warn(fmt.Sprintf("the offset of item %d cannot be read or set; trying again", o.shard.Item), err)
}
