package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A round is one fire over all items.
type round struct {
	due     time.Time
	results map[int]Sums
	ran     map[int]bool   // items of which a first run told its result
	again   map[int]bool   // those of which a second one did, since the worker of the first was killed
	lost    map[int]string // items that did not run, and why
	closed  bool
}

// A book keeps the rounds and compares them with a single pass.
type book struct {
	items  int
	period time.Duration
	want   []Sums // of each item, by the single pass
	from   time.Time
	rounds map[int64]*round
	whole  int // rounds in which every item ran, all of them right
	partly int
	again  int // runs of what a killed worker had begun
	files  int
}

func newBook(want []Sums, period time.Duration) *book {
	return &book{items: len(want), period: period, want: want, rounds: map[int64]*round{}}
}

// open starts the account: rounds due before t, or at it, do not count.
func (b *book) open(t time.Time) { b.from = t }

func (b *book) at(due time.Time) *round {
	r := b.rounds[due.UnixNano()]
	if r == nil {
		r = &round{due: due, results: map[int]Sums{}, ran: map[int]bool{}, again: map[int]bool{}, lost: map[int]string{}}
		b.rounds[due.UnixNano()] = r
	}
	return r
}

// result books the sums of one item. The error names the item that is wrong. What a killed
// worker had finished, and could not record any more, runs again.
func (b *book) result(due time.Time, item int, got Sums, again bool) error {
	if item < 0 || item >= b.items {
		return fmt.Errorf("round %s: item %d does not exist", clock(due), item)
	}
	if got != b.want[item] {
		return fmt.Errorf("round %s: item %d is wrong: got %v, a single pass has %v", clock(due), item, got, b.want[item])
	}
	r := b.at(due)
	of := r.ran
	if again {
		of = r.again
	}
	if of[item] {
		return fmt.Errorf("round %s: item %d ran twice", clock(due), item)
	}
	of[item], r.results[item] = true, got
	if again {
		b.again++
	}
	delete(r.lost, item)
	return nil
}

// has reports whether an item ran in a round.
func (b *book) has(due time.Time, item int) bool {
	_, ran := b.at(due).results[item]
	return ran
}

// lose books items that did not run at due, or in one of the fires before it.
func (b *book) lose(due time.Time, items []int, count int, why string) {
	for range max(count, 1) {
		r := b.at(due)
		for _, n := range items {
			if _, ran := r.results[n]; !ran {
				r.lost[n] = why
			}
		}
		due = due.Add(-b.period)
	}
}

// closeRounds returns the rounds that have become complete, oldest first.
func (b *book) closeRounds() []*round {
	var ready []*round
	for _, k := range slices.Sorted(maps.Keys(b.rounds)) {
		r := b.rounds[k]
		if r.closed || !r.due.After(b.from) || len(r.results)+len(r.lost) < b.items {
			continue
		}
		r.closed = true
		ready = append(ready, r)
		if len(r.lost) == 0 {
			b.whole++
		} else {
			b.partly++
		}
		for _, s := range r.results {
			b.files += s.Files
		}
	}
	return ready
}

// missing names what neither ran nor was skipped in the rounds due before an
// instant by which they should have closed. A round that nobody spoke of is one too.
func (b *book) missing(before time.Time) []string {
	var lines []string
	for due := b.from.Truncate(b.period).Add(b.period); due.Before(before); due = due.Add(b.period) {
		r := b.at(due)
		if r.closed {
			continue
		}
		for n := range b.items {
			_, ran := r.results[n]
			if _, lost := r.lost[n]; !ran && !lost {
				lines = append(lines, fmt.Sprintf("round %s: item %d neither ran nor was skipped", clock(r.due), n))
			}
		}
	}
	return lines
}

// String says how the round went.
func (r *round) String() string {
	if len(r.lost) == 0 {
		var sum Sums
		for _, s := range r.results {
			sum = sum.plus(s)
		}
		whole := fmt.Sprintf("round %s  whole, equal to a single pass: %v", clock(r.due), sum)
		if len(r.again) > 0 {
			whole += fmt.Sprintf("; items %v finished by others", slices.Sorted(maps.Keys(r.again)))
		}
		return whole
	}
	var lost []string
	for _, n := range slices.Sorted(maps.Keys(r.lost)) {
		lost = append(lost, fmt.Sprintf("item %d: %s", n, r.lost[n]))
	}
	return fmt.Sprintf("round %s  %d of %d items ran; not: %s", clock(r.due), len(r.results), len(r.results)+len(r.lost), strings.Join(lost, "; "))
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }
