package history

import (
	"slices"
	"strings"
	"time"
)

// nameOf is the part of an instance id that stays over restarts.
func nameOf(id string) string {
	_, suffix, found := strings.Cut(id, "@-@")
	if !found {
		return id
	}
	if dash := strings.LastIndexByte(suffix, '-'); dash > 0 {
		return suffix[:dash]
	}
	return suffix
}

// isStatic reports whether a job has static sharding at an instant, by its configuration.
func (j *job) isStatic(at time.Duration) bool {
	c := j.configAt(at)
	return c != nil && c.Static
}

// away reports whether a ledger of the dead may hold its items at a quiescence: they are bound to
// an instance that is not there, and nothing of them is to run.
func (j *job) away(quiet *Record, l Ledger) bool {
	return j.isStatic(quiet.At) && !slices.ContainsFunc(l.Items, func(h Holding) bool {
		name := h.Bound
		if name == "" {
			name = nameOf(l.Instance)
		}
		return isThere(quiet.Snapshot, name) || !h.Run.IsZero() || !h.Redo.IsZero()
	})
}

// isThere reports whether an instance of a name lives.
func isThere(s *Snapshot, name string) bool {
	return slices.ContainsFunc(s.Lives, func(id string) bool { return nameOf(id) == name })
}

// retotalled reports whether another total was configured between the configuration by which an item's epoch
// began and the run: what is owed of an epoch that ends is anybody's. An epoch may begin to end before the item has
// run once, and still be ending when its own total is configured again. It began no later than since, the instant of
// the item's first run, nor than its base was seen.
func (j *job) retotalled(n *run, since time.Duration) bool {
	r := n.entered
	if i := slices.IndexFunc(j.bases, func(b *Record) bool { return b.Base.Epoch == n.Epoch }); i >= 0 {
		since = min(since, j.bases[i].At)
	}
	from := 0 // the configuration by which the epoch began
	for i, c := range j.config {
		if c.Config.Total == r.Total && c.At <= since {
			from = i
		}
	}
	return j.configured(r.At) != r.Total || slices.ContainsFunc(j.config[from:], func(c *Record) bool {
		return c.Config.Total != r.Total && c.At <= r.At && (c.At > since || j.config[from].Config.Total == r.Total)
	})
}

// judgeBound judges who begins items while a job has static sharding. Where that is switched on
// while it runs they may have moved just before.
func (c *checker) judgeBound(j *job) {
	type item struct {
		stretch, epoch, number int
	}
	type owner struct {
		name  string
		since time.Duration
	}
	owners := map[item]owner{}
	for i, r := range j.config {
		if !r.Config.Static {
			continue
		}
		from, to := r.At, never
		if i+1 < len(j.config) {
			to = j.config[i+1].At
		}
		stretch := i
		for stretch > 0 && j.config[stretch-1].Config.Static {
			stretch-- // one that goes on
		}
		if stretch > 0 {
			from = max(from, later(j.config[stretch].At, c.rules.Settle))
		}
		for _, n := range j.runs {
			if n.entered.At < from || n.entered.At >= to || n.entered.Redo {
				continue
			}
			k, name := item{stretch, n.Epoch, n.Item}, nameOf(n.entered.Instance)
			was, known := owners[k]
			if !known {
				owners[k] = owner{name, n.entered.At}
				continue
			}
			if j.retotalled(n, was.since) {
				continue
			}
			c.report.Tally.Judged[Bound]++
			if was.name != name {
				c.blame(Bound, n.Key, n.entered.At, "entered by %s, and it is bound to %s", n.entered.Instance, was.name)
			}
		}
	}
}
