package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	_ "github.com/elasticron/elasticron/registry/etcd"      // registers etcd://
	_ "github.com/elasticron/elasticron/registry/postgres"  // registers postgres://
	_ "github.com/elasticron/elasticron/registry/zookeeper" // registers zookeeper://
)

// A director runs the play: share, kill, take over, join.
type director struct {
	settings
	scr     *screen
	fleet   *fleet
	book    *book
	owners  *owners
	workers map[string]*worker
	running map[string]map[int]time.Time // the fires that run, by item
	files   map[int]int                  // progress of the running round, by item
	total   int
	leader  string
	next    time.Time
	due     time.Time
	moves   int
	act     act
	victim  string
	struck  map[int]time.Time // what it ran when it was killed
	since   int               // whole rounds when the act began
}

// An act is a part of the play.
type act string

const (
	actSharing act = "waiting until all workers have items"
	actRounds  act = "whole rounds with all workers"
	actKill    act = "waiting for the moment to kill one"
	actTaken   act = "a worker was killed: others finish what it ran"
	actFewer   act = "whole rounds with one worker less"
	actJoin    act = "a new worker joins: items move again"
	actLast    act = "the last rounds"
)

// direct is the parent process.
func direct(ctx context.Context, s settings) error {
	scr := newScreen(os.Stdout)
	root, err := goRoot(ctx)
	if err != nil {
		return err
	}
	want, total, pass, err := singlePass(ctx, root, s.items, scr)
	if err != nil {
		return err
	}
	period, words := periodOf(pass)
	scr.say("%s", words)
	url, end, err := provide(ctx, s, scr)
	if err != nil {
		return err
	}
	defer end()
	d := &director{
		settings: s, scr: scr, book: newBook(want, period), owners: newOwners(s.items), total: total,
		workers: map[string]*worker{}, running: map[string]map[int]time.Time{}, files: map[int]int{}, act: actSharing,
		fleet: &fleet{registry: url, root: root, items: s.items, period: period, out: make(chan told, 256)},
	}
	err = d.play(ctx)
	d.drain()
	if err != nil {
		return err
	}
	fmt.Printf("ok: %d whole rounds equal to a single pass, %d items that %s had begun run again, %d rounds not whole, %d files indexed, %d moves, longest time without an owner %v\n",
		d.book.whole, d.book.again, d.victim, d.book.partly, d.book.files, d.moves, d.owners.longest.Round(time.Millisecond))
	return nil
}

// singlePass indexes everything once, item by item, to know what is right, and how long it takes.
func singlePass(ctx context.Context, root string, items int, scr *screen) (want []Sums, total int, took time.Duration, err error) {
	files, err := listFiles(root)
	if err != nil {
		return nil, 0, 0, err
	}
	scr.say("indexing %d files below %s once, to know what is right", len(files), root)
	begun := time.Now()
	want = make([]Sums, items)
	var all Sums
	for i := range want {
		if want[i], err = index(ctx, share(files, i, items), func(int) {}); err != nil {
			return nil, 0, 0, err
		}
		all = all.plus(want[i])
	}
	took = time.Since(begun)
	scr.say("single pass in %v: %v", took.Round(time.Millisecond), all)
	return want, len(files), took, nil
}

// drain ends the workers and reads what they still tell, so that none is blocked.
func (d *director) drain() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.fleet.stopAll(stopAfter)
	}()
	for {
		select {
		case <-d.fleet.out:
		case <-done:
			return
		}
	}
}

func (d *director) start(ctx context.Context, name string) error {
	w, err := d.fleet.start(ctx, name)
	if err != nil {
		return err
	}
	d.workers[name] = w
	d.running[name] = map[int]time.Time{}
	d.scr.say("worker %s started: this program again, pid %d", name, w.cmd.Process.Pid)
	return nil
}

// errStuck ends a play that does not get on.
var errStuck = errors.New("quickstart: nothing got on")

// patience is how long nothing need get on: a minute, and some rounds where they are rare.
func (d *director) patience() time.Duration { return max(time.Minute, 6*d.book.period) }

func (d *director) play(ctx context.Context) error {
	for i := range d.settings.workers {
		if err := d.start(ctx, fmt.Sprintf("worker%d", i+1)); err != nil {
			return err
		}
	}
	redraw := time.NewTicker(100 * time.Millisecond)
	defer redraw.Stop()
	last, moved := d.act, time.Now()
	whole := 0
	for {
		select {
		case t := <-d.fleet.out:
			if err := d.hear(t); err != nil {
				return err
			}
		case <-redraw.C:
			d.draw()
		case <-ctx.Done():
			return errors.New("quickstart: interrupted")
		}
		over, err := d.advance(ctx)
		if over || err != nil {
			d.draw()
			return err
		}
		if d.act != last || d.book.whole != whole {
			last, whole, moved = d.act, d.book.whole, time.Now()
		}
		if time.Since(moved) > d.patience() {
			return fmt.Errorf("%w for %v: %s", errStuck, d.patience(), d.act)
		}
	}
}

