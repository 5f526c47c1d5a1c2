package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/history"
)

// A table is what a run did and saw.
type table struct {
	history.Tally

	broken   map[history.Invariant]int
	ways     map[string]int
	troubles []string
	acked    int64 // counts of the witness
	void     int   // attempts that said nothing
	upstream int   // lives that the service itself ended early
}

func tableOf(r history.Report, troubles []string) table {
	return table{Tally: r.Tally, broken: r.Broken, ways: r.Ways, upstream: r.Upstream, troubles: troubles}
}

// add sums two tables.
func (t *table) add(o table) {
	if t.Skipped == nil {
		t.Skipped, t.Asked, t.Faults = map[string]int{}, map[string]int{}, map[string]history.Hits{}
		t.Judged, t.broken, t.ways = map[history.Invariant]int{}, map[history.Invariant]int{}, map[string]int{}
	}
	for _, n := range []struct {
		into *int
		more int
	}{
		{&t.Records, o.Records}, {&t.Runs, o.Runs}, {&t.Fires, o.Fires}, {&t.Ended, o.Ended}, {&t.Failed, o.Failed},
		{&t.Cut, o.Cut}, {&t.Again, o.Again}, {&t.Untold, o.Untold}, {&t.Due, o.Due}, {&t.Crashes, o.Crashes}, {&t.Losses, o.Losses},
		{&t.Leaders, o.Leaders}, {&t.Epochs, o.Epochs}, {&t.LostWrites, o.LostWrites}, {&t.Off, o.Off},
	} {
		*n.into += n.more
	}
	for k, n := range o.Skipped {
		t.Skipped[k] += n
	}
	for k, n := range o.Asked {
		t.Asked[k] += n
	}
	for k, h := range o.Faults {
		sum := t.Faults[k]
		t.Faults[k] = history.Hits{Begun: sum.Begun + h.Begun, Hit: sum.Hit + h.Hit}
	}
	for k, n := range o.Judged {
		t.Judged[k] += n
	}
	for k, n := range o.broken {
		t.broken[k] += n
	}
	for k, n := range o.ways {
		t.ways[k] += n
	}
	t.acked += o.acked
	t.void += o.void
	t.Lateness = append(t.Lateness, o.Lateness...)
	slices.Sort(t.Lateness)
	t.troubles = append(t.troubles, o.troubles...)
}

func (t *table) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what string, values ...any) {
		fmt.Fprintf(w, "  %s\t", what)
		for _, v := range values {
			fmt.Fprintf(w, "%v\t", v)
		}
		fmt.Fprintln(w)
	}
	row("fault", "begun", "hit")
	for _, k := range slices.Sorted(maps.Keys(t.Faults)) {
		row(k, t.Faults[k].Begun, t.Faults[k].Hit)
	}
	row("item fires", t.Fires)
	row("due by the schedules", t.Due)
	row("runs", t.Runs)
	row("ended", t.Ended, fmt.Sprintf("%d failed", t.Failed), fmt.Sprintf("%d untold", t.Untold))
	row("cut", t.Cut)
	row("run again", t.Again)
	for _, why := range slices.Sorted(maps.Keys(t.Skipped)) {
		row("skipped: "+why, t.Skipped[why])
	}
	for _, what := range slices.Sorted(maps.Keys(t.Asked)) {
		row("asked for: "+briefly(what), t.Asked[what])
	}
	row("processes killed", t.Crashes)
	row("sessions lost", t.Losses)
	row("leaders", t.Leaders)
	row("changed totals", t.Epochs)
	row("clocks found to be off", t.Off)
	if t.acked > 0 {
		row("counts of the witness", t.acked)
		row("acknowledged writes that were lost", t.LostWrites)
		row("parts void, run again", t.void)
	}
	if n := len(t.Lateness); n > 0 {
		row("lateness in calm", n, "p50 "+t.late(50), "p99 "+t.late(99), "most "+t.late(100))
	}
	for _, i := range slices.Sorted(maps.Keys(t.Judged)) {
		row("judged: "+string(i), t.Judged[i])
	}
	row("violations", t.violations())
	_ = w.Flush()
	for _, what := range slices.Sorted(maps.Keys(t.ways)) {
		fmt.Fprintf(out, "  %6d  %s\n", t.ways[what], what)
	}
	for _, text := range t.troubles {
		fmt.Fprintln(out, "  trouble:", text)
	}
}

func (t *table) violations() (sum int) {
	for _, n := range t.broken {
		sum += n
	}
	return sum
}

// briefly keeps the table narrow.
func briefly(text string) string {
	const most = 30
	if len(text) <= most {
		return text
	}
	return text[:most-1] + "…"
}

func (t *table) late(percent int) string {
	i := min(len(t.Lateness)*percent/100, len(t.Lateness)-1)
	return t.Lateness[i].Round(time.Millisecond).String()
}

// wanted is the least that a run must have: kinds of faults that hit, faults, item fires, items
// that ran since they were asked for, calls of listeners to rounds, runs of items that are bound,
// clocks that were found to be off.
type wanted struct {
	kinds                                   []string
	faults, fires, asked, heard, bound, off int
}

// verdict says whether the run was good.
func (t *table) verdict(least wanted) error {
	var void []string
	faults := 0
	for _, kind := range least.kinds {
		h := t.Faults[kind]
		faults += h.Begun
		if h.Hit == 0 {
			void = append(void, kind+" never hit")
		}
	}
	for _, x := range []struct {
		what        string
		have, least int
	}{
		{"faults", faults, least.faults}, {"item fires", t.Fires, least.fires},
		{"items that ran for a request", t.Asked[string(request.Succeeded)] + t.Asked[string(request.Failed)], least.asked},
		{"calls of listeners to rounds", t.Judged[history.Rounds], least.heard},
		{"runs with static sharding", t.Judged[history.Bound], least.bound},
		{"clocks that were found to be off", t.Off, least.off},
	} {
		if x.have < x.least {
			void = append(void, fmt.Sprintf("%d %s, at least %d are wanted", x.have, x.what, x.least))
		}
	}
	switch wrong := t.wrong(); {
	case len(wrong) > 0:
		return fmt.Errorf("%w: %s", errBroken, strings.Join(wrong, "; "))
	case len(void) > 0:
		return &voidError{void}
	}
	return nil
}

// wrong names all that speaks against the run, for whoever sees the last lines only.
func (t *table) wrong() []string {
	var wrong []string
	if n := t.violations(); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d violations", n))
	}
	for _, what := range slices.Sorted(maps.Keys(t.ways)) {
		wrong = append(wrong, fmt.Sprintf("%d %s", t.ways[what], what))
	}
	if t.LostWrites > 0 {
		wrong = append(wrong, fmt.Sprintf("%d acknowledged writes were lost", t.LostWrites))
	}
	for _, text := range t.troubles {
		wrong = append(wrong, "trouble: "+text)
	}
	return wrong
}
