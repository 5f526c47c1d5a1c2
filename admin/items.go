package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// ItemState is one of ElasticJob's four, in their order: the first that holds.
type ItemState string

const (
	// ItemDisabled: an operator has disabled the item.
	ItemDisabled ItemState = "DISABLED"
	// ItemRunning: it runs.
	ItemRunning ItemState = "RUNNING"
	// ItemSharding: it has no owner that lives. ElasticJob's SHARDING_FLAG.
	ItemSharding ItemState = "SHARDING_FLAG"
	// ItemPending: it waits for its next fire.
	ItemPending ItemState = "PENDING"
)

// An Item is one sharding item.
type Item struct {
	// Number is from 0 to Total-1.
	Number int
	// Param is its own parameter.
	Param string
	// State is ElasticJob's. Why says in words what it waits for, or what keeps it from
	// running; a switch on its server, instance or job shows only there.
	State ItemState
	Why   string
	// Instance is the id of its owner, "" when it has none; Server is that one's address.
	Instance, Server string
	// Bound is the stable name of the instance to which static sharding binds it, "" without
	// (JobConfig.StaticSharding). Where that is another one than Instance's, it is away, and
	// Instance has the item for what runs again, and for nothing else.
	Bound string
	// Failover: ElasticJob's node says that it was taken over from a crashed instance, and that
	// run goes on. It stands while a fire runs again, not while one waits to.
	Failover bool
	// Again is the due time of the fire that waits to run again, since its instance died while
	// it ran; zero when none does. Lost is the id of the instance that died last while the fire
	// ran that waits or runs again, and Deaths is how many did; "" and 0 for any other.
	Again  time.Time
	Lost   string
	Deaths int
	// Epoch and Total are those of its record; 0 when there is none.
	Epoch, Total int
	// Run is the due time of the fire that runs now, zero when none does.
	Run time.Time
	// Began is when its latest run began, Ended when the latest that was recorded ended, and
	// Failed how. Ended before Began: it runs, or was cut. Zero is unknown: the oldest are
	// left out where a record has no room, and a job without monitoring has none.
	Began, Ended time.Time
	Failed       bool
	// Through: every fire due at or before it has an outcome, or runs.
	Through time.Time
	// Blocked: nothing of it begins now. Why says why.
	Blocked bool
	// Next is the next fire of its schedule; zero when there is none, or it follows the end
	// of its run (a fixed delay).
	Next time.Time
}

// Items returns the items of a job, by number.
func (a *Admin) Items(ctx context.Context, job string) ([]Item, error) {
	v, err := a.view(ctx, job)
	if err != nil {
		return nil, failed("list items", job, err)
	}
	return v.shards(), nil
}

// Item returns one item of a job.
func (a *Admin) Item(ctx context.Context, job string, item int) (Item, error) {
	all, err := a.Items(ctx, job)
	if err != nil {
		return Item{}, err
	}
	if item < 0 || item >= len(all) {
		return Item{}, failed(fmt.Sprintf("show item %d", item), job, ErrNoItem)
	}
	return all[item], nil
}

func (v *view) shards() []Item {
	holdings := v.holdings()
	var next time.Time
	if s, err := v.timing(); err == nil {
		if _, delayed := s.Delay(); !delayed {
			next, _ = s.Next(v.now)
		}
	}
	total := max(v.total(), v.javaTotal())
	all := make([]Item, total)
	for n := range total {
		all[n] = v.shard(n, v.orphan(holdings[n]))
		all[n].Next = next
	}
	return all
}

// javaTotal counts the items of a job that keeps no records, whose nodes say how many
// there are.
func (v *view) javaTotal() int {
	if v.base != nil || len(v.items) == 0 {
		return 0
	}
	return v.items[len(v.items)-1] + 1
}