// hear takes in what a worker told.
func (d *director) hear(t told) error {
	w := t.worker
	if t.ended {
		return d.heardEnd(t)
	}
	if w == d.victim && t.Kind != kindResult {
		return nil // said before it was killed; what it finished counts
	}
	switch t.Kind {
	case kindItems:
		d.owners.set(w, t.Items, t.At)
		d.scr.say("%s owns %v", w, t.Items)
	case kindLeader:
		if name := short(t.Leader); t.Leader != "" && name != d.leader {
			d.leader = name
			d.scr.say("%s leads", name)
		}
	case kindBegun:
		for _, n := range t.Items {
			d.running[w][n] = t.Due
		}
		if t.Again {
			d.scr.say("%s runs items %v of round %s again, which %s had begun", w, t.Items, clock(t.Due), d.victim)
		}
		if t.Due.After(d.due) {
			d.due, d.files = t.Due, map[int]int{}
		}
		d.next = t.Next
	case kindProgress:
		if t.Due.Equal(d.due) {
			d.files[t.Item] = t.Done
		}
	case kindResult:
		delete(d.running[w], t.Item)
		if t.Due.Equal(d.due) {
			d.files[t.Item] = t.Sums.Files
		}
		if err := d.book.result(t.Due, t.Item, t.Sums, t.Again); err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
	case kindFailed:
		delete(d.running[w], t.Item)
		d.book.lose(t.Due, []int{t.Item}, 1, t.Text)
		d.scr.say("%s: item %d failed: %s", w, t.Item, t.Text)
	case kindSkipped:
		d.book.lose(t.Due, t.Items, t.Count, t.Text)
		d.scr.say("%s: items %v skipped at %s: %s", w, t.Items, clock(t.Due), t.Text)
	case kindCut:
		return fmt.Errorf("quickstart: round %s: item %d is cut, and failover is on: %s", clock(t.Due), t.Item, t.Text)
	case kindMoves:
		d.moves += t.Moves
	case kindNote:
		d.scr.say("%s: %s", w, t.Text)
	}
	return nil
}

func (d *director) heardEnd(t told) error {
	delete(d.workers, t.worker)
	if t.worker == d.victim {
		return nil // its end was noted when it was killed
	}
	return fmt.Errorf("quickstart: %s ended by itself: %w", t.worker, t.err)
}

// advance closes rounds and goes on to the next act. It reports the end of the play.
func (d *director) advance(ctx context.Context) (over bool, err error) {
	for _, r := range d.book.closeRounds() {
		d.scr.say("%v", r)
	}
	seen := d.book.whole - d.since
	part := max(2, d.rounds/4)
	switch d.act {
	case actSharing:
		if d.owners.whole(d.settings.workers) {
			d.book.open(time.Now())
			d.enter(actRounds)
		}
	case actRounds:
		if seen >= part {
			d.enter(actKill)
		}
	case actKill:
		return false, d.kill()
	case actTaken:
		if d.owners.whole(d.settings.workers-1) && d.finished() {
			d.enter(actFewer)
		}
	case actFewer:
		if seen >= part {
			d.enter(actJoin)
			return false, d.start(ctx, fmt.Sprintf("worker%d", d.settings.workers+1))
		}
	case actJoin:
		if d.owners.whole(d.settings.workers) {
			d.enter(actLast)
		}
	case actLast:
		if seen >= 2 && d.book.whole >= d.rounds {
			if lines := d.book.missing(time.Now().Add(-3 * d.book.period)); len(lines) > 0 {
				return true, fmt.Errorf("quickstart: %s", lines[0])
			}
			return true, nil
		}
	}
	return false, nil
}

func (d *director) enter(a act) {
	d.act, d.since = a, d.book.whole
	d.scr.say("— %s", a)
}

// kill ends one worker with SIGKILL while as many items of it run as can at once: of fewer the last may have ended, and
// be about to say so.
func (d *director) kill() error {
	var busy []string
	for name := range d.workers {
		if n := len(d.running[name]); n > 0 && n >= min(len(d.owners.of[name]), 2*runtime.GOMAXPROCS(0)) {
			busy = append(busy, name)
		}
	}
	if len(busy) == 0 {
		return nil
	}
	d.victim = busy[rand.IntN(len(busy))]
	d.struck = d.running[d.victim]
	items := slices.Sorted(maps.Keys(d.struck))
	if err := d.workers[d.victim].cmd.Process.Kill(); err != nil {
		return fmt.Errorf("quickstart: kill: %w", err)
	}
	now := time.Now()
	d.scr.say("%s killed with SIGKILL while items %v run", d.victim, items)
	d.owners.gone(d.victim, now)
	d.running[d.victim] = map[int]time.Time{}
	d.enter(actTaken)
	return nil
}

// finished reports whether what the killed worker ran has ended in its round: at another
// worker, or at the killed one just before.
func (d *director) finished() bool {
	for n, due := range d.struck {
		if !d.book.has(due, n) {
			return false
		}
	}
	return true
}

func (d *director) draw() {
	done := 0
	for _, n := range d.files {
		done += n
	}
	d.scr.draw(view{
		workers: sortedNames(d.owners.of), owned: d.owners.of, running: d.running, leader: d.leader,
		next: d.next, due: d.due, progress: done * 100 / d.total, step: string(d.act),
	})
}
