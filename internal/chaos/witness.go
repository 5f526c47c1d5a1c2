package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// A witness asks whether the servers themselves keep what they acknowledged: it counts in
// a node that nobody else writes, past all proxies, and looks whether an acknowledged
// count ever goes back. Every promise of Elasticron rests on that, and some releases of
// ZooKeeper break it when servers are killed right after an election (ZOOKEEPER-4643,
// 4646, 4785, 4925): a run in which they did says nothing about Elasticron.
type witness struct {
	client *client
	out    *history.Writer

	mu    sync.Mutex
	acked int64 // acknowledged counts
}

const (
	witnessPath = "/chaos-witness"
	// witnessPause lies between two counts.
	witnessPause = 20 * time.Millisecond
	// slowCount is how long a count may take. What is promised within a second or two is promised of a registry that
	// answers, and a machine with too much to do has none.
	slowCount = 500 * time.Millisecond
)

// count counts until ctx ends.
func (w *witness) count(ctx context.Context) {
	next := int64(1)
	version := registry.Version(-1) // not known
	for pause(ctx, witnessPause) {
		err := w.timed(func() error {
			return w.client.attempt(ctx, func(ctx context.Context, ses registry.Session) error {
				if version < 0 {
					node, stands, err := w.read(ctx, ses)
					if err != nil {
						return err
					}
					version, next = node.Version, max(next, stands+1)
				}
				_, err := ses.Commit(ctx, registry.Set(witnessPath, []byte(strconv.FormatInt(next, 10)), version))
				return err
			})
		})
		switch {
		case err == nil:
			w.acknowledged(next)
			version++
			next++
		case ctx.Err() == nil:
			version = -1
			next++ // an attempt whose outcome nobody knows may still be applied
		}
	}
}

// timed writes down while what it calls takes long: the service is slow, to somebody to whom nothing is done.
func (w *witness) timed(count func() error) error {
	slow := history.Record{Kind: history.FaultBegun, Fault: history.SlowService, Of: "the service", Disturbs: true}
	written := make(chan struct{})
	late := time.AfterFunc(slowCount, func() {
		defer close(written)
		w.out.Write(slow)
	})
	err := count()
	if !late.Stop() {
		<-written
		slow.Kind, slow.Count = history.FaultEnded, 1
		w.out.Write(slow)
	}
	return err
}

// read returns the node and its count, after having made it, and having looked whether
// what was acknowledged is still there. Counting may go on meanwhile, so only what was acknowledged before the
// reading must be there.
func (w *witness) read(ctx context.Context, ses registry.Session) (registry.Node, int64, error) {
	acked := w.counts()
	if err := ses.Sync(ctx); err != nil {
		return registry.Node{}, 0, err
	}
	nodes, err := ses.Get(ctx, witnessPath)
	if err != nil {
		return registry.Node{}, 0, err
	}
	node := nodes[0]
	stands := int64(0)
	if node.Exists() {
		if stands, err = strconv.ParseInt(string(node.Value), 10, 64); err != nil {
			return registry.Node{}, 0, err
		}
	}
	w.compare(acked, stands)
	if node.Exists() {
		return node, stands, nil
	}
	_, err = ses.Commit(ctx, registry.Create(witnessPath, []byte("0")))
	if err == nil {
		err = errors.New("made, to be read")
	}
	return registry.Node{}, 0, err
}

func (w *witness) acknowledged(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = n
}

// compare looks whether a count that stands is one that was acknowledged, or a later one.
func (w *witness) compare(acked, stands int64) {
	if stands >= acked {
		return
	}
	w.out.Write(history.Record{
		Kind: history.LostWrites, Count: int(acked - stands),
		Reason: fmt.Sprintf("the witness's count %d stands, %d was acknowledged", stands, acked),
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acked == acked { // it is told once
		w.acked = stands
	}
}

// look looks once more, when the servers are well.
func (w *witness) look(ctx context.Context) error {
	return w.client.do(ctx, func(ctx context.Context, ses registry.Session) error {
		_, _, err := w.read(ctx, ses)
		return err
	})
}

// counts are how many counts were acknowledged.
func (w *witness) counts() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}
