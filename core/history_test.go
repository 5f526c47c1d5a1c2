package core_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A turn is one fire of one item.
type turn struct {
	epoch, item int
	due         int64 // in seconds since the Unix epoch
}

func (t turn) String() string {
	return fmt.Sprintf("epoch %d, item %d, %s", t.epoch, t.item, time.Unix(t.due, 0).UTC().Format("15:04:05"))
}

// A history is what became of each turn of a job that fires at whole seconds: what the
// witness saw, and what the instances told.
type history struct {
	ran, cut, ended, skipped map[turn]int
}

// history reads what the instances have told so far.
func (b *bed) history(w *witness, ins ...*instance) history {
	h := history{ran: map[turn]int{}, cut: map[turn]int{}, ended: map[turn]int{}, skipped: map[turn]int{}}
	w.mu.Lock()
	for _, runs := range w.runs {
		for _, s := range runs {
			h.ran[turn{s.Epoch, s.Item, s.Due.Unix()}]++
		}
	}
	w.mu.Unlock()
	for _, in := range ins {
		for _, e := range of[event.ItemEnded](in) {
			h.ended[turn{e.Epoch, e.Item, e.Due.Unix()}]++
		}
		for _, e := range of[event.ItemCut](in) {
			h.cut[turn{e.Epoch, e.Item, e.Due.Unix()}]++
		}
		for _, e := range of[event.ItemsSkipped](in) {
			for _, n := range e.Items {
				for t := e.First.Unix(); t <= e.Due.Unix(); t++ {
					h.skipped[turn{e.Epoch, n, t}]++
				}
			}
		}
		for _, e := range of[event.ItemsFolded](in) {
			for _, n := range e.Items {
				for t := e.First.Unix(); t <= e.Last.Unix(); t++ {
					h.skipped[turn{e.Epoch, n, t}]++
				}
			}
		}
	}
	return h
}

// wrong returns the turns that ran twice without a cut, and those that were told as
// skipped and ran.
func (h history) wrong() []string {
	var keys []string
	for t, n := range h.ran {
		if n > 1+h.cut[t] {
			keys = append(keys, fmt.Sprintf("%v ran %d times", t, n))
		}
		if h.skipped[t] > 0 {
			keys = append(keys, fmt.Sprintf("%v ran and was told as skipped", t))
		}
	}
	slices.Sort(keys)
	return keys
}

// open returns the turns of an epoch, of each of its items and each second after one
// instant up to another, of which nothing is known.
func (h history) open(epoch, total int, after, upTo time.Time) []string {
	var keys []string
	for due := after.Unix() + 1; due <= upTo.Unix(); due++ {
		for n := range total {
			if t := (turn{epoch, n, due}); h.ran[t]+h.cut[t]+h.skipped[t] == 0 {
				keys = append(keys, t.String())
			}
		}
	}
	return keys
}

// own is a node of the job's own tree, which ElasticJob does not know.
func (b *bed) own(in *instance, below string) string {
	return "/" + layout.OwnNamespace + b.path(in, below)
}

// epochs follows the node by which everybody knows the epoch, from now on. What it
// returns is called when all is over: the epochs so far, each as it was written last.
func (b *bed) epochs(in *instance) func() []layout.Base {
	b.Helper()
	w, err := b.open(in).Watch(b.Context())
	require.NoError(b, err)
	require.NoError(b, w.Add(b.own(in, "inforce/base"), registry.Self))
	seen := make(chan []layout.Base, 1)
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	go func() {
		var bases []layout.Base
		for {
			events, err := w.Next(ctx)
			if err != nil {
				seen <- bases
				return
			}
			for _, e := range events {
				if base, err := layout.UnmarshalBase(e.Node.Value); err == nil {
					bases = append(slices.DeleteFunc(bases, func(o layout.Base) bool { return o.Epoch == base.Epoch }), base)
				}
			}
		}
	}()
	return func() []layout.Base {
		cancel()
		return <-seen
	}
}

// lost returns the turns after one instant, up to another, of which nothing is known, and
// those that belong to another epoch. Each base says where its epoch starts.
func (h history) lost(bases []layout.Base, from, upTo time.Time) []string {
	var keys []string
	for i, base := range bases {
		after, last := base.Through, upTo
		if i == 0 {
			after = from
		}
		if i+1 < len(bases) {
			last = bases[i+1].Through
		}
		keys = append(keys, h.open(base.Epoch, base.To, after, last)...)
		for t := range h.ran {
			outside := t.due > last.Unix() && i+1 < len(bases) || t.due <= base.Through.Unix()
			if t.epoch == base.Epoch && outside {
				keys = append(keys, fmt.Sprintf("%v is not of this epoch", t))
			}
		}
	}
	return keys
}

// times returns the due times of runs, in order; of nil, of all.
func (w *witness) times(of func(s core.Shard) bool) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var dues []time.Time
	for _, runs := range w.runs {
		for _, s := range runs {
			if of == nil || of(s) {
				dues = append(dues, s.Due)
			}
		}
	}
	slices.SortFunc(dues, time.Time.Compare)
	return dues
}

// first and last are the first and the last fire that ran.
func (w *witness) first() time.Time { return w.times(nil)[0] }

func (w *witness) last() time.Time {
	dues := w.times(nil)
	return dues[len(dues)-1]
}

// holds changes what items do.
func (w *witness) holds(hold func(ctx context.Context, s core.Shard) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold = hold
}