func (v *view) shard(n int, h holding) Item {
	it := Item{
		Number: n, Param: v.config.ItemParams[n], Instance: h.owner, Epoch: h.epoch, Total: h.total,
		Run: h.item.Run, Through: h.item.Through, Began: h.item.Last.Began, Ended: h.item.Last.Ended, Failed: h.item.Last.Failed,
		Failover: v.has(v.job.Failover(n)), Again: h.item.Redo.Due, Lost: h.item.Redo.Lost, Deaths: h.item.Redo.Tries,
	}
	if id, err := layout.ParseInstanceID(h.owner); err == nil {
		it.Server = id.IP
	}
	it.Bound = v.bound(h)
	it.Why = v.blocked(n, h)
	it.Blocked = it.Why != ""
	ahead := v.ahead(h)
	if ahead {
		it.Run = time.Time{}
	}
	runs := h.item.Running() && !ahead || !h.known && v.has(v.job.Running(n)) || v.unrecordedRun(n, h)
	switch {
	case v.has(v.job.Disabled(n)):
		it.State = ItemDisabled
	case runs:
		it.State = ItemRunning
	case h.owner == "" || !v.alive(h.owner) || h.item.Lent():
		it.State = ItemSharding
	default:
		it.State = ItemPending
	}
	switch {
	case h.item.Redo.Owed():
		it.Why = awaits(h, it.Why)
	case ahead && it.Why == "":
		it.Why = "the fire due at " + instant(h.item.Run) + " is begun on " + h.owner + ", ahead of its time" + lent(h)
	case h.item.Running() && it.Why == "":
		it.Why = "runs the fire due at " + instant(h.item.Run) + " on " + h.owner
		if h.item.Redo.Lost != "" {
			it.Why += ", again: " + died(h.item.Redo)
		}
		it.Why += lent(h)
	case runs && it.Why == "":
		it.Why = "runs on " + h.owner
	}
	return it
}

// ahead reports whether the fire that the record says runs is not due yet: its begin is recorded, and
// its function is called when it is.
func (v *view) ahead(h holding) bool { return h.item.Ahead(v.now) }

// orphan is a holding as the leader will see it: what an owner ran of which only the record is
// left is to run again where the configuration has failover, and is cut otherwise.
func (v *view) orphan(h holding) holding {
	if !h.item.Running() || v.alive(h.owner) || v.has(v.job.Notice(h.owner)) {
		return h
	}
	redo := ledger.Redo{Due: h.item.Run, Lost: h.owner, Tries: h.item.Redo.Tries + 1}
	h.item.Run, h.item.Redo = time.Time{}, ledger.Redo{}
	switch {
	case !v.stored.Failover:
		h.item.Told = h.item.Told.With(ledger.Note{Due: redo.Due, Instance: redo.Lost})
	case redo.Tries >= maxDeaths:
		h.item.Told = h.item.Told.With(ledger.Note{Due: redo.Due, Instance: redo.Lost, Reason: string(event.CutTries)})
	default:
		h.item.Redo = redo
	}
	return h
}

// maxDeaths is how many instances may die of one fire, and waryDeaths after how many it waits
// for a place of its own.
const (
	maxDeaths  = 3
	waryDeaths = 2
)

// died says who died while a fire ran.
func died(r ledger.Redo) string {
	if r.Tries > 1 {
		return fmt.Sprintf("%d instances died while it ran, %s the last", r.Tries, r.Lost)
	}
	return r.Lost + " died while it ran"
}

// awaits says which fire waits to run again, and for what.
func awaits(h holding, blocked string) string {
	why := "the fire due at " + instant(h.item.Redo.Due) + " is to run again, before anything else of the item: " + died(h.item.Redo) + lent(h)
	switch {
	case blocked != "":
		why += "; now " + blocked
	case h.item.Redo.Tries >= waryDeaths:
		why += "; it begins when " + h.owner + " has a free place, and runs no other such fire"
	}
	return why
}

// lent says to whom an item belongs that another instance has for what runs again, "" where
// that is nobody else.
func lent(h holding) string {
	if !h.item.Lent() {
		return ""
	}
	return "; it is bound to the instance " + h.item.Bound + ", which is away, and is lent for that alone"
}

// bound is the stable name of the instance to which an item is bound, "" without static sharding.
func (v *view) bound(h holding) string {
	id, err := layout.ParseInstanceID(h.owner)
	switch {
	case !v.stored.StaticSharding || !h.known || err != nil:
		return ""
	case h.item.Lent():
		return h.item.Bound
	}
	return id.Stable()
}

