package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// A census asks each server by itself, past all proxies, what stands in the nodes that all
// workers decide by. One that has caught up with the others (Session.Sync) and still shows
// a node as it was before a change that another one showed earlier has lost that change:
// its clients are refused every commit that goes by it. ZooKeeper's servers come to differ
// so when one of them dies while another catches up (the issues at witness).
type census struct {
	out   *history.Writer
	addrs []string
	open  func(ctx context.Context, addr string) (registry.Registry, error)

	before []counted        // of each server, the round before
	lags   map[lag]struct{} // of the round before
	told   map[lag]struct{}
}

// counted are the states of nodes at one server.
type counted map[string]registry.Revision

// A lag is a node that a server shows older than another did before.
type lag struct {
	server int
	path   string
	shown  registry.Revision
}

// censusPause lies between two rounds, so that what is only late is not taken for lost.
const censusPause = time.Second

// count counts until ctx ends.
func (c *census) count(ctx context.Context) {
	clients := make([]*client, len(c.addrs))
	defer func() {
		for _, cl := range clients {
			if cl != nil {
				_ = cl.reg.Close()
			}
		}
	}()
	for pause(ctx, censusPause) {
		now := make([]counted, len(c.addrs))
		var asking sync.WaitGroup
		for i, addr := range c.addrs {
			asking.Go(func() {
				asked, cancel := context.WithTimeout(ctx, attemptTime)
				defer cancel()
				if clients[i] == nil {
					reg, err := c.open(asked, addr)
					if err != nil {
						return // down, or paused
					}
					clients[i] = &client{reg: reg}
				}
				_ = clients[i].attempt(asked, func(ctx context.Context, ses registry.Session) (err error) {
					now[i], err = shows(ctx, ses)
					return err
				})
			})
		}
		asking.Wait()
		c.round(now)
	}
}

// shows reads what a server shows once it has caught up.
func shows(ctx context.Context, ses registry.Session) (counted, error) {
	if err := ses.Sync(ctx); err != nil {
		return nil, err
	}
	var paths []string
	for _, spec := range jobs {
		j := jobLayout(spec.name)
		paths = append(paths, j.Config(), j.Term(), j.Base(), j.Schedule(), j.Claim())
		ids, err := ses.Children(ctx, j.Ledgers())
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			paths = append(paths, j.Ledger(id))
		}
	}
	nodes, err := ses.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	found := counted{}
	for _, n := range nodes {
		if n.Exists() {
			found[n.Path] = n.Modified
		}
	}
	return found, nil
}

// round compares what each server shows, nil where it did not answer, with what the others
// showed in the round before, which was over by then. What lags twice alike is told once.
func (c *census) round(now []counted) {
	lags := map[lag]struct{}{}
	for i, own := range now {
		for j, other := range c.before {
			if i == j {
				continue
			}
			for path, at := range other {
				shown, stands := own[path]
				if !stands || shown >= at { // one that is gone may have been deleted since
					continue
				}
				l := lag{i, path, shown}
				lags[l] = struct{}{}
				if _, again := c.lags[l]; !again {
					continue
				}
				if _, told := c.told[l]; told {
					continue
				}
				c.told[l] = struct{}{}
				c.out.Write(history.Record{
					Kind: history.LostWrites, Count: 1,
					Reason: fmt.Sprintf("server %d shows %s as of %#x, server %d showed it as of %#x before", i, path, shown, j, at),
				})
			}
		}
	}
	c.before, c.lags = now, lags
}
