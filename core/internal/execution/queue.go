package execution

import (
	"slices"
	"time"
)

// A batch is what one commit records.
type batch struct {
	begins []begin
	ends   []end
}

// next takes what the next commit holds, or nil when nothing is ready.
func (r *Recorder) next() *batch {
	if r.abandon() {
		return nil
	}
	r.mu.Lock()
	var refused []refusal
	var strays []end
	defer func() {
		r.mu.Unlock()
		r.refuse(refused)
		r.forget(strays)
	}()
	r.begins = slices.DeleteFunc(r.begins, func(b begin) bool {
		why := r.objection(b)
		if why != 0 {
			refused = append(refused, refusal{b, why, ""})
		}
		return why != 0
	})
	r.ends = slices.DeleteFunc(r.ends, func(e end) bool {
		it, owned := r.led.Items[e.item]
		if e.due.IsZero() {
			return !owned || !e.through.After(it.Through) // a begin has said so since
		}
		if !owned {
			strays = append(strays, e)
		}
		return !owned
	})
	fits := r.Session.Limits().MaxOps - fixedOps
	if len(r.begins) == 0 && (len(r.ends) == 0 || (len(r.ends) < fits && r.lingers())) {
		return nil
	}
	return r.take(fits)
}

// objection is why the ledger, as it is known, does not let b begin.
func (r *Recorder) objection(b begin) Refusal {
	it, owned := r.led.Items[b.item]
	switch {
	case !owned || it.Leaving:
		return NotOwned
	case !b.due.After(it.Through) || it.Running():
		return Behind
	}
	return 0
}

// lingers reports whether ends shall wait for those of items that still run.
func (r *Recorder) lingers() bool {
	if r.overdue {
		return false
	}
	running := 0
	for _, it := range r.led.Items {
		if it.Running() {
			running++
		}
	}
	if running <= len(r.ends) {
		return false
	}
	if r.timer == nil {
		r.timer = time.AfterFunc(linger, func() {
			r.mu.Lock()
			r.overdue, r.timer = true, nil
			r.mu.Unlock()
			r.task.Poke()
		})
	}
	return true
}

// take moves requests that need at most n operations into a batch, begins first:
// they are due, and taken together a fire of S items needs no more than twice the
// commits that S fit. One item occurs once.
func (r *Recorder) take(n int) *batch {
	b := &batch{}
	seen := map[int]bool{}
	fits := func(item, ops int) bool {
		if seen[item] || ops > n {
			return false
		}
		seen[item] = true
		n -= ops
		return true
	}
	r.begins = slices.DeleteFunc(r.begins, func(g begin) bool {
		taken := fits(g.item, 1)
		if taken {
			b.begins = append(b.begins, g)
		}
		return taken
	})
	r.ends = slices.DeleteFunc(r.ends, func(e end) bool {
		ops := 1
		if e.due.IsZero() || e.erased {
			ops = 0
		}
		taken := fits(e.item, ops)
		if taken {
			b.ends = append(b.ends, e)
		}
		return taken
	})
	if len(r.ends) == 0 {
		r.overdue = false
		if r.timer != nil {
			r.timer.Stop()
			r.timer = nil
		}
	}
	return b
}

// abandon refuses what has not begun once the life is over, and reports whether it
// is. Runs that end take their running nodes along.
func (r *Recorder) abandon() bool {
	r.mu.Lock()
	over, begins, ends := r.gone, r.begins, r.ends
	if over != nil {
		r.begins, r.ends = nil, nil
	}
	r.mu.Unlock()
	if over == nil {
		return false
	}
	var items []int
	for _, g := range begins {
		r.refuse([]refusal{{g, Lost, over.Error()}})
		items = append(items, g.item)
	}
	for _, e := range ends {
		if !e.due.IsZero() {
			items = append(items, e.item)
		}
	}
	r.erase(items)
	return true
}

// putBack returns what is left of b to the front of the queues and empties it.
func (r *Recorder) putBack(b *batch) {
	r.mu.Lock()
	r.begins = append(b.begins, r.begins...)
	r.ends = append(b.ends, r.ends...)
	r.overdue = r.overdue || len(b.ends) > 0
	r.mu.Unlock()
	b.begins, b.ends = nil, nil
}