// absent says why nobody may begin an item, since it is bound to one instance; "" where somebody
// may, or it is not bound.
func (v *view) absent(h holding) string {
	name := v.bound(h)
	busy := h.item.Running() || h.item.Redo.Owed() // which is lent where its owner is away
	switch {
	case name == "" || v.has(v.job.Notice(h.owner)) && !v.alive(h.owner) || busy:
		return ""
	case v.paused[name]:
		return "it is bound to the instance " + name + ", which is paused"
	case !h.item.Lent() && v.alive(h.owner):
		return ""
	}
	why := ", which is away, and no other may begin it (staticSharding)"
	for _, instance := range v.instances {
		id, err := layout.ParseInstanceID(instance)
		switch {
		case err != nil || id.Stable() != name:
		case v.enabled(id.IP):
			return "" // the leader gives it back
		default:
			why = ", whose server " + id.IP + " is disabled"
		}
	}
	return "it is bound to the instance " + name + why
}

// unrecordedRun reports whether a member without ledgers, of ElasticJob, shows the item as
// running. A node of one of ours is a picture: the ledger counts.
func (v *view) unrecordedRun(n int, h holding) bool {
	id, err := layout.ParseInstanceID(v.value(v.job.Running(n)))
	return !h.item.Running() && err == nil && id.IsJava() && v.registered(id.String())
}

// blocked says why nothing of an item begins now, "" when it may.
func (v *view) blocked(n int, h holding) string {
	id, _ := layout.ParseInstanceID(h.owner)
	switch {
	case h.known && layout.IsJava(v.value(v.job.Leader())):
		return "ElasticJob's instance " + v.value(v.job.Leader()) + " leads the job, and nothing of Elasticron's begins beside it"
	case v.has(v.job.Disabled(n)):
		return fmt.Sprintf("the item is disabled (%s)", v.job.Disabled(n))
	case v.stored.Disabled:
		return v.stored.DisabledReason()
	case h.owner == "" && len(v.instances) == 0:
		return "no instance is registered"
	case h.owner == "":
		return "the leader has not assigned it yet"
	case v.absent(h) != "":
		return v.absent(h)
	case !v.alive(h.owner):
		return "its owner " + h.owner + " is gone; a living instance gets it from the leader"
	case v.paused[id.Stable()]:
		return "the instance " + id.Stable() + " is paused"
	case !v.enabled(id.IP):
		return "the server " + id.IP + " is disabled"
	case v.clocks[h.owner] != "":
		return "the clock of " + h.owner + " is off: " + v.clocks[h.owner]
	case !v.registered(h.owner):
		return "its owner " + h.owner + " was shut down, and leaves when what it runs has ended"
	case h.held && h.until.IsZero():
		return fmt.Sprintf("the sharding total count changes from %d to %d; what runs must end first", h.total, v.stored.ShardingTotalCount)
	case h.held:
		return fmt.Sprintf("the sharding total count changes; of %d items only fires due until %s still run", h.total, instant(h.until))
	case h.item.Leaving:
		return "it moves to another instance when its run has ended"
	}
	return ""
}

// off reports whether somebody has switched off what is needed for an item to begin, or static
// sharding binds it to an instance that cannot. Else another instance gets the items of one that
// is paused, or on a disabled server, unless all are.
func (v *view) off(n int, h holding) bool {
	if v.bound(h) != "" {
		id, _ := layout.ParseInstanceID(h.owner)
		stuck := v.alive(h.owner) && (!v.enabled(id.IP) || !v.registered(h.owner))
		return stuck || v.absent(h) != "" || v.has(v.job.Disabled(n)) || v.stored.Disabled
	}
	all := len(v.instances) > 0 && !slices.ContainsFunc(v.instances, func(instance string) bool {
		id, err := layout.ParseInstanceID(instance)
		return err == nil && !v.paused[id.Stable()] && v.enabled(id.IP)
	})
	return all || v.has(v.job.Disabled(n)) || v.stored.Disabled
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
